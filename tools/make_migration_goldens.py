#!/usr/bin/env python3
"""Writes `tests/golden/checkpoints`: checkpoints of TensorFlow 2.15, and what it reads of ours.

Run it in the virtual environment that `make_goldens.py` describes, with a Python that has the
package. That Python migrates the new checkpoints, and TensorFlow 2.15 loads the results:

    .venv215/bin/python tools/make_migration_goldens.py /path/to/python

- `tf1/div_3` and so on: the checkpoints of a job with a table for each optimizer, on H hosts. Each
  host is a server of its own, and no TPU is needed. Two have a graph with the config, and nothing
  else, since a whole graph has 300 KB.
- `tf2`: the checkpoint of an object for each optimizer that TF2 has.
- `read.json`: the SHA-256 of the files that each becomes in TF2, and what the class of TensorFlow
  2.15 has found in them. Each is migrated back, too; then the job of TF1 restores it.
"""

import hashlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_embedding, tpu_embedding_gradient

TOOLS = pathlib.Path(__file__).resolve().parent
TESTS = TOOLS.parent / 'tests'
sys.path.insert(0, str(TESTS))
from harness import declarations, tf1_tables  # noqa: E402

DIRECTORY = TESTS / 'golden' / 'checkpoints'
WITH_GRAPH = ('div_3', 'mod_2')
api = tf.compat.v2.tpu.experimental.embedding


def servers(hosts):
    """A server for each host, on ports of this machine that were free a moment ago."""
    sockets = [socket.create_server(('localhost', 0)) for _ in range(hosts)]
    addresses = [f'localhost:{one.getsockname()[1]}' for one in sockets]
    for one in sockets:
        one.close()
    return [tf.train.Server({'worker': addresses}, 'worker', host) for host in range(hosts)]


def declared(strategy, hosts):
    """The TPUEmbedding of TF1."""
    names = tf1_tables.OPTIMIZERS
    return declarations.build(tpu_embedding, declarations.declaration(
        {table: {'vocabulary_size': tf1_tables.ROWS[table],
                 'dimension': tf1_tables.width_of(table),
                 'optimization_parameters': declarations.optimizer(name)}
         for table, name in names.items()},
        {f'feature{number}': {'table_id': table} for number, table in enumerate(names)}, hosts,
        partition_strategy=strategy, by=declarations.optimizer('Adagrad')))


def dense(embedding):
    """The other variables of a TPUEstimator, which Adam trains, dummies of tables among them."""
    tpu_embedding_gradient.create_dummy_table_variables(embedding)
    others = [tf.get_variable(name, [rows, 1] if rows > 1 else [1])
              for name, rows in tf1_tables.DENSE.items()]
    others += tf.get_collection('tpu_embedding_dummy_table_variables')
    tf.train.AdamOptimizer().apply_gradients(
        [(tf.zeros_like(one), one) for one in others], tf.train.create_global_step())


def fill(session, strategy, hosts):
    """Gives every variable of `tf1_tables` its rows."""
    session.run(tf.global_variables_initializer())
    known = tf1_tables.tensors(strategy, hosts, {**tf1_tables.SUFFIXES, **tf1_tables.LOST})
    for variable in tf.global_variables():
        value = known.get(whole(variable))
        if value is not None:
            if isinstance(value, list):
                value = value[int(variable.op.name.rpartition('_')[2])]
            variable.load(np.reshape(value, variable.shape), session)


class Job:
    """The graph and the session of a TPUEstimator on so many hosts.

    Attributes:
      config: of its embedding.
      session: a context manager.
    """

    def __init__(self, strategy, hosts):
        self._servers = servers(hosts)
        with tf.Graph().as_default():
            embedding = declared(strategy, hosts)
            embedding.create_variables_and_ops()
            dense(embedding)
            self.config = embedding.config_proto
            self.variables = tf.global_variables()
            self.session = tf.Session(self._servers[0].target)

    def saver(self, keep=lambda variable: True):
        """A Saver as TPUEstimator makes it, of some variables."""
        with self.session.graph.as_default():
            return tf.train.Saver(list(filter(keep, self.variables)), sharded=True)


def write_tf1(folder, strategy, hosts):
    """Writes a checkpoint as a TPUEstimator on so many hosts does."""
    job = Job(strategy, hosts)
    saver = job.saver()
    with job.session as session, session.graph.as_default():
        fill(session, strategy, hosts)
        path = saver.save(session, str(folder / 'model.ckpt'), tf1_tables.STEP,
                          write_meta_graph=False, write_state=False)
    if folder.name in WITH_GRAPH:
        with tf.Graph().as_default():
            tf.tpu.initialize_system(embedding_config=job.config)
            tf.train.export_meta_graph(f'{path}.meta', strip_default_attrs=True)


def check_tf1(prefix, strategy, hosts):
    """The job restores what came back, and it is what it was."""
    there = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    job = Job(strategy, hosts)
    saver = job.saver(lambda variable: whole(variable) in there)
    with job.session as session, session.graph.as_default():
        fill(session, strategy, hosts)
        before = session.run(job.variables)
        for variable in job.variables:
            variable.load(np.zeros(variable.shape, variable.dtype.as_numpy_dtype), session)
        saver.restore(session, prefix)
        for variable, value in zip(job.variables, before):
            if whole(variable) in there:
                np.testing.assert_array_equal(session.run(variable), value, variable.name)
    lost = {f'{table}/{suffix}' for table, own in tf1_tables.LOST.items() for suffix in own}
    assert lost == {whole(variable) for variable in job.variables} - there.keys()


