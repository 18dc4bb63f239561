"""Sums over cores: their groups, their order, and what is summed once."""

import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.hosts.placement import Placement
from estimator_tpu_embedding.runner import replica_sums

ALL = range(4)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as found:
        yield found


def constants(*values):
    return [tf.constant(value) for value in values]


def values_of(fetches):
    with tf.Session() as session:
        return session.run(fetches)


@pytest.mark.parametrize('group, total', [(ALL, 15.), ([0, 2], 5.), ([3], 8.)])
def test_the_values_of_a_group_are_added(group, total):
    assert values_of(replica_sums.added(constants(1., 2., 4., 8.), group, None)) == total


@pytest.mark.parametrize('group, expected', [
    # In float32 1 + 1e8 is 1e8, so (1 + 1e8) + (-1e8 + 1) is 0, but core by core it is 1.
    (ALL, 0.), ([3, 2, 1, 0], 0.), ([0, 2, 1], 0.), ([2, 3], -1e8), ([0, 3], 2.)])
def test_the_values_of_a_host_are_added_there_first(graph, group, expected):
    placement = Placement(Topology(num_hosts=2, cores_per_host=2), is_remote=True)
    values = constants(1., 1e8, -1e8, 1.)
    before = len(graph.get_operations())
    found = replica_sums.added(values, group, placement)
    made = graph.get_operations()[before:]
    hosts = sorted({core // 2 for core in group})
    assert {each.device for each in made} == {placement.host(host) for host in hosts}
    assert found.device == placement.host(hosts[0])
    for operation in graph.get_operations():
        operation._set_device('')
    assert values_of(found) == expected


def test_each_is_added_and_the_same_values_once(graph):
    shared, own = constants(*[1.] * 4), constants(1., 2., 4., 8.)
    values = [{'a': own[core], 'b': shared[core], 'c': shared[core], 'd': own[core]}
              for core in ALL]
    found = replica_sums.each_added(values, ALL, None)
    assert values_of(found) == {'a': 15., 'b': 4., 'c': 4., 'd': 15.}
    assert sum(each.type == 'AddN' for each in graph.get_operations()) == 2
    assert replica_sums.each_added([{}, {}], [0, 1], None) == {}


def test_the_same_value_on_one_core_only_is_no_reason_to_share_a_sum():
    one = tf.constant(1.)
    values = [{'a': one, 'b': one}, dict(zip('ab', constants(2., 4.)))]
    assert values_of(replica_sums.each_added(values, [0, 1], None)) == {'a': 3., 'b': 5.}


@pytest.mark.parametrize('add', [replica_sums.added, replica_sums.each_added])
def test_a_sum_of_one_value_does_not_meet_that_of_an_optimizer(add):
    one, several = tf.constant(1.), {'a': tf.constant(1.)}
    for given in ([several, one], [one, several]):
        with pytest.raises(ConfigError, match='E451 model_fn: .*optimizer on some cores'):
            add(given, [0, 1], None)


@pytest.mark.parametrize('groups', [None, [], [[0, 1, 2, 3]], [[0, 3], [2, 1]]])
def test_a_core_is_in_one_group_or_with_all(groups):
    for core in ALL:
        found = replica_sums.group_of(core, groups, 4)
        assert core in found and len(found) == (2 if groups and len(groups) == 2 else 4)


@pytest.mark.parametrize('groups', [[[0, 1]], [[0, 1, 2, 3, 4]], [[0, 1], [1, 2, 3]], [[]]])
def test_groups_that_lack_a_core_or_have_one_twice_are_refused(groups):
    with pytest.raises(ValueError, match=r'must be a permutation of range\(4\)'):
        replica_sums.group_of(0, groups, 4)
