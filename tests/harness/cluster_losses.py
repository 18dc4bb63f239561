"""Trains a small job over two workers, disturbs it as it is told, and says what came of it.

    python -m harness.cluster_losses FOLDER SCENARIO... [--workers ADDRESSES] [--deadline SECONDS]

It starts its workers itself, unless it is given addresses. The scenarios are functions below,
in this order or any other. Each trains anew to step 8 and saves every 4 steps. The batch of a step
depends on the step modulo 4, so it is the same after a restart. A scenario prints one line of JSON:
its name, the error or `null`, the digest of all variables, and what the run announced meanwhile.
"""

import argparse
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
import unittest.mock

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs  # noqa: E402
from harness.memory import vm_size  # noqa: E402

from estimator_tpu_embedding import defaults  # noqa: E402
from estimator_tpu_embedding.checkpoint.recover import recover  # noqa: E402
from estimator_tpu_embedding.cluster import heartbeats, worker_calls  # noqa: E402
from estimator_tpu_embedding.cluster.cluster import current  # noqa: E402
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice  # noqa: E402
from estimator_tpu_embedding.estimator.tpu_addresses import choice_of  # noqa: E402
from estimator_tpu_embedding.hosts.placement import CLIENT_JOB, device_of  # noqa: E402
from estimator_tpu_embedding.runner import progress  # noqa: E402

UNTIL, PER_SAVE, ROWS, BATCH = 8, 4, 40, 8
STRIKE = 6
"""The step that is disturbed."""

heartbeats.SILENCE = 30.
"""Seconds, so that no worker is lost because the machine is busy."""

PAUSE = .3
"""Seconds that a worker stands still in an operation before it is killed there."""


class Client:
    """Runs jobs over the workers of this process.

    Attributes:
      folder: for the directories of jobs.
      told: what runs announced.
    """

    def __init__(self, folder, deadline):
        """Prepares; `deadline` is that of workers, in seconds."""
        self.folder, self.deadline, self.told = folder, deadline, []
        progress.send_announcements_to(self._tell)

    def _tell(self, line):
        self.told.append(line)
        print('told', json.dumps(line), flush=True)

    def cluster(self):
        """The cluster of all jobs."""
        return current(choice_of(self.config('any')))

    def config(self, name, **settings):
        """The config of a job."""
        return jobs.run_config(os.path.join(self.folder, name), hosts=2, iterations=1,
                               worker_deadline_secs=self.deadline,
                               **{'save_checkpoints_steps': PER_SAVE, **settings})

    def pid(self, host):
        """The process of a worker."""
        own, addresses = self.cluster().pids(), self.cluster().addresses()
        return own[host] if own else int(worker_calls.ask(
            addresses[host], 'status', deadline=self.deadline)['pid'])

    def estimator(self, name, in_input=None, in_model=None, rows=ROWS, width=4, **settings):
        """The job.

        Args:
          name: of its directory.
          in_input: called on the client with the number of each batch that host 0 draws.
          in_model: called on the client in each step, when core 0 has looked up and nobody updates.
          rows: of the table.
          width: of a row.
          **settings: of its config.
        """
        columns = [jobs.embedding('f', rows, width)]
        plain = jobs.linear_model_fn(columns)

        def model_fn(features, labels, mode, params):
            if in_model is not None and mode == 'train':
                def call(value):
                    in_model()
                    return value
                with tf.device(device_of(CLIENT_JOB, 0)):
                    labels = tf.reshape(tf.numpy_function(call, [labels], tf.float32), [-1])
            return plain(features, labels, mode, params)

        return jobs.estimator(model_fn, columns, self.config(name, **settings), batch_size=BATCH,
                              strategy='mod')

    def train(self, name, hooks=(), until=UNTIL, listeners=(), in_input=None, **options):
        """Trains; returns the Estimator."""
        estimator = self.estimator(name, **options)
        estimator.train(input_fn_of(in_input), max_steps=until, hooks=list(hooks),
                        saving_listeners=list(listeners))
        return estimator

    def digest(self, name):
        """The digest of all variables of the newest checkpoint of a job."""
        reader = tf.train.load_checkpoint(recover(os.path.join(self.folder, name)).prefix)
        digest = hashlib.sha256()
        for variable in sorted(reader.get_variable_to_shape_map()):
            digest.update(variable.encode() + reader.get_tensor(variable).tobytes())
        return f'{digest.hexdigest()[:16]} at step {reader.get_tensor("global_step")}'


