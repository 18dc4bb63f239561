"""Checkpoints as the commands about them find them: in a directory, and each by itself."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re

from ..checkpoint.bundle import Bundle, opened
from ..checkpoint.manifest import Manifest, StoredTable, manifest_path, read_manifest
from ..core.partition import Partition
from ..errors import CorruptCheckpointError, Problem, UnreadableConfigError, shown
from ..proto import files, reading
from .inputs import named_in_state

COMMITTED, LEGACY, INCOMPLETE = 'committed', 'legacy', 'incomplete'
"""What a checkpoint is: with a manifest of its files, which are there; without; neither."""

STAGE = '.ete-stage-'
_FILE = re.compile(r'(.+)\.(index|meta|tables\.json|data-[0-9]{5}-of-[0-9]{5})', re.DOTALL)
_STEP = re.compile(r'-([0-9]{1,19})\Z')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A checkpoint in a directory.

    Attributes:
      prefix: its path without a suffix.
      files: bytes of its files, by name.
      state: one of the three above.
      why: it is incomplete, in words.
      manifest: if there is one that can be read.
    """

    prefix: str
    files: dict[str, int]
    state: str
    why: str
    manifest: Manifest | None

    @property
    def name(self) -> str:
        """Its name in the directory."""
        return os.path.basename(self.prefix)

    @property
    def step(self) -> int | None:
        """The step it was saved at, by its name."""
        found = _STEP.search(self.name)
        return int(found[1]) if found is not None else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """What a directory of checkpoints holds.

    Attributes:
      checkpoints: in the order of their steps.
      pointer: the name of the one that the file `checkpoint` names; `None` if it names none.
      has_pointer: whether there is such a file.
      stages: names of the folders in which a save began.
    """

    checkpoints: list[Found]
    pointer: str | None
    has_pointer: bool
    stages: list[str]


class Stored:
    """One checkpoint to look into.

    Attributes:
      prefix: its path without a suffix.
      where: for the user, safe to print.
      manifest: of it, or `None`.
      bundle: its tensors.
    """

    def __init__(self, prefix: str):
        """Opens it.

        Raises:
          CorruptCheckpointError: if its manifest or its index cannot be read.
        """
        self.prefix = prefix
        self.where = reading.label(prefix)
        self.manifest = read_manifest(prefix)
        self.bundle = Bundle.open(prefix)

    @functools.cached_property
    def digest(self) -> str | None:
        """The SHA-256 of its manifest; `None` without one."""
        if self.manifest is None:
            return None
        with opened(self.prefix, os.path.basename(manifest_path(self.prefix))) as file:
            return hashlib.sha256(files.read_at_most(file, files.size_of(file))).hexdigest()

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables that the manifest names, by variable name."""
        return self.manifest.tables if self.manifest is not None else {}

    @functools.cached_property
    def partitions(self) -> dict[str, Partition]:
        """Where the rows of ids are, by the names of the tensors of tables and slots."""
        return {name: Partition(strategy=table.strategy, vocabulary_size=table.rows,
                                num_hosts=table.hosts)
                for variable, table in self.tables.items() for name in tensors_of(variable, table)}

    def problems(self) -> list[Problem]:
        """What the manifest says that is not so."""
        wrong = []
        for variable, table in sorted(self.tables.items()):
            for name in tensors_of(variable, table):
                tensor = self.bundle.tensors.get(name)
                if tensor is None or tensor.shape != (table.rows, table.width) or (
                        not tensor.kind.startswith(('float', 'bfloat'))):
                    wrong.append(f'floats of {table.rows} x {table.width} in tensor '
                                 f'"{shown(name)}"')
        if self.manifest is not None and not self.prefix.endswith(f'-{self.manifest.step}'):
            wrong.append(f'step {self.manifest.step}')
        return [Problem('E614', f'checkpoint {shown(os.path.basename(self.prefix), 255)}',
                        'its manifest must say what it holds', ', '.join(wrong),
                        'Restore both from the same copy.')] if wrong else []


def tensors_of(variable: str, table: StoredTable) -> list[str]:
    """The names of the tensors of a table and of its slots."""
    return [variable, *(f'{variable}/{slot}' for slot in table.slots)]


def directory(path: str) -> Directory:
    """Looks at what is in a directory; of data files only at their sizes.

    Raises:
      UnreadableConfigError: if it is none, or cannot be read.
    """
    try:
        with os.scandir(path) as listed:
            entries = {one.name: one.stat(follow_symlinks=False).st_size for one in listed}
    except OSError as error:
        raise _nothing(path, 'it must be a directory that can be read',
                       shown(error.strerror)) from error
    grouped: dict[str, dict[str, int]] = {}
    for name, size in sorted(entries.items()):
        found = _FILE.fullmatch(name)
        if found is not None:
            grouped.setdefault(found[1], {})[name] = size
    checkpoints = [_found(os.path.join(path, name), sizes) for name, sizes in grouped.items()]
    checkpoints.sort(key=lambda one: (-1 if one.step is None else one.step, one.name))
    return Directory(checkpoints=checkpoints, pointer=named_in_state(path, set(entries)),
                     has_pointer='checkpoint' in entries,
                     stages=sorted(name for name in entries if name.startswith(STAGE)))


def _found(prefix: str, sizes: dict[str, int]) -> Found:
    manifest, why = None, ''
    try:
        manifest = read_manifest(prefix)
        for name, stored in sorted(manifest.files.items()) if manifest is not None else ():
            if sizes.get(name) != stored.size:
                why = why or f'{name}: {"missing" if name not in sizes else "another size"}'
        if not why:
            Bundle.open(prefix)
    except CorruptCheckpointError as error:
        problem = error.problems[0]
        why = f'{problem.rule}; got {problem.got}'
    state = INCOMPLETE if why else COMMITTED if manifest is not None and manifest.files else LEGACY
    return Found(prefix=prefix, files=sizes, state=state, why=why, manifest=manifest)


def prefixes(path: str) -> list[str]:
    """The checkpoints that a path stands for, in the order of their steps.

    Args:
      path: a directory, a prefix such as `dir/model.ckpt-7`, or a file of a checkpoint.

    Raises:
      UnreadableConfigError: if there is none.
    """
    if os.path.isdir(path):
        return [one.prefix for one in _those_in(path)]
    folder, name = os.path.split(path)
    file = _FILE.fullmatch(name)
    known = {found[1] for found in map(_FILE.fullmatch, _names(folder or '.')) if found is not None}
    for candidate in (name, file[1] if file is not None else name):
        if candidate in known:
            return [os.path.join(folder, candidate)]
    raise _nothing(path, 'there must be a checkpoint', 'none of that name')


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError as error:
        raise _nothing(path, 'it must be in a directory that can be read',
                       shown(error.strerror)) from error


def newest(path: str) -> str:
    """The checkpoint that a path stands for; of a directory the newest that is complete.

    Raises:
      UnreadableConfigError: if there is none.
    """
    if not os.path.isdir(path):
        return prefixes(path)[0]
    complete = [one.prefix for one in _those_in(path) if one.state != INCOMPLETE]
    if not complete:
        raise _nothing(path, 'it must hold a checkpoint that is complete', 'none')
    return complete[-1]


def _those_in(path: str) -> list[Found]:
    found = directory(path).checkpoints
    if not found:
        raise _nothing(path, 'it must hold checkpoints', 'none')
    return found


def _nothing(path: str, rule: str, got: str) -> UnreadableConfigError:
    return reading.unreadable('E645', reading.label(path), rule, got,
                              'Name a model_dir, or a checkpoint such as dir/model.ckpt-7.')
