#!/usr/bin/env python3
"""Says when the parts of a step begin and end, on two hosts that are processes.

    python3 tools/bench/timeline.py [--shrink K] [--steps 200] [--json FILE]

needs the package with its `cpu` extra, on Linux. The job is that of `job.py`, with a core per host
and one step per loop. TensorFlow traces each step, and the input that is drawn beside it,
for a later step. A part is measured from the first operation that is in it to the last, so it
includes the wait for tensors of the other host. Times are milliseconds after the first look-up of
the step; a figure is the median over the steps. `tools/docs/pictures.py` draws them.
"""

import argparse
import os
import pathlib
import re
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import evidence  # noqa: E402
import job  # noqa: E402
import networks  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

import estimator_tpu_embedding as ete  # noqa: E402

HOSTS = 2
WARM_STEPS = 20
OPTIONS = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
PARTS = {'look-up': 'EteLookupParts|EteMerge', 'dense': '', 'update': 'EteSpread|EteUpdateParts'}
"""By part, which operations are in it. The dense part is what is between the others."""
_IDS = re.compile(r'ids_of_core_(\d+)_enqueue')
_TASK = re.compile(r'/job:tpu_worker/.*task:(\d+)/device:CPU')


class Traced(tf.train.SessionRunHook):
    """Asks for the trace of each run.

    Attributes:
      steps: the traces.
    """

    def __init__(self):
        self.steps = []

    def before_run(self, run_context):
        """Asks for one."""
        return tf.train.SessionRunArgs([], options=OPTIONS)

    def after_run(self, run_context, run_values):
        """Keeps it."""
        self.steps.append(run_values.run_metadata.step_stats)


def trace_input(found):
    """Makes threads of input add a trace of each batch to a list."""
    make = tf.Session.make_callable

    def make_traced(session, fetches, feed_list=None, accept_options=False):
        run = make(session, fetches, feed_list, accept_options=True)

        def run_traced(*fed):
            metadata = tf.RunMetadata()
            result = run(*fed, options=OPTIONS, run_metadata=metadata)
            found.append(metadata.step_stats)
            return result
        return run_traced
    tf.Session.make_callable = make_traced


def operations(stats):
    """Yields of each operation of a trace its host, name, and when it began and ended (us)."""
    for device in stats.dev_stats:
        task = _TASK.match(device.device)
        for node in device.node_stats:
            yield (int(task[1]) if task else None, node.node_name.rpartition('/')[2],
                   node.all_start_micros, node.all_start_micros + node.all_end_rel_micros)


def span(times):
    """From the first begin to the last end."""
    begins, ends = zip(*times)
    return min(begins), max(ends)


def parts_of(step):
    """Returns by host and part of a step when it began and ended (us)."""
    found = {}
    everything = list(operations(step))
    for host in range(HOSTS):
        for part, pattern in PARTS.items():
            if pattern:
                found[host, part] = span(times for at, name, *times in everything
                                         if at == host and re.match(pattern, name))
        found[host, 'dense'] = found[host, 'look-up'][1], found[host, 'update'][0]
    return found


def input_beside(batches, begin):
    """Returns by host when the batch began and ended (us) that began next to a step's begin."""
    return {(host, 'input'): min(([began, ended] for began, ended, at in batches if at == host),
                                 key=lambda times: abs(times[0] - begin))
            for host in range(HOSTS)}


def input_of(stats):
    """Returns when a batch began and ended (us), and the host whose core gets its ids."""
    everything = list(operations(stats))
    cores = [core[1] for _, name, *_ in everything if (core := _IDS.match(name))]
    return *span(times for _, _, *times in everything), int(cores[0])


def measure(parsed, figures):
    """Trains, adds the figures and prints them."""
    hook, inputs = Traced(), []
    trace_input(inputs)
    ete.install(processes=HOSTS, cores=1)
    workload = WORKLOADS['W2'].shrunk(parsed.shrink)
    with tempfile.TemporaryDirectory() as model_dir:
        job.ours(workload, 'native', model_dir,
                 cluster=tf.distribute.cluster_resolver.TPUClusterResolver('local')).train(
            job.input_fn_of(workload), steps=parsed.steps, hooks=[hook])
    batches, found = [input_of(each) for each in inputs], {}
    for step in hook.steps[WARM_STEPS:]:
        parts = parts_of(step)
        begin, _ = span(parts.values())
        for key, times in {**parts, **input_beside(batches, begin)}.items():
            found.setdefault(key, []).append([(time - begin) / 1e3 for time in times])
    for (host, part), times in sorted(found.items()):
        begins, ends = zip(*times)
        print(f'host {host}  {part:8}'
              f'{figures.add(f"host {host}, {part} begins", "ms", begins):8.2f} ms to'
              f'{figures.add(f"host {host}, {part} ends", "ms", ends):8.2f} ms')


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--shrink', type=int, default=1)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    networks.keep_private()
    with evidence.recorded(parsed.json, pathlib.Path(__file__).stem) as figures:
        measure(parsed, figures)


if __name__ == '__main__':
    main()
