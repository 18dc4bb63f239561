"""Kills a small job of TF2 while it trains and while it saves; it must come to the same end.

    python -m harness.tf2_kill_job FOLDER

It trains a model with TFRS's layer, which is pipelined, on two replicas.
One process imports TensorFlow, and forks each life of the job. A life resumes from the newest
checkpoint and gets the data of its step. The last variables must equal, bit for bit, those of a job
that nobody killed.
"""

import os
import pathlib
import random
import signal
import sys
import threading

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import tensorflow as tf  # noqa: E402
from harness import replicas, tfrs_models  # noqa: E402
from harness.kill_job import LONGEST, live, numbers, shown_if_wrong  # noqa: E402

from estimator_tpu_embedding import install  # noqa: E402

PER_SAVE, LAST = 2, 9


def layer_job():
    """What a checkpoint has of the model and its optimizer, and the function that trains a step."""
    install()
    made = replicas.make('tpu 2')
    with replicas.scope(made):
        model, optimizer = tfrs_models.make(
            'adam', False, pipeline_execution_with_tensor_core=True)
    return {'model': model, 'optimizer': optimizer}, tfrs_models.trainer(model, optimizer, made)


def train(directory, *, killed_at=None, killed_in_save=None):
    """Trains from the newest checkpoint to the last step.

    Args:
      directory: of checkpoints.
      killed_at: the step after which the process ends.
      killed_in_save: the step at whose save it ends, some moment after that began.
    """
    objects, train_step = layer_job()
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(**objects, step=step), directory, max_to_keep=2)
    manager.restore_or_initialize()
    print('begins', int(step), flush=True)
    for number in range(int(step), LAST):
        train_step(number)
        made = int(step.assign_add(1))
        if made == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if made == killed_in_save:
            threading.Timer(random.uniform(0, .02), os.kill, [os.getpid(), signal.SIGKILL]).start()
        if made % PER_SAVE == 0 or made == LAST:
            manager.save()
    if killed_in_save is not None:
        threading.Event().wait(LONGEST)


def values(directory):
    """All variables of the newest checkpoint by their keys."""
    reader = tf.train.load_checkpoint(directory)
    return {name: reader.get_tensor(name).tolist() for name in reader.get_variable_to_shape_map()
            if name.partition('/')[0] in ('model', 'optimizer', 'step')}


def main(folder):
    """Three lives in one folder, one in another; an exception is the verdict."""
    lives = (('killed', {'killed_at': 5}, [0]), ('killed', {'killed_in_save': 8}, [4]),
             ('killed', {}, [6, 8, LAST]), ('plain', {}, [0]))
    for number, (name, ends, first) in enumerate(lives):
        log = pathlib.Path(folder, f'life-{number}')
        with shown_if_wrong(log):
            status = live(log, LONGEST, lambda: train(f'{folder}/{name}', **ends))
            assert status == (-signal.SIGKILL if ends else 0), status
            begun, = numbers(log, 'begins')
            assert begun in first, begun
    got, want = values(f'{folder}/killed'), values(f'{folder}/plain')
    assert got == want and len(want) == 18, (sorted(got), sorted(want))
    print('equal bit for bit')


if __name__ == '__main__':
    main(*sys.argv[1:])
