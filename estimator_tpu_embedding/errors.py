"""Every exception of this package, its stable code and the grammar of its message.

A message is one line: `<code> <where>: <rule>; got <got>.  <remedy>`. The code never
changes once released. One class exists per cause that a caller can act on:

| class | codes | the cause |
|---|---|---|
| `SetupError` | E0xx | the process is set up in a way this package cannot work in |
| `ConfigError` | E4xx | what the user declared contradicts itself or a limit |
| `UnreadableConfigError` | E48x | a file that holds no config that can be read |
| `InputError` | E5xx | the data does not fit the declaration |
| `InputPipelineError` | E52x | an input pipeline fails; E520 has TensorFlow's class of it too |
| `CallError` | E55x, E537 | a method that was called where, or when, it cannot do what it is for |
| `CheckpointError` | E6xx | state on disk is unreadable or does not fit the plan |
| `DivergedError` | E620, E80x | numbers that are no longer finite; in `runner/faults.py` |
| `SessionLostError` | E802 | sessions that are lost again and again; in `runner/faults.py` |
| `UnsupportedError` | E9xx | a legacy feature that this version does not run |
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Iterable
from typing import TypeVar

_Error = TypeVar('_Error', bound=BaseException)


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, as a reader needs to see it.

    Attributes:
      code: stable identifier, for example `'E412'`.
      where: the object at fault, for example `'table "video"'`.
      rule: what was expected there.
      got: what came instead; empty when the rule already says it.
      remedy: what to do about it; may be empty.
      step: the global step with which the step at fault began; `None` where none is at fault.

    >>> print(Problem('E412', 'table "video"', 'vocabulary_size must be >= 1', '0',
    ...               'Set it to the largest id + 1.'))
    E412 table "video": vocabulary_size must be >= 1; got 0.  Set it to the largest id + 1.
    """

    code: str
    where: str
    rule: str
    got: str = ''
    remedy: str = ''
    step: int | None = None

    def __str__(self) -> str:
        line = f'{self.code} {self.where}: {self.rule}'
        if self.got:
            line += f'; got {self.got}'
        if not line.endswith(('.', '?', '!')):
            line += '.'
        return f'{line}  {self.remedy}' if self.remedy else line


class EteError(Exception):
    """Base of all errors of this package. Its arguments are problems, one or more.

    AutoGraph makes an error that passes through a function of the user anew, from its text. It
    keeps the class only if the class has no initializer of its own. The new error has no problems.
    """

    __init__ = Exception.__init__

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong, one entry or more."""
        return tuple(one for one in self.args if isinstance(one, Problem))

    @property
    def code(self) -> str:
        """The code of the first problem, or `''`."""
        return self.problems[0].code if self.problems else ''

    def __str__(self) -> str:
        return '\n'.join(map(str, self.problems or self.args))


class SetupError(EteError, RuntimeError):
    """E0xx: the process cannot run this package as it is set up."""


class ConfigError(EteError, ValueError):
    """E4xx: all problems of a declaration at once, sorted by where they are."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong, one entry or more."""
        return tuple(sorted(super().problems, key=lambda p: (p.where, p.code, p.rule)))


class UnusedColumnsError(ConfigError, RuntimeError):
    """E436: no column of the spec is used; legacy callers know it as a RuntimeError."""


class UnreadableConfigError(EteError, ValueError):
    """E48x: a file or stream from which no config can be read."""


class InputError(EteError):
    """E5xx: data that does not fit what was declared."""


class IdRangeError(InputError, ValueError):
    """E501: an id outside `[0, vocabulary_size)`."""


class InputShapeError(InputError, ValueError):
    """E51x: a batch whose shape, dtype or keys are not those of the plan."""


class StructureTypeError(InputError, TypeError):
    """E531: a structure whose sequences are of other types than the declared ones."""


class InputPipelineError(InputError, RuntimeError):
    """E52x: an input pipeline that failed, or produced nothing in time.

    E520 is a pipeline that failed. The error also has the class of TensorFlow's error, such as
    `tf.errors.InvalidArgumentError` for a `ValueError` in a generator, and begins with its text.
    """


class CallError(EteError, RuntimeError):
    """E55x, E537: a method called where, or when, it cannot do what it is for."""


class NotInFunctionError(CallError, AttributeError):
    """E551: called eagerly; the original then fails with an AttributeError."""


class CheckpointError(EteError):
    """E6xx: state on disk."""


class CorruptCheckpointError(CheckpointError):
    """E61x: a checkpoint or its manifest cannot be read."""


class IncompatibleCheckpointError(CheckpointError, ValueError):
    """E60x: a checkpoint that does not fit the plan."""


class CheckpointWriteError(CheckpointError):
    """E621: a checkpoint could not be written; those before it are as they were."""


class NonFiniteCheckpointError(CheckpointError):
    """E620: a value to be saved is NaN or infinite, so nothing was."""


class UnsupportedError(EteError, NotImplementedError):
    """E9xx: a legacy feature that this version does not run; says what to do instead."""


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, 'step'), counted(2000, 'step')
    ('1 step', '2000 steps')
    """
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def quoted(names: Iterable[str]) -> str:
    """`"a", "b"` for the names in order, or `none`.

    >>> quoted(['user', 'video'])
    '"user", "video"'
    """
    return ', '.join(f'"{name}"' for name in names) or 'none'


def shown(text: object, most: int = 80) -> str:
    """Text of strangers as a message may hold it: in printable ASCII, cut to `most` characters.

    >>> print(shown('a\\x1b]52;c'), shown('12345', 3))
    a\\x1b]52;c 123...
    """
    given = str(text)
    return ascii(given if len(given) <= most else f'{given[:most]}...')[1:-1]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`Did you mean "b"?` for the one of the first 1,000 names most like `name`, or `''`.

    >>> did_you_mean('itme_id', ['item_id', 'user_id'])
    'Did you mean "item_id"?'
    """
    near = difflib.get_close_matches(name[:1000], itertools.islice(names, 1000), n=1)
    return f'Did you mean "{shown(near[0], 200)}"?' if near else ''


def noted(error: _Error, note: str) -> _Error:
    """The error with a note below it, which leaves its class and its text as they are.

    An empty note is none.
    """
    if note:
        error.add_note(note)
    return error


def bytes_text(count: float) -> str:
    """A number of bytes for people.

    >>> bytes_text(148), bytes_text(2048), bytes_text(3 * 2**33)
    ('148 B', '2.0 KiB', '24.0 GiB')
    """
    for unit in ('B', 'KiB', 'MiB', 'GiB', 'TiB'):
        if count < 1024 or unit == 'TiB':
            break
        count /= 1024
    return f'{count:.0f} B' if unit == 'B' else f'{count:,.1f} {unit}'
