"""Jobs whose input stops coming after two batches of every host.

Run as a script, it ends with status 3 if the job raises an error:

    python -m harness.blocking_job FORM VERB MODEL_DIR [HOSTS [INPUT_DEADLINE [SHUTDOWN_DEADLINE]]]

FORM is one of `FORMS`, VERB one of `VERBS`.
"""

import os
import sys
import threading
import time

os.environ['TF_USE_LEGACY_KERAS'] = '1'
import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs  # noqa: E402

from estimator_tpu_embedding import _legacy  # noqa: E402
from estimator_tpu_embedding.runner import infeed_threads  # noqa: E402

BATCH, STEPS = 4, 20
COLUMNS = [jobs.embedding('f', 10)]


class Clock:
    """Stands still until an input blocks, whatever the machine does; then each look is later."""

    def __init__(self, monkeypatch, blocks, seconds=600.):
        """Takes the place of the clock that input deadlines have.

        Args:
          monkeypatch: of the test.
          blocks: set when the input blocks.
          seconds: from one look to the next.
        """
        self._blocks, self._seconds, self._now = blocks, seconds, time.monotonic()
        monkeypatch.setattr(infeed_threads, 'time', self)

    def monotonic(self):
        self._now += self._seconds * self._blocks.is_set()
        return self._now


class Blocker:
    """Blocks inputs until it is released; `blocks` is set when somebody waits for it."""

    def __init__(self, directory):
        self.blocks, self._released = threading.Event(), threading.Event()
        self._pipe = f'{directory}.pipe'

    def wait(self):
        self.blocks.set()
        self._released.wait()
        raise ValueError('released')

    def release(self):
        self._released.set()
        if os.path.exists(self._pipe):
            try:
                os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass  # Nobody reads it.

    def generator(self, size):
        """A generator of Python waits."""
        def generate():
            yield self.wait()

        return tf.data.Dataset.from_generator(generate, tf.float32, [size])

    def function(self, size):
        """A function of Python in the pipeline waits."""
        return tf.data.Dataset.range(1).map(
            lambda _: tf.py_function(self.wait, [], tf.float32), num_parallel_calls=2)

    def start(self, size):
        """A pipeline waits before it gives anything."""
        return tf.data.Dataset.from_tensor_slices(
            tf.ensure_shape(tf.py_func(self.wait, [], tf.float32), [1, size]))

    def pipe(self, size):
        """TensorFlow opens a named pipe that nobody writes."""
        if not os.path.exists(self._pipe):
            os.mkfifo(self._pipe)
        self.blocks.set()
        return tf.data.TextLineDataset(self._pipe).batch(size).map(tf.strings.to_number)

    def input_fn(self, form):
        """Returns an input_fn that blocks in one of the `FORMS`, or never if it is `None`."""
        def input_fn(params):
            size = params['batch_size']
            if form == 'call':
                self.wait()
            labels = tf.data.Dataset.from_tensors(tf.ones([size]))
            labels = (labels.repeat(2).concatenate(getattr(self, form)(size)) if form
                      else labels.repeat())
            return labels.map(lambda label: (
                {'f': tf.ones([size], tf.int64)}, tf.ensure_shape(label, [size])))
        return input_fn


FORMS = ['generator', 'function', 'start', 'pipe', 'call']
VERBS = ['train', 'evaluate', 'predict', 'train_and_evaluate']


def run(verb, form, directory, blocker, *, hosts=1, deadline=3., shutdown=1., hooks=()):
    """Runs a job; in `train_and_evaluate` the evaluation blocks."""
    config = jobs.run_config(directory, hosts, iterations=1, input_deadline_secs=deadline,
                             shutdown_deadline_secs=shutdown, save_checkpoints_steps=10)
    estimator = jobs.estimator(jobs.linear_model_fn(COLUMNS), COLUMNS, config, batch_size=BATCH)
    input_fn = blocker.input_fn(form)
    if verb == 'train':
        estimator.train(input_fn, max_steps=STEPS, hooks=list(hooks))
    elif verb == 'evaluate':
        estimator.evaluate(input_fn, steps=STEPS, hooks=list(hooks))
    elif verb == 'predict':
        list(estimator.predict(input_fn, hooks=list(hooks)))
    else:
        _legacy.load().train_and_evaluate(
            estimator, _legacy.load().TrainSpec(blocker.input_fn(None), STEPS, hooks=list(hooks)),
            _legacy.load().EvalSpec(input_fn, steps=STEPS, throttle_secs=0))


def main(form, verb, directory, hosts='1', deadline='600', shutdown='600'):
    """Prints `blocked` when the input is waited for, and the error with its notes."""
    blocker = Blocker(directory)
    threading.Thread(target=lambda: blocker.blocks.wait() and print('blocked', flush=True),
                     daemon=True).start()
    try:
        run(verb, form, directory, blocker, hosts=int(hosts), deadline=float(deadline),
            shutdown=float(shutdown))
    except Exception as error:
        print(type(error).__name__, error, *getattr(error, '__notes__', []), sep='\n', flush=True)
        sys.exit(3)


if __name__ == '__main__':
    main(*sys.argv[1:])