def input_fn_of(in_input=None, steps=2**40):
    """An input_fn whose batch depends on the step modulo `PER_SAVE` and on the host."""
    def input_fn(params):
        host = params['context'].current_input_fn_deployment()[1]

        def batch(step):
            ids = tf.random.stateless_uniform([BATCH // 2], [step % PER_SAVE, host], 0, ROWS,
                                              tf.int64)
            return {'f': ids}, tf.cast(ids % 3, tf.float32)

        dataset = tf.data.Dataset.range(steps)
        if in_input is not None and host == 0:
            def call(step):
                in_input(int(step))
                return step
            dataset = dataset.map(lambda step: tf.ensure_shape(
                tf.numpy_function(call, [step], tf.int64), []))
        return dataset.map(batch)
    return input_fn


class Strike:
    """Stops a worker, and perhaps kills it a moment later, when whatever comes next waits for it.

    Attributes:
      times: how often it may still do so.
    """

    def __init__(self, client, host=1, times=1, kills=True):
        """Waits for a call."""
        self._client, self._host, self._kills = client, host, kills
        self.times = times

    def __call__(self):
        """Strikes."""
        if self.times > 0:
            self.times -= 1
            pid = self._client.pid(self._host)
            os.kill(pid, signal.SIGSTOP)
            print('struck', self._host, flush=True)
            if self._kills:
                threading.Timer(PAUSE, os.kill, [pid, signal.SIGKILL]).start()


class AtStep(tf.train.SessionRunHook):
    """Calls a function before the run that makes a step."""

    def __init__(self, step, function):
        """Calls `function` before `step`."""
        self._step, self._function = step, function

    def after_create_session(self, session, coord):
        self._next = int(session.run(tf.train.get_global_step())) + 1

    def before_run(self, run_context):
        if self._next == self._step:
            self._function()
        self._next += 1


class BeforeSave(tf.train.CheckpointSaverListener):
    """Calls a function before a step is saved."""

    def __init__(self, step, function):
        """Calls `function` before `step` is saved."""
        self._step, self._function = step, function

    def before_save(self, session, global_step_value):
        if global_step_value == self._step:
            self._function()


def undisturbed(client):
    """Nothing happens."""
    client.train('undisturbed')


def enqueue(client):
    """A worker dies while a batch waits to be handed over to it."""
    strike = Strike(client)
    client.train('enqueue', in_input=lambda number: number == STRIKE and strike())


def lookup(client):
    """A worker dies while a step looks up."""
    client.train('lookup', [AtStep(STRIKE, Strike(client, host=0))])


def update(client):
    """A worker dies when a step has looked up and waits for the update."""
    strike, calls = Strike(client), []

    def in_model():
        calls.append(None)
        if len(calls) == 2 * STRIKE:  # Each of two cores calls once per step.
            strike()

    client.train('update', in_model=in_model)


def save(client):
    """A worker dies while a checkpoint is written."""
    client.train('save', listeners=[BeforeSave(UNTIL, Strike(client))])


def restore(client):
    """A worker dies, and another one dies while the checkpoint is restored."""
    strike, plain = Strike(client, host=0), tf.train.Saver.restore

    def struck(saver, session, path):
        if strike.times == 1 and first.times == 0:
            strike()
        plain(saver, session, path)

    first = Strike(client)
    with unittest.mock.patch.object(tf.train.Saver, 'restore', struck):
        client.train('restore', [AtStep(STRIKE, first)])
    assert strike.times == 0


def frozen(client):
    """A worker stands still, and never goes on by itself."""
    client.train('frozen', [AtStep(STRIKE, Strike(client, kills=False))])


def asked(client):
    """Somebody else disturbs: it prints `disturb`, and waits for a line of its input."""
    def disturb():
        print('disturb', flush=True)
        sys.stdin.readline()

    strikes = [disturb]
    client.train('asked', [AtStep(STRIKE, lambda: strikes and strikes.pop()())])


def slow(client):
    """A worker stands still for half a second, again and again, which is no loss."""
    pid, is_over = client.pid(1), threading.Event()

    def bursts():
        while not is_over.wait(.2):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(.5)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=bursts)
    thread.start()
    try:
        client.train('slow')
    finally:
        is_over.set()
        thread.join()


