"""Makes checkpoints of a small job with one Adagrad table, without TensorFlow."""

import pathlib

import numpy as np
from harness import forged

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.integrity import scan
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable
from estimator_tpu_embedding.core.partition import Partition

IDS, WIDTH = 11, 3
VALUES = np.arange(1, IDS * WIDTH + 1, dtype='f4').reshape(IDS, WIDTH)


def save(directory, step=7, *, strategy='div', hosts=2, values=VALUES, committed=True,
         dense=(1., 2.), slot=None, name='scope/t'):
    """Writes a checkpoint of one Adagrad table and a dense variable; returns its prefix.

    It has a manifest if it is `committed`.
    """
    partition = Partition(strategy=strategy, vocabulary_size=len(values), num_hosts=hosts)
    slot = values * 2 if slot is None else slot
    stored = {key: [of_ids[partition.ids_on(host)] for host in range(hosts)]
              for key, of_ids in ((name, values), (f'{name}/Adagrad', slot))}
    directory.mkdir(exist_ok=True)
    prefix = forged.write(directory / f'model.ckpt-{step}', {
        **stored, 'dense': np.array(dense), 'global_step': np.array(step)})
    if committed:
        pathlib.Path(prefix + MANIFEST).write_bytes(Manifest(
            step=step, created_by='test 1', plan_digest='abc', created=1e9, tables={
                name: StoredTable(rows=len(values), width=WIDTH, strategy=strategy, hosts=hosts,
                                  slots=('Adagrad',))},
            files=scan(Bundle.open(prefix)).files).to_json())
    return prefix
