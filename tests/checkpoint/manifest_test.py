import dataclasses
import json

import pytest
from harness.checkpoints import signed

from estimator_tpu_embedding.checkpoint import file_names
from estimator_tpu_embedding.checkpoint.manifest import (
    Applied,
    Manifest,
    StoredFile,
    StoredTable,
    read_manifest,
)
from estimator_tpu_embedding.core.vocabulary_digests import Vocabulary
from estimator_tpu_embedding.errors import CorruptCheckpointError

MANIFEST = Manifest(step=7, created_by='test', tables={
    'scope/t': StoredTable(rows=5, width=2, strategy='mod', hosts=3, slots=('Adagrad',))},
    config=b'\x10\x02', plan_digest='ab', created=5.5, files={
        'model.ckpt-7.index': StoredFile(size=3, sha256='0' * 64),
        'model.ckpt-7.data-00000-of-00001': StoredFile(size=0, sha256='9' * 64)},
    applied=Applied(rename={'a': 'b'}, reset_slots=('c',)), vocabularies={
        'f': Vocabulary(sha256='5' * 64, size=3, num_oov_buckets=2, default_value=-1)})


def write(directory, content):
    prefix = str(directory / 'model.ckpt-7')
    with open(prefix + file_names.MANIFEST, 'wb') as file:
        file.write(content)
    return prefix


def test_what_was_written_is_read(tmp_path):
    assert read_manifest(write(tmp_path, MANIFEST.to_json())) == MANIFEST


def changed(**changes):
    fields = json.loads(MANIFEST.to_json())
    for path, value in changes.items():
        at = fields
        *parents, last = path.split('__')
        for parent in parents:
            at = at[{'t': 'scope/t'}.get(parent, parent)]
        at[last] = value
    return signed(fields).encode()


TABLE = json.loads(MANIFEST.to_json())['tables']['scope/t']
FILE = {'size': 3, 'sha256': '0' * 64}


@pytest.mark.parametrize('content', [
    b'', b'{', b'[]', b'null', b'\xff\xfe', b'[' * 100_000,
    changed(format=2), changed(format=4), changed(format=True),
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
    changed(files={'../model.ckpt-7.index': FILE}), changed(files={'model.ckpt-8.index': FILE}),
    changed(files={'checkpoint': FILE}), changed(files={'model.ckpt-7.tables.json': FILE}),
    changed(files={'model.ckpt-7.index': {**FILE, 'size': -1}}), changed(unknown=1),
    changed(files={'model.ckpt-7.index': {**FILE, 'sha256': 'x' * 64}}), changed(files=7),
    changed(files={'model.ckpt-7.index': {**FILE, 'mode': 1}}), changed(created='now'),
    changed(files={f'model.ckpt-7.data-{i:05}-of-20000': FILE for i in range(10_001)}),
    changed(applied=None), changed(applied={}), changed(applied__rename=['a']),
    changed(applied__rename={'a': 1}), changed(applied__reset_slots='a'),
    changed(applied__reset_slots=[None]), changed(applied__drop=[]),
    changed(vocabularies=None), changed(vocabularies=[]), changed(vocabularies={'f': None}),
    changed(vocabularies={'f': {}}), changed(vocabularies__f__size=-1),
    changed(vocabularies__f__size=2.5), changed(vocabularies__f__sha256='5' * 63),
    changed(vocabularies__f__sha256=5), changed(vocabularies__f__num_oov_buckets=True),
    changed(vocabularies__f__default_value='0'), changed(vocabularies__f__file='/etc/x'),
    changed(vocabularies={str(i): {} for i in range(100_001)}),
    changed(created=float('nan')), changed(plan_digest=3),
    changed(step=2**63), changed(step=7.5), changed(step=True), changed(created_by=3),
    MANIFEST.to_json().replace(b'"step": 7', b'"step": 7, "step": 8'),
    MANIFEST.to_json().replace(b'"rows": 5', b'"rows": 5, "rows": 6'),
    MANIFEST.to_json().replace(b'7', b'7' * 5_000),
    b'{"tables": {' + b','.join(b'"%d": 0' % i for i in range(10**6)) + b'}}',
    b'[' + b'[],' * 2**22 + b'0]', b' ' * (32 * 2**20 + 1)])
def test_p24_a_manifest_that_cannot_be_read_is_an_error_never_none(tmp_path, content):
    with pytest.raises(CorruptCheckpointError, match='E611 checkpoint model.ckpt-7') as caught:
        read_manifest(write(tmp_path, content))
    assert len(str(caught.value)) < 600 and str(caught.value).isprintable()


def test_i22_the_most_vocabularies_that_a_job_may_have_can_be_read_again(tmp_path):
    one = MANIFEST.vocabularies['f']
    most = dataclasses.replace(MANIFEST, vocabularies={
        f'feature_number_{number}': one for number in range(100_000)})
    assert read_manifest(write(tmp_path, most.to_json())) == most
