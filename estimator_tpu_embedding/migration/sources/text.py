"""Makes lines of Python: expressions that are broken to fit, numbers, names and comments.

Names come from files of strangers. `quoted` escapes them, and nothing else puts them into code.
"""

from __future__ import annotations

import dataclasses
import numbers
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.float32 import is_float32, shortest

WIDTH = 79
_STEP = '    '


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, or one entry of a dict.

    Attributes:
      before: text before the value, such as `'dim='`.
      value: the value.
      comments: sentences that stand above it.
      remark: a few words that stand behind it.
    """

    before: str
    value: Expression
    comments: Sequence[str] = ()
    remark: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A call, or a dict if `opening` is `'{'`.

    Attributes:
      opening: the function and its bracket, such as `'api.SGD('`.
      arguments: in order.
    """

    opening: str
    arguments: Sequence[Argument]

    @property
    def closing(self) -> str:
        """The bracket at the end."""
        return {'(': ')', '{': '}'}[self.opening[-1]]


Expression = str | Call


def call(function: str, arguments: dict[str, Expression]) -> Call:
    """Returns a call with keyword arguments.

    >>> list(lines('X = ', call('f', {'a': '1', 'b': quoted('two')})))
    ["X = f(a=1, b='two')"]
    """
    return Call(f'{function}(', [Argument(f'{name}=', value)
                                 for name, value in arguments.items()])


def lines(before: str, value: Expression, after: str = '', indent: str = '') -> Iterator[str]:
    """Yields the lines of a statement or an argument, on one line if it fits.

    Args:
      before: text before the value.
      value: the value.
      after: text behind it.
      indent: spaces before the first line.
    """
    whole = _flat(value)
    if whole is not None and (isinstance(value, str) or _fits(f'{indent}{before}{whole}{after}')):
        yield f'{indent}{before}{whole}{after}'
        return
    assert isinstance(value, Call)
    yield f'{indent}{before}{value.opening}'
    for one in value.arguments:
        for text in one.comments:
            yield from comment(text, indent + _STEP)
        remark = f'  # {one.remark}' if one.remark else ''
        yield from lines(one.before, one.value, f',{remark}', indent + _STEP)
    yield f'{indent}{value.closing}{after}'


def _fits(line: str) -> bool:
    return len(line) <= WIDTH


def _flat(value: Expression) -> str | None:
    """Returns an expression on one line, or `None` if it has comments."""
    if isinstance(value, str):
        return value
    parts = [_flat(one.value) for one in value.arguments]
    if None in parts or any(one.comments or one.remark for one in value.arguments):
        return None
    inside = ', '.join(f'{one.before}{part}' for one, part in zip(value.arguments, parts))
    return f'{value.opening}{inside}{value.closing}'


def comment(text: str, indent: str = '', mark: str = '# ') -> list[str]:
    """Returns the lines of a comment; `text` must not hold unprintable characters.

    >>> comment('two words', mark='# - ')
    ['# - two words']
    """
    return textwrap.wrap(text, max(WIDTH - len(indent), 40), initial_indent=indent + mark,
                         subsequent_indent=f'{indent}#{" " * (len(mark) - 1)}',
                         break_long_words=False, break_on_hyphens=False)


def quoted(name: str) -> str:
    r"""Returns a string of Python that is the name, whatever characters it has.

    >>> print(quoted("a'b\n"))
    "a'b\n"
    """
    return repr(str(name))


def number(value: Any) -> str:
    """Returns a number of Python, in as few digits as give the same float32.

    Args:
      value: a bool, or a finite number, of Python or NumPy. A number that is no float32 keeps
        all its digits.

    >>> number(0.10000000149011612), number(0.1), number(1 / 3), number(2), number(True)
    ('0.1', '0.1', '0.3333333333333333', '2', 'True')
    """
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    value = float(value)
    return repr(shortest(value) if is_float32(value) else value)
