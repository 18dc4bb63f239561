import pytest
from harness.checkpoints import flip
from harness.migrations import DENSE, ROWS, USER, contents_of, tf1

from estimator_tpu_embedding import migration
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.errors import ConfigError, CorruptCheckpointError


def test_python_migrates_there_and_back_as_the_command_does(tmp_path):
    first = tf1(tmp_path / 'a', strategy='mod', hosts=3)
    (tmp_path / 'map').write_text('re dense/(.*) -> net/\\1\n')
    done = migration.migrate(first, str(tmp_path / 'b'), migration.Target(
        kind='tfrs', slots='keras', object_path='model/layer'), migration.Choices(
            map=migration.read_map(str(tmp_path / 'map'))))
    assert done.rows == 25 and done.prefix == str(tmp_path / 'b' / 'ckpt-7')
    (tmp_path / 'back').write_text(
        f're net/([a-z]+) -> dense/\\1\ntbl_user_embedding -> {USER}\n')
    back = migration.migrate(
        done.prefix, str(tmp_path / 'c'), migration.Target(kind='tf1', strategy='mod', hosts=2),
        migration.Choices(map=migration.read_map(str(tmp_path / 'back'))),
        paths=migration.Paths('model/layer'))
    contents = contents_of(back.prefix)
    assert set(contents.bundle.tensors) == {USER, f'{USER}/Adagrad', 'global_step', *DENSE}
    assert contents.bundle.read(USER, 0, 7).tolist() == ROWS[[0, 2, 4, 6, 1, 3, 5]].tolist()


def test_python_verifies_the_source_and_takes_an_assumed_order(tmp_path):
    prefix = tf1(tmp_path / 'a', others={})
    flip(tmp_path / 'a' / 'model.ckpt-7.data-00000-of-00001', 3)
    with pytest.raises(CorruptCheckpointError, match='E618'):
        migration.migrate(prefix, str(tmp_path / 'b'), migration.Target(kind='tf2'))
    prefix = tf1(tmp_path / 'c', others={}, strategy='mod', manifest=False)
    (tmp_path / 'map').write_text(f'table {USER} -> user\n')
    done = migration.migrate(
        prefix, str(tmp_path / 'd'), migration.Target(kind='tf2'),
        migration.Choices(map=migration.read_map(str(tmp_path / 'map'))),
        options=CheckpointOptions(assume='mod:2'))
    assert contents_of(done.prefix).bundle.read(
        'embedding/user/.ATTRIBUTES/VARIABLE_VALUE', 0, 7).tolist() == ROWS.tolist()


@pytest.mark.parametrize('field, value', [
    ('kind', 'tf3'), ('slots', 'own'), ('strategy', 'rows'), ('hosts', 0), ('hosts', '2')])
def test_e654_a_target_that_cannot_be(tmp_path, field, value):
    target = migration.Target(**{'kind': 'tf1', field: value})
    with pytest.raises(ConfigError, match=rf'E654 Target\.{field}: it must be .*; got {value!r}'):
        migration.migrate(tf1(tmp_path / 'a'), str(tmp_path / 'b'), target)
