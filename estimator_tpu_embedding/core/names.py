"""Checks the names of tables, features and directories, and makes names for TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import Problem
from . import limits

_DOUBTFUL_PATH = re.compile(
    r'(?P<parent>(?:^|/)\.\.(?:/|$))|(?P<home>~)|(?P<variable>\$)'
    r'|(?P<scheme>^[A-Za-z][\w+.-]*:)|(?P<control>[\x00-\x1f\x7f-\x9f])')
_IN_PATH = {'parent': 'a part ".."', 'home': '"~"', 'variable': '"$"', 'scheme': 'a URL scheme',
            'control': 'a control character'}


def name_problems(kind: str, name: object) -> Iterator[Problem]:
    """Yields each problem of the name of a table or a feature, which `kind` says.

    Names become variable names and parts of file names.

    >>> [p.code for p in name_problems('table', '../x')]
    ['E403']
    >>> list(name_problems('table', 'tbl_native-country'))
    []
    """
    # Characters that are not printable must not reach a terminal.
    begin = (f'"{name[:80]}"' if isinstance(name, str) and name.isprintable()
             else ascii(name)[:80])
    where = f'{kind} {begin}'
    if not isinstance(name, str) or not name:
        yield Problem('E403', where, 'the name must be a non-empty string', repr(name))
        return
    if len(name) > limits.MAX_NAME_LENGTH:
        yield Problem('E403', where,
                      f'the name must have at most {limits.MAX_NAME_LENGTH} characters',
                      f'{len(name)} characters')
        return
    if not name.isprintable():
        yield Problem('E403', where, 'the name must consist of printable characters', begin)
    if any(part in ('', '.', '..') for part in name.split('/')):
        yield Problem('E403', where, 'parts of the name between slashes must not be empty, '
                      '"." or ".."', begin)


def directory_doubts(path: object) -> Iterator[str]:
    """Yields each part of `path` that a plain path of a directory would not have.

    >>> list(directory_doubts('$HOME/../x')), list(directory_doubts('/data/profiles'))
    (['a part ".."', '"$"'], [])
    """
    if not isinstance(path, str):
        yield f'a {type(path).__name__}'
        return
    doubts = {str(found.lastgroup) for found in _DOUBTFUL_PATH.finditer(path)}
    yield from (text for kind, text in _IN_PATH.items() if kind in doubts)


DUMMY = 'tpu_embedding_dummy_table_variable_'
"""Prefix of the names of dummy variables, which catch the gradients of tables."""


def is_of_dummy(variable: str) -> bool:
    """Whether a variable belongs to a dummy, as the slots of its optimizer do.

    The gradient of a dummy is always 0, so such a variable carries no information.

    >>> is_of_dummy('OptimizeLoss/tpu_embedding_dummy_table_variable_user/Adam_1')
    True
    """
    return any(part.startswith(DUMMY) for part in variable.split('/'))


def legal(name: str) -> str:
    """Replaces the characters that TensorFlow does not allow in names of operations.

    >>> legal('a b/c')
    'a_b/c'
    """
    return re.sub(r'[^A-Za-z0-9_.\\/-]', '_', name)
