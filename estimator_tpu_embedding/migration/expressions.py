"""Reads regular expressions whose search ends soon, whatever the name.

Python's search tries all ways in which an expression can fit. Some expressions have more ways than
can be tried in a lifetime, and a map may come from a stranger. So repeats of groups are refused,
and so are many choices one after the other.
"""

from __future__ import annotations

import re

LONGEST_NAME = 250
"""An expression fits no longer name; the time of a search grows with a power of it."""
_MOST_REPEATS, _MOST_WAYS = 3, 32
_TOKEN = re.compile(r"""
    (?P<single>\\[dDsSwW]|\\[^\w]|\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\.)
    |(?P<begin>\((?:\?:|\?P<\w+>)?)|(?P<end>\))|(?P<bar>\|)|(?P<edge>[\^$])
    |(?P<repeat>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})[?+]?)|(?P<char>.)""", re.VERBOSE | re.DOTALL)


def compiled(text: str) -> re.Pattern[str]:
    r"""Returns an expression.

    Raises:
      ValueError: if it cannot be read, or could take too long.

    >>> compiled(r'layer_(\d+)/.*').fullmatch('layer_3/kernel')[1]
    '3'
    """
    try:
        expression = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f'no regular expression: {error}') from error
    _check(text)
    return expression


def _check(text: str) -> None:
    """Makes sure that few ways have to be tried.

    Raises:
      ValueError: otherwise.
    """
    alternatives: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for found in _TOKEN.finditer(text):
        kind, token = str(found.lastgroup), found[0]
        depth += (kind == 'begin') - (kind == 'end')
        if kind == 'bar' and not depth:
            alternatives.append([])
        else:
            alternatives[-1].append((kind, token))
    ways, repeats = zip(*map(_choices, alternatives))
    if max(repeats) > _MOST_REPEATS or sum(ways) > _MOST_WAYS:
        raise ValueError('too many repeats or branches, which could take very long; [^/]+ before '
                         '/ does not count, .+ does')


def _choices(tokens: list[tuple[str, str]]) -> tuple[int, int]:
    """Returns in how many ways branches can be taken, and how many repeats can end anywhere.

    Raises:
      ValueError: if a group is repeated, or is of a kind whose cost is unknown.
    """
    repeats, ways, branches = 0, 1, [1]
    for at, (kind, token) in enumerate(tokens):
        before = tokens[at - 1] if at else ('', '')
        if kind == 'repeat' and before[0] == 'begin' or kind == 'escape' and token[1] not in 'bBAZ':
            raise ValueError('groups must be (...) or (?:...), without references to them; and '
                             'characters must be written as they are')
        if kind == 'begin':
            branches.append(1)
        elif kind == 'bar':
            branches[-1] += 1
        elif kind == 'end':
            ways *= branches.pop()
        elif kind == 'repeat' and before[0] == 'end' and token[0] != '?':
            raise ValueError('only a single character may be repeated, and no group')
        elif kind == 'repeat' and not _is_tight(before[1], tokens[at + 1:]):
            ways, repeats = (ways * 2, repeats) if token[0] == '?' else (ways, repeats + 1)
    return ways, repeats


def _is_tight(repeated: str, rest: list[tuple[str, str]]) -> bool:
    """Whether a repeat of one character can end in one place only: before one it does not fit."""
    following = [token for token in rest if token != ('end', ')')]
    if not following:
        return True
    kind, token = following[0]
    is_repeated = len(following) > 1 and following[1][0] == 'repeat'
    if is_repeated or not (kind == 'char' or kind == 'single' and token[0] == '\\' and (
            not token[1].isalnum())):
        return False
    return repeated != ')' and re.fullmatch(repeated, token[-1]) is None
