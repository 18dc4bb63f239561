"""Says how each library is asked: by importing it, or by looking for its files only."""

from __future__ import annotations

import os
import pathlib
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Sequence

from .findings import Question

PACKAGE = str(__package__).partition('.')[0]
OF_TENSORFLOW = frozenset({
    'tensorflow', 'tensorflow_core', 'keras', 'tf_keras', 'tensorflow_estimator', PACKAGE})
"""Packages that need TensorFlow, and that `etpe run` may change."""

_HARMLESS = frozenset({'numpy', 'six', 'absl'})
PYTHON = frozenset({*sys.stdlib_module_names, 'builtins'})
"""Modules of the standard library."""

_WITH_EFFECTS = frozenset({  # They print, open windows or a browser, or are another module here.
    '__hello__', '__main__', '__phello__', 'antigravity', 'idlelib', 'test', 'this', 'turtle',
    'turtledemo'})

_CONTRIB = re.compile(r'tensorflow(?:\.compat\.v[12])*\.contrib(?:\.(?P<name>.+))?')


def top(question: Question) -> str:
    """Returns the package of a question."""
    return question.module.partition('.')[0]


def in_contrib(path: str) -> re.Match[str] | None:
    """Returns a match whose group `name` is the name below `tf.contrib`, if a path is there.

    >>> in_contrib('tensorflow.compat.v1.contrib.slim')['name'], in_contrib('tensorflow.nn')
    ('slim', None)
    """
    return _CONTRIB.fullmatch(path)


def is_imported(question: Question) -> bool:
    """Whether the library of a question may be imported: its authors wrote no surprise into it.

    Others are sought in the file system, so nothing of them runs.

    >>> is_imported(Question('numpy', 'int')), is_imported(Question('pandas', 'DataFrame'))
    (True, False)
    """
    package = top(question)
    return package in OF_TENSORFLOW or package in _HARMLESS or (
        package in PYTHON and package not in _WITH_EFFECTS)


def outside(entries: Iterable[str], scanned: Sequence[str]) -> list[str]:
    """Returns the entries of a search path from which nothing that is scanned can be imported.

    A folder of this Python stays, even if it lies in a scanned folder, as a virtual environment
    may. An entry `''` stands for the current folder.
    """
    folders = [os.path.realpath(one) for one in scanned]
    folders = [one if os.path.isdir(one) else os.path.dirname(one) for one in folders]
    paths = sysconfig.get_paths()
    own = [os.path.realpath(one) for one in (
        *(paths[name] for name in ('stdlib', 'platstdlib', 'purelib', 'platlib')),
        *site.getsitepackages(), site.getusersitepackages(),
        os.path.join(sys.base_prefix, sys.platlibdir))]

    def is_in(entry: str, places: Iterable[str]) -> bool:
        path = pathlib.Path(os.path.realpath(entry))
        return any(path.is_relative_to(place) for place in places)

    return [entry for entry in entries if is_in(entry, own) or not is_in(entry, folders)]
