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

from ...checkpoint import pointer
from ...checkpoint.files import Storage
from ...checkpoint.options import CheckpointOptions
from ...errors import CallError, shown
from ...proto import files
from . import sides

SAVED, RESULT = 'saved', 'result'
"""What a side leaves in its directory: a folder with a checkpoint, and a file of JSON."""
_MAX_REQUEST = 2**20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a side is to do.

    Attributes:
      where: how messages call the side.
      source: `py:module:object`.
      checkpoint: the prefix of the checkpoint that it begins with.
      steps: how many steps it makes; `None` if only its parts are looked at.
      hosts, cores: of the emulated system; `None` as for `install`.
      assume: as for `CheckpointOptions`.
    """

    where: str
    source: str
    checkpoint: str
    steps: int | None
    hosts: int | None
    cores: int | None
    assume: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What has become of it.

    Attributes:
      checkpoint: the prefix of the one that it has saved; `''` if there is none.
      problems: as dicts.
      remarks: for the report.
    """

    checkpoint: str = ''
    problems: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    remarks: list[str] = dataclasses.field(default_factory=list)


def run(path: str) -> None:
    """Runs the side that the file at `path` describes, and leaves what it saves beside it."""
    with files.open_regular(path, follow=False) as file:
        request = Request(**json.loads(files.read_at_most(file, _MAX_REQUEST)))
    _prepare(request)
    folder = os.path.dirname(path)
    with Storage(folder) as own:
        own.make_folder(SAVED)
        result = _train(request, os.path.join(folder, SAVED))
        own.create(RESULT, json.dumps(dataclasses.asdict(result)).encode())


def _prepare(request: Request) -> None:
    from ...compat import console, environment
    environment.prepare()
    with console.quiet_start():
        from ...compat.install import install
        install(request.hosts, request.cores, checkpoint=_options(request))


def _options(request: Request) -> CheckpointOptions:
    """Lets a job begin with a checkpoint that is not in its own directory."""
    return CheckpointOptions(follow_pointer=True, assume=request.assume)


def _train(request: Request, folder: str) -> Result:
    """Trains, if the object is a side."""
    from ... import defaults
    side = _find(request.source)
    problems = sides.problems_of(side, request.where)
    if problems or request.steps is None:
        return Result(problems=[dataclasses.asdict(one) for one in problems])
    # The module of the side may have called `install` itself, which sets all defaults anew.
    defaults.set_current(dataclasses.replace(defaults.current(), checkpoint=_options(request)))
    try:
        told = side.train(request.checkpoint, request.steps, folder)
    except CallError as error:
        if error.code != 'E687':
            raise
        return Result(problems=[dataclasses.asdict(dataclasses.replace(one, where=request.where))
                                for one in error.problems])
    saved = pointer.read(folder)
    return Result(
        checkpoint=os.path.join(folder, saved.newest) if saved is not None else '',
        remarks=[shown(one, 400) for one in told] if isinstance(told, (list, tuple)) else [])


def _find(source: str) -> Any:
    """Returns the object that `py:module:object` names, or what it returns if it is a function."""
    _, module, path = source.split(':', 2)
    value = operator.attrgetter(path)(importlib.import_module(module))
    if isinstance(value, type) or callable(value) and not isinstance(value, sides.Side):
        value = value()
    return value


if __name__ == '__main__':
    run(sys.argv.pop())
