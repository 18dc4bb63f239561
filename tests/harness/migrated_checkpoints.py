"""Writes checkpoints of TF1 by hand, and migrates checkpoints by the command, in this process."""

import contextlib
import io
import json
import pathlib
import shutil
import tempfile

import numpy as np
from harness import forged, tf1_tables

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.cli.main import main

TABLES = '\n'.join(f'table {name} -> {name}' for name in tf1_tables.SUFFIXES)
DENSE = 're (dense/.*) -> model/\\1\n'
"""Lines of a map for the variables of `tf1_tables.tensors`."""


def write_tf1(folder, tensors, step=tf1_tables.STEP):
    """Writes `model.ckpt-7` without a manifest, as TensorFlow does; returns its prefix."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    return forged.write(pathlib.Path(folder) / f'model.ckpt-{step}', tensors)


def migrate(source, folder, to, *arguments, lines=None, status=0):
    """Runs `etpe migrate checkpoint`, and returns the prefix of the result; its errors, if any.

    Args:
      source: a prefix or a folder.
      folder: for the result.
      to: as `--to`.
      *arguments: further ones.
      lines: the text of a map.
      status: that the command must exit with.
    """
    words = ['migrate', 'checkpoint', source, folder, '--to', to, *arguments]
    out, errors = io.StringIO(), io.StringIO()
    with (contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors),
          tempfile.NamedTemporaryFile('w', encoding='utf-8') as file):
        if lines is not None:
            file.write(lines)
            file.flush()
            words += ['--map', file.name]
        found = main([*map(str, words), '--format', 'json'])
    assert found == status, (found, out.getvalue(), errors.getvalue())
    return errors.getvalue() if status == 2 else json.loads(out.getvalue())['destination']


def copied(prefix, folder):
    """Copies a checkpoint with its manifest into a folder, which is returned."""
    pathlib.Path(folder).mkdir(parents=True)
    for path in pathlib.Path(prefix).parent.glob(f'{pathlib.Path(prefix).name}.*'):
        shutil.copyfile(path, pathlib.Path(folder, path.name))
    return folder


def bytes_of(prefix, left_out=()):
    """(type, shape, bytes) of each tensor of numbers of a checkpoint, by its name."""
    bundle = Bundle.open(str(prefix))
    return {name: (tensor.kind, tensor.shape, bundle.read_bytes(
        name, 0, tensor.rows).tobytes()) for name, tensor in bundle.tensors.items()
        if tensor.code and name not in left_out}


def assert_equal_files(one, other):
    """Two checkpoints have the same names, types, shapes and bytes."""
    found, wanted = bytes_of(one), bytes_of(other)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == value, name


def value(prefix, name):
    """A tensor of a checkpoint of TF2, by the path of its variable."""
    bundle = Bundle.open(str(prefix))
    tensor = bundle.tensors[f'{name}/.ATTRIBUTES/VARIABLE_VALUE']
    return np.reshape(bundle.read(tensor.name, 0, tensor.rows), tensor.shape)
