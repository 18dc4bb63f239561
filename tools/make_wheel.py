#!/usr/bin/env python3
"""Builds the wheel with the compiled kernels, and checks its contents.

    python3 tools/make_wheel.py dist

makes `dist/estimator_tpu_embedding-<version>-py3-none-linux_<machine>.whl`. It needs pip, a C++
compiler and, for the check, binutils; not TensorFlow. It builds from a copy of the sources, since
setuptools would put leftovers of earlier builds in the checkout into the wheel.

It prints the libraries that the kernels need, and the newest version of each set of symbols. These
say how old a system may be. It fails if the library is missing, or needs anything of Python. It
also fails if manylinux_2_34 (Ubuntu 22.04, Debian 12, Red Hat 9) lacks anything that it needs.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import environment

SOURCES = ('setup.py', 'setup.cfg', 'pyproject.toml', 'MANIFEST.in', 'README.md', 'LICENSE',
           'tools/native_build.py')
"""What a build needs besides the package."""

LIBRARY = 'estimator_tpu_embedding/native/libete_kernels.so'
ALLOWED = re.compile(r'libtensorflow_framework\.so\.2|lib(c|m|dl|pthread|stdc\+\+)\.so\.\d+|'
                     r'libgcc_s\.so\.1|ld-linux.*')
NEWEST = {'GLIBC': (2, 34), 'GLIBCXX': (3, 4, 29), 'CXXABI': (1, 3, 13), 'GCC': (7, 0, 0)}
"""By set of symbols, the version that manylinux_2_34 has."""


def main() -> None:
    """Builds and checks."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        sources = copy_of_sources(pathlib.Path(name))
        environment.run([sys.executable, '-m', 'pip', '--disable-pip-version-check', 'wheel', '-v',
                         '--no-deps', '--wheel-dir', name, str(sources)])
        wheel, = pathlib.Path(name).glob('*.whl')
        with zipfile.ZipFile(wheel) as archive:
            if LIBRARY not in archive.namelist():
                sys.exit(f'{wheel.name} has no compiled kernels; the log above says why.')
            library = archive.extract(LIBRARY, name)
        check(library)
        target.mkdir(parents=True, exist_ok=True)
        (target / wheel.name).write_bytes(wheel.read_bytes())
    print(target / wheel.name)


def copy_of_sources(directory: pathlib.Path) -> pathlib.Path:
    """A checkout in which nothing was built yet."""
    target = directory / 'sources'
    package = 'estimator_tpu_embedding'
    shutil.copytree(environment.ROOT / package, target / package,
                    ignore=shutil.ignore_patterns('*.so', '__pycache__'))
    (target / 'tools').mkdir()
    for name in SOURCES:
        shutil.copy(environment.ROOT / name, target / name)
    return target


def check(library: str) -> None:
    """Prints what a shared library needs; ends this process if that is too much."""
    needed = re.findall(r'\(NEEDED\).*\[(.*)\]', output('readelf', '--dynamic', library))
    newest: dict[str, tuple[int, ...]] = {}
    for prefix, version in re.findall(r'@(\w+?)_([\d.]+)', output(
            'nm', '--dynamic', '--undefined-only', library)):
        number = tuple(int(part) for part in version.split('.'))
        newest[prefix] = max(newest.get(prefix, number), number)
    print('needs', ', '.join(needed), 'with', ', '.join(
        f'{prefix} {".".join(map(str, number))}' for prefix, number in sorted(newest.items())))
    foreign = [name for name in needed if not ALLOWED.fullmatch(name)]
    if foreign:
        sys.exit(f'The kernels must not need {", ".join(foreign)}.')
    newer = sorted(name for name, number in newest.items() if number > NEWEST.get(name, ()))
    if newer:
        sys.exit(f'Of {", ".join(newer)} the kernels need newer symbols than manylinux_2_34 has.')


def output(*command: str) -> str:
    """Returns the output of a command."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == '__main__':
    main()
