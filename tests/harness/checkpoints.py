"""Gives tests small checkpoints, as TensorFlow writes them, under any step."""

import hashlib
import json
import pathlib

import numpy as np
from harness import forged

from estimator_tpu_embedding.checkpoint import commit as commits
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable

VALUES = np.arange(14, dtype=np.float32).reshape(7, 2)
"""Of the table `t`, whose slot `t/Adagrad` holds ten times as much; 7 rows on 2 hosts."""

TABLES = {'t': StoredTable(rows=7, width=2, strategy='div', hosts=2, slots=('Adagrad',))}


def signed(fields):
    """Returns the text of a manifest with its right SHA-256, so that readers look at the rest."""
    own = {name: value for name, value in fields.items() if name != 'sha256'}
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
    return json.dumps({**own, 'sha256': digest})


def commit(storage, step, write, manifest, saved=(), **kwargs):
    """Commits a checkpoint, unless there is a whole one of that step; as `commit.publish`."""
    kept = commits.keep(storage, step, saved)
    return kept if kept is not None else commits.publish(
        storage, commits.stage(storage, step, write), manifest, saved=saved, **kwargs)


def writer(offset=0., without=()):
    """A function for `commit(write=...)`: writes a checkpoint of the numbers `VALUES + offset`."""
    def write(prefix):
        whole = VALUES + np.float32(offset)
        forged.write(prefix, {
            **{name: [whole[:4] * factor, whole[4:] * factor]
               for name, factor in (('t', 1), ('t/Adagrad', 10))}, 'global_step': np.int64(0)})
        for suffix in without:
            for path in pathlib.Path(prefix).parent.glob(f'{pathlib.Path(prefix).name}*{suffix}'):
                path.unlink()
    return write


def flip(path, at):
    """Changes a bit of a byte of a file."""
    content = bytearray(pathlib.Path(path).read_bytes())
    content[at] ^= 4
    pathlib.Path(path).write_bytes(content)


def describe(step, **changes):
    """A function for `commit(manifest=...)`."""
    return lambda files: Manifest(**{**dict(
        step=step, tables=TABLES, created_by='test', created=1., files=files), **changes})


def steps_on_disk(directory):
    """Returns the steps of all checkpoints in a directory, in order."""
    return sorted(int(path.stem.rpartition('-')[2])
                  for path in pathlib.Path(directory).glob('model.ckpt-*.index'))
