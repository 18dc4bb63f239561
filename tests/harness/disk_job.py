"""Training on disks that are full or read-only; needs `unshare -rm`.

    unshare -rm python -m harness.disk_job FOLDER

Prints a line of JSON per disk: its options, the class and text of the error, how often `model_fn`
was called, the step that is found then and what lies beside checkpoints.
"""

import json
import os
import pathlib
import subprocess
import sys

os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs  # noqa: E402
from harness.processes import die_with_parent  # noqa: E402

from estimator_tpu_embedding.checkpoint.recover import recover  # noqa: E402

STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 300
TABLE_BYTES = 2 * 4 * 8 * 500
"""Of the table and its slot."""


def train(model_dir, steps, summaries=None):
    """Trains; returns how often `model_fn` was called and the error, or `None`."""
    columns, calls = [jobs.embedding('f', 500, 8)], []

    def model_fn(features, labels, mode, params):
        calls.append(mode)
        return jobs.linear_model_fn(columns)(features, labels, mode, params)

    class Summaries(tf.train.SessionRunHook):
        """A hook as users write them, beside those that save."""

        def after_create_session(self, session, coord):
            self._writer = tf.summary.FileWriter(summaries, flush_secs=0)

        def after_run(self, run_context, run_values):
            self._writer.add_summary(tf.Summary(value=[tf.Summary.Value(
                tag='text', node_name='x' * 10_000, simple_value=1.)]), 1)
            self._writer.flush()

    try:
        jobs.estimator(model_fn, columns, jobs.run_config(
            model_dir, keep_checkpoint_max=0, save_checkpoints_steps=4), batch_size=4).train(
                jobs.input_fn_of(STEPS), max_steps=steps,
                hooks=[Summaries()] if summaries else [])
    except Exception as error:
        return len(calls), error
    return len(calls), None


def report(disk, model_dir, calls, error):
    """Prints what became of a training."""
    found = recover(model_dir)
    names = sorted(name for name in os.listdir(model_dir) if not name.startswith('model.ckpt-'))
    print(json.dumps({
        'disk': disk, 'class': type(error).__name__, 'text': str(error), 'calls': calls,
        'step': None if found is None else found.step, 'beside': names}), flush=True)


def main(folder):
    """Trains on one disk after the other."""
    die_with_parent()
    disk = pathlib.Path(folder, 'disk')
    disk.mkdir()
    for options in ('ro', 'size=190k', 'size=300k', 'size=700k', 'size=1m'):
        subprocess.run(['mount', '-t', 'tmpfs', '-o', options, 'none', disk], check=True)
        report(options, disk, *train(str(disk), 300))
        subprocess.run(['umount', '--lazy', disk], check=True)  # Of event files.
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=40k', 'none', disk], check=True)
    beside = os.path.join(folder, 'beside')
    report('summaries', beside, *train(beside, 40, str(disk)))


if __name__ == '__main__':
    main(*sys.argv[1:])
