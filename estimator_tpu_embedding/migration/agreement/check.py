"""Shows that a new job is the old one: both train from the same rows, and every number is compared.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ...checkpoint import file_names
from ...checkpoint.files import Storage
from ...errors import CallError, ConfigError, Problem, noted, shown
from ...proto import files
from .compare import Agreement, compare
from .process import RECORDS, RESULT, Request
from .reading import Records, read_side

_MAX_RESULT = 2**24
_MOST_PRINTED = 2**14
DEADLINE = 3600.
"""Seconds for each side, unless the user says otherwise."""


def check(a: str, b: str, *, checkpoint: str, steps: int, tolerance: float = 1e-5,
          checkpoint_b: str | None = None, features: Mapping[str, str] | None = None,
          hosts: int | None = None, cores: int | None = None, assume: str | None = None,
          deadline: float = DEADLINE) -> Agreement:
    """Trains two jobs from the same rows on the same batches, and compares them step by step.

    In each step it compares ids with their weights, labels and other input, and the rows and slots
    that the ids look up. Then come activations, gradients, and the rows and slots after the update.
    After the last step it compares all rows and slots of all tables. Samples are counted over all
    cores, and rows go by their ids, so the sides may have different hosts and cores. Each side is a
    process of its own, in the current folder. If it fails, its last output is a note of the error.

    >>> try:
    ...     check('jobs.old', 'py:jobs.new:side', checkpoint='old/model.ckpt-300', steps=20)
    ... except ConfigError as error:
    ...     print([problem.where for problem in error.problems])
    ['A', 'checkpoint']

    Args:
      a: `py:module:object` of the old job. The object is a `Side`, or a function that returns one.
      b: `py:module:object` of the new job.
      checkpoint: the prefix of the checkpoint from which side A trains.
      steps: how many steps are compared, >= 1.
      tolerance: the largest difference of two float32 that counts as equal, >= 0.
      checkpoint_b: the prefix of the one from which side B trains; `None` is the same.
      features: name on side A -> name on side B, where they differ. Tables are paired by their
        features.
      hosts: emulated TPU hosts for both sides, as for `install`.
      cores: cores per host, as for `install`.
      assume: how the rows of a TF1 checkpoint without a manifest are ordered, as in
        `CheckpointOptions`.
      deadline: seconds for each side, > 0.

    Returns:
      An `Agreement`; the jobs are the same if its `difference` is `None`.

    Raises:
      ConfigError: E681 for arguments, E682 for objects that are no sides, with all that they lack,
        E683 for sides that cannot be compared.
      CallError: E684 if a side failed, E686 if it took too long. E687 if it made fewer steps in
        the engine of this package. E688 if it trained two engines.
      CheckpointError: E685 if a side ended without its records.
    """
    problems = list(_problems(a, b, checkpoint, checkpoint_b, steps, tolerance, deadline))
    if problems:
        raise ConfigError(*problems)
    requests = [Request(where=where, source=source, checkpoint=os.path.abspath(prefix),
                        steps=steps, hosts=hosts, cores=cores, assume=assume)
                for where, source, prefix in (('side A', a, checkpoint),
                                              ('side B', b, checkpoint_b or checkpoint))]
    with tempfile.TemporaryDirectory(prefix='etpe-check-') as folder:
        remarks = _run_both(requests, folder, deadline)
        with Storage(_folder(folder, requests[0], RECORDS)) as mine, Storage(
                _folder(folder, requests[1], RECORDS)) as yours:
            records = [read_side(storage, request.where)
                       for storage, request in zip((mine, yours), requests)]
            short = [problem for one, request in zip(records, requests)
                     for problem in _short(one, request)]
            if short:
                raise CallError(*short)
            return compare(*records, tolerance=tolerance, features=features or {},
                           remarks=remarks)


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


def _run_both(requests: list[Request], folder: str, deadline: float) -> list[str]:
    """Runs the sides one after the other; returns their remarks.

    Raises:
      ConfigError: E682 with what both objects lack.
      CallError: E684, E686.
    """
    problems: list[Problem] = []
    remarks: list[str] = []
    for request in requests:
        if problems:  # Look at the other object, too, but do not train.
            request = dataclasses.replace(request, steps=0)
        result = _run(request, folder, deadline)
        problems += [Problem(**one) for one in result['problems']]
        remarks += [f'{request.where}: {one}' for one in result['remarks']]
    if problems:
        raise ConfigError(*problems)
    return remarks


def _run(request: Request, folder: str, deadline: float) -> dict[str, Any]:
    """Runs a side; returns what it left in the file `RESULT`."""
    own = _folder(folder, request)
    os.mkdir(own)
    with Storage(own) as storage, tempfile.TemporaryFile() as output:
        storage.create('request', json.dumps(dataclasses.asdict(request)).encode())
        try:
            status = subprocess.run(
                [sys.executable, '-m', f'{__package__}.process',
                 storage.path('request')], stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, timeout=deadline, check=False).returncode
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
        try:
            with storage.open(RESULT) as file:
                return dict(json.loads(files.read_at_most(file, _MAX_RESULT)))
        except (OSError, ValueError):
            return {'problems': [], 'remarks': []}  # It has no records either.


def _last_of(output: IO[bytes]) -> str:
    """Returns the last that a side printed."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _MOST_PRINTED))
    return output.read().decode(errors='replace')


def _short(records: Records, request: Request) -> Iterator[Problem]:
    """Yields a problem if a side made too few steps, or if they cannot be compared."""
    if records.steps < request.steps:
        yield Problem(
            'E687', request.where, f'it must make {request.steps} steps in the engine of this '
            'package', f'{records.steps}', 'Give it more batches.' if records.steps else
            'A layer of TFRS must be made under a TPUStrategy: elsewhere it is plain Keras.')
    if records.has_others:
        yield Problem('E688', request.where, 'one TPUEmbedding must train all of its tables',
                      'two or more', 'Check them one by one.')


def _folder(folder: str, request: Request, *parts: str) -> str:
    return os.path.join(folder, request.where.replace(' ', '-'), *parts)


def _status_text(status: int) -> str:
    if status > 0:
        return f'exit status {status}'
    try:
        return f'it was killed by {signal.Signals(-status).name}'
    except ValueError:
        return f'it was killed by signal {-status}'
