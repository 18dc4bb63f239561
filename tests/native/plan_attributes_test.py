"""C++ puts each id where `core/partition.py` does, and takes the rules of all optimizers."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.native_ops import Operations
from hypothesis import given, settings
from hypothesis import strategies as st

import estimator_tpu_embedding
from estimator_tpu_embedding.core import optimizers as o
from estimator_tpu_embedding.core.partition import STRATEGIES
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import MAX_THREADS, FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.native import plan_attributes as encoded

FIRST_ROW = 16  # At a multiple of this begin the rows of a host.


def plan_of(rows, hosts, strategy):
    return resolve([TableSpec(name='t', vocabulary_size=rows, dimension=1, combiner='sum')],
                   [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts),
                   batch_size=hosts, strategy=strategy,
                   optimizer=o.StochasticGradientDescent(learning_rate=.1))


def rows_in(grouped):
    """The physical rows of a batch of one table and feature of one sample."""
    section = grouped[grouped[6]:]
    count = section[0]
    return section[4:4 + count]  # behind n, u and two starts


def physical_rows(partition, ids):
    on, local = partition.locate(ids, np.maximum)
    sizes = np.array([partition.rows_on(host) for host in range(partition.num_hosts)])
    extents = -(-sizes // FIRST_ROW) * FIRST_ROW
    return (np.cumsum(extents) - extents)[on] + local


@pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())
@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 400), hosts=st.integers(1, 40), strategy=st.sampled_from(STRATEGIES))
def test_every_id_has_the_physical_row_of_its_host_and_comes_back(rows, hosts, strategy):
    plan, ids = plan_of(rows, hosts, strategy), np.arange(rows)
    with tf.Graph().as_default():
        operations = Operations(plan)
        grouped = operations.group([[0] * rows], [ids], [])
        np.testing.assert_array_equal(rows_in(grouped), physical_rows(plan.partition('t'), ids))
        _, (found,), _ = operations.run(operations.library.ete_ungroup(
            engine=operations.handle, grouped=grouped, F=1, W=0))
        operations.session.close()
    np.testing.assert_array_equal(found, ids)


SOURCES = pathlib.Path(estimator_tpu_embedding.__file__).parent / 'native' / 'src'
NEEDS = {o.AdagradMomentum: {'momentum': .9}, o.Momentum: {'momentum': .9},
         o.RMSProp: {'rho': .9, 'momentum': .5, 'epsilon': 1e-5},
         o.CenteredRMSProp: {'rho': .9, 'momentum': .5, 'epsilon': 1e-5},
         o.FrequencyEstimator: {'tau': .1, 'max_delta': 9., 'outlier_threshold': 2.,
                                'weight_exponent': 1.}}
OPTIMIZERS = [cls(learning_rate=.5, **NEEDS.get(cls, {})) for cls in o.OPTIMIZERS.values()]


def names_in_cpp():
    """What stands in the table of kernels: one function per rule, in the order of numbers."""
    table = re.search(r'\{apply<.*?\}', (SOURCES / 'kernels_isa.cc').read_text(), re.DOTALL)
    return re.findall(r'apply<(\w+)>|(apply_\w+)', table.group())


@pytest.mark.parametrize('optimizer', OPTIMIZERS, ids=lambda value: value.field)
def test_every_optimizer_has_a_native_rule_of_its_own(optimizer):
    number, options = encoded.RULES[type(optimizer)][0], encoded.options_of(optimizer)
    name, function = names_in_cpp()[number]
    assert type(optimizer).__name__ == name or f'apply_{optimizer.field}' == function
    assert len(options) == encoded.OPTIONS and all(type(value) is float for value in options)


def test_the_kernels_know_how_many_slots_each_rule_has():
    header = (SOURCES / 'kernels.h').read_text()
    slots = re.search(r'kSlotsOfRule\[kRules\] = \{(.*)\}', header).group(1).split(', ')
    assert [int(count) for count in slots] == [
        len(optimizer.slots)
        for optimizer in sorted(OPTIMIZERS, key=lambda value: encoded.RULES[type(value)][0])]


def test_the_options_of_all_rules_are_those_that_the_header_names():
    text = re.search(r'enum Option : int \{(.*?)\}', (SOURCES / 'options.h').read_text(), re.DOTALL)
    assert re.findall(r'^ +(k\w+)', text.group(1), re.MULTILINE) == [
        'kAccumulate', 'kUpdatesAllRows', 'kHasDecay', 'kDecay', 'kDecayTimesRate',
        'kLowestWeight', 'kHighestWeight', 'kLowestGradient', 'kHighestGradient', 'kOwnOptions']


def test_the_kernels_have_room_for_as_many_options_and_threads():
    assert f'constexpr int kOptions = {encoded.OPTIONS};' in (SOURCES / 'options.h').read_text()
    assert f'constexpr int kMostThreads = {MAX_THREADS};' in (SOURCES / 'cores.h').read_text()
