import json

import pytest

from estimator_tpu_embedding.checkpoint.manifest import (
    Manifest, StoredTable, manifest_path, orphaned_manifests, read_manifest)
from estimator_tpu_embedding.errors import CorruptCheckpointError

MANIFEST = Manifest(step=7, created_by='test', tables={
    'scope/t': StoredTable(rows=5, width=2, strategy='mod', hosts=3, slots=('Adagrad',))})


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


@pytest.mark.parametrize('content', [
    b'', b'{', b'[]', b'null', b'\xff\xfe', b'[' * 100_000, changed(format=2),
    changed(tables=[]), changed(tables__t__rows=-1), changed(tables__t__rows=2.5),
    changed(tables__t__hosts=True), changed(tables__t__strategy='hash'),
    changed(tables__t__slots=3), changed(step='x'), changed(step=None)])
def test_a_manifest_that_cannot_be_read_is_an_error_never_none(tmp_path, content):
    with pytest.raises(CorruptCheckpointError, match='E611 checkpoint model.ckpt-7') as caught:
        read_manifest(write(tmp_path, content))
    assert len(str(caught.value)) < 600


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
