import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.checkpoint import saver_builder
from estimator_tpu_embedding.checkpoint.saver_builder import default_saver

pytestmark = pytest.mark.no_rerun
ROWS, WIDTH = 70, 2


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces have 16 rows, the fewest that share memory with their part."""
    monkeypatch.setattr(saver_builder, 'PIECE_BYTES', 1)


class Tables:
    """A table and a dense variable, looked up and written to, with our saver and TensorFlow's."""

    def __init__(self, hosts):
        with tf.Graph().as_default():
            self.table = tf.get_variable(
                't', [ROWS, WIDTH], initializer=tf.random_normal_initializer(),
                use_resource=True, partitioner=tf.fixed_size_partitioner(hosts))
            self.dense = tf.get_variable('w', [3], use_resource=True)
            reads = [tf.gather(part, [0, 1]) for part in self.table]
            with tf.control_dependencies(reads):
                use = tf.group(*[tf.raw_ops.ResourceScatterUpdate(
                    resource=part.handle, indices=[1], updates=[[5., 6.]])
                    for part in self.table])
            self.plain, self.ours = tf.train.Saver(sharded=True), default_saver(5, 1e6)
            self.ours.build()
            self.session = tf.Session()
            self.session.run(tf.global_variables_initializer())
            self.session.run(use)

    def save(self, saver, directory):
        """Saves with `'ours'` or `'plain'`."""
        with self.session.graph.as_default():
            return getattr(self, saver).save(self.session, str(directory / 'model.ckpt'), 3)

    def restore(self, saver, path):
        with self.session.graph.as_default():
            getattr(self, saver).restore(self.session, path)

    def values(self):
        parts, dense = self.session.run([list(self.table), self.dense])
        return np.concatenate(parts), dense


def assert_equal(got, want):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('hosts', [1, 2, 3])
def test_a_checkpoint_in_pieces_has_the_files_names_shapes_and_values_of_a_plain_one(
        tmp_path, hosts):
    tables = Tables(hosts)
    found = {}
    for name in ('plain', 'ours'):
        (tmp_path / name).mkdir()
        path = tables.save(name, tmp_path / name)
        found[name] = (sorted(file.name for file in (tmp_path / name).iterdir()),
                       tf.train.list_variables(path))
        reader = tf.train.load_checkpoint(path)
        assert_equal([reader.get_tensor('t'), reader.get_tensor('w')], tables.values())
    assert found['ours'] == found['plain']


@pytest.mark.parametrize('written_by, read_by', [
    ('ours', 'plain'), ('plain', 'ours'), ('ours', 'ours')])
@pytest.mark.parametrize('before, after', [(1, 1), (3, 3), (1, 3), (3, 2)])
def test_pieces_and_whole_parts_are_restored_to_any_number_of_hosts(
        tmp_path, written_by, read_by, before, after):
    writer, reader = Tables(before), Tables(after)
    path = writer.save(written_by, tmp_path)
    reader.restore(read_by, path)
    assert_equal(reader.values(), writer.values())


def test_a_part_is_stored_16_rows_at_a_time():
    stored = [tf.make_ndarray(one.inputs[2].op.get_attr('value')).tolist()
              for one in Tables(2).session.graph.get_operations() if one.type == 'SaveV2']
    assert stored == [[b'70 2 0,35:0,2', b'70 2 35,35:0,2', b''], [
        b'70 2 0,16:0,2', b'70 2 16,16:0,2', b'70 2 32,3:0,2',
        b'70 2 35,16:0,2', b'70 2 51,16:0,2', b'70 2 67,3:0,2', b'']]


def test_training_goes_on_after_a_save_and_changes_no_checkpoint(tmp_path):
    tables = Tables(2)
    before = tables.values()[0]
    path = tables.save('ours', tmp_path)
    part = list(tables.table)[0]
    with tables.session.graph.as_default():
        tables.session.run(tf.raw_ops.ResourceScatterUpdate(
            resource=part.handle, indices=[0], updates=[[7., 8.]]))
    assert tables.values()[0][0].tolist() == [7, 8]
    np.testing.assert_array_equal(tf.train.load_variable(path, 't'), before)


def test_a_variable_of_the_model_that_is_partitioned_by_columns_is_saved_right(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        parts = tf.get_variable('c', [40, 4], use_resource=True,
                                partitioner=tf.fixed_size_partitioner(2, axis=1))
        saver = default_saver(5, 1e6)
        saver.build()
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / 'model.ckpt'))
        values = np.concatenate(session.run(list(parts)), axis=1)
    np.testing.assert_array_equal(tf.train.load_variable(path, 'c'), values)
