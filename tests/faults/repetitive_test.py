"""C14, P22, P24: what strangers wrote is read in time that grows as its length does.

Patterns that repeat are what makes a reader slow, random bytes are not. A reader that needs the
square of a length or worse hangs here. The soak measures how the time of the CPU grows.
"""

import itertools
import json
import os
import time

import pytest
from harness import forged
from harness.processes import run_etpe

from estimator_tpu_embedding.checkpoint import pointer, profile_files
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.checkpoint.model_dir import claimed
from estimator_tpu_embedding.checkpoint.recover import candidates, recover
from estimator_tpu_embedding.compat import notebook
from estimator_tpu_embedding.errors import CheckpointError, SetupError, UnreadableConfigError
from estimator_tpu_embedding.proto import reading

SIZES = [2**exponent for exponent in (10, 12, 14, 16)]
SLACK = 2  # seconds of the CPU: for an import, and for what grows as a square up to a limit


def read_pointer(directory, content):
    """All that is done with a file `checkpoint` where a job or a tool starts."""
    (directory / 'checkpoint').write_bytes(content)
    found = pointer.read(str(directory))
    if found is not None:
        found.name_in(str(directory))
    candidates(str(directory))
    try:
        recover(str(directory))
    except CheckpointError:
        pass


def read_manifest_of(directory, content):
    (directory / 'model.ckpt-7.tables.json').write_bytes(content)
    with pytest.raises(CheckpointError):
        read_manifest(str(directory / 'model.ckpt-7'))


def read_lock(directory, content):
    (directory / '.ete-lock').write_bytes(content)
    with claimed(str(directory)):
        pass


def read_config(_, content):
    try:
        reading.read_bytes(content, 'file')
    except UnreadableConfigError as error:
        assert str(error).isprintable()


def read_index(directory, content):
    (directory / 'm-1.index').write_bytes(content)
    with pytest.raises(CheckpointError):
        Bundle.open(str(directory / 'm-1'))


def read_notebook(directory, content):
    path = directory / 'n.ipynb'
    path.write_bytes(content)
    try:
        for _ in notebook.codes(notebook.read(str(path)), str(path), lambda line: None):
            pass
    except (SetupError, SyntaxError, ValueError, MemoryError, RecursionError):
        pass


def read_cell(directory, content):
    read_notebook(directory, json.dumps({'cells': [{
        'cell_type': 'code', 'source': content.decode('latin-1')}]}).encode())


def read_profile(_, content):
    try:
        profile_files.decoded(bytearray(content))
    except ValueError:
        pass


MANIFEST = (b'{"format": 3, "step": 7, "tables": {', b'}, "created_by": "x"}')
READERS = {  # What is read: by what, and what it begins and ends with besides nothing.
    'pointer': (read_pointer, [(b'model_checkpoint_path: "', b'"\n'),
                               (b'model_checkpoint_path: "model.ckpt-7"\n', b''),
                               (b'model_checkpoint_path:', b'"model.ckpt-7"')]),
    'manifest': (read_manifest_of, [MANIFEST, (b'{"format": ', b'}'), (b'[', b']'), (b'"', b'"'),
                                    (b'{"created_by": "', b'", "format": 3}')]),
    'lock': (read_lock, [(b'{"pid": ', b'}'), (b'{"pid": 1, "host": "', b'", "since": "x"}')]),
    'config': (read_config, [(b'table_descriptor { name: "', b'" }'), (b'mode: ', b''),
                             (b'table_descriptor {', b'}'),
                             (b'node { attr { key: "config" ', b'')]),
    'binary config': (read_config, [(b'\n\x04\x0a\x02ab', b''), (b'\x0a\x80\x80\x04', b'')]),
    'index': (read_index, [(b'', forged.MAGIC)]),
    'notebook': (read_notebook, [(b'{"cells": [{"cell_type": "code", "source": "', b'"}]}'),
                                 (b'{"cells": [', b']}')]),
    'cell': (read_cell, [(b'"""', b''), (b'x = (', b'')]),
    'profile': (read_profile, [(b'{"format": 3, "ranges": [', b']}')])}
UNITS = [b'\n', b' ', b'\t', b'\r\n', b'"', b"'", b'\\', b'\\\\', b'\\1', b'\\x1', b'\\"', b'#',
         b'#\n', b'0', b'9', b'-', b'1.', b'1e', b'[', b']', b'{', b'}', b'{}', b'[]', b'[{',
         b'{"a":', b'[0,', b'0,', b'"",', b'"a":0,', b'<', b'<>', b'{<', b'/', b'/a', b'../', b'a',
         b'a ', b'a:', b'a: 1 ', b'a {', b'a: "', b'"a" ', b"'a'", b'a\n', b'-1', b'.', b'=', b'A=',
         b'\0', b'\x01', b'\x0a\0', b'\x0a\x02', b'\x80', b'\xff', b'\xc3\xa4', b'model.ckpt-1\n',
         b'model_checkpoint_path: "a"\n', b'all_model_checkpoint_paths: "m-1"\n', b'!x\n', b'%x\n',
         b'%%time\n', b'x?\n', b'(', b'table_descriptor {}\n', b'node {', b'value { s: "',
         b'key: "config"\n', b'{"pid":1e999,']


OF_CELLS = [b'\n', b'"', b'\\', b'(', b'!x\n', b' !x\n', b'%%time\n', b'x?\n']


def inputs(name):
    """(head, unit, tail) of all that a reader is given."""
    return itertools.product([(b'', b''), *READERS[name][1]],
                             OF_CELLS if name == 'cell' else UNITS)


def seconds_of(read, directory, content):
    """Seconds of the CPU that reading takes."""
    began = time.process_time()
    read(directory, content)
    return time.process_time() - began


@pytest.mark.soak
@pytest.mark.parametrize('name', READERS)
def test_p22_time_grows_as_length_does(tmp_path, name):
    for (head, tail), unit in inputs(name):
        before = 0.
        for size in SIZES[:None if unit in UNITS[:12] else 3]:
            now = seconds_of(READERS[name][0], tmp_path, head + unit * (size // len(unit)) + tail)
            assert now < 8 * before + SLACK, (name, head, unit, size, before, now)
            before = now


def test_c14_p22_tools_end_on_a_directory_of_such_files(tmp_path):
    (tmp_path / 'checkpoint').write_bytes(b'\n' * 2**20)
    (tmp_path / 'model.ckpt-7.tables.json').write_bytes(MANIFEST[0] + b'[' * 2**20)
    (tmp_path / 'model.ckpt-7.index').write_bytes(b'\x80' * 2**20 + forged.MAGIC)
    (tmp_path / 'model.ckpt-7.meta').write_bytes(b'node {' * 2**17)
    (tmp_path / 'graph.pbtxt').write_bytes(b'node { attr { key: "config" value { s: "' * 2**15)
    (tmp_path / '.ete-lock').write_bytes(b'{"pid":' * 2**17)
    os.mkfifo(tmp_path / 'model.ckpt-8.index')
    for command in (['inspect'], ['checkpoint', 'ls'], ['checkpoint', 'verify'],
                    ['checkpoint', 'show'], ['validate']):
        ended = run_etpe(*command, tmp_path)
        assert ended.returncode in (1, 2) and 'Traceback' not in ended.stderr
