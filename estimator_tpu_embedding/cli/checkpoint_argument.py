"""Finds and opens the checkpoint that a PATH of a command means; the arguments that say how."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Sequence

from ..checkpoint import file_names
from ..checkpoint.bundle import Bundle
from ..checkpoint.concurrent_changes import signature, steady, watch
from ..checkpoint.manifest import Manifest, StoredTable, read_manifest, tensors_of
from ..checkpoint.options import CheckpointOptions, renames
from ..checkpoint.recover import Opened, check_manifest
from ..core.partition import Partition
from ..core.vocabulary_digests import Vocabulary
from ..errors import CorruptCheckpointError, Problem, UnreadableConfigError, shown
from ..proto import reading
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


def prefixes(path: str) -> list[str]:
    """Finds the checkpoints that a path means, in the order of their steps.

    It is a directory, a prefix such as `dir/model.ckpt-7`, or a file of a checkpoint.
    """
    if os.path.isdir(path):
        found = listed(path, names_in(path))
        if not found:
            raise _nothing(path, 'it must hold checkpoints', 'none')
        return found
    folder, name = os.path.split(path)
    known = file_names.by_checkpoint(names_in(folder or '.'))
    part = file_names.parse(name)
    meant = name if name in known or part is None else part.checkpoint
    if meant not in known:
        raise _nothing(path, 'there must be a checkpoint', 'none of that name', list(known))
    return [os.path.join(folder, meant)]


def listed(directory: str, names: Collection[str]) -> list[str]:
    """Returns the checkpoints of a directory with these files, in the order of their steps.

    Those that are `partial` are left out.
    """
    known = file_names.by_checkpoint(names).keys() - partial(names)
    return [os.path.join(directory, name) for name in sorted(known, key=_age)]


def partial(names: Collection[str]) -> list[str]:
    """Returns the checkpoints that a job publishes or deletes, or did when it was killed."""
    parts = [part for part in map(file_names.parse, names) if part is not None]
    return sorted(part.checkpoint for part in parts if part.kind == file_names.PARTIAL
                  and part.checkpoint + file_names.MANIFEST not in names)


def _age(checkpoint: str) -> tuple[int, str]:
    step = file_names.step_of(checkpoint)
    return -1 if step is None else step, os.path.basename(checkpoint)


def names_in(path: str) -> set[str]:
    """Lists a directory; E645 if that is not possible."""
    try:
        return set(os.listdir(path))
    except OSError as error:
        raise reading.unreadable(
            'E645', reading.label(path) or '""', 'it must be a directory that can be read',
            shown(error.strerror), 'Name the directory that the checkpoints are in.') from error


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


def _nothing(path: str, rule: str, got: str, names: Sequence[str] = ()) -> UnreadableConfigError:
    remedy = 'Name a model_dir, or a checkpoint such as dir/model.ckpt-7.'
    if names:
        last = sorted(names, key=_age)[-_MOST_NAMED:]
        remedy = f'There: {", ".join(shown(os.path.basename(name), 255) for name in last)}.'
    return reading.unreadable('E645', reading.label(path) or '""', rule, got, remedy)


class Stored:
    """The checkpoint that a path means; of a directory the one that a job would restore.

    Attributes:
      prefix: its path without a suffix.
      where: the path, safe to print.
      newer: names of newer ones in its directory, which a job would not restore.
      skipped: problems of the newer ones that a job looks at.
      known: the `recover.Known` that has the checkpoint, if it was read.
      notes: facts for the user.
    """

    def __init__(self, path: str, options: CheckpointOptions):
        """Finds the checkpoint; it is opened when it is asked for."""
        from ..checkpoint import recover
        self._options, self.known = options, recover.Known()
        self.newer: list[str] = []
        self.skipped: tuple[Problem, ...] = ()
        if os.path.isdir(path):
            with _quiet():
                found = recover.recover(path, options, self.known)
            there = listed(path, names_in(path))
            if found is None:
                raise _nothing(path, 'it must hold checkpoints of a job',
                               'others' if there else 'none', there)
            self.prefix, self.skipped = found.prefix, found.skipped
            # A name that only the file `checkpoint` gives is of the newest, whatever its step.
            if file_names.is_of_a_job(os.path.basename(self.prefix)):
                step, _ = _age(self.prefix)
                self.newer = [os.path.basename(one) for one in there if _age(one)[0] > step]
        else:
            self.prefix, = prefixes(path)
        self.where = reading.label(self.prefix)
        self.notes = [f'{self.where} is what a job would restore, not the newest that is there: '
                      + ', '.join(self.newer)] if self.newer else []

    @functools.cached_property
    def manifest(self) -> Manifest | None:
        """Its manifest, or `None`."""
        return read_manifest(self.prefix)

    @functools.cached_property
    def bundle(self) -> Bundle:
        """Its tensors."""
        return Bundle.open(self.prefix)

    @functools.cached_property
    def assumed(self) -> tuple[str, int] | None:
        """Strategy and hosts by `--assume`; `None` if there is a manifest."""
        return self._options.assumed_order() if self.manifest is None else None

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
        manifest = self.manifest  # Before the index: a job deletes them in this order.
        try:
            check_manifest(Opened(self.bundle, manifest))
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
                recover.verify(self.prefix, self._options, self.known)
        except CorruptCheckpointError as error:
            return error.problems
        return ()


def report_of(paths: Sequence[str], look: Callable[[], Report]) -> Report:
    """Returns what `look` makes of these paths, anew if a job meanwhile deleted a checkpoint."""
    names = [path if os.path.isdir(path) or (part := file_names.parse(path)) is None
             else part.checkpoint for path in paths]
    states = [watch(name) for name in names if os.path.isdir(name) or signature(name)]
    return steady(look, lambda: [state() for state in states],
                  lambda report: report.data.get('findings'))
