"""Makes small checkpoints of both kinds to migrate, without TensorFlow."""

import pathlib

import numpy as np
from harness import forged

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.bundle_writer import BundleWriter
from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.integrity import scan
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable
from estimator_tpu_embedding.checkpoint.object_graph import GRAPH_KEY, GraphBuilder, Place
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.migration import from_tf1, from_tf2
from estimator_tpu_embedding.migration.map_file import Map
from estimator_tpu_embedding.proto.codec import Config

USER = 'input_layer/user_embedding/embedding_weights'
ROWS = np.arange(14, dtype='f4').reshape(7, 2)
"""Of the table, by id."""
KERNEL = np.arange(6, dtype='f4').reshape(2, 3)
SLOTS = {'Adagrad': ROWS + 100}
DENSE = {'dense/kernel': KERNEL, 'dense/kernel/Adam': KERNEL + 10, 'dense/kernel/Adam_1':
         KERNEL + 20, 'dense/bias': np.ones(3, 'f4'), 'beta1_power': np.float32(.5)}
VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'
OBJECTS = {
    'embedding/user': ROWS, 'embedding/user.Saccumulators': ROWS + 100, 'net/w': KERNEL,
    'net/w/.OPTIMIZER_SLOT/optimizer/m': KERNEL + 10,
    'net/w/.OPTIMIZER_SLOT/optimizer/v': KERNEL + 20,
    'optimizer/iter': np.int64(7), 'optimizer/learning_rate': np.float32(.1),
    'save_counter': np.int64(7)}


def config(rows=7, width=2, name='tbl_user_embedding'):
    """The config of a job with one table of a feature column."""
    made = Config()
    made.table_descriptor.add(name=name, vocabulary_size=rows, dimension=width)
    return made.SerializeToString()


def tf1(folder, *, step=7, strategy='div', hosts=2, slots=SLOTS, others=DENSE, rows=ROWS,
        config=config(), manifest=True):
    """Writes a checkpoint of a TPUEstimator with one table; returns its prefix."""
    order = Partition(strategy=strategy, vocabulary_size=len(rows), num_hosts=hosts)
    tables = {name: [values[order.ids_on(host)] for host in range(hosts)]
              for name, values in {USER: rows, **{
                  f'{USER}/{slot}': values for slot, values in slots.items()}}.items()}
    folder.mkdir(parents=True, exist_ok=True)
    prefix = forged.write(folder / f'model.ckpt-{step}', {
        **tables, **others, **({} if step is None else {'global_step': np.int64(step)})})
    if manifest:
        pathlib.Path(prefix + MANIFEST).write_bytes(Manifest(
            step=step, created_by='test 1', config=config, created=1e9, tables={
                USER: StoredTable(rows=len(rows), width=rows.shape[1], strategy=strategy,
                                  hosts=hosts, slots=tuple(slots))},
            files=scan(Bundle.open(prefix)).files).to_json())
    return prefix


def tf2(folder, objects=None, number=1, **changes):
    """Writes a checkpoint of objects, by their paths; returns its prefix."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix, graph = str(folder / f'ckpt-{number}'), GraphBuilder()
    with BundleWriter(prefix) as out:
        for path, value in {**(OBJECTS if objects is None else objects), **changes}.items():
            place, value = Place.of(path), np.asarray(value)
            graph.add(place, path)
            above, _, last = path.rpartition('/')
            if above == 'embedding' or above.endswith('_tpu_embedding'):
                table, _, slot = last.partition('.S')
                graph.alias(f'{above}/_variables/{table}/{slot or "parameters"}', path)
            out.rows(place.key, forged.DTYPES[value.dtype.str], value.shape)[0].append(
                value.tobytes())
        out.text(GRAPH_KEY, graph.content())
        out.finish()
    return prefix


def map_of(tmp_path, text):
    """The path of a map."""
    (tmp_path / 'map').write_text(text)
    return tmp_path / 'map'


def contents_of(prefix, map=None, assume=None, path='embedding'):
    """What a migration reads of a checkpoint of either kind."""
    if 'model.ckpt' not in prefix:
        return from_tf2.read(prefix, from_tf2.Paths(path), map or Map())
    return from_tf1.read(prefix, CheckpointOptions(assume=assume), map or Map())
