"""Reads `OLD_NAMES.md`: where names of older TensorFlows are today, and what to use for others.

The file has a table for each question; a function here answers it. TensorFlow is not imported.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib.resources
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

BUILDER = 'tensorflow.python.training.saver.BaseSaverBuilder'
"""The one class among the old places; all others are modules."""


class Rule(NamedTuple):
    """The fate of the lost names that match a pattern: `'restored'`, `'refused'` or `'gone'`."""

    pattern: str
    fate: str
    note: str


@functools.cache
def homes() -> dict[str, tuple[str, ...]]:
    """Returns the modules in which each module that is gone finds its names, by its whole path."""
    return {_whole(_first(old)): tuple(map(_whole, _names(new)))
            for old, new, names in _table('Private names that moved') if names == 'all'}


@functools.cache
def moved() -> dict[str, dict[str, tuple[str, str]]]:
    """Returns home and name today of each name, by the module or class that had it.

    >>> moved()['tensorflow.python.util.nest']['is_sequence']
    ('tensorflow.python.util.nest', 'is_nested')
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for old, home, names in _table('Private names that moved'):
        found.setdefault(_whole(_first(old)), {}).update(
            (name, (_whole(_first(home)), new)) for name, new in _pairs(names))
    return {old: names for old, names in found.items() if names}


@functools.cache
def private_advice() -> dict[str, tuple[str, ...]]:
    """Returns what to use for private names that have another meaning today, by whole paths."""
    return {_whole(_first(old)): tuple(_names(new))
            for old, new in _table('Private names with another meaning today')}


def advice(path: str) -> str | None:
    """Returns a line for the user about the full name of what is missing; `None` if unknown.

    >>> advice('tensorflow.python.eager.function.defun')
    'tensorflow.python.eager.function.defun is private and has moved: use tf.function'
    """
    advised = {path: new for path, new in {**homes(), **private_advice()}.items() if new}
    known = _longest(path, advised)
    return f'{known} is private and has moved: use {", ".join(advised[known])}' if known else None


@functools.cache
def before_1_15() -> dict[str, str]:
    """Returns what scripts of 2019 used for each name below `tf` that is older."""
    return {_first(old): new for old, new in _table('Names older than TensorFlow 1.15')}


@functools.cache
def dropped() -> dict[str, str]:
    """Returns, by the path of a name that Python or NumPy dropped, that of the same thing today."""
    return {f'{_first(old)}.{name}': f'{_first(home)}.{new}'
            for old, home, names in _table('Names that Python and NumPy dropped')
            for name, new in _pairs(names)}


@functools.cache
def refused() -> dict[str, dict[str, str]]:
    """Returns what to do about each name that raises when it is used, by module and name."""
    found: dict[str, dict[str, str]] = {}
    for module, name, remedy in _table('Names that raise when they are used'):
        found.setdefault(_first(module), {})[_first(name)] = remedy
    return found


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Returns the rules about lost names; `LOST_NAMES.md` is made from them."""
    return tuple(Rule(_first(pattern), fate, note)
                 for pattern, fate, note in _table('Fates of lost names'))


def rule_of(name: str) -> Rule | None:
    """Returns the first rule that a lost name, with all its modules, falls under, or `None`.

    >>> rule_of('tf.estimator.DNNClassifier').fate
    'restored'
    """
    return next((rule for rule in rules() if fnmatch.fnmatchcase(name, rule.pattern)), None)


@functools.cache
def same_in_contrib() -> dict[str, str]:
    """Returns, by path below `tf.contrib`, the whole path of the same object today."""
    return {f'{_first(area)}.{name}': '.'.join(
        ['tensorflow.compat.v1', *(_names(home) if home != '–' else ()), new])
        for area, home, names, _ in _table('Names of tf.contrib that are the same today')
        for name, new in _pairs(names)}


def places_in_contrib() -> dict[str, list[str]]:
    """Returns the modules of each package below `tf.contrib` that are the whole area today."""
    return {_first(package): _names(modules)
            for package, modules in _table('Modules in areas of tf.contrib')}


@functools.cache
def gone_of_contrib() -> dict[str, str]:
    """Returns what to use, by path below `tf.contrib`, for areas and names that are gone."""
    return {_first(old): new for old, new in _table('Names of tf.contrib that are gone')}


def names_of_contrib(area: str) -> dict[str, Any]:
    """Returns the objects of an area of `tf.contrib` that are the same today, by their names."""
    import tensorflow.compat.v1 as tf
    return {path.removeprefix(f'{area}.'): functools.reduce(getattr, home.split('.')[3:], tf)
            for path, home in same_in_contrib().items() if path.startswith(f'{area}.')}


def missing_in_contrib(path: str) -> str:
    """Returns the message for a name that is not provided, by its full path.

    >>> missing_in_contrib('tensorflow.contrib.nn.alpha_dropout')
    'tf.contrib.nn.alpha_dropout is not provided by install(contrib=True); use tf.nn'
    """
    name = path.removeprefix('tensorflow.contrib.')
    known = _longest(name, gone_of_contrib())
    use = same_in_contrib().get(name, '').replace('tensorflow', 'tf', 1) or (
        gone_of_contrib().get(known))
    return f'tf.contrib.{name} is not provided by install(contrib=True)' + (
        f'; use {use}' if use else '')


@functools.cache
def _tables() -> dict[str, list[list[str]]]:
    """Returns the rows of each table by its heading, with cells as they are written."""
    file = importlib.resources.files(__package__.partition('.')[0]) / 'OLD_NAMES.md'
    return {title: [line[2:-2].split(' | ') for line in text.split('\n') if line.startswith('| `')]
            for title, _, text in (section.partition('\n') for section in file.read_text(
                'utf-8').split('\n## '))}


def _table(title: str) -> list[list[str]]:
    return _tables()[title]


def _names(cell: str) -> list[str]:
    return re.findall('`([^`]+)`', cell)


def _first(cell: str) -> str:
    return _names(cell)[0]


def _pairs(cell: str) -> Iterator[tuple[str, str]]:
    """Yields the old and the new name of each in a cell."""
    for old, _, new in (name.partition('=') for name in _names(cell)):
        yield old, new or old


def _longest(path: str, known: dict[str, Any]) -> str:
    """Returns the path, or the nearest one around it, that is known; or `''`."""
    while path and path not in known:
        path = path.rpartition('.')[0]
    return path


def _whole(path: str) -> str:
    is_whole = path.startswith(('tensorflow', 'tf_keras.', 'estimator_tpu_embedding.'))
    return path if is_whole else f'tensorflow.python.{path}'
