"""C++ puts each id where `core/partition.py` does."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.native_ops import Operations
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core import optimizers
from estimator_tpu_embedding.core.partition import STRATEGIES
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.native import library

FIRST_ROW = 16  # At a multiple of this begin the rows of a host.


def plan_of(rows, hosts, strategy):
    return resolve([TableSpec(name='t', vocabulary_size=rows, dimension=1, combiner='sum')],
                   [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts),
                   batch_size=hosts, strategy=strategy,
                   optimizer=optimizers.StochasticGradientDescent(learning_rate=.1))


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


