"""Describes the installed packages, their conflicts, and what `etpe run` will set."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import pathlib
import platform
import re
import shutil
from collections.abc import Iterator

from ..compat import environment
from .facts import Finding

_SHOWN = {  # what people call it: its package
    'TensorFlow': 'tensorflow', 'Keras': 'keras', 'tf_keras': 'tf-keras',
    'tf-estimator-nightly': 'tf-estimator-nightly', 'protobuf': 'protobuf', 'NumPy': 'numpy'}
_OF_TENSORFLOW = ('tensorflow', 'tensorflow-cpu', 'tensorflow-gpu', 'tensorflow-intel',
                  'tf-nightly', 'tf-nightly-cpu', 'intel-tensorflow')
"""Distributions that each fill the folder `tensorflow`."""
_OLDEST = (2, 16)
_COMPILERS = 'c++', 'g++', 'clang++'


def describe() -> tuple[list[tuple[str, str]], list[Finding]]:
    """Returns (what, its state) for people, and the findings E111 and W221 about packages.

    It imports none of them.
    """
    lines = [('Python', platform.python_version())]
    lines += [(name, _version(package) or 'not installed') for name, package in _SHOWN.items()]
    lines += [('compiler', _compiler()), ('kernels', _kernels()),
              ('etpe run sets', f'{environment.LEGACY_KERAS}=1, which selects Keras 2 (tf_keras)')]
    return lines, [*_missing(), *_conflicts()]


def _missing() -> Iterator[Finding]:
    """Yields a finding for each package that `etpe run` needs and that nobody can import."""
    for module, package in environment.PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            yield Finding('E111', None, module, '', f'etpe run needs the module {module}: pip '
                          f'install {package}', 'package')


def _conflicts() -> Iterator[Finding]:
    several = [f'{name} {version}' for name in _OF_TENSORFLOW if (version := _version(name))]
    if len(several) > 1:
        yield _conflict('tensorflow', f'{", ".join(several)} are all installed, in one place; keep '
                        'one of them')
    tensorflow, keras = _version('tensorflow'), _version('tf-keras')
    if tensorflow and _minor(tensorflow) < _OLDEST:
        yield _conflict('tensorflow', f'TensorFlow {tensorflow} is older than 2.16, the oldest '
                        'that this package works with')
    if tensorflow and keras and _minor(tensorflow) != _minor(keras):
        yield _conflict('tf-keras', f'tf_keras {keras} belongs to another TensorFlow than '
                        f'{tensorflow}; pip install tf-keras~={".".join(tensorflow.split(".")[:2])}'
                        '.0')
    for package in dict.fromkeys(_SHOWN.values()):
        yield from _unmet(package)


def _unmet(package: str) -> Iterator[Finding]:
    """Yields a finding for each installed package whose version another one cannot use."""
    try:
        from packaging.requirements import Requirement
        texts = importlib.metadata.requires(package) or []
    except ImportError:  # Also for a package that is not there. TensorFlow needs `packaging`.
        return
    for text in texts:
        with contextlib.suppress(ValueError):  # A requirement that nobody can read.
            needed = Requirement(text)
            version = _version(needed.name)
            is_meant = needed.marker is None or needed.marker.evaluate({'extra': ''})
            if is_meant and version and not needed.specifier.contains(version, prereleases=True):
                yield _conflict(needed.name, f'{package} {_version(package)} needs '
                                f'{needed.name}{needed.specifier}, and {version} is installed')


def _conflict(subject: str, message: str) -> Finding:
    return Finding('W221', None, subject, '', message)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r'\d+', version)[:2])


def _compiler() -> str:
    return next((path for name in _COMPILERS if (path := shutil.which(name))), 'none found')


def _kernels() -> str:
    folder = pathlib.Path(__file__).resolve().parent.parent / 'native'
    return 'native, compiled' if any(folder.glob('*.so')) else (
        'stock, slower: the native ones were not compiled when this package was installed')
