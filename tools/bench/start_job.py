"""Runs one job of `startup.py` in this process, and answers on its output.

    python start_job.py '{"kind": "ours", "columns": 26, "hosts": 1, "cores": 8, ...}'

The argument is JSON: `kind` is `ours`, `shipped` or `tuned`, as in `job.py`, or `transformer`, our
TPUEstimator with that model; then `columns`, `hosts`, `cores` per host, `shrink`, and `does`, which
says what the process measures:

| does | answer |
|---|---|
| `start` | JSON: seconds from the call of `train` to its graph and to its first step; highest RSS |
| `profile` | JSON: seconds of each part of the start, see `start_profile.py` |
| `job STEPS` | JSON: seconds of a call of `train` with so many steps; highest RSS |
| `windows` | for each line of the input the milliseconds per step of one window |
"""

import json
import sys
import tempfile
import time

BEGAN = time.perf_counter()

import job  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
import transformer  # noqa: E402
from memory import highest_rss  # noqa: E402
from start_profile import Profile  # noqa: E402
from turns import EndOfBench  # noqa: E402
from workloads import equal  # noqa: E402

UNITS = 64


class FirstStep(tf.train.SessionRunHook):
    """Looks at the clock when the graph is there, and when the first step has ended.

    Attributes:
      built, ended: the times then.
    """

    def __init__(self):
        self.ended = None

    def begin(self):
        self.built = time.perf_counter()

    def after_run(self, run_context, run_values):
        if self.ended is None:
            self.ended = time.perf_counter()


class Measured(tf.train.SessionRunHook):
    """Ends a profile when the first step has ended."""

    def __init__(self, profile):
        self._profile = profile

    def after_run(self, run_context, run_values):
        self._profile.end()


class Windows(tf.train.SessionRunHook):
    """Makes a window of steps for each line of the input. The end of the input ends the job."""

    def __init__(self, runs):
        self._runs, self._made = runs, 0

    def before_run(self, run_context):
        if self._made == 0:
            if not sys.stdin.readline():
                raise EndOfBench
            self._began = time.perf_counter()

    def after_run(self, run_context, run_values):
        self._made = (self._made + 1) % self._runs
        if self._made == 0:
            print(1e3 * (time.perf_counter() - self._began) / job.WINDOW, flush=True)


def estimator_of(spec, workload, model_dir, iterations):
    """Returns the estimator of a job, which makes so many steps per run of its session."""
    if spec['kind'] in ('ours', 'transformer'):
        model = transformer.loss_of if spec['kind'] == 'transformer' else None
        return job.ours(workload, 'native', model_dir, model=model, units=UNITS,
                        hosts=spec['hosts'], cores=spec['cores'], iterations=iterations)
    return job.plain(workload, spec['kind'], model_dir, units=UNITS)


def start(estimator, input_fn):
    """Trains one step, and returns the seconds until it has ended."""
    hook, began = FirstStep(), time.perf_counter()
    estimator.train(input_fn, steps=1, hooks=[hook])
    return {'seconds': hook.ended - began, 'graph': hook.built - began, 'rss': highest_rss()}


def profile(estimator, input_fn):
    """Trains one step, and returns the seconds of each part of the start."""
    imports = time.perf_counter() - BEGAN
    with Profile() as found:
        estimator.train(input_fn, steps=1, hooks=[Measured(found)])
    return {'imports': imports, **found.ended}


def whole(estimator, input_fn, steps):
    """Trains so many steps, and returns the seconds of the call."""
    began = time.perf_counter()
    estimator.train(input_fn, steps=steps)
    return {'seconds': time.perf_counter() - began, 'rss': highest_rss()}


def serve(estimator, input_fn, iterations):
    """Makes windows until the input ends."""
    try:
        estimator.train(input_fn, steps=10**9, hooks=[Windows(job.WINDOW // iterations)])
    except EndOfBench:
        pass


def main():
    """Does what the argument says."""
    spec = json.loads(sys.argv[1])
    does, *steps = spec['does'].split()
    batch = 256 if spec['kind'] == 'transformer' else 8192
    workload = equal('start', spec['columns'], 10**5, 16, batch, 1, 'mean').shrunk(spec['shrink'])
    workload = workload._replace(batch=max(workload.batch, spec['hosts'] * spec['cores']))
    iterations = job.WINDOW if spec['kind'] == 'ours' and does in ('job', 'windows') else 1
    tf.logging.set_verbosity(tf.logging.ERROR)
    with tempfile.TemporaryDirectory() as model_dir:
        estimator = estimator_of(spec, workload, model_dir, iterations)
        input_fn = job.input_fn_of(workload)
        if does == 'windows':
            serve(estimator, input_fn, iterations)
        elif does == 'job':
            print(json.dumps(whole(estimator, input_fn, int(steps[0]))))
        else:
            print(json.dumps({'start': start, 'profile': profile}[does](estimator, input_fn)))


if __name__ == '__main__':
    main()
