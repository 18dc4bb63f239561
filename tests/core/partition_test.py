import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core.partition import STRATEGIES, Partition

EVERY_SMALL_PARTITION = [
    Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    for strategy in STRATEGIES for rows in range(1, 60) for hosts in range(1, 10)]


@pytest.mark.parametrize('strategy, shards', [
    ('div', [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10], [11, 12]]),
    ('mod', [[0, 5, 10], [1, 6, 11], [2, 7, 12], [3, 8], [4, 9]])])
def test_thirteen_ids_on_five_hosts_as_the_proto_documents_them(strategy, shards):
    partition = Partition(strategy=strategy, vocabulary_size=13, num_hosts=5)
    assert [partition.ids_on(host).tolist() for host in range(5)] == shards


def test_every_id_has_one_place_and_every_place_one_id():
    for partition in EVERY_SMALL_PARTITION:
        ids = np.arange(partition.vocabulary_size)
        hosts, rows = partition.locate(ids, np.maximum)
        for host in range(partition.num_hosts):
            mine = partition.ids_on(host)
            assert len(mine) == partition.rows_on(host), partition
            np.testing.assert_array_equal(hosts[mine], host, err_msg=str(partition))
            np.testing.assert_array_equal(rows[mine], np.arange(len(mine)), str(partition))
        assert sum(map(partition.rows_on, range(partition.num_hosts))) == len(ids), partition


@settings(deadline=None)
@given(st.sampled_from(STRATEGIES), st.integers(1, 2**31 - 1), st.integers(1, 4096), st.data())
def test_ids_of_stored_rows_is_the_inverse_of_stored_row(strategy, rows, hosts, data):
    partition = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    first = data.draw(st.integers(0, rows))
    stop = data.draw(st.integers(first, min(rows, first + 50)))
    ids = partition.ids_of_stored_rows(first, stop)
    assert ids.dtype == np.int64 and ((0 <= ids) & (ids < rows)).all()
    np.testing.assert_array_equal(partition.stored_row(ids), np.arange(first, stop))
    if strategy == 'div':
        np.testing.assert_array_equal(ids, np.arange(first, stop))


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(STRATEGIES), st.integers(1, 2**31 - 1), st.integers(1, 4096), st.data())
def test_tensors_and_arrays_are_located_alike(strategy, rows, hosts, data):
    tf = pytest.importorskip('tensorflow')
    partition = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    ids = np.array(data.draw(st.lists(st.integers(0, rows - 1), max_size=20)), np.int64)
    for array, tensor in zip(partition.locate(ids, np.maximum),
                             partition.locate(tf.constant(ids), tf.maximum)):
        np.testing.assert_array_equal(array, tensor)