def again(client):
    """The same worker dies at the same step whenever that comes."""
    client.train('again', [AtStep(STRIKE, Strike(client, times=100))])


def evaluated(client):
    """A worker dies in an evaluation, which begins again."""
    estimator = client.train('evaluated')
    want = estimator.evaluate(input_fn_of(), steps=3)
    calls = []

    def in_input(number):
        calls.append(number)
        if len(calls) == 2:
            Strike(client)()

    assert estimator.evaluate(input_fn_of(in_input), steps=3) == want


def predicted(client):
    """A worker dies in a prediction that has given rows, which cannot begin again."""
    rows = client.train('predicted').predict(input_fn_of(steps=1000))
    for number, _ in enumerate(rows):
        if number == 2 * BATCH:
            Strike(client)()


def beside(client):
    """A worker dies between two jobs, and the next one finds others."""
    client.train('beside', until=PER_SAVE)
    Strike(client)()
    client.train('beside')


def limited(client):
    """The workers may take 0.7 GB more, and 2 GB is what a host has of a table and its slots."""
    estimator = client.estimator('limited', rows=8_000_000, width=64)
    client.cluster().prepare()
    for host in range(2):
        pid = client.pid(host)
        most = 7 * 10**8 + vm_size(pathlib.Path(f'/proc/{pid}/status'))
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
    estimator.train(input_fn_of(), max_steps=1)


def kills(client, number, seed=1):
    """Workers die at random times of a job that goes on until they have died often enough."""
    name = f'kills-{number}'
    chance, died, has_run, sessions = random.Random(seed), [], threading.Event(), []

    class Pace(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            sessions.append(len(died))

        def after_run(self, run_context, run_values):
            has_run.set()
            # The next training draws the first batch, which fits only steps 0, 4, 8 and so on.
            step = run_context.session.run(tf.train.get_global_step())
            if sessions[-1] >= number and step % PER_SAVE == 0:  # The last loss is over.
                run_context.request_stop()

    def kill_all():
        while len(died) < number:
            has_run.clear()
            has_run.wait()  # A worker that dies before it listens is another fault.
            time.sleep(chance.uniform(0, 1))
            os.kill(client.cluster().pids()[chance.randrange(2)], signal.SIGKILL)
            died.append(None)
            print('killed', len(died), flush=True)
            time.sleep(1)

    thread = threading.Thread(target=kill_all)
    thread.start()
    client.train(name, [Pace()], until=10**9)
    thread.join()
    until = recover(os.path.join(client.folder, name)).step + 2 * PER_SAVE
    client.train(name, until=until)
    client.train(f'plain-{number}', until=until)
    got, want = client.digest(name), client.digest(f'plain-{number}')
    assert got == want, (got, want)


SCENARIOS = {one.__name__: one for one in (
    undisturbed, enqueue, lookup, update, save, restore, frozen, asked, slow, again, evaluated,
    predicted, beside, limited)}


def scenario(name):
    """The function of a name; `kills-5` is `kills` with 5."""
    first, _, number = name.partition('-')
    if first == 'kills' and number.isdecimal():
        return functools.partial(kills, number=int(number))
    return SCENARIOS[name]


def main():
    """Plays the scenarios of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder')
    parser.add_argument('scenarios', nargs='+')
    parser.add_argument('--workers')
    parser.add_argument('--deadline', type=float, default=200.)
    parsed = parser.parse_args()
    choice = ClusterChoice.of(parsed.workers, 0 if parsed.workers else 2, expose=True)
    defaults.set_current(dataclasses.replace(defaults.current(), cluster=dataclasses.replace(
        choice, connect_deadline=parsed.deadline)))
    client = Client(parsed.folder, parsed.deadline)
    for name in parsed.scenarios:
        client.told.clear()
        shutil.rmtree(os.path.join(parsed.folder, name), ignore_errors=True)
        error, began = None, time.monotonic()
        try:
            scenario(name)(client)
        except Exception as found:
            traceback.print_exc()
            error = f'{type(found).__name__}: {found}'
        print('scenario', json.dumps({
            'name': name, 'error': error, 'told': client.told,
            'digest': None if error else client.digest(name),
            'seconds': round(time.monotonic() - began, 1)}), flush=True)


if __name__ == '__main__':
    sys.exit(main())
