"""Shows that a new job is the old one: both train from the same rows, and what they save is
compared.

Each side is a process of its own; both in one would share TensorFlow's mode, its devices and their
memory. Run as a script, this module is such a process. It takes the path of a file of JSON.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import math
import operator
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from ..checkpoint import file_names, pointer
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.storage import Storage
from ..errors import CallError, CheckpointError, ConfigError, Problem, noted, quoted, shown
from ..proto import files
from . import plan as planning
from .comparison import TABLE, Agreement, compare, moved
from .contents import Contents
from .from_tf2 import Paths
from .map_file import Map
from .sides import Side, problems_of

_REQUEST, _SAVED, _RESULT = 'request', 'saved', 'result'
"""In the directory of a side: what it is to do, a folder with a checkpoint, and what became of it.
"""
_MAX_JSON = 2**24
_MOST_PRINTED = 2**14
DEADLINE = 3600.
"""Seconds for each run of a side, unless the user says otherwise."""


def check(a: str, b: str, *, checkpoint: str, steps: int, tolerance: float = 1e-5,
          checkpoint_b: str | None = None, map: Map = Map(), paths: Paths = Paths(),
          paths_b: Paths = Paths(), hosts: int | None = None, cores: int | None = None,
          assume: str | None = None, deadline: float = DEADLINE) -> Agreement:
    """Trains two jobs from the same rows on the same batches, and compares what they have saved.

    Tables, slots and other variables are compared, rows by their ids: the sides may have different
    hosts and cores. Each side is a process of its own, in the current folder. If it fails, its last
    output is a note of the error. If the sides differ, they train again for fewer steps, until the
    first step is found after which they do.

    >>> try:
    ...     check('jobs.old', 'py:jobs.new:side', checkpoint='old/model.ckpt-300', steps=20)
    ... except ConfigError as error:
    ...     print([problem.where for problem in error.problems])
    ['A', 'checkpoint']

    Args:
      a: `py:module:object` of the old job. The object is a `Side`, or a function that returns one.
      b: `py:module:object` of the new job.
      checkpoint: the prefix of the checkpoint from which side A trains.
      steps: how many steps they train, >= 1.
      tolerance: the largest difference of two numbers that counts as equal, >= 0.
      checkpoint_b: the prefix of the one from which side B trains; `None` is the same.
      map: names on side B of the variables of side A, as for the migration.
      paths, paths_b: of the objects on each side that is of TF2.
      hosts: emulated TPU hosts for both sides, as for `install`.
      cores: cores per host, as for `install`.
      assume: how the rows of a TF1 checkpoint without a manifest are ordered, as in
        `CheckpointOptions`.
      deadline: seconds for each run of a side, > 0.

    Returns:
      An `Agreement`; the jobs are the same if it has no `differences`.

    Raises:
      ConfigError: E681 for arguments, E682 for objects that are no sides,
        E683 for sides that cannot be compared. E653 or E654 for paths or a map that do not fit.
      CallError: E684 if a side failed, E686 if it took too long, E687 if it made fewer steps.
      CheckpointError: E685 if a side ended without a checkpoint.
    """
    problems = list(_problems(a, b, checkpoint, checkpoint_b, steps, tolerance, deadline))
    if problems:
        raise ConfigError(*problems)
    options = CheckpointOptions(assume=assume)
    sides = []
    for where, source, prefix, own, own_map in (
            ('side A', a, checkpoint, paths, map),
            ('side B', b, checkpoint_b or checkpoint, paths_b, Map())):
        read = functools.partial(planning.read, paths=own, map=own_map, options=options)
        sides.append(_Side(_Request(where, source, os.path.abspath(prefix), steps, hosts, cores,
                                    assume), read, read(prefix)))
    found = _compared(sides, steps, map, tolerance, deadline)
    same, differ = -1, steps
    while found.differences and differ - same > 1:
        # Most mistakes show before the first step or after it.
        middle = same + 1 if same < 1 else (same + differ) // 2
        try:
            fewer = _compared(sides, middle, map, tolerance, deadline)
        except ConfigError:
            if middle:
                raise
            same = middle  # What its first step makes cannot be compared before it.
            continue
        if fewer.differences:
            differ, found = middle, fewer
        else:
            same = middle
    return found


class _Request(NamedTuple):
    """What a process is to do: the parameters of `check` for one side.

    Attributes:
      where: how messages call the side.
      source: `py:module:object`.
      checkpoint: the prefix of the checkpoint that it begins with.
    """

    where: str
    source: str
    checkpoint: str
    steps: int
    hosts: int | None
    cores: int | None
    assume: str | None


class _Result(NamedTuple):
    """What has become of it: the prefix of what was saved or `''`, problems as dicts, and remarks.
    """

    checkpoint: str = ''
    problems: Sequence[dict[str, Any]] = ()
    remarks: Sequence[str] = ()


class _Side(NamedTuple):
    """A side that can train more than once.

    Attributes:
      request: for its longest training.
      read: returns what a checkpoint of this side holds.
      before: what it begins with.
    """

    request: _Request
    read: Callable[[str], Contents]
    before: Contents


def _compared(sides: Sequence[_Side], steps: int, map: Map, tolerance: float, deadline: float
              ) -> Agreement:
    """Trains both sides for some steps, and compares what they have saved.

    Raises:
      ConfigError: E682, and as `compare`.
      CallError: E684, E686, E687.
      CheckpointError: E685.
    """
    prefixes, remarks = [], []
    with tempfile.TemporaryDirectory(prefix='etpe-check-') as folder:
        for side in sides:
            request = side.request._replace(steps=steps)
            result = _run(request, os.path.join(folder, request.where.replace(' ', '-')), deadline)
            if problems := [Problem(**one) for one in result.problems]:
                raise (CallError if problems[0].code == 'E687' else ConfigError)(*problems)
            remarks += [f'{request.where}: {one}' for one in result.remarks]
            prefixes.append(result.checkpoint)
        a, b = [side.read(prefix) for side, prefix in zip(sides, prefixes)]
        found = compare(a, b, steps, map=map, tolerance=tolerance)
        still = [name for name, count in moved(sides[0].before, a, tolerance).items()
                 if not count and not found.differences]
        if still:
            remarks.append(f'tables whose rows never move by more than the tolerance: '
                           f'{quoted(still)}')
        if any(one.kind == TABLE for one in found.differences):
            counts = [sum(moved(side.before, after).values()) for side, after in zip(sides, (a, b))]
            remarks += [] if counts[0] == counts[1] else [
                f'{counts[0]:,} rows of tables have moved on side A, and {counts[1]:,} on side B: '
                'do both look up the same ids?']
        return dataclasses.replace(found, remarks=[*remarks, *found.remarks])


def _problems(a: str, b: str, checkpoint: str, checkpoint_b: str | None, steps: int,
              tolerance: float, deadline: float) -> Iterator[Problem]:
    """Yields what is wrong with the arguments of `check`."""
    for where, source in (('A', a), ('B', b)):
        parts = source.split(':')
        if len(parts) != 3 or parts[0] != 'py' or not all(parts):
            yield Problem('E681', where, 'it must be py:module:object', shown(source),
                          'For example py:jobs.census:side.')
    for where, prefix in (('checkpoint', checkpoint), ('checkpoint_b', checkpoint_b)):
        if prefix is not None and not os.path.lexists(file_names.index_of(prefix)):
            yield Problem('E681', where, 'it must be the prefix of a checkpoint, such as '
                          'model_dir/model.ckpt-300', shown(prefix, 300))
    if steps < 1:
        yield Problem('E681', 'steps', 'it must be at least 1', str(steps))
    if not 0 <= tolerance < math.inf:
        yield Problem('E681', 'tolerance', 'it must be a number >= 0', str(tolerance))
    if not 0 < deadline < math.inf:
        yield Problem('E681', 'deadline', 'it must be a number of seconds > 0', str(deadline))


def _run(request: _Request, folder: str, deadline: float) -> _Result:
    """Runs a side; returns what it left in the file `_RESULT`."""
    os.mkdir(folder)
    with Storage(folder) as storage, tempfile.TemporaryFile() as output:
        storage.create(_REQUEST, json.dumps(request).encode())
        try:
            status = subprocess.run(
                [sys.executable, '-m', f'{__package__}.agreement', storage.path(_REQUEST)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=deadline,
                check=False).returncode
        except subprocess.TimeoutExpired as error:
            raise noted(CallError(Problem(
                'E686', request.where, f'it must end within {deadline:g} seconds', 'it was killed',
                'Give it longer by --deadline, or find out what it waits for.')),
                _last_of(output)) from error
        if status:
            raise noted(CallError(Problem(
                'E684', request.where, 'it must train and end by itself', _status_text(status),
                'Read what it printed.' if status > 0 else 'Perhaps the memory did not suffice.')),
                _last_of(output))
        result = _Result()
        if storage.status(_RESULT) is not None:
            with storage.open(_RESULT) as file:
                result = _Result(*json.loads(files.read_at_most(file, _MAX_JSON)))
        if not result.problems and not result.checkpoint:
            raise CheckpointError(Problem(
                'E685', request.where, 'it must save a checkpoint into the folder that it is '
                'given, and its process must end by itself', 'none'))
        return result


def _last_of(output: IO[bytes]) -> str:
    """Returns the last that a side printed."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _MOST_PRINTED))
    return output.read().decode(errors='replace')


