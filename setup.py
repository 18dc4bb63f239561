"""Compiles the native kernels where there is a C++ compiler; all else is in setup.cfg.

    python3 setup.py build_ext --inplace    # for work in a checkout

Without a compiler, or if the compilation fails, the package is built without the library, and a
warning says why: it then trains with TensorFlow's own operations.
"""

import concurrent.futures
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # Before setuptools 70.1; who builds no wheel needs no `wheel`.
    try:
        from wheel.bdist_wheel import bdist_wheel
    except ImportError:
        bdist_wheel = object

ROOT = pathlib.Path(__file__).resolve().parent
SOURCES = 'estimator_tpu_embedding/native/src'
FLAGS = ('-O3', '-std=c++17', '-fPIC', '-ffp-contract=off', '-fno-math-errno',
         '-fno-trapping-math', '-fvisibility=hidden', '-pthread')
# What is compiled once per instruction set, one of which is chosen when the library is loaded.
PER_ISA = 'kernels_isa.cc'
ISAS = {'baseline': ()}
if platform.machine() in ('x86_64', 'AMD64'):
    ISAS['avx2'] = ('-mavx2',)
    ISAS['avx512'] = ('-mavx512f', '-mavx512vl', '-mavx512bw', '-mavx512dq')
TENSORFLOW = 'libtensorflow_framework.so.2'
TIMEOUT_SECONDS = 600
NATIVE = setuptools.Extension(
    'estimator_tpu_embedding.native.libete_kernels', optional=True,
    sources=sorted(f'{SOURCES}/{path.name}' for path in (ROOT / SOURCES).glob('*.cc')),
    depends=sorted(f'{SOURCES}/{path.name}' for path in (ROOT / SOURCES).glob('*.h')))


class NotCompiled(CompileError):
    """Why there is no library; setuptools makes a warning of it."""


def compiler():
    """The command of a C++ compiler, as a list of words."""
    named = os.environ.get('CXX', '').split()
    for command in ([named] if named else [['g++'], ['clang++'], ['c++']]):
        if shutil.which(command[0]):
            return command
    raise NotCompiled(f'there is no C++ compiler ({" ".join(named) or "g++ or clang++"} is not '
                      'found); install one, for example by "apt install g++", and this package '
                      'again')


def call(command):
    """Runs a compiler or linker."""
    try:
        subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=TIMEOUT_SECONDS, cwd=ROOT, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, 'stdout', None) or error
        raise NotCompiled(f'this command failed: {" ".join(command)}\n{str(output)[-4000:]}')


def compilations(directory):
    """Yields (object file, arguments) of everything that is to be compiled."""
    for source in NATIVE.sources:
        name = pathlib.Path(source).name
        for isa, flags in ISAS.items() if name == PER_ISA else [('', ())]:
            target = str(directory / f'{name}.{isa}.o')
            yield target, [*FLAGS, *flags, *([f'-DETE_ISA={isa}'] if isa else []),
                           '-c', source, '-o', target]


def stand_in(command, directory):
    """A library with the name and the functions of TensorFlow's, which the linker wants to see.

    So TensorFlow need not be there when the package is built, and what no library defines is
    found by the linker.
    """
    header = (ROOT / SOURCES / 'tf_api.h').read_text()
    functions = sorted(set(re.findall(r'\bTF_\w+(?=\()', header)))
    source = directory / 'tensorflow.cc'
    source.write_text(''.join(f'extern "C" void {name}() {{}}\n' for name in functions))
    call([*command, '-shared', '-fPIC', f'-Wl,-soname,{TENSORFLOW}', str(source),
          '-o', str(directory / TENSORFLOW)])
    return str(directory / TENSORFLOW)


def link(command, objects, directory, target):
    """Makes the library, of which nothing is visible from outside: it registers its operations.

    The standard library of C++ is that of the system, which TensorFlow needs too: a static one
    would need as new a C library as that of the system that compiles.
    """
    visible = directory / 'visible.map'
    visible.write_text('{ local: *; };\n')
    call([*command, '-shared', '-pthread', f'-Wl,--version-script={visible}', '-Wl,-z,defs',
          '-Wl,--no-as-needed', *objects, stand_in(command, directory), '-Wl,--as-needed',
          '-ldl', '-o', target])


class BuildKernels(build_ext):
    """Compiles the library with several compilers at once."""

    def run(self):
        """Also for work in a checkout, where the library is copied to once it is there."""
        self.beside = ROOT / self.get_ext_filename(NATIVE.name) if self.inplace else None
        super().run()

    def get_ext_filename(self, fullname):
        """The name does not depend on the version of Python, nor does the library."""
        return os.path.join(*fullname.split('.')) + '.so'

    def build_extension(self, ext):
        """Compiles and links what is older than its sources."""
        target = pathlib.Path(self.get_ext_fullpath(ext.name)).absolute()
        files = [ROOT / name for name in (*ext.sources, *ext.depends, 'setup.py')]
        if not self.force and target.exists() and all(
                path.stat().st_mtime < target.stat().st_mtime for path in files):
            return
        for old in filter(None, (target, self.beside)):
            old.unlink(missing_ok=True)  # It must not pass for this one if that fails.
        if platform.system() != 'Linux':
            raise NotCompiled(f'the native kernels are for Linux, this is {platform.system()}')
        command = compiler()
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(
                max(2, os.cpu_count() or 1)) as pool:
            directory = pathlib.Path(name)
            units = list(compilations(directory))
            list(pool.map(lambda unit: call([*command, *unit[1]]), units))
            link(command, [unit[0] for unit in units], directory, str(target))


class Wheel(bdist_wheel):
    """A wheel for every Python 3 of this platform, or of any if there is no library in it."""

    def get_tag(self):
        """Known after the library was built."""
        built = pathlib.Path(self.get_finalized_command('build_ext').get_ext_fullpath(NATIVE.name))
        return ('py3', 'none', f'linux_{platform.machine()}' if built.exists() else 'any')


setuptools.setup(ext_modules=[NATIVE], cmdclass={
    'build_ext': BuildKernels, **({} if bdist_wheel is object else {'bdist_wheel': Wheel})})
