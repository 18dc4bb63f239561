"""Kills a small job of TF2 while it trains and while it saves; it must come to the same end.

    python -m harness.tf2_kill_job FOLDER [layer]

It trains a TPUEmbedding, or a model with TFRS's layer. Both are pipelined.
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
from harness import replicas, tf2_tables, tfrs_models  # noqa: E402
from harness.kill_job import LONGEST, live, numbers, shown_if_wrong  # noqa: E402

from estimator_tpu_embedding import install  # noqa: E402

PER_SAVE, LAST = 2, 9
OPTIMIZERS = {'t': tf2_tables.api.Adam(.1), 'u': tf2_tables.api.Adagrad(.1)}


def embedding_job():
    """What a checkpoint has of a TPUEmbedding, and the function that trains one step."""
    embedding = tf2_tables.make(optimizers=OPTIMIZERS, pipelined=True)
    return {'embedding': embedding}, tf2_tables.trainer(embedding)


def layer_job():
    """The same of a model with TFRS's layer, on two replicas, and its optimizer."""
    install()
    made = replicas.make('tpu 2')
    with replicas.scope(made):
        model, optimizer = tfrs_models.make(
            'adam', False, pipeline_execution_with_tensor_core=True)
    return {'model': model, 'optimizer': optimizer}, tfrs_models.trainer(model, optimizer, made)


def train(job, directory, *, killed_at=None, killed_in_save=None):
    """Trains from the newest checkpoint to the last step.

    Args:
      job: one of the two above.
      directory: of checkpoints.
      killed_at: the step after which the process ends.
      killed_in_save: the step at whose save it ends, some moment after that began.
    """
    objects, train_step = job()
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(**objects, step=step), directory, max_to_keep=2)
    manager.restore_or_initialize()
    print('begins', int(step), flush=True)
    if 'embedding' in objects:
        objects['embedding'].build()
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
            if name.partition('/')[0] in ('embedding', 'model', 'optimizer', 'step')}


def main(folder, kind='embedding'):
    """Three lives in one folder, one in another; an exception is the verdict."""
    job, count = {'embedding': (embedding_job, 6), 'layer': (layer_job, 18)}[kind]
    lives = (('killed', {'killed_at': 5}, [0]), ('killed', {'killed_in_save': 8}, [4]),
             ('killed', {}, [6, 8, LAST]), ('plain', {}, [0]))
    for number, (name, ends, first) in enumerate(lives):
        log = pathlib.Path(folder, f'life-{number}')
        with shown_if_wrong(log):
            status = live(log, LONGEST, lambda: train(job, f'{folder}/{name}', **ends))
            assert status == (-signal.SIGKILL if ends else 0), status
            begun, = numbers(log, 'begins')
            assert begun in first, begun
    got, want = values(f'{folder}/killed'), values(f'{folder}/plain')
    assert got == want and len(want) == count, (sorted(got), sorted(want))
    print('equal bit for bit')


if __name__ == '__main__':
    main(*sys.argv[1:])
