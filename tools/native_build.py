"""Compiles the native kernels, for setup.py and for the scripts beside this file.

Needs nothing but Python: neither setuptools nor the package.
"""

import concurrent.futures
import os
import pathlib
import platform
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / 'estimator_tpu_embedding' / 'native' / 'src'
# Without -ffp-contract=off the instruction sets would differ in their results.
FLAGS = ('-std=c++17', '-fPIC', '-ffp-contract=off', '-fno-math-errno', '-fno-trapping-math',
         '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra')
OPTIMIZED = ('-O3',)
PER_ISA = 'kernels_per_isa.cc'
"""Compiled once per instruction set, one of which is chosen when the library is loaded."""
ISAS: dict[str, tuple[str, ...]] = {'baseline': ()}
if platform.machine() in ('x86_64', 'AMD64'):
    ISAS['avx2'] = ('-mavx2',)
    ISAS['avx512'] = ('-mavx512f', '-mavx512vl', '-mavx512bw', '-mavx512dq')
TIMEOUT_SECONDS = 600


class NotCompiled(Exception):
    """The reason why there is no library, or no program."""


def compiler() -> list[str]:
    """The command of a C++ compiler, as a list of words.

    Raises:
      NotCompiled: if neither the compiler that CXX names nor one of the usual ones is there.
    """
    named = os.environ.get('CXX', '').split()
    for command in ([named] if named else [['g++'], ['clang++'], ['c++']]):
        if shutil.which(command[0]):
            return command
    raise NotCompiled(f'there is no C++ compiler ({" ".join(named) or "g++ or clang++"} is not '
                      'found); install one, for example by "apt install g++", and this package '
                      'again')


def call(command: list[str], timeout: float = TIMEOUT_SECONDS) -> None:
    """Runs a compiler or linker, and shows its warnings.

    Args:
      command: its words.
      timeout: in seconds.

    Raises:
      NotCompiled: if it fails; with the end of its output.
    """
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=timeout, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, 'stdout', None) or error
        raise NotCompiled(f'this command failed: {" ".join(command)}\n{str(output)[-4000:]}')
    print(done.stdout, end='', flush=True)


def units(sources: list[pathlib.Path]) -> list[tuple[pathlib.Path, str, tuple[str, ...]]]:
    """Returns the files to compile: (source, name of the object, flags of its own)."""
    found: list[tuple[pathlib.Path, str, tuple[str, ...]]] = []
    for source in sources:
        if source.name == PER_ISA:
            found += [(source, f'{source.name}.{isa}.o', (f'-DETE_ISA={isa}', *flags))
                      for isa, flags in ISAS.items()]
        else:
            found.append((source, f'{source.name}.o', ()))
    return found


def compile_all(command: list[str], flags: tuple[str, ...], sources: list[pathlib.Path],
                directory: pathlib.Path, timeout: float = TIMEOUT_SECONDS) -> list[str]:
    """Compiles with several compilers at once.

    Args:
      command: of the compiler.
      flags: besides `FLAGS`.
      sources: C++ files; those in other directories than `SOURCES` may include from there.
      directory: where the objects are put.
      timeout: of each call, in seconds.

    Returns:
      The objects.

    Raises:
      NotCompiled: if one is refused.
    """
    def compile_one(unit: tuple[pathlib.Path, str, tuple[str, ...]]) -> str:
        source, name, own = unit
        target = str(directory / name)
        call([*command, *FLAGS, *flags, *own, f'-I{SOURCES}', '-c', str(source), '-o', target],
             timeout)
        return target

    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(compile_one, units(sources)))
