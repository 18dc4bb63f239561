"""Defines every exception of this package, their codes and the grammar of their messages.

A message is one line: `<code> <where>: <rule>; got <got>.  <remedy>`. The code never
changes once released. One class exists per cause that a caller can act on. Those of runs and
of workers are in modules of their own.
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
      rule: the expectation.
      got: the value that came instead; empty when the rule already says it.
      remedy: advice; may be empty.
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
    """Base class of all errors of this package; its arguments are problems, one or more.

    AutoGraph builds an error that passes through a function of the user anew, from its text. It
    keeps the class only if that has an initializer of its own. The new error has no problems.

    >>> error = ConfigError(Problem('E412', 'table "b"', 'vocabulary_size must be >= 1', '0'),
    ...                     Problem('E413', 'table "a"', 'dimension must be >= 1', '-4'))
    >>> print(error)
    E413 table "a": dimension must be >= 1; got -4.
    E412 table "b": vocabulary_size must be >= 1; got 0.
    >>> isinstance(error, EteError), error.code, len(error.problems)
    (True, 'E413', 2)
    """

    __init__ = Exception.__init__

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems, one or more."""
        return tuple(one for one in self.args if isinstance(one, Problem))

    @property
    def code(self) -> str:
        """The code of the first problem, or `''`."""
        return self.problems[0].code if self.problems else ''

    def __str__(self) -> str:
        return '\n'.join(map(str, self.problems or self.args))


class SetupError(EteError, RuntimeError):
    """E0xx: the process cannot run this package as it is set up."""


class ExposedServerError(SetupError):
    """E705: a server that other machines could reach, where nobody agreed to that."""


class ConfigError(EteError, ValueError):
    """E4xx: all problems of a declaration at once, sorted by their place.

    >>> from estimator_tpu_embedding import CheckpointOptions
    >>> try:
    ...     CheckpointOptions(verify='md5', max_save_failures=0)
    ... except ConfigError as error:
    ...     print([problem.where for problem in error.problems])
    ['CheckpointOptions.max_save_failures', 'CheckpointOptions.verify']
    """

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems, one or more, sorted by their place."""
        return tuple(sorted(super().problems, key=lambda p: (p.where, p.code, p.rule)))


class UnusedColumnsError(ConfigError, RuntimeError):
    """E436: no column of the spec is used; legacy callers know it as a RuntimeError."""


class UnreadableConfigError(EteError, ValueError):
    """E48x: a file or stream from which no config can be read.

    >>> from estimator_tpu_embedding.proto import reading
    >>> try:
    ...     reading.read_bytes(b'table_descriptor { name: 3 }', 'job.textproto')
    ... except UnreadableConfigError as error:
    ...     print(error.code, error.problems[0].where)
    E483 job.textproto
    """


class InputError(EteError):
    """E5xx: data that does not fit what was declared."""


class IdRangeError(InputError, ValueError):
    """E501: an id outside `[0, vocabulary_size)`.

    A training, evaluation or prediction ends with it, unless `RunConfig.id_policy` says otherwise.

    >>> try:
    ...     raise IdRangeError(Problem('E501', 'feature "video"', 'ids must be in [0, 22)', '22'))
    ... except ValueError as error:  # Callers of the original know it as this.
    ...     print(error)
    E501 feature "video": ids must be in [0, 22); got 22.
    """


class InputShapeError(InputError, ValueError):
    """E51x: a batch whose shape, dtype or keys do not fit the plan."""


class StructureTypeError(InputError, TypeError):
    """E531: a structure whose sequences have other types than was declared."""


class InputPipelineError(InputError, RuntimeError):
    """E52x: an input pipeline that failed, or produced nothing in time.

    E520 is a pipeline that failed. Its error also has the class that TensorFlow raised, such as
    `tf.errors.InvalidArgumentError` for a `ValueError` in a generator, and begins with its text.
    """


class CallError(EteError, RuntimeError):
    """E55x, E537: a method that was called in a place, or at a time, where it cannot work."""


class NotInFunctionError(CallError, AttributeError):
    """E551: a method that was called eagerly; the original then fails with an AttributeError."""


class CheckpointError(EteError):
    """E6xx: a problem with state on disk."""


class CorruptCheckpointError(CheckpointError):
    """E61x: a checkpoint or its manifest cannot be read."""


class IncompatibleCheckpointError(CheckpointError, ValueError):
    """E60x: a checkpoint that does not fit the plan."""


class CheckpointWriteError(CheckpointError):
    """E621: a checkpoint could not be written; earlier ones are as they were."""


class NonFiniteCheckpointError(CheckpointError):
    """E620: a value to be saved is NaN or infinite, so nothing was saved."""


class UnsupportedError(EteError, NotImplementedError):
    """E9xx: a legacy feature that this version does not run; says what to do instead.

    >>> from estimator_tpu_embedding import RunConfig, TPUEstimator
    >>> try:
    ...     TPUEstimator(lambda features: None, 'gs://bucket/job', RunConfig(), train_batch_size=8)
    ... except UnsupportedError as error:
    ...     print(error)
    E913 model_dir: it must be a local directory; got gs://bucket/job.  Copy the results when the \
job has ended.
    """


def counted(number: int, noun: str) -> str:
    """Returns a number of things, in words.

    >>> counted(1, 'step'), counted(2000, 'step')
    ('1 step', '2,000 steps')
    """
    return f'{number:,} {noun}' if number == 1 else f'{number:,} {noun}s'


def quoted(names: Iterable[str]) -> str:
    """Returns `"a", "b"` for the names in order, or `none`.

    >>> quoted(['user', 'video'])
    '"user", "video"'
    """
    return ', '.join(f'"{name}"' for name in names) or 'none'


def shown(text: object, most: int = 80) -> str:
    """Returns foreign text in printable ASCII, cut to `most` characters, fit for a message.

    >>> print(shown('a\\x1b]52;c'), shown('12345', 3))
    a\\x1b]52;c 123...
    """
    given = str(text)
    return ascii(given if len(given) <= most else f'{given[:most]}...')[1:-1]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns `Did you mean "b"?` for the most similar of the first 1,000 names, or `''`.

    >>> did_you_mean('itme_id', ['item_id', 'user_id'])
    'Did you mean "item_id"?'
    """
    near = difflib.get_close_matches(name[:1000], itertools.islice(names, 1000), n=1)
    return f'Did you mean "{shown(near[0], 200)}"?' if near else ''


def noted(error: _Error, note: str) -> _Error:
    """Returns the error with a note below it; its class and its text stay the same.

    An empty note is ignored.
    """
    if note:
        error.add_note(note)
    return error


def bytes_text(count: float) -> str:
    """Returns a number of bytes for people to read.

    >>> bytes_text(148), bytes_text(2048), bytes_text(3 * 2**33)
    ('148 B', '2.0 KiB', '24.0 GiB')
    """
    for unit in ('B', 'KiB', 'MiB', 'GiB', 'TiB'):
        if count < 1024 or unit == 'TiB':
            break
        count /= 1024
    return f'{count:.0f} B' if unit == 'B' else f'{count:,.1f} {unit}'
