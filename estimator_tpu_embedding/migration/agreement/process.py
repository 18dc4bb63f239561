"""Runs one side of `check`, as a process of its own.

Both sides in one process would share TensorFlow's mode, its devices and their memory. Run as a
script, this module takes the path of a file of JSON, which `check.py` wrote.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import operator
import os
import sys
from typing import Any

from ...checkpoint.files import Storage
from ...checkpoint.options import CheckpointOptions
from ...errors import Problem, shown
from ...proto import files
from . import sides
from .records import Recorder

RECORDS, RESULT = 'records', 'result'
"""What a side leaves in its directory: a folder, and a file of JSON."""
_MAX_REQUEST = 2**20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a side is to do.

    Attributes:
      where: how messages call the side.
      source: `py:module:object`.
      checkpoint: the prefix of the checkpoint that it begins with.
      steps: how many steps it makes; 0 if only its parts are looked at.
      hosts, cores: of the emulated system; `None` as for `install`.
      assume: as for `CheckpointOptions`.
    """

    where: str
    source: str
    checkpoint: str
    steps: int
    hosts: int | None
    cores: int | None
    assume: str | None


def run(path: str) -> None:
    """Runs the side that the file at `path` describes, and leaves what was seen beside it."""
    with files.open_regular(path, follow=False) as file:
        request = Request(**json.loads(files.read_at_most(file, _MAX_REQUEST)))
    _prepare(request)
    folder = os.path.dirname(path)
    with Storage(folder) as own:
        own.make_folder(RECORDS)
        with Storage(os.path.join(folder, RECORDS)) as storage:
            problems, remarks = _train(request, storage)
        own.create(RESULT, json.dumps({
            'problems': [dataclasses.asdict(one) for one in problems],
            'remarks': remarks}).encode())


def _prepare(request: Request) -> None:
    from ...compat import console, environment
    environment.prepare()
    with console.quiet_start():
        from ...compat.install import install
        install(request.hosts, request.cores, checkpoint=_options(request))


def _options(request: Request) -> CheckpointOptions:
    """Lets a job begin with a checkpoint that is not in its own directory."""
    return CheckpointOptions(follow_pointer=True, assume=request.assume)


def _train(request: Request, storage: Storage) -> tuple[list[Problem], list[str]]:
    """Trains, and returns problems of the side, and remarks for the report."""
    from ... import defaults
    from ...hosts import observed
    recorder = Recorder(storage, request.steps)
    with observed.observed_by(recorder):  # The object may make its tables when it is found.
        side = _find(request.source)
        problems = sides.problems_of(side, request.where)
        if problems or not request.steps:
            return problems, []
        side = sides.seen_by(side, recorder.input)
        # The module of the side may have called `install` itself, which sets all defaults anew.
        defaults.set_current(dataclasses.replace(
            defaults.current(), checkpoint=_options(request)))
        told = side.train(request.checkpoint, request.steps)
    recorder.finish()
    return [], [shown(one, 400) for one in told] if isinstance(told, (list, tuple)) else []


def _find(source: str) -> Any:
    """Returns the object that `py:module:object` names, or what it returns if it is a function."""
    _, module, path = source.split(':', 2)
    value = operator.attrgetter(path)(importlib.import_module(module))
    if isinstance(value, type) or callable(value) and not isinstance(value, sides.Side):
        value = value()
    return value


if __name__ == '__main__':
    run(sys.argv.pop())
