import json
import os

import pytest

from estimator_tpu_embedding.checkpoint.manifest import (
    Manifest, StoredTable, manifest_path, orphaned_manifests, read_manifest)
from estimator_tpu_embedding.errors import CorruptCheckpointError

MANIFEST = Manifest(step=7, created_by='test', tables={
    'scope/t': StoredTable(rows=5, width=2, strategy='mod', hosts=3, slots=('Adagrad',))},
    config=b'\x10\x02')


def write(directory, content):
    prefix = str(directory / 'model.ckpt-7')
    with open(manifest_path(prefix), 'wb') as file:
        file.write(content)
    return prefix


def test_what_was_written_is_read(tmp_path):
    assert read_manifest(write(tmp_path, MANIFEST.to_json())) == MANIFEST


def test_no_manifest_is_none(tmp_path):
    assert read_manifest(str(tmp_path / 'model.ckpt-7')) is None


def changed(**changes):
    fields = json.loads(MANIFEST.to_json())
    for path, value in changes.items():
        at = fields
        *parents, last = path.split('__')
        for parent in parents:
            at = at[{'t': 'scope/t'}.get(parent, parent)]
        at[last] = value
    return json.dumps(fields).encode()


TABLE = json.loads(MANIFEST.to_json())['tables']['scope/t']


@pytest.mark.parametrize('content', [
    b'', b'{', b'[]', b'null', b'\xff\xfe', b'[' * 100_000, changed(format=2),
    changed(tables=[]), changed(tables__t__rows=-1), changed(tables__t__rows=2.5),
    changed(tables__t__hosts=True), changed(tables__t__strategy='hash'),
    changed(tables__t__slots=3), changed(step='x'), changed(step=None),
    # P24: names that are paths, numbers beyond all limits, keys twice, a million entries.
    changed(tables={'../t': TABLE}), changed(tables={'a/../t': TABLE}),
    changed(tables={'/t': TABLE}), changed(tables={'a\x1b[2J': TABLE}),
    changed(tables={'': TABLE}), changed(tables={f't{i}': TABLE for i in range(10_001)}),
    changed(tables__t__slots=['../x']), changed(tables__t__slots=['a'] * 11),
    changed(tables__t__slots='Adagrad'), changed(tables__t__rows=2**31),
    changed(tables__t__width=2**17), changed(tables__t__hosts=4097), changed(step=-1),
    changed(config='!'), changed(config=3),
    changed(step=2**63), changed(step=7.5), changed(step=True), changed(created_by=3),
    MANIFEST.to_json().replace(b'"step": 7', b'"step": 7, "step": 8'),
    MANIFEST.to_json().replace(b'"rows": 5', b'"rows": 5, "rows": 6'),
    MANIFEST.to_json().replace(b'7', b'7' * 5_000),
    b'{"tables": {' + b','.join(b'"%d": 0' % i for i in range(10**6)) + b'}}',
    b'[' + b'[],' * 2**22 + b'0]', b' ' * (16 * 2**20 + 1)])
def test_a_manifest_that_cannot_be_read_is_an_error_never_none(tmp_path, content):
    with pytest.raises(CorruptCheckpointError, match='E611 checkpoint model.ckpt-7') as caught:
        read_manifest(write(tmp_path, content))
    assert len(str(caught.value)) < 600 and str(caught.value).isprintable()


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_manifest_blocks_nobody(tmp_path):
    os.mkfifo(tmp_path / 'model.ckpt-7.tables.json')
    with pytest.raises(CorruptCheckpointError, match='E611.*pipe'):
        read_manifest(str(tmp_path / 'model.ckpt-7'))


def test_a_manifest_that_is_a_link_is_not_followed(tmp_path):
    target = tmp_path / 'elsewhere'
    target.write_bytes(MANIFEST.to_json())
    prefix = tmp_path / 'model.ckpt-7'
    (tmp_path / 'model.ckpt-7.tables.json').symlink_to(target)
    with pytest.raises(CorruptCheckpointError):
        read_manifest(str(prefix))


def test_only_manifests_of_checkpoints_that_are_gone_are_orphans(tmp_path):
    for name in ('model.ckpt-1.tables.json', 'model.ckpt-2.tables.json', 'model.ckpt-2.index',
                 'other.tables.json', 'model.ckpt-3.data', 'model.ckpt-x.tables.json'):
        (tmp_path / name).touch()
    assert orphaned_manifests(str(tmp_path)) == ['model.ckpt-1.tables.json']
