"""Compiles the native kernels where there is a C++ compiler; all else is in setup.cfg.

    python3 setup.py build_ext --inplace    # for work in a checkout

Without a compiler, or if the compilation fails, the package is built without the library, and a
warning says why: it then trains with TensorFlow's own operations.
"""

import os
import pathlib
import platform
import re
import sys
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
sys.path.insert(0, str(ROOT / 'tools'))  # pip does not look beside this file.

import native_build  # noqa: E402

SOURCES = native_build.SOURCES.relative_to(ROOT)
TENSORFLOW = 'libtensorflow_framework.so.2'
NATIVE = setuptools.Extension(
    'estimator_tpu_embedding.native.libete_kernels', optional=True,
    sources=sorted(f'{SOURCES}/{path.name}' for path in (ROOT / SOURCES).glob('*.cc')),
    depends=sorted(f'{SOURCES}/{path.name}' for path in (ROOT / SOURCES).glob('*.h')))


def stand_in(command, directory):
    """A library with the name and the functions of TensorFlow's, which the linker wants to see.

    So TensorFlow need not be there when the package is built, and what no library defines is
    found by the linker.
    """
    header = (native_build.SOURCES / 'tf_api.h').read_text()
    functions = sorted(set(re.findall(r'\bTF_\w+(?=\()', header)))
    source = directory / 'tensorflow.cc'
    source.write_text(''.join(f'extern "C" void {name}() {{}}\n' for name in functions))
    native_build.call([*command, '-shared', '-fPIC', f'-Wl,-soname,{TENSORFLOW}', str(source),
                       '-o', str(directory / TENSORFLOW)])
    return str(directory / TENSORFLOW)


def link(command, objects, directory, target):
    """Makes the library, of which only the function that registers a TPU's kernels is visible.

    The standard library of C++ is that of the system, which TensorFlow needs too: a static one
    would need as new a C library as that of the system that compiles.
    """
    visible = directory / 'visible.map'
    visible.write_text('{ global: ete_register_tpu_kernels; local: *; };\n')
    native_build.call([
        *command, '-shared', '-pthread', f'-Wl,--version-script={visible}', '-Wl,-z,defs',
        '-Wl,--no-as-needed', *objects, stand_in(command, directory), '-Wl,--as-needed', '-ldl',
        '-o', target])


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
        files.append(pathlib.Path(native_build.__file__))
        if not self.force and target.exists() and all(
                path.stat().st_mtime < target.stat().st_mtime for path in files):
            return
        for old in filter(None, (target, self.beside)):
            old.unlink(missing_ok=True)  # It must not pass for this one if that fails.
        if platform.system() != 'Linux':
            raise CompileError(f'the native kernels are for Linux, this is {platform.system()}')
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.make(ext, target)
        except native_build.NotCompiled as error:
            raise CompileError(error)  # Of which setuptools makes a warning.

    def make(self, ext, target):
        """Compiles and links."""
        command = native_build.compiler()
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            objects = native_build.compile_all(
                command, native_build.OPTIMIZED, [ROOT / source for source in ext.sources],
                directory)
            link(command, objects, directory, str(target))


class Wheel(bdist_wheel):
    """A wheel for every Python 3 of this platform, or of any if there is no library in it."""

    def get_tag(self):
        """Known after the library was built."""
        built = pathlib.Path(self.get_finalized_command('build_ext').get_ext_fullpath(NATIVE.name))
        return ('py3', 'none', f'linux_{platform.machine()}' if built.exists() else 'any')


setuptools.setup(ext_modules=[NATIVE], cmdclass={
    'build_ext': BuildKernels, **({} if bdist_wheel is object else {'bdist_wheel': Wheel})})
