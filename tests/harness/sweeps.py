"""Kills a job at each operation of its commits, or fails them, and checks the checkpoints on disk.

It runs without TensorFlow: `python -m harness.sweeps CHECKPOINTS FOLDER [DISK_SIZE ...]`.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from harness.checkpoints import commit
from harness.faults import Faults, FaultyStorage
from harness.groups import die_with_parent
from harness.tiny import Tiny

from estimator_tpu_embedding.checkpoint import commit as commits
from estimator_tpu_embedding.checkpoint import pointer
from estimator_tpu_embedding.checkpoint.commit import Retention
from estimator_tpu_embedding.checkpoint.model_dir import continue_from, saved_in
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError

KEPT = 2


def live(storage, tiny, steps, kept=KEPT):
    """Starts in a directory as a job does, and commits some steps.

    Args:
      storage: of the directory, a FaultyStorage or RecordingStorage.
      tiny: the content of the checkpoints.
      steps: their numbers.
      kept: so many of the newest are kept; 0 for all.
    """
    directory = os.path.dirname(storage.path('x'))
    commits.clean(storage)
    found = recover(directory)
    if found is not None:
        continue_from(directory, found)
    saved = saved_in(directory, 'model.ckpt')
    for step in steps:
        saved = commit(
            storage, step, tiny.write(step, storage.write), tiny.manifest(step), saved=saved,
            retention=Retention(kept))
        storage.done(step)


def live_in(directory, tiny, steps, faults=None):
    """Lets a job live in a directory, whose operations may meet faults."""
    with FaultyStorage(str(directory), faults or Faults()) as storage:
        live(storage, tiny, steps)


def steps_in(directory):
    """Returns the steps that have a manifest, in order."""
    found = [re.fullmatch(r'model\.ckpt-(\d+)\.tables\.json', name)
             for name in os.listdir(directory)]
    return sorted(int(one.group(1)) for one in found if one)


def check(directory, tiny, last, in_flight=None, pointed=True):
    """Asserts that a directory gives the last step whose commit returned, or the one after it.

    Args:
      directory: the directory of the job.
      tiny: the content of its checkpoints.
      last: the step whose commit returned last; `None` for none.
      in_flight: the step that was being committed, if any.
      pointed: whether the file `checkpoint` must never name a step that is not there.

    Returns:
      The step that was found; `None` for none.
    """
    found = recover(directory)
    if found is None:
        assert last is None, f'nothing is left of step {last}'
        return None
    assert found.step in (last, in_flight), (found, last, in_flight)
    assert tiny.is_at(found.prefix, found.step), f'{found.prefix} is not what was committed'
    named = pointer.read(directory)
    if named is not None and pointed:  # Legacy tools believe it.
        step = int(named.newest.rpartition('-')[2])
        assert tiny.is_at(f'{directory}/{named.newest}', step), named
    return found.step


def check_goes_on(directory, tiny, found):
    """Asserts that the next job commits, changes nothing that is kept, and cleans up."""
    following = 1 if found is None else found + 1
    before = marks(directory, found)
    live_in(directory, tiny, [following])
    assert check(directory, tiny, following) == following
    assert marks(directory, found) == before, 'a checkpoint was written again'
    kept = steps_in(directory)
    assert kept == [*range(max(1, following - KEPT + 1), following + 1)]
    expected = {f'model.ckpt-{step}{suffix}' for step in kept
                for suffix in (*tiny.files(step), '.tables.json')}
    assert set(os.listdir(directory)) - {'.ete-lock'} == {'checkpoint', *expected}


def marks(directory, step):
    """Returns facts of the files of a step that change if one is written or replaced."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in pathlib.Path(directory).glob(f'model.ckpt-{step}.*')}


@contextlib.contextmanager
def folder(parent):
    """A new folder that goes away in the end."""
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        yield directory


def killed(directory, tiny, steps, at):
    """Lets a child process commit until it is killed at operation `at`.

    Returns:
      (the steps whose commits returned, whether it came to its end before).
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_with_parent()
            signal.alarm(200)
            live(FaultyStorage(directory, Faults(at), lambda step: os.write(write, bytes([step]))),
                 tiny, steps)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, 'rb') as stream:
        returned = list(stream.read())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f'operation {at}: exit status {status}'
    return returned, status == 0


def operations(tiny, parent, steps):
    """Returns the operations of a job that nothing disturbs, in words."""
    faults = Faults()
    with folder(parent) as directory:
        live_in(directory, tiny, steps, faults)
    return faults.log


def sweep_of_kills(tiny, parent):
    """Kills a job at every operation once, and some of the jobs that follow it too.

    Prints `<operation>: <step that was found>` for each.
    """
    steps = [1, 2, 3]
    for at, operation in enumerate([*operations(tiny, parent, steps), 'end'], 1):
        with folder(parent) as directory:
            returned, ended = killed(directory, tiny, steps, at)
            assert ended == (operation == 'end')
            found = check(directory, tiny, returned[-1] if returned else None, len(returned) + 1)
            print(f'{operation}: {found}')
            if at % 4 == 0:
                following = 1 if found is None else found + 1
                again, _ = killed(directory, tiny, [following], 1 + at * 7 % 30)
                found = check(directory, tiny, again[0] if again else found, following)
            check_goes_on(directory, tiny, found)


def fill_disks(tiny, parent, sizes):
    """Commits until the disk is full, on a tmpfs of each size, and once more with more room.

    Prints `<size>: <error>` for each.
    """
    directory = os.path.join(parent, 'disk')
    os.mkdir(directory)
    for size in sizes:
        mount = ['mount', '-t', 'tmpfs', 'none', directory, '-o']
        subprocess.run([*mount, f'size={size}'], check=True)
        with FaultyStorage(directory, Faults()) as storage:
            try:
                live(storage, tiny, range(1, 1000), kept=0)
            except CheckpointWriteError as error:
                print(f'{size}: {error}')
            returned = storage.returned
        assert not [name for name in os.listdir(directory) if name.startswith('.ete-stage')]
        found = check(directory, tiny, returned[-1] if returned else None, len(returned) + 1)
        subprocess.run([*mount, 'remount,size=1m'], check=True)
        check_goes_on(directory, tiny, found)
        subprocess.run(['umount', directory], check=True)


def main(checkpoints, parent, *sizes):
    """Prints what was done; an exception is the verdict."""
    tiny = Tiny(checkpoints)
    if sizes:
        fill_disks(tiny, parent, sizes)
    else:
        sweep_of_kills(tiny, parent)
    assert 'tensorflow' not in sys.modules


if __name__ == '__main__':
    main(*sys.argv[1:])
