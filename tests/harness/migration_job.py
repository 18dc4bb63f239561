"""Migrates small checkpoints, and kills such migrations at any operation; without TensorFlow.

    python -m harness.migration_job FOLDER EVERY [--overwrite]

kills a migration at each EVERY-th of its operations, each time in a new directory. It prints a line
of JSON for each: the operation, what was found then, and what the next migration says. What a kill
left stays in FOLDER for others to look at.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import sys
from unittest import mock

import numpy as np
from harness.faults import Faults, FaultyStorage
from harness.groups import die_with_parent

from estimator_tpu_embedding.checkpoint import bundle_writer, commit, stored_rows
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable
from estimator_tpu_embedding.checkpoint.model_dir import claimed
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import recover, verify
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.cli.main import main as etpe
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import CorruptCheckpointError
from estimator_tpu_embedding.migration import from_tf1, map_file, migrate_checkpoint, moves
from estimator_tpu_embedding.migration.checkpoint_contents import Target

ROWS, WIDTH, STEP = 11, 2, 7
NAME = f'ckpt-{STEP}'
KEYS = {'t': 'embedding/t/.ATTRIBUTES/VARIABLE_VALUE',
        't/Adagrad': 'embedding/t.Saccumulators/.ATTRIBUTES/VARIABLE_VALUE'}
OLD, NEW = 100., 0.
"""What is added to the numbers of a checkpoint, to tell two apart."""
_FLOAT32, _INT64 = 1, 9


def values(offset=NEW, rows=ROWS, width=WIDTH):
    """The rows of `t` by id, float32 `[rows, width]`; those of its slot are .5 higher."""
    return (np.arange(rows * width).reshape(rows, width) + offset).astype(np.float32)


def make(directory, offset=NEW, strategy='mod', hosts=3, step=STEP, rows=ROWS, width=WIDTH,
         text=None):
    """Commits a checkpoint of TF1 with a table `t`, its slot and the step; returns its prefix.

    If there is a `text`, it is in a tensor of that name.
    """
    order = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    ids = order.ids_of_stored_rows(0, rows)

    def write(prefix):
        with bundle_writer.BundleWriter(prefix) as out:
            out.rows('global_step', _INT64, ())[0].append(np.int64(step).tobytes())
            for name, more in (('t', 0), ('t/Adagrad', .5)):
                part, = out.rows(name, _FLOAT32, (rows, width))
                part.append((values(offset, rows, width) + np.float32(more))[ids])
            if text is not None:
                out.text('text', text)
            out.finish()

    _commit(directory, write, step, StoredTable(
        rows=rows, width=width, strategy=strategy, hosts=hosts, slots=('Adagrad',)))
    return os.path.join(directory, f'model.ckpt-{step}')


def make_large(directory, rows, strategy, hosts, width=64):
    """Commits a checkpoint of TF1 with a table `t` of any size, without a slot, a MB at a time."""
    numbers = values(rows=4096, width=width)

    def write(prefix):
        with bundle_writer.BundleWriter(prefix) as out:
            out.rows('global_step', _INT64, ())[0].append(np.int64(STEP).tobytes())
            part, = out.rows('t', _FLOAT32, (rows, width))
            for first in range(0, rows, len(numbers)):
                part.append(numbers[:rows - first] + np.float32(first % 1000))
            out.finish()

    _commit(directory, write, STEP, StoredTable(
        rows=rows, width=width, strategy=strategy, hosts=hosts, slots=()))


def _commit(directory, write, step, table):
    """Commits a checkpoint with a table `t`, whatever is there."""
    os.makedirs(directory, exist_ok=True)
    with Storage(str(directory)) as storage:
        staged = commit.stage(storage, step, write)
        commit.publish(storage, staged, lambda files: Manifest(
            step=step, tables={'t': table}, created_by='test', files=files))


def map_in(folder):
    """Writes the map that these checkpoints need; returns its path."""
    path = pathlib.Path(folder, 'map')
    path.write_text('table t -> t\n')
    return str(path)


def planned(prefix, map, target=Target(kind='tf2')):
    """Returns the plan of a migration."""
    lines = map_file.read(map)
    return moves.plan(from_tf1.read(prefix, CheckpointOptions(), lines), target,
                      moves.Choices(map=lines))


@contextlib.contextmanager
def phases(tell):
    """Tells when a migration begins to write, has written, and has compared."""
    write, manifest = migrate_checkpoint.write, migrate_checkpoint._manifest

    def written(plan, path):
        tell('stage')
        write(plan, path)
        tell('written')

    def compared(plan, files):
        tell('compared')
        return manifest(plan, files)

    with mock.patch.multiple(migrate_checkpoint, write=written, _manifest=compared):
        yield


def carried_out(prefix, map, destination, **kwargs):
    """Migrates to TF2 as the command does."""
    return migrate_checkpoint.carry_out(
        planned(prefix, map), str(destination), verify=lambda: verify(prefix), **kwargs)


def run(*arguments):
    """Runs a command of `etpe` in this process; returns its status, its output and its errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = etpe([str(one) for one in arguments])
    return status, out.getvalue(), err.getvalue()


