"""Shows that a new job is the old one: both train from the same rows, and what they save is
compared.

Each side is a process of its own; both in one would share TensorFlow's mode, its devices and their
memory. Run as a script, this module is such a process. It takes its request as JSON, and a folder.
"""

from __future__ import annotations

import collections
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from ..checkpoint import file_names, pointer, stored_rows
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.storage import Storage
from ..checkpoint.stored_rows import Ordered
from ..errors import CallError, CheckpointError, ConfigError, Problem, noted, quoted, shown
from ..proto import files
from . import moves
from .checkpoint_contents import Contents
from .from_tf2 import Paths
from .job_entry_points import Side, problems_of
from .map_file import Map
from .new_names import Pairs, known, orders, pairs, some

TABLE, SLOT, VARIABLE = KINDS = ('table', 'slot', 'variable')
"""What is compared, in the order in which differences are named."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A tensor that differs.

    Attributes:
      step: after so many steps; 0 is before the first.
      kind: of `KINDS`.
      name: of the tensor on side A.
      rows: how many of its rows differ.
      most: the largest difference; infinite if a number is not finite.
      row: the first row that differs; an id of a table or of its slots.
      column: of the number in it that differs most.
      a, b: that number on the two sides.
    """

    step: int
    kind: str
    name: str
    rows: int
    most: float
    row: int
    column: int
    a: float
    b: float

    def __str__(self) -> str:
        when = f'after step {self.step}' if self.step else 'before step 1'
        return (f'{when}: {self.kind} "{self.name}", row {self.row}, column {self.column}: A has '
                f'{self.a:.9g}, B has {self.b:.9g}; {self.rows:,} rows differ, by up to '
                f'{self.most:.3g}')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The result of a check.

    Attributes:
      differences: the tensors with a difference larger than the tolerance, after the first step
        after which there are any; none if the jobs are the same.
      largest: the tensor with the largest difference among the others; `None` if these are equal.
      steps: after how many steps they were compared.
      numbers: how many numbers were compared, by kind.
      remarks: on what was not compared, on rows that hardly move, and those of the sides.
    """

    differences: Sequence[Difference]
    largest: Difference | None
    steps: int
    numbers: Mapping[str, int]
    remarks: Sequence[str]


_SAVED, _RESULT = 'saved', 'result'
"""In the folder of a side: a folder with a checkpoint, and a file that says what became of it."""
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
        read = functools.partial(moves.read, paths=own, map=own_map, options=options)
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
    """What a process is to do: the parameters of `check` for one side."""

    where: str
    source: str
    checkpoint: str
    steps: int
    hosts: int | None
    cores: int | None
    assume: str | None


class _Result(NamedTuple):
    """What has become of it: the prefix of what was saved or `''`, and problems as dicts."""

    checkpoint: str = ''
    problems: Sequence[dict[str, Any]] = ()
    remarks: Sequence[str] = ()


class _Side(NamedTuple):
    """A side that can train more than once, how its checkpoints are read, and its first one."""

    request: _Request
    read: Callable[[str], Contents]
    before: Contents


def _compared(sides: Sequence[_Side], steps: int, map: Map, tolerance: float, deadline: float
              ) -> Agreement:
    """Trains both sides for some steps, and compares what they have saved; raises as `check`."""
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


def compare(a: Contents, b: Contents, step: int, *, map: Map, tolerance: float) -> Agreement:
    """Compares what two sides have saved after a step, rows of tables by their ids.

    Raises:
      ConfigError: E683 with every reason why they cannot be compared.
    """
    idle = map.idle(known(a))  # A job need not save everything that its first checkpoint had.
    found = pairs(a, b, Map([rule for rule in map.rules if rule not in idle], map.powers))
    if problems := list(_unpaired(a, b, found)):
        raise ConfigError(*problems)
    orders_of = orders(a), orders(b)
    differences, numbers = [], collections.Counter[str]()
    largest: Difference | None = None
    kinds = {slot: SLOT for one in a.variables for slot in one.slots} | {
        one.tensor: TABLE for one in a.tables}
    both = [(kinds.get(mine, VARIABLE), mine, yours) for mine, yours in found.tensors
            if mine and yours and mine != a.step  # Sides may lack the step.
            and a.tensor(mine).has_rows and b.tensor(yours).has_rows]
    for kind, mine, yours in sorted(both, key=lambda one: (KINDS.index(one[0]), one[1])):
        one, other = [Ordered(side.bundle, name, order.get(name)) for side, name, order in zip(
            (a, b), (mine, yours), orders_of)]
        numbers[kind] += math.prod(a.tensor(mine).shape)
        apart = stored_rows.difference(one, other, 1, tolerance)
        if apart.rows:
            differences.append(_difference(step, kind, one, other, apart))
        elif apart.most > (largest.most if largest is not None else 0):
            largest = _difference(step, kind, one, other, stored_rows.difference(
                one, other, 1, math.nextafter(apart.most, 0)))
    return Agreement(differences=differences, largest=largest, steps=step, numbers=dict(numbers),
                     remarks=list(_not_compared(a, b, found)))


def moved(before: Contents, after: Contents, tolerance: float = 0.) -> dict[str, int]:
    """Returns for each table how many of its rows have moved by more than a tolerance."""
    of_before, of_after = orders(before), orders(after)
    return {one.tensor: stored_rows.difference(
        Ordered(before.bundle, one.tensor, of_before.get(one.tensor)),
        Ordered(after.bundle, one.tensor, of_after.get(one.tensor)), 0, tolerance).rows
        for one in after.tables if one.tensor in before.bundle.tensors}


def _unpaired(a: Contents, b: Contents, found: Pairs) -> Iterator[Problem]:
    """Yields why two checkpoints cannot be compared: a table without a partner, another shape."""
    tables = [{one.tensor: one.name for one in side.tables} for side in (a, b)]
    for mine, yours in found.tensors:
        for name, other, own, side, others in (
                (mine, yours, tables[0], 'A', tables[1]), (yours, mine, tables[1], 'B', tables[0])):
            if name in own and not other:
                yield Problem('E683', f'table "{shown(own[name], 200)}" of side {side}',
                              'the other side must have it too', some(others.values(), 10),
                              'Give it the other name by --map, or drop it there.')
        if mine and yours:
            of_a, of_b = [f'{one.kind} {list(one.shape)}' for one in (
                a.tensor(mine), b.tensor(yours))]
            if of_a != of_b and mine != a.step:
                yield Problem('E683', f'tensor "{shown(mine, 200)}"', 'it must have the same type '
                              'and shape on both sides', f'{of_a} on A, {of_b} on B')


def _not_compared(a: Contents, b: Contents, found: Pairs) -> Iterator[str]:
    """Yields remarks on the tensors that were not compared, but for what one API alone needs."""
    aside = {a.step, b.step, *a.aside, *b.aside}
    pairs_of = [pair for pair in sorted(found.tensors) if aside.isdisjoint(pair)]
    for why, names in (
            ('on side A only', [mine for mine, yours in pairs_of if not yours]),
            ('on side B only', [yours for mine, yours in pairs_of if not mine]),
            ('dropped by the map', found.dropped),
            ('no numbers, or slices of columns', [
                mine for mine, yours in pairs_of if mine and yours and not (
                    a.tensor(mine).has_rows and b.tensor(yours).has_rows)])):
        if names:
            yield f'not compared, {why}: {some(names, 5)}'


def _difference(step: int, kind: str, a: Ordered, b: Ordered, apart: stored_rows.Difference
                ) -> Difference:
    row = apart.ids[0][0]
    mine, yours = [np.ravel(one.read(np.array([row]))).astype(np.float64) for one in (a, b)]
    with np.errstate(invalid='ignore'):
        column = int(np.argmax(np.where(mine == yours, 0, np.nan_to_num(
            np.abs(mine - yours), nan=np.inf))))
    return Difference(step=step, kind=kind, name=a.name, rows=apart.rows, most=apart.most, row=row,
                      column=column, a=float(mine[column]), b=float(yours[column]))


def _problems(a: str, b: str, checkpoint: str, checkpoint_b: str | None, steps: int,
              tolerance: float, deadline: float) -> Iterator[Problem]:
    for where, source in (('A', a), ('B', b)):
        parts = source.split(':')
        if len(parts) != 3 or parts[0] != 'py' or not all(parts):
            yield Problem('E681', where, 'it must be py:module:object', shown(source),
                          'For example py:jobs.census:side.')
    for where, prefix in (('checkpoint', checkpoint), ('checkpoint_b', checkpoint_b)):
        if prefix is not None and not os.path.lexists(prefix + file_names.INDEX):
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
        try:
            status = subprocess.run(
                [sys.executable, '-m', f'{__package__}.check_jobs', json.dumps(request), folder],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=deadline,
                check=False).returncode
        except subprocess.TimeoutExpired as error:
            raise noted(CallError(Problem(
                'E686', request.where, f'it must end within {deadline:g} seconds', 'it was killed',
                'Give it longer by --deadline, or find out what it waits for.')),
                _last_of(output)) from error
        if status:
            got, remedy = (f'exit status {status}', 'Read what it printed.') if status > 0 else (
                f'it was killed by signal {-status} ({signal.strsignal(-status)})',
                'Perhaps the memory did not suffice.')
            raise noted(CallError(Problem(
                'E684', request.where, 'it must train and end by itself', got, remedy)),
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
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _MOST_PRINTED))
    return output.read().decode(errors='replace')


def _run_side(text: str, folder: str) -> None:
    """Runs the side of a request; leaves what it saves, and its result, in a folder."""
    request = _Request(*json.loads(text))
    from ..compat import console, environment
    environment.prepare()
    # A job may begin with a checkpoint that is not in its own directory.
    options = CheckpointOptions(follow_pointer=True, assume=request.assume)
    with console.quiet_start():
        from ..compat.install import install
        install(request.hosts, request.cores, checkpoint=options)
    with Storage(folder) as own:
        own.make_folder(_SAVED)
        result = _train(request, os.path.join(folder, _SAVED), options)
        own.create(_RESULT, json.dumps(result).encode())


def _train(request: _Request, folder: str, options: CheckpointOptions) -> _Result:
    from .. import defaults
    side = _find(request.source)
    try:
        if problems := problems_of(side, request.where):
            raise ConfigError(*problems)
        # The module of the side may have called `install` itself, which sets all defaults anew.
        defaults.set_current(dataclasses.replace(defaults.current(), checkpoint=options))
        told = side.train(request.checkpoint, request.steps, folder)
    except (CallError, ConfigError) as error:
        if error.code not in ('E682', 'E687'):
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
    _folder = sys.argv.pop()  # The user's module sees no arguments.
    _run_side(sys.argv.pop(), _folder)
