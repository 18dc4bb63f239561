"""Trains on disks that are too small for its checkpoints, and prints how each training failed.

    unshare -rm python -m harness.disk_job FOLDER

`unshare -rm` lets it mount the disks. It prints a line of JSON for each disk: its size, the class
and text of the error, the step of the newest checkpoint, and the files beside checkpoints.
"""

import json
import os
import pathlib
import subprocess
import sys

os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
from harness import jobs  # noqa: E402

from estimator_tpu_embedding.checkpoint.recover import recover  # noqa: E402

STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 300


def train(model_dir):
    """Trains; returns the error, or `None`."""
    columns = [jobs.embedding('f', 500, 8)]
    try:
        jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
            model_dir, keep_checkpoint_max=0, save_checkpoints_steps=4,
            checkpoint_save_graph_def=True), batch_size=4).train(
                jobs.input_fn_of(STEPS), max_steps=300)
    except Exception as error:
        return error
    return None


def report(size, model_dir, error):
    """Prints what became of a training."""
    found = recover(model_dir)
    names = sorted(name for name in os.listdir(model_dir) if not name.startswith('model.ckpt-'))
    print(json.dumps({
        'size': size, 'class': type(error).__name__, 'text': str(error),
        'step': None if found is None else found.step, 'beside': names}), flush=True)


def main(folder):
    """Trains on one disk after the other."""
    disk = pathlib.Path(folder, 'disk')
    disk.mkdir()
    for size in ('190k', '760k', '1m'):
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'none', disk], check=True)
        report(size, disk, train(str(disk)))
        subprocess.run(['umount', '--lazy', disk], check=True)  # Event files are open.


if __name__ == '__main__':
    main(*sys.argv[1:])