def migrate(source, destination, map, *more):
    """Runs `etpe migrate checkpoint --to tf2`, as `run` does."""
    return run('migrate', 'checkpoint', source, destination, '--to', 'tf2', '--map', map, *more)


def content(prefix):
    """The `offset` of a checkpoint of TF2 whose tables are as `values` says, or an error."""
    bundle = Bundle.open(str(prefix))
    found = [bundle.read(key, 0, ROWS) for key in KEYS.values()]
    offset = float(found[0][0, 0])
    np.testing.assert_array_equal(found[0], values(offset))
    np.testing.assert_array_equal(found[1], values(offset) + np.float32(.5))
    return offset


def found_in(directory):
    """The `offset` of the checkpoint that a job would restore; `None`, or a code if it refuses."""
    try:
        found = recover(str(directory))
    except CorruptCheckpointError as error:
        return error.code
    return None if found is None else content(found.prefix)


def state(folder):
    """Everything that tells whether a file below a folder was changed."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
            for path in pathlib.Path(folder).rglob('*') if path.is_file()}


def replacements(faults):
    """What to put in which place so that each operation of a migration meets faults.

    Returns:
      Triples of a module or class, the name of an attribute, and its value.
    """
    appended = bundle_writer.Part.append

    def append(part, rows):
        faults.meet('append')
        appended(part, rows)

    return ((bundle_writer.Part, 'append', append),
            (migrate_checkpoint, 'Storage', lambda path: FaultyStorage(path, faults)),
            (stored_rows, '_CHUNK', 32))  # Rows of 8 bytes: so it takes several turns.


def killed(work):
    """Lets a child do some work, which must end in a kill unless it comes to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_with_parent()
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status


class Sweep:
    """Kills migrations.

    Attributes:
      operations: of one that nothing disturbs, in words.
    """

    def __init__(self, folder, overwrite):
        """Makes the source, and counts operations."""
        self._folder, self._overwrite = pathlib.Path(folder), overwrite
        self._map = map_in(folder)
        self._source = make(self._folder / 'source')
        if overwrite:
            carried_out(make(self._folder / 'other', OLD), self._map, self._folder / 'older')
        self._before = state(self._folder / 'source')
        read, write = os.pipe()
        self._begin(0, None, lambda log: os.write(write, '\n'.join(log).encode()))
        os.close(write)
        with os.fdopen(read) as stream:
            self.operations = stream.read().split('\n')

    def _begin(self, number, at, end=lambda log: None):
        """Migrates into a new directory in a child that is killed at an operation."""
        directory = self._folder / str(number)
        if self._overwrite:
            shutil.copytree(self._folder / 'older', directory)

        def work():
            faults = Faults(at)
            for owner, name, value in replacements(faults):
                setattr(owner, name, value)
            with phases(lambda phase: faults.meet(f'phase {phase}')):
                carried_out(self._source, self._map, directory, overwrite=self._overwrite)
            end(faults.log)

        killed(work)
        return directory

    def kill(self, at):
        """Kills one at an operation, looks at what is left, and migrates again."""
        directory = self._begin(at, at)
        shown = json.loads(run('checkpoint', 'ls', directory, '--format', 'json')[1])
        line = {'operation': self.operations[at - 1], 'directory': str(directory),
                'listed': [one['name'] for one in shown['checkpoints']],
                'stages': len(shown['stages']) + len(shown['partial']),
                'found': found_in(directory)}
        next_one = self._folder / f'{at}-next'
        shutil.copytree(directory, next_one)
        if self._overwrite:
            with claimed(str(next_one)):
                pass
            line['kept'] = found_in(next_one)
        line['status'], line['out'], line['err'] = migrate(
            self._folder / 'source', next_one, self._map, *['--overwrite'] * self._overwrite)
        line['last'] = found_in(next_one)
        line['left'] = sorted(os.listdir(next_one))
        assert state(self._folder / 'source') == self._before, 'the source was changed'
        print(json.dumps(line), flush=True)


def main():
    """Does what the command line says; an exception is the verdict."""
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('every', type=int)
    parser.add_argument('--overwrite', action='store_true')
    parsed = parser.parse_args()
    sweep = Sweep(parsed.folder, parsed.overwrite)
    for at in reversed(range(len(sweep.operations), 0, -parsed.every)):  # The last is one of them.
        sweep.kill(at)
    assert 'tensorflow' not in sys.modules


if __name__ == '__main__':
    main()
