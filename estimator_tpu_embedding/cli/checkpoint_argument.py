"""Finds and opens the checkpoint that a PATH of a command means; the arguments that say how."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..checkpoint import file_names
from ..checkpoint.bundle import Bundle
from ..checkpoint.concurrent_changes import signature, steady, watch
from ..checkpoint.manifest import StoredTable, read_manifest, tensors_of
from ..checkpoint.options import CheckpointOptions, renames
from ..checkpoint.recover import Opened, check_manifest
from ..core.partition import Partition
from ..core.vocabulary_digests import Vocabulary
from ..errors import CorruptCheckpointError, Problem, UnreadableConfigError, shown
from ..proto import reading
from .etpe_checkpoint_ls import directory, names_in
from .report import Report

_MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of a command that reads rows, for `options`."""
    parser.add_argument('--assume', metavar='ORDER', help='"div", or "mod:H" for H hosts: how rows '
                        'are ordered in checkpoints that do not say it; there all float tensors '
                        'with two dimensions count as tables')
    parser.add_argument('--no-verify', action='store_true', help='check only the sizes of '
                        'files before they are read, and not their SHA-256')


def options(parsed: argparse.Namespace) -> CheckpointOptions:
    """Returns what the arguments say."""
    return CheckpointOptions(assume=parsed.assume, verify='size' if parsed.no_verify else 'sha256',
                             rename=renames(getattr(parsed, 'rename', ())))


class Chosen(NamedTuple):
    """The checkpoint that a path means.

    Attributes:
      prefix: its path without a suffix.
      newer: names of newer ones in its directory, which a job would not restore.
      skipped: problems of the newer ones that a job looks at.
      known: the `recover.Known` that has the checkpoint, if it was read; otherwise `None`.
    """

    prefix: str
    newer: tuple[str, ...] = ()
    skipped: tuple[Problem, ...] = ()
    known: Any = None


def chosen(path: str, options: CheckpointOptions) -> Chosen:
    """Finds the checkpoint that a path means; of a directory the one that a job would restore."""
    if not os.path.isdir(path):
        return Chosen(prefixes(path)[0])
    from ..checkpoint import recover
    known = recover.Known()
    with _quiet():
        found = recover.recover(path, options, known)
    if found is None:
        names = [one.name for one in directory(path).checkpoints]
        raise _nothing(path, 'it must hold checkpoints of a job', 'others' if names else 'none',
                       names)
    # A name that only the file `checkpoint` gives is of the newest, whatever its step.
    step = found.step if file_names.is_of_a_job(os.path.basename(found.prefix)) else None
    newer = [] if step is None else [
        one.name for one in directory(path).checkpoints if one.step is not None and one.step > step]
    return Chosen(found.prefix, tuple(newer), found.skipped, known)


def prefixes(path: str) -> list[str]:
    """Finds the checkpoints that a path means, in the order of their steps.

    It is a directory, a prefix such as `dir/model.ckpt-7`, or a file of a checkpoint.
    """
    if os.path.isdir(path):
        found = directory(path).checkpoints
        if not found:
            raise _nothing(path, 'it must hold checkpoints', 'none')
        return [one.prefix for one in found]
    folder, name = os.path.split(path)
    known = file_names.by_checkpoint(names_in(folder or '.'))
    part = file_names.parse(name)
    meant = name if name in known or part is None else part.checkpoint
    if meant not in known:
        raise _nothing(path, 'there must be a checkpoint', 'none of that name', list(known))
    return [os.path.join(folder, meant)]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the body from logging; a report says the same."""
    from absl import logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _nothing(path: str, rule: str, got: str, names: list[str] | None = None
             ) -> UnreadableConfigError:
    remedy = 'Name a model_dir, or a checkpoint such as dir/model.ckpt-7.'
    if names:
        names.sort(key=lambda name: (file_names.step_of(name) or 0, name))
        remedy = f'There: {", ".join(shown(name, 255) for name in names[-_MOST_NAMED:])}.'
    return reading.unreadable('E645', reading.label(path) or '""', rule, got, remedy)


class Stored:
    """A checkpoint to look into.

    Attributes:
      prefix: its path without a suffix.
      where: the path, safe to print.
      manifest: of it, or `None`.
      bundle: its tensors.
      assumed: strategy and hosts by `--assume`; `None` if there is a manifest.
      notes: facts for the user.
      skipped: problems of newer ones in its directory.
    """

    def __init__(self, path: str, options: CheckpointOptions):
        """Opens the checkpoint that a path means, as `chosen` finds it."""
        found = chosen(path, options)
        self._options, self._known = options, found.known
        self.prefix, self.skipped = found.prefix, found.skipped
        self.where = reading.label(self.prefix)
        self.manifest = read_manifest(self.prefix)
        self.bundle = Bundle.open(self.prefix)
        self.assumed = options.assumed_order() if self.manifest is None else None
        self.notes = [f'{self.where} is what a job would restore, not the newest that is there: '
                      + ', '.join(found.newer)] if found.newer else []

    @functools.cached_property
    def tables(self) -> dict[str, StoredTable]:
        """Its tables by variable name; with `--assume` every tensor that can be one."""
        if self.manifest is not None:
            return self.manifest.tables
        if self.assumed is None:
            return {}
        strategy, hosts = self.assumed
        return {name: StoredTable(rows=tensor.rows, width=tensor.shape[1], strategy=strategy,
                                  hosts=hosts, slots=())
                for name, tensor in self.bundle.tensors.items() if tensor.is_table}

    @functools.cached_property
    def partitions(self) -> dict[str, Partition]:
        """Where the rows of ids are, by the names of the tensors of tables and slots."""
        return {name: table.partition for variable, table in self.tables.items()
                for name in tensors_of(variable, table)}

    @property
    def vocabularies(self) -> dict[str, Vocabulary]:
        """Which words have which ids, by feature, as far as that was recorded."""
        return self.manifest.vocabularies if self.manifest is not None else {}

    def problems(self) -> tuple[Problem, ...]:
        """Returns what its manifest says that is not so."""
        try:
            check_manifest(Opened(self.bundle, self.manifest))
        except CorruptCheckpointError as error:
            return error.problems
        return ()

    def damage(self) -> tuple[Problem, ...]:
        """Verifies its files before rows are read; returns the problems. A note says if it looks
        at sizes only.
        """
        if self._options.verify == 'size':
            self.notes.append(
                f'{self.where}: not verified: only the sizes of its files were looked at')
        from ..checkpoint import recover
        try:
            with _quiet():
                recover.verify(self.prefix, self._options, self._known)
        except CorruptCheckpointError as error:
            return error.problems
        return ()


def report_of(paths: Sequence[str], look: Callable[[], Report]) -> Report:
    """Returns a report, which is made again if a job deleted one of its checkpoints meanwhile.

    Args:
      paths: of checkpoints, or of directories in which one is chosen.
      look: makes the report.
    """
    names = [path if os.path.isdir(path) or (part := file_names.parse(path)) is None
             else part.checkpoint for path in paths]
    states = [watch(name) for name in names if os.path.isdir(name) or signature(name)]
    return steady(look, lambda: [state() for state in states],
                  lambda report: report.data.get('findings'))
