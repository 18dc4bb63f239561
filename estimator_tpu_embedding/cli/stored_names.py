"""Which checkpoint a file belongs to, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..checkpoint.manifest import SUFFIX

SUFFIXES = ('.index', '.meta', SUFFIX)
"""Of the files of which a checkpoint has at most one each; data files may be many."""

_FILE = re.compile(r'(.+)(\.index|\.meta|\.data-[0-9]{5}-of-[0-9]{5}|' + re.escape(SUFFIX) + ')',
                   re.DOTALL)
_V1 = re.compile(r'(.+?)(?:-[0-9]{5}-of-[0-9]{5})?', re.DOTALL)
_OF_A_JOB = re.compile(r'model\.ckpt-[0-9]{1,19}')
_STEP = re.compile(r'-([0-9]{1,19})\Z')


def prefix_of(file: str) -> str | None:
    """The checkpoint whose file has this name.

    >>> prefix_of('model.ckpt-7.data-00000-of-00002'), prefix_of('events')
    ('model.ckpt-7', None)
    """
    found = _FILE.fullmatch(file)
    return found[1] if found is not None else None


def step_of(prefix: str) -> int | None:
    """The step that the name of a checkpoint ends with."""
    found = _STEP.search(prefix)
    return int(found[1]) if found is not None else None


def of_a_job(prefix: str) -> bool:
    """Whether it is named as a job names its checkpoints."""
    return _OF_A_JOB.fullmatch(prefix) is not None


def grouped(files: Iterable[str]) -> dict[str, list[str]]:
    """The names of the files of each checkpoint, sorted, by its name.

    Those of TensorFlow's old format V1 have no suffix: they count beside a graph, or where they
    are named as in a job.

    >>> grouped(['a.index', 'model.ckpt-3', 'events'])
    {'a': ['a.index'], 'model.ckpt-3': ['model.ckpt-3']}
    """
    found: dict[str, list[str]] = {}
    rest = []
    for file in sorted(files):
        prefix = prefix_of(file)
        if prefix is None:
            rest.append(file)
        else:
            found.setdefault(prefix, []).append(file)
    for file in rest:
        match = _V1.fullmatch(file)
        if match is not None and (match[1] in found or of_a_job(match[1])):
            found.setdefault(match[1], []).append(file)
    return found


def is_v1(prefix: str, files: Iterable[str]) -> bool:
    """Whether a checkpoint with these files, as `grouped` finds them, has the format V1."""
    return f'{prefix}.index' not in files and any(prefix_of(file) is None for file in files)
