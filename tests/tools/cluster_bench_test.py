"""What `tools/bench/cluster.py` counts: bytes of a step by hand, and bytes that really crossed."""

import doctest
import json
import sys

import numpy as np
import pytest
from harness import groups

LINKS = '''
import json, sys
sys.path.insert(0, sys.argv[1])
import networks
addresses, before = networks.made(2, gbit=5)
print(json.dumps([networks.gbit_of_socket(before), networks.counted(2), addresses]))
'''


@pytest.fixture
def model(bench):
    return bench('exchange_model')


def of_one_table(model, *, rows, width, per_sample, batch):
    return model.Workload('one', ((rows, width),), (model.Feature(0, per_sample),), batch, 'sum')


def test_the_examples_of_the_model_hold(model):
    assert doctest.testmod(model).failed == 0


def given(model, *ids):
    """A workload of samples with two of these ids each, and rows of width 2."""
    class Given(model.Workload):
        def feeds(self):
            return [[np.array(ids)]]

    return Given(*of_one_table(model, rows=8, width=2, per_sample=2, batch=len(ids) // 2))


def test_bytes_of_sums_are_those_of_a_count_by_hand(model):
    """Width 2, so a sum and a gradient take 8 bytes, as an id with its sample does.

    Host 0 has samples (0, 1) and (2, 2), of which id 1 is at host 1: it sends 8 for the id and 8
    for a gradient, and gets 8. Host 1 has (1, 1) and (0, 2), of which one sample is at host 0: it
    sends 16 for two ids and 8 for a gradient, and gets 8.
    """
    sent, received = model.exact_bytes(given(model, 0, 1, 2, 2, 1, 1, 0, 2), 2, 'mod')
    assert sent.tolist() == [8 + 8 + 8, 16 + 8 + 8]
    assert received.tolist() == [8 + 16 + 8, 8 + 8 + 8]


def test_bytes_of_rows_are_those_of_a_count_by_hand(model):
    """Both samples of host 0 have ids 1 and 1, all at host 1, and those of host 1 have 3 and 3.

    By sums host 0 sends 4 ids and 2 gradients. By rows it sends an id and a gradient: 8 and 8.
    """
    sent, received = model.exact_bytes(given(model, 1, 1, 1, 1, 3, 3, 3, 3), 2, 'mod')
    assert sent.tolist() == received[::-1].tolist() == [8 + 8, 8]


def test_the_model_expects_what_drawn_ids_give(model):
    workload = model.ALL['W1'].shrunk(50)
    sent, received = model.exact_bytes(workload, 2, 'mod')
    assert sent.sum() == received.sum()
    expected = model.by_fewer(workload, 2, workload.batch / 2)
    assert sent.mean() == pytest.approx(expected.total, rel=.05)
    assert expected == model.by_sums(workload, 2, workload.batch / 2)
    found = [np.unique(ids).size for batch in workload.feeds() for ids in batch]
    assert np.mean(found) == pytest.approx(
        model.distinct(workload.tables[0][0], workload.batch * 10), rel=.02)


def test_rows_are_never_more_bytes_than_sums_if_samples_have_one_id(model):
    workload = of_one_table(model, rows=1000, width=4, per_sample=1, batch=4096)
    for samples_at in model.growths(workload).values():
        assert model.first_by_rows(workload, samples_at) == 2


def test_sums_win_at_any_number_of_hosts_if_a_sample_has_many_ids(model):
    """One sample of 1000 ids gives at most 63 sums; it has several hundreds of distinct ids."""
    workload = of_one_table(model, rows=10**6, width=64, per_sample=1000, batch=1)
    assert model.distinct(10**6, 1000) > 300
    assert model.first_by_rows(workload, lambda hosts: 1) is None


def test_more_hosts_turn_sums_into_more_bytes_than_rows(model):
    """W1 with a batch of 4096 on each host: 18 MB and 30 MB at 2 hosts, 157 MB and 60 MB at 64."""
    workload = model.ALL['W1']
    first = model.first_by_rows(workload, lambda hosts: workload.batch)
    for hosts in (first - 1, first):
        sums, rows = [way(workload, hosts, workload.batch).total
                      for way in (model.by_sums, model.by_rows)]
        assert (rows < sums) == (hosts == first)
    assert 2 < first < 64


def test_each_feature_takes_the_better_way(model):
    """20 ids per sample at 2 hosts are fewer by sums, one id of few rows is fewer by rows."""
    both = model.Workload('both', ((10**6, 4), (5, 4)), (
        model.Feature(0, 20), model.Feature(1, 1)), 64, 'sum')
    alone = [both._replace(features=(one,)) for one in both.features]
    fewer = model.by_fewer(both, 2, 32)
    assert fewer.total == (model.by_sums(alone[0], 2, 32).total
                           + model.by_rows(alone[1], 2, 32).total)
    assert fewer.total < min(way(both, 2, 32).total for way in (model.by_sums, model.by_rows))


def test_links_count_what_crosses_and_limit_it(bench, tmp_path):
    networks = bench('networks')
    if reason := networks.why_not():
        pytest.skip(reason)
    script = tmp_path / 'links.py'
    script.write_text(LINKS)
    done = groups.run(
        [*networks.command(), sys.executable, script, networks.__file__.rpartition('/')[0]],
        check=True)
    gbit, ((sent, _), (back, received)), addresses = json.loads(done.stdout)
    assert len(set(addresses)) == 2
    assert gbit < 5.5  # What a link lets pass at once is little of it.
    assert received >= networks.PROBE_BYTES and sent == pytest.approx(received, rel=.01)
    assert back < sent / 50  # Acknowledgements.
