"""Kills a small training job again and again; it must come to the same rows all the same.

    python -m harness.kill_job FOLDER [--kills 12] [--seed 1] [--tables DIRECTORY]

One process imports TensorFlow, which takes seconds, and forks one child after the other. Each child
is a life of the job. A life ends at a random time before the first step, at a random time after it,
or at a random operation of a save. Each second life saves in the background. A life writes its
progress to a file of its own, which is printed if something is wrong. The last life comes to its
end. Its tables must equal, bit for bit, the tables of a job that nobody disturbed. With `--tables`
the tables of the job that is killed are on the disk of a directory, where nothing may be left.
"""

import argparse
import contextlib
import os
import pathlib
import random
import re
import select
import signal
import sys
import tempfile
import time
import traceback

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs  # noqa: E402
from harness.faults import Faults, FaultyStorage  # noqa: E402
from harness.groups import die_with_parent  # noqa: E402

from estimator_tpu_embedding.checkpoint import saver  # noqa: E402
from estimator_tpu_embedding.checkpoint.recover import recover  # noqa: E402
from estimator_tpu_embedding.core.table_memory import TableMemory  # noqa: E402
from estimator_tpu_embedding.runner.checkpoint_hooks import AsyncCheckpointSaverHook  # noqa: E402

BATCH, ROWS, PER_RUN, PER_SAVE = 8, 40, 2, 4
STEP_SECONDS = .01
LONGEST = 100
"""Seconds of a life that is to end otherwise; only one that hangs takes so many."""


class Tell(tf.train.SessionRunHook, tf.train.CheckpointSaverListener):
    """Prints when and where the job begins, each run and each save."""

    def __init__(self, began):
        """Counts milliseconds from `began` on."""
        self._began = began

    def begin(self):
        """Both base classes have one."""

    def after_create_session(self, session, coord):
        self._print('begins', session)
        print('milliseconds', int(1000 * (time.monotonic() - self._began)), flush=True)

    def after_run(self, run_context, run_values):
        self._print('made', run_context.session)
        time.sleep(PER_RUN * STEP_SECONDS)

    def after_save(self, session, global_step_value):
        print('saved', global_step_value, flush=True)

    @staticmethod
    def _print(verb, session):
        step = tf.train.get_global_step(session.graph)
        print(verb, session.run(step), flush=True)


