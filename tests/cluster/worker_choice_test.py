"""The choice of a cluster's processes is checked as a whole."""

import pytest

from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice

TWO = ('127.0.0.1:1', '127.0.0.1:2')


def codes(choice):
    return [problem.code for problem in choice.problems()]


@pytest.mark.parametrize('given', [list(TWO), ','.join(TWO), f'grpc://{TWO[0]}, {TWO[1]},'])
def test_a_list_and_a_text_with_commas_mean_the_same_workers(given):
    assert ClusterChoice.of(given) == ClusterChoice(TWO)
    assert ClusterChoice.of(given).num_hosts == 2 and not codes(ClusterChoice.of(given))


def test_nothing_given_emulates_all_hosts():
    assert ClusterChoice.of(None) == ClusterChoice() and not ClusterChoice().is_used


@pytest.mark.parametrize('given', ['', ' ', ',', [], [''], [None], 8470, b'127.0.0.1:1'])
def test_workers_that_are_no_addresses_are_refused_and_never_emulated(given):
    choice = ClusterChoice.of(given)
    assert choice.is_used and codes(choice) == ['E702']


@pytest.mark.parametrize('choice', [
    ClusterChoice(TWO, 2), ClusterChoice(processes=2, is_from_script=True),
    ClusterChoice(TWO, is_from_script=True), ClusterChoice(processes=-1),
    ClusterChoice(processes=4097), ClusterChoice(processes=True),
    ClusterChoice(connect_deadline=0), ClusterChoice(worker_deadline=float('nan')),
    ClusterChoice(worker_deadline=float('inf')), ClusterChoice(connect_deadline='60')])
def test_a_contradiction_or_a_number_out_of_range_is_refused(choice):
    assert codes(choice) == ['E701']
