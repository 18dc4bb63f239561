import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.checkpoint.manifest import StoredTable
from estimator_tpu_embedding.checkpoint.fits import check_fits
from estimator_tpu_embedding.errors import CorruptCheckpointError, IncompatibleCheckpointError


def save(directory, **shapes):
    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape in shapes.items():
            tf.get_variable(name, shape)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(directory / 'model.ckpt'), global_step=3)


def test_all_differences_come_in_one_error(tmp_path):
    path = save(tmp_path, table=[4, 2], dense=[3], table_old=[1])
    with pytest.raises(IncompatibleCheckpointError) as caught:
        check_fits(path, {'table': [4, 3], 'dense': [3], 'table_new': [1], 'x': [2]}, {})
    assert [problem.code for problem in caught.value.problems] == ['E604', 'E606', 'E606']
    assert "Similar names there: ['table', 'table_old']." in str(caught.value)


def test_variables_may_lack_where_the_user_restores_them(tmp_path):
    check_fits(save(tmp_path, v=[2]), {'v': [2], 'w': [1]}, {}, optional={'w'})


@pytest.mark.parametrize('damage', [
    lambda path: path.write_bytes(b''), lambda path: path.write_bytes(path.read_bytes()[:-40]),
    lambda path: path.write_bytes(bytes(path.stat().st_size)), lambda path: path.unlink()])
def test_a_damaged_index_is_an_error_that_names_the_checkpoint(tmp_path, damage):
    path = save(tmp_path, v=[2])
    damage(tmp_path / 'model.ckpt-3.index')
    with pytest.raises(CorruptCheckpointError, match='E613 checkpoint .*model.ckpt-3'):
        check_fits(path, {'v': [2]}, {})


def test_a_table_that_was_no_table_before_is_compared_by_shape_only(tmp_path):
    path = save(tmp_path, t=[4, 2])
    table = StoredTable(rows=4, width=2, strategy='div', hosts=2, slots=())
    check_fits(path, {'t': [4, 2]}, {'t': table})