def train(directory, until, per_save, asynchronous=False, hooks=(), listeners=(), memory=None):
    """Trains from the newest checkpoint on; a step gets the same data in whichever life it is."""
    found = recover(directory)
    first = 0 if found is None else found.step

    def input_fn(params):
        host = params['context'].current_input_fn_deployment()[1]

        def batch(step):
            ids = tf.random.stateless_uniform([BATCH // 2], [step, host], 0, ROWS, tf.int64)
            return {'f': ids}, tf.cast(ids % 3, tf.float32)

        return tf.data.Dataset.range(first, 2**40).map(batch)

    columns = [jobs.embedding('f', ROWS, 4)]
    if asynchronous:
        hooks = [*hooks, AsyncCheckpointSaverHook(directory, save_steps=per_save)]
    jobs.estimator(
        jobs.linear_model_fn(columns), columns,
        jobs.run_config(directory, hosts=2, iterations=PER_RUN, save_checkpoints_steps=per_save,
                        keep_checkpoint_max=2, table_memory=memory),
        batch_size=BATCH, strategy='mod').train(
            input_fn, max_steps=until, hooks=hooks, saving_listeners=list(listeners))


def live(log, seconds, work):
    """Lets a child do some work, and kills it after some seconds.

    Args:
      log: the path of a file for what it prints.
      seconds: its longest life.
      work: the function that it calls.

    Returns:
      Its exit status, negative for a signal.
    """
    pathlib.Path(log).touch()  # A life may end before it has opened its log.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_with_parent()
            with open(log, 'w') as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    descriptor = os.pidfd_open(child)
    try:
        if not select.select([descriptor], [], [], seconds)[0]:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def numbers(log, verb):
    """Returns the steps that a life printed."""
    return [int(step) for step in re.findall(rf'^{verb} (\d+)$', log.read_text(), re.MULTILINE)]


class Killer:
    """Lets a job live until it is killed, again and again.

    Attributes:
      step: the one that is committed.
    """

    def __init__(self, folder, directory, chance, memory):
        """Prepares the first life.

        Args:
          folder: for what lives print.
          directory: of the job.
          chance: a `random.Random`.
          memory: of tables, or `None`.
        """
        self._memory = memory
        self.step = 0
        self._folder, self._directory, self._chance = folder, directory, chance
        self._number, self._start = 0, 1.

    def one_life(self):
        """Kills the job once, in a way that takes turns with two others."""
        log = pathlib.Path(self._folder, f'life-{self._number}')
        kind = ('early', 'late', 'save')[self._number % 3]
        asynchronous = self._number % 2 == 1
        seconds = {'early': self._chance.uniform(0, self._start), 'save': LONGEST,
                   'late': self._start + self._chance.uniform(0, 1)}[kind]
        operation = self._chance.randrange(1, 120) if kind == 'save' else None
        began = time.monotonic()

        def work():
            faults = Faults(operation)
            saver.Storage = lambda path: FaultyStorage(path, faults)
            tell = Tell(began)
            train(self._directory, 10**9, PER_SAVE, asynchronous, [tell], [tell], self._memory)

        status = live(log, seconds, work)
        with shown_if_wrong(log):
            assert status == -signal.SIGKILL, f'exit status {status}'
            before, made = self.step, self._look(log, asynchronous)
        cause = f'operation {operation} of saves' if operation else f'{seconds:.2f} s'
        print(f'life {self._number}: {cause}, began at {before}, made {made}, {self.step} is '
              f'committed{" beside" * asynchronous}', flush=True)
        self._number += 1

    def _look(self, log, asynchronous):
        """Checks what a life promises the next; returns the last step that it made."""
        begun, saved = numbers(log, 'begins'), numbers(log, 'saved')
        made = max([self.step, *numbers(log, 'made')])
        assert begun in ([], [self.step]), f'it began at {begun} after step {self.step}'
        # In the background the last save may not have come to its end.
        least = max([self.step, *(saved[:-1] if asynchronous else saved)])
        found = recover(self._directory)
        self.step = 0 if found is None else found.step
        # The hook that saves comes before the one that tells of the run.
        assert least <= self.step <= made + PER_RUN, f'{self.step}, not {least} to {made}'
        assert made - self.step <= PER_SAVE * (1 + asynchronous) + PER_RUN, (made, self.step)
        for milliseconds in numbers(log, 'milliseconds'):
            self._start = milliseconds / 1000  # Of the last life that came so far.
        return made


@contextlib.contextmanager
def shown_if_wrong(log):
    """Prints the end of a file if the body fails."""
    try:
        yield
    except BaseException:
        print(log, pathlib.Path(log).read_text()[-6000:], sep='\n', flush=True)
        raise


def variables(directory):
    """Every number of the newest checkpoint, by the name of its variable."""
    reader = tf.train.load_checkpoint(recover(directory).prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def run(folder, kills, seed, tables=None):
    """Kills a job, lets it end, and compares it with one that was not disturbed."""
    killed, plain = (os.path.join(folder, name) for name in ('killed', 'plain'))
    memory = None if tables is None else TableMemory(tables, 1)
    killer = Killer(folder, killed, random.Random(seed), memory)
    for _ in range(kills):
        killer.one_life()
    until = killer.step + 3 * PER_SAVE
    for directory, per_save, where in ((killed, PER_SAVE, memory), (plain, 10**6, None)):
        log = pathlib.Path(folder, f'end-{os.path.basename(directory)}')
        with shown_if_wrong(log):
            assert live(log, LONGEST + until / 10, lambda: train(
                directory, until, per_save, memory=where)) == 0
    got, want = variables(killed), variables(plain)
    assert got.keys() == want.keys() and got['global_step'] == until
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)
    left = sorted(name for name in os.listdir(killed) if name.startswith('.ete-stage')
                  or name.endswith('.partial'))
    left += [] if tables is None else os.listdir(tables)
    assert not left, left
    print(f'{kills} kills, {until} steps, {len(want)} variables are equal bit for bit')


def main():
    """Runs what the command line says; an exception is the verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder', nargs='?', help='an empty one, or none for a temporary one')
    parser.add_argument('--kills', type=int, default=12)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--tables', metavar='DIRECTORY')
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run(parsed.folder or temporary, parsed.kills, parsed.seed, parsed.tables)


if __name__ == '__main__':
    sys.exit(main())
