"""Gives tests small real checkpoints, which TensorFlow writes once, under any step."""

import functools
import hashlib
import json
import pathlib
import shutil
import tempfile

import numpy as np

from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable

VALUES = np.arange(14, dtype=np.float32).reshape(7, 2)
"""Of the table `t`, whose slot `t/Adagrad` holds ten times as much; 7 rows on 2 hosts."""

TABLES = {'t': StoredTable(rows=7, width=2, strategy='div', hosts=2, slots=('Adagrad',))}


def signed(fields):
    """Returns the text of a manifest with its right SHA-256, so that readers look at the rest."""
    own = {name: value for name, value in fields.items() if name != 'sha256'}
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
    return json.dumps({**own, 'sha256': digest})


@functools.cache
def _written(offset):
    """The folder of files `c-0.*` whose numbers are `VALUES + offset`."""
    import tensorflow.compat.v1 as tf  # Processes that TensorFlow would slow down pass files in.
    directory = tempfile.TemporaryDirectory()  # As long as this process.
    folder = directory.name
    with tf.Graph().as_default(), tf.Session() as session:
        for name, factor in (('t', 1), ('t/Adagrad', 10)):
            tf.get_variable(name, [7, 2], use_resource=True,
                            partitioner=tf.fixed_size_partitioner(2),
                            initializer=tf.constant_initializer(0.))
            whole = (VALUES + offset) * factor
            for variable, rows in zip(tf.global_variables()[-2:], (whole[:4], whole[4:])):
                variable.initializer_value = rows
        step = tf.train.create_global_step()
        session.run(tf.global_variables_initializer())
        for variable in tf.global_variables():
            if hasattr(variable, 'initializer_value'):
                variable.load(variable.initializer_value, session)
        step.load(0, session)
        tf.train.Saver(sharded=True).save(session, f'{folder}/c', global_step=0)
    return directory


def writer(offset=0., without=()):
    """A function for `commit(write=...)`: copies the files of a checkpoint to a prefix."""
    def write(prefix):
        for path in pathlib.Path(_written(offset).name).glob('c-0.*'):
            if path.suffix not in without:
                shutil.copyfile(path, prefix + path.name.removeprefix('c-0'))
    return write


def describe(step, **changes):
    """A function for `commit(manifest=...)`."""
    return lambda files: Manifest(**{**dict(
        step=step, tables=TABLES, created_by='test', created=1., files=files), **changes})


def steps_on_disk(directory):
    """Returns the steps of all checkpoints in a directory, in order."""
    return sorted(int(path.stem.rpartition('-')[2])
                  for path in pathlib.Path(directory).glob('model.ckpt-*.index'))
