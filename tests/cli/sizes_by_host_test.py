from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.cli.config_view import TableView
from estimator_tpu_embedding.cli.report import share_text
from estimator_tpu_embedding.cli.sizes_by_host import extent, imbalance, per_host, rows_extent
from estimator_tpu_embedding.core.partition import STRATEGIES, Partition


def tables_of(*sizes):
    return [TableView(name=str(rows), rows=rows, dimension=width, slots=())
            for rows, width in sizes]


def test_hosts_share_rows_as_evenly_as_can_be():
    # 13 rows on 5 hosts: 3, 3, 3, 2, 2; 2 rows: 1, 1, 0, 0, 0.
    assert per_host(tables_of((13, 4), (2, 1)), 5, lambda table: 1) == [4, 4, 3, 2, 2]
    assert per_host(tables_of((13, 4), (2, 1)), 5, lambda table: table.bytes_per_row) == [
        52, 52, 48, 32, 32]


@given(st.integers(1, 50), st.integers(1, 60), st.sampled_from(STRATEGIES), st.data())
def test_the_arithmetic_is_that_of_the_partition(rows, hosts, strategy, data):
    partition = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    of_host = [len(partition.ids_on(host)) for host in range(hosts)]
    assert per_host(tables_of((rows, 1)), hosts, lambda table: 1) == of_host
    assert rows_extent(*tables_of((rows, 1)), hosts) == extent(of_host)
    newest = data.draw(st.integers(1, rows))
    assert partition.hosts_of_newest(newest) == len({
        partition.locate(id, max)[0] for id in range(rows - newest, rows)})


def test_imbalance_is_the_most_over_the_mean():
    assert imbalance([4, 4, 3, 2, 2]) == 4 / 3 and imbalance([0, 0]) == 1


def test_small_shares_are_not_shown_as_nothing():
    assert [share_text(count, 10_000) for count in (0, 9, 10, 5000, 20_000)] == [
        '0.0 %', '< 0.1 %', '0.1 %', '50.0 %', '200.0 %']
