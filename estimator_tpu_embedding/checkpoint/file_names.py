"""Parses and builds the names of checkpoint files. Names of a moment are where they are made.

    model.ckpt-7                        a checkpoint: a base, a hyphen and its step
    model.ckpt-7.index                  says where its tensors are
    model.ckpt-7.data-00000-of-00002    holds their bytes
    model.ckpt-7.meta                   holds the graph, if it was saved too
    model.ckpt-7.tables.json            its manifest, which only this package writes
    model.ckpt-7.tables.json.partial    the manifest while a job publishes or deletes the checkpoint
    .ete-stage-7-0123abcd               the folder in which a job writes the files of step 7
    .ete-replaces-model.ckpt-7          the same once it replaces a checkpoint of that name
    .etpe-note-0123abcd                 by which processes find out whether they see one disk
    checkpoint                          names the newest checkpoint of the directory
    input.ckpt-7, checkpoint_input      the same for the states of the iterators of an input

A step is written as every saver writes it: in decimal digits, without leading zeros. So each
checkpoint has one name. `model.ckpt-007` is a name without a step, as `best` is.

A function that takes a checkpoint takes its name, or its prefix, which is a path that ends so.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import shown

BASE = 'model.ckpt'
"""The base of the names that a job gives its checkpoints, unless somebody chose another one."""
OBJECT_BASE = 'ckpt'
"""The base of the names that `tf.train.CheckpointManager` gives the checkpoints of TF2."""
POINTER = 'checkpoint'

INDEX, DATA, GRAPH, MANIFEST = '.index', '.data', '.meta', '.tables.json'
"""The kinds of files; but for `DATA` each is how the name of such a file ends."""
PARTIAL = f'{MANIFEST}.partial'
"""The kind of a manifest whose files belong to no checkpoint: it is being published or deleted."""

_STAGE = '.ete-stage-'
_REPLACEMENT = '.ete-replaces-'
_NOTE = '.etpe-note-'
_STEP = re.compile(r'-(0|[1-9][0-9]{0,18})\Z')
_DATA = re.compile(r'(.+)\.data-[0-9]{5}-of-[0-9]{5}', re.DOTALL)
_UNFINISHED = re.compile(
    r'checkpoint\.tmp(-[0-9a-f]{8})?'
    r'|(graph\.pbtxt|checkpoint(_input\w*)?)\.tmp[0-9a-f]{32}'
    r'|' + re.escape(_NOTE) + r'[0-9A-Za-z]{1,64}', re.ASCII)


class Part(NamedTuple):
    """Says what a file is: the checkpoint that it belongs to, and its kind."""

    checkpoint: str
    kind: str


def parse(file: str) -> Part | None:
    """Returns what a name or a path says of a file; `None` if it is no file of a checkpoint.

    >>> parse('model.ckpt-7.data-00000-of-00002')
    Part(checkpoint='model.ckpt-7', kind='.data')
    >>> parse('events') is None
    True
    """
    data = _DATA.fullmatch(file)
    if data is not None:
        return Part(data[1], DATA)
    for kind in (INDEX, GRAPH, MANIFEST, PARTIAL):
        if file.endswith(kind) and file != kind:
            return Part(file.removesuffix(kind), kind)
    return None


def name_of(base: str, step: int) -> str:
    """Returns the name of the checkpoint of a step."""
    return f'{base}-{step}'


def step_of(checkpoint: str) -> int | None:
    """Returns the step that a name ends with; `None` if it has none.

    >>> step_of('model.ckpt-7'), step_of('model.ckpt-007'), step_of('best')
    (7, None, None)
    """
    found = _STEP.search(checkpoint)
    return int(found[1]) if found is not None else None


def base_of(checkpoint: str) -> str:
    """Returns the part of a name before its last hyphen: the base, if the name has a step."""
    return checkpoint.rpartition('-')[0]


def is_of_a_job(name: str) -> bool:
    """Whether a checkpoint has a name of the form that jobs use by default."""
    return base_of(name) == BASE and step_of(name) is not None


def label(checkpoint: str) -> str:
    """Returns how messages call a checkpoint; it is safe to print."""
    return f'checkpoint {shown(os.path.basename(checkpoint), 255)}'


def data_of(checkpoint: str, shards: int) -> list[str]:
    """Returns the names or paths of its data files, in the order of their numbers."""
    return [f'{checkpoint}.data-{shard:05d}-of-{shards:05d}' for shard in range(shards)]


def leading_files(checkpoint: str) -> list[str]:
    """Returns the files by which a checkpoint is found: it exists if one of them does."""
    return [checkpoint + kind for kind in (INDEX, GRAPH, MANIFEST)]


def beginning_of_files(checkpoint: str) -> str:
    """Returns the beginning of the names of all files of a checkpoint."""
    return f'{checkpoint}.'


def by_checkpoint(files: Iterable[str]) -> dict[str, list[str]]:
    """Returns the names of the files of each checkpoint, sorted, by its name.

    A `PARTIAL` does not count.

    >>> by_checkpoint(['a.index', 'model.ckpt-3.meta', 'events'])
    {'a': ['a.index'], 'model.ckpt-3': ['model.ckpt-3.meta']}
    """
    found: dict[str, list[str]] = {}
    for file in sorted(files):
        part = parse(file)
        if part is not None and part.kind != PARTIAL:
            found.setdefault(part.checkpoint, []).append(file)
    return found


def new_stage(step: int) -> str:
    """Returns a name for the folder of a save, which no other save has."""
    return f'{_STAGE}{step}-{secrets.token_hex(4)}'


def is_stage(name: str) -> bool:
    """Whether a folder of that name is one in which a job writes a checkpoint."""
    return name.startswith(_STAGE)


def note(name: str) -> str:
    """Returns the name of the file of a note, which no process needs for long."""
    return _NOTE + name


def replacement_of(checkpoint: str) -> str:
    """Returns the name of the folder whose files replace a checkpoint."""
    return _REPLACEMENT + checkpoint


def replaced_by(name: str) -> str | None:
    """Returns the checkpoint that a folder of that name replaces; `None` if it is no such name.

    >>> replaced_by('.ete-replaces-ckpt-7'), replaced_by('.ete-stage-7-0123abcd')
    ('ckpt-7', None)
    """
    checkpoint = name.removeprefix(_REPLACEMENT)
    return checkpoint if checkpoint != name and step_of(checkpoint) is not None else None


def new_staged_pointer() -> str:
    """Returns a name for the file `checkpoint` while it is being written."""
    return f'{POINTER}.tmp-{secrets.token_hex(4)}'


def is_unfinished(file: str) -> bool:
    """Whether a file has the name of one that nobody needs once its job is dead."""
    return _UNFINISHED.fullmatch(file) is not None


def base_of_states(name: str) -> str:
    """Returns the base of the names of the states of iterators, such as `'input.ckpt'`."""
    return f'{name}.ckpt'


def pointer_to_states(name: str) -> str:
    """Returns the name of the file that does for states what `checkpoint` does for models."""
    return f'{POINTER}_{name}'
