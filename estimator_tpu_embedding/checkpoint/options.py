"""Defines `CheckpointOptions`: how a job saves, and which differences it accepts in a restore."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import limits
from ..core.partition import STRATEGIES
from ..core.specs import is_count
from ..errors import ConfigError, Problem, shown

VERIFY = ('sha256', 'crc32c', 'size')
"""How the files of a checkpoint are verified: the surest way first, the quickest last."""
_NAMES = ('grow', 'drop', 'reset_slots')


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """How a job writes its checkpoints, and which differences from a checkpoint it accepts.

    A table is named as in the checkpoint, for example
    `'input_layer/user_embedding/embedding_weights'`, or by parts of that name that no other table
    has, such as `'user_embedding'`.

    Attributes:
      grow: tables that may have more rows than in the checkpoint; new rows begin with their initial
        values.
      drop: tables of the checkpoint that the job no longer has.
      reset_slots: tables whose optimizer begins anew. Each checkpoint records these names, so a job
        that is started again with the same options keeps the slots that it has trained.
      rename: the name of a table in the checkpoint -> its name in the job; done once,
        as for `reset_slots`.
      assume: `'div'`, or `'mod:2'` for two hosts: the order of rows in a checkpoint without a
        manifest, such as one of the original.
      follow_pointer: whether the file `checkpoint` may name a checkpoint outside of its directory.
      verify: `'sha256'` reads every file of a checkpoint before it is restored. `'crc32c'` does so
        too, and compares the numbers with TensorFlow's checksums in the index, which is faster.
        `'size'` looks at the sizes only.
      expected_digest: the SHA-256 of the manifest to restore, in hexadecimal digits. Without it,
        anybody who can write the files of a checkpoint can also write a manifest that fits.
      strict_vocabulary: whether a word with another id than in the checkpoint is an error, E641;
        otherwise it is a warning, W631.
      asynchronous: whether training goes on while a checkpoint is checked and made durable. The
        next save, or the end of training, then raises the error of a save. If listeners are told
        of saves (`after_save`, as by `train_and_evaluate`), they and the training wait.
      max_save_failures: training ends with the error of a save after so many failures in a row,
        >= 1. The last save of a training must succeed in any case.
      keep_every_steps: checkpoints whose step is a multiple of it are never deleted, >= 1; if it is
        `None`, the RunConfig alone decides.

    Raises:
      ConfigError: E626 with all problems.

    >>> CheckpointOptions(assume='mod:2').assumed_order()
    ('mod', 2)
    """

    grow: Sequence[str] = ()
    drop: Sequence[str] = ()
    reset_slots: Sequence[str] = ()
    rename: Mapping[str, str] = dataclasses.field(default_factory=dict)
    assume: str | None = None
    follow_pointer: bool = False
    verify: str = 'sha256'
    expected_digest: str | None = None
    strict_vocabulary: bool = False
    asynchronous: bool = False
    max_save_failures: int = 1
    keep_every_steps: int | None = None

    def __post_init__(self) -> None:
        """Checks all values."""
        problems = list(self._problems())
        if problems:
            raise ConfigError(*problems)

    def assumed_order(self) -> tuple[str, int] | None:
        """Returns `assume` as (strategy, hosts); for `div` any number of hosts is the same."""
        if self.assume is None:
            return None
        strategy, _, hosts = self.assume.partition(':')
        return strategy, int(hosts or 1)

    def _problems(self) -> Iterator[Problem]:
        for field in _NAMES:
            names = getattr(self, field)
            if isinstance(names, str) or not all(isinstance(name, str) for name in names):
                yield _problem(field, 'it must be a sequence of names of tables', names)
        if not (isinstance(self.rename, Mapping) and all(
                isinstance(name, str) for pair in self.rename.items() for name in pair)):
            yield _problem('rename', 'it must be a dict from names to names', self.rename)
        elif len(set(self.rename.values())) < len(self.rename):
            yield _problem('rename', 'two tables cannot become one', dict(self.rename))
        if self.assume is not None and not self._is_order(self.assume):
            yield _problem('assume', f'it must be "div" or "mod:H" with 1 <= H <= '
                           f'{limits.MAX_HOSTS}', self.assume)
        if self.verify not in VERIFY:
            yield _problem('verify', f'it must be one of {VERIFY}', self.verify)
        digest = self.expected_digest
        if digest is not None and not re.fullmatch('[0-9a-f]{64}', str(digest)):
            yield _problem('expected_digest', 'it must be 64 hexadecimal digits', digest)
        if not is_count(self.max_save_failures, 1, 2**31):
            yield _problem('max_save_failures', 'it must be an int >= 1', self.max_save_failures)
        if self.keep_every_steps is not None and not is_count(self.keep_every_steps, 1, 2**63):
            yield _problem('keep_every_steps', 'it must be an int >= 1 or None',
                           self.keep_every_steps)

    @staticmethod
    def _is_order(text: object) -> bool:
        found = re.fullmatch(r'([a-z]+)(?::([1-9][0-9]{0,9}))?', str(text))
        if found is None or found.group(1) not in STRATEGIES:
            return False
        return found.group(2) is None and text == STRATEGIES[0] or (
            found.group(2) is not None and int(found.group(2)) <= limits.MAX_HOSTS)


def renames(texts: Iterable[str]) -> dict[str, str]:
    """Returns the values of flags `--rename OLD=NEW` as a dict.

    Raises:
      ConfigError: E626 if a value has another form, or an OLD comes twice.
    """
    renamed: dict[str, str] = {}
    for text in texts:
        old, _, new = text.partition('=')
        if not old or not new or old in renamed:
            raise ConfigError(Problem('E626', '--rename', 'it must be OLD=NEW, with each OLD once',
                                      shown(repr(text), 200)))
        renamed[old] = new
    return renamed


def _problem(field: str, rule: str, value: Any) -> Problem:
    return Problem('E626', f'CheckpointOptions.{field}', rule, shown(repr(value), 200))
