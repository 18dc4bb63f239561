import tracemalloc

import numpy as np
import pytest
from harness import forged
from harness.forged import entry

from estimator_tpu_embedding.checkpoint import stored_rows
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.core.partition import Partition

IDS = 23
VALUES = np.arange(IDS * 2, dtype='f4').reshape(IDS, 2)


@pytest.fixture(autouse=True)
def five_rows_at_once(monkeypatch, request):
    if 'large' not in request.node.name:
        monkeypatch.setattr(stored_rows, '_CHUNK', 5 * 8)


def ordered(path, strategy, hosts, values=VALUES):
    """A table as it is stored for so many hosts, to be read by ids."""
    partition = Partition(strategy=strategy, vocabulary_size=IDS, num_hosts=hosts)
    prefix = forged.write(path, {'t': [values[partition.ids_on(host)] for host in range(hosts)]})
    return stored_rows.Ordered(Bundle.open(prefix), 't', partition)


@pytest.mark.parametrize('strategy', ['div', 'mod'])
@pytest.mark.parametrize('hosts', [1, 2, 7, IDS])
def test_rows_are_read_by_their_ids(tmp_path, strategy, hosts):
    table = ordered(tmp_path / 'm', strategy, hosts)
    for ids in ([0], [22, 3, 4, 0, 17], list(range(IDS)), []):
        np.testing.assert_array_equal(table.read(np.array(ids, np.int64)), VALUES[ids])
    assert table.values(13) == [26, 27] and VALUES[13].tolist() == [26, 27]


def test_differences_are_found_in_all_chunks_and_counted_once(tmp_path):
    other = VALUES.copy()
    other[[0, 4, 5, 22]] += [[1, 0], [0, 2], [-3, 3], [0, .5]]
    a, b = ordered(tmp_path / 'a', 'mod', 3), ordered(tmp_path / 'b', 'div', 2, other)
    assert stored_rows.difference(a, b, 10) == (4, 3, [(0, 1), (4, 2), (5, 3), (22, .5)])
    assert stored_rows.difference(b, a, 2) == (4, 3, [(0, 1), (4, 2)])
    assert stored_rows.difference(a, a, 10) == (0, 0, [])


def test_large_tables_are_compared_in_little_memory(tmp_path):
    """40 MB each, of which nothing is on the disk."""
    count, tables = 10_000, []
    for name, strategy in (('a', 'div'), ('b', 'mod')):
        forged.write_index(tmp_path / name, {b't': entry(1, [count, 1000], size=4000 * count)})
        with open(tmp_path / f'{name}.data-00000-of-00001', 'r+b') as file:
            file.truncate(4000 * count)
        tables.append(stored_rows.Ordered(Bundle.open(str(tmp_path / name)), 't', Partition(
            strategy=strategy, vocabulary_size=count, num_hosts=4)))
    tracemalloc.start()
    assert stored_rows.difference(*tables, 10) == (0, 0, [])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