def _status_text(status: int) -> str:
    if status > 0:
        return f'exit status {status}'
    try:
        return f'it was killed by {signal.Signals(-status).name}'
    except ValueError:
        return f'it was killed by signal {-status}'


def _run_side(path: str) -> None:
    """Runs the side that the file at `path` describes, and leaves what it saves beside it."""
    with files.open_regular(path, follow=False) as file:
        request = _Request(*json.loads(files.read_at_most(file, _MAX_JSON)))
    from ..compat import console, environment
    environment.prepare()
    with console.quiet_start():
        from ..compat.install import install
        install(request.hosts, request.cores, checkpoint=_options(request))
    folder = os.path.dirname(path)
    with Storage(folder) as own:
        own.make_folder(_SAVED)
        result = _train(request, os.path.join(folder, _SAVED))
        own.create(_RESULT, json.dumps(result).encode())


def _options(request: _Request) -> CheckpointOptions:
    """Lets a job begin with a checkpoint that is not in its own directory."""
    return CheckpointOptions(follow_pointer=True, assume=request.assume)


def _train(request: _Request, folder: str) -> _Result:
    """Trains, if the object is a side."""
    from .. import defaults
    side = _find(request.source)
    if problems := problems_of(side, request.where):
        return _Result(problems=[dataclasses.asdict(one) for one in problems])
    # The module of the side may have called `install` itself, which sets all defaults anew.
    defaults.set_current(dataclasses.replace(defaults.current(), checkpoint=_options(request)))
    try:
        told = side.train(request.checkpoint, request.steps, folder)
    except CallError as error:
        if error.code != 'E687':
            raise
        return _Result(problems=[dataclasses.asdict(dataclasses.replace(one, where=request.where))
                                for one in error.problems])
    saved = pointer.read(folder)
    return _Result(
        checkpoint=os.path.join(folder, saved.newest) if saved is not None else '',
        remarks=[shown(one, 400) for one in told] if isinstance(told, (list, tuple)) else [])


def _find(source: str) -> Any:
    """Returns the object that `py:module:object` names, or what it returns if it is a function."""
    _, module, path = source.split(':', 2)
    value = operator.attrgetter(path)(importlib.import_module(module))
    if isinstance(value, type) or callable(value) and not isinstance(value, Side):
        value = value()
    return value


if __name__ == '__main__':
    _run_side(sys.argv.pop())