def whole(variable):
    """The name of the tensor of which a variable is a part."""
    return variable.op.name.partition('/part_')[0]


def objects(lost=False):
    """A TPUEmbedding of TF2, a model and its optimizer, in a `tf.train.Checkpoint`.

    Args:
      lost: whether it also has, without slots, the tables whose optimizers TF2 lacks.
    """
    made = {'sgd': api.SGD(.1), 'a/b.c': api.Adagrad(.1), 'momentum': api.AdagradMomentum(.1, .5),
            'ftrl': api.FTRL(.1), 'adam': api.Adam(.1),
            **(dict.fromkeys(tf1_tables.LOST) if lost else {})}
    embedding = api.TPUEmbedding([api.FeatureConfig(
        api.TableConfig(tf1_tables.ROWS[name], tf1_tables.width_of(name), None, optimizer, 'sum',
                        name), output_shape=[8]) for name, optimizer in made.items()], None)
    embedding.build()
    model = tf.Module()
    model.dense = tf.Module()
    model.dense.kernel, model.dense.bias = tf.Variable(tf.zeros([3, 1])), tf.Variable([0.])
    optimizer = tf.keras.optimizers.legacy.Adam()
    optimizer._create_all_weights([model.dense.kernel, model.dense.bias])
    return tf.compat.v2.train.Checkpoint(embedding=embedding, model=model, optimizer=optimizer)


def values_of(checkpoint):
    """All that such objects hold and a checkpoint of TF1 has, as lists by name."""
    model, optimizer = checkpoint.model, checkpoint.optimizer
    found = {f'{table}/{name}': variable for table, own in checkpoint.embedding._variables.items()
             for name, variable in own.items()}
    for name, variable in ('kernel', model.dense.kernel), ('bias', model.dense.bias):
        found |= {f'dense/{name}': variable, **{
            f'dense/{name}/{slot}': optimizer.get_slot(variable, slot) for slot in 'mv'}}
    return {name: variable.numpy().tolist() for name, variable in found.items()} | {
        'step': int(optimizer.iterations.numpy())}


def write_tf2(folder):
    """Writes the checkpoint of objects."""
    checkpoint = objects()
    for table, own in tf1_tables.rows_of_tf2().items():
        for name, value in own.items():
            checkpoint.embedding._variables[table][name].assign(value)
    checkpoint.save(str(folder / 'ckpt'))
    (folder / 'checkpoint').unlink()


def read_tf2(prefix):
    """Loads a migrated checkpoint; all of the checkpoint must be used."""
    checkpoint = objects(lost=True)
    called = []
    checkpoint.embedding._load_variables = lambda: called.append(True)
    status = checkpoint.restore(prefix)
    unused = [node for number, node in enumerate(status._checkpoint.object_graph_proto.nodes)
              if node.attributes and number not in status._checkpoint.object_by_proto_id]
    assert not unused and called, (unused, called)
    return values_of(checkpoint)


def sha256_of(prefix):
    """The SHA-256 of index and data."""
    return {suffix: hashlib.sha256(pathlib.Path(f'{prefix}.{suffix}').read_bytes()).hexdigest()
            for suffix in ('index', 'data-00000-of-00001')}


def migrate(python, *arguments):
    """Runs the command of the package; returns the prefix of the result."""
    done = subprocess.run(
        [python, '-m', 'estimator_tpu_embedding', 'migrate', 'checkpoint', *arguments, '--format',
         'json'], check=True, cwd=TOOLS.parent, stdout=subprocess.PIPE)
    return json.loads(done.stdout)['destination']


def read_migrated(python):
    """Has every checkpoint of TF1 migrated, and loads the results."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        there, back = (pathlib.Path(folder, name) for name in ('there', 'back'))
        there.write_text(tf1_tables.LINES)
        back.write_text(tf1_tables.LINES_BACK)
        for source in sorted((DIRECTORY / 'tf1').iterdir()):
            order = source.name.replace('_', ':')
            prefix = migrate(python, source, f'{folder}/{source.name}', '--to', 'tf2',
                             '--drop-slots', '--assume', order, '--map', there)
            found.append({'sha256': sha256_of(prefix), 'values': read_tf2(prefix)})
            prefix = migrate(python, prefix, f'{folder}/{source.name}/back', '--to', 'tf1',
                             '--order', order, '--map', back)
            strategy, _, hosts = order.partition(':')
            check_tf1(prefix, strategy, int(hosts))
    # All have the same bytes, whatever the order of rows was.
    assert all(one == found[0] for one in found)
    return found[0]


def main(python):
    """Writes all goldens."""
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    for strategy in 'div', 'mod':
        for hosts in tf1_tables.HOSTS:
            folder = DIRECTORY / 'tf1' / f'{strategy}_{hosts}'
            folder.mkdir(parents=True)
            write_tf1(folder, strategy, hosts)
    (DIRECTORY / 'tf2').mkdir()
    write_tf2(DIRECTORY / 'tf2')
    parts = [f'"{part}": {{\n' + ',\n'.join(
        f'{json.dumps(name)}: {json.dumps(found)}' for name, found in own.items()) + '}'
        for part, own in read_migrated(python).items()]
    (DIRECTORY / 'read.json').write_text('{' + ',\n'.join(parts) + '}\n')


if __name__ == '__main__':
    main(sys.argv[1])
