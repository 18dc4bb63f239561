"""Defines `CheckpointOptions`: how a job saves, and which differences it accepts in a restore.

It also finds the tables that options name. They may give a part of a name. Options that an earlier
start of the job has carried out already are recognized, and are not carried out again.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import limits
from ..core.partition import STRATEGIES
from ..core.specs import is_count
from ..errors import ConfigError, Problem, quoted, shown
from .manifest import Applied

VERIFY = ('sha256', 'crc32c', 'size')
"""How the files of a checkpoint are verified: the surest way first, the quickest last."""


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
        for field in ('grow', 'drop', 'reset_slots'):
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
        found = re.fullmatch(r'([a-z]+):([1-9][0-9]{0,9})', str(text))
        return text == STRATEGIES[0] or found is not None and (
            found[1] in STRATEGIES and int(found[2]) <= limits.MAX_HOSTS)


def renames(texts: Iterable[str]) -> dict[str, str]:
    """Returns flags `--rename OLD=NEW` as a dict; E626 for another form, or for an OLD twice."""
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


class TablesMeant:
    """The tables that options name, with names in full.

    A job may be started again with the same options after it has carried them out. So a table
    that is renamed already is no problem, nor one that is dropped already. Names that were swapped
    are not swapped back.

    Attributes:
      grow: tables of the job that may have more rows than in the checkpoint.
      reset: tables of the job whose slots begin anew.
      were_reset: tables whose slots began anew before the checkpoint was saved.
      drop: tables of the checkpoint that nobody needs.
      renamed: the name of a table in the job -> its name in the checkpoint.
      done: options that the job of the checkpoint has carried out, for people.
      problems: names that mean no table, or several.

    >>> found = TablesMeant(CheckpointOptions(grow=['weights'], rename={'old': 'new'}),
    ...                 ['a/weights', 'old'], ['a/weights', 'new'])
    >>> found.grow, found.renamed
    ({'a/weights'}, {'new': 'old'})
    """

    def __init__(self, options: CheckpointOptions, stored: Collection[str],
                 here: Collection[str], applied: Applied = Applied()):
        """Finds them among those of the checkpoint, which has `applied` options, and of the job."""
        self.problems: list[Problem] = []
        self.done: list[str] = []
        self.renamed: dict[str, str] = {}
        names_here = {}
        for old, new in options.rename.items():
            source, target = _only(old, stored), _only(new, here)
            if applied.rename.get(old) == new and target in stored:
                names_here[old] = target
                self.done.append(f'rename {shown(old, 200)}={shown(new, 200)}')
            elif target is None:
                self.problems += _unknown('rename', new, here, 'this job')
            elif source is not None:
                self.renamed[target] = source
                names_here[source] = target
            elif target not in stored:
                self.problems += _unknown('rename', old, stored, 'the checkpoint')
        found: dict[str, dict[str, str]] = {'grow': {}, 'reset_slots': {}}
        for option, tables in found.items():
            for name in getattr(options, option):
                table = _only(name, here) or names_here.get(_only(name, names_here) or '')
                if table is None:
                    self.problems += _unknown(option, name, here, 'this job')
                else:
                    tables[name] = table
        before = {name: table for name, table in found['reset_slots'].items()
                  if name in applied.reset_slots and table in stored}
        self.done += [f'reset_slots {shown(name, 200)}' for name in before]
        self.grow, self.were_reset = set(found['grow'].values()), set(before.values())
        self.reset = set(found['reset_slots'].values()) - self.were_reset
        self.drop = {_only(name, stored) for name in options.drop}

    def source_of(self, table: str) -> str | None:
        """Returns the name of a table in the checkpoint; `None` if another one took that name."""
        if table in self.renamed:
            return self.renamed[table]
        return None if table in self.renamed.values() else table


def unknown_drops(options: CheckpointOptions, left_over: Collection[str]) -> Iterator[Problem]:
    """Yields a problem for each table to drop that is not among the tables left over."""
    for name in options.drop:
        if _only(name, left_over) is None:
            yield from _unknown('drop', name, left_over, 'the checkpoint')


def may_mean(name: str, table: str) -> bool:
    """Whether a name is one or more whole parts of the name of a table, one after the other.

    >>> may_mean('user_embedding', 'input_layer/user_embedding/embedding_weights')
    True
    >>> may_mean('embedding', 'input_layer/user_embedding/embedding_weights')
    False
    """
    return f'/{name}/' in f'/{table}/'


def meant(name: str, tables: Collection[str]) -> list[str]:
    """Returns the table of that name; otherwise all that end so; otherwise all with these parts.

    >>> meant('b', ['a/b', 'a/c']), meant('a', ['a/b', 'a/c'])
    (['a/b'], ['a/b', 'a/c'])
    """
    if name in tables:
        return [name]
    return (sorted(table for table in tables if table.endswith(f'/{name}'))
            or sorted(table for table in tables if may_mean(name, table)))


def _only(name: str, tables: Collection[str]) -> str | None:
    """Returns the table that a name means; `None` if there is none, or more than one."""
    found = meant(name, tables)
    return found[0] if len(found) == 1 else None


def _unknown(option: str, name: str, tables: Collection[str], place: str) -> Iterator[Problem]:
    several = meant(name, tables)
    near = difflib.get_close_matches(name, tables, n=3, cutoff=0.4) or sorted(tables)[:3]
    yield Problem(
        'E630', f'CheckpointOptions.{option}', f'it must name one table of {place}, in full or by '
        'parts of its name that no other has',
        f'"{shown(name, 200)}"' + (f', which may be {quoted(several)}' if several else ''),
        '' if several or not near else f'Similar names there: {quoted(map(shown, near))}.')
