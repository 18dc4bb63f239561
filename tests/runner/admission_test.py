"""What each task of a cluster is told, and what people are told of it."""

import pytest

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.runner.sessions import shares


@pytest.mark.parametrize('hosts, said', [
    # 5 rows of 4 floats and as many of their slot: 32 bytes per row.
    (2, 'host 0 holds 3 rows of 96 B, host 1 holds 2 rows of 64 B'),
    (9, 'each host holds from 0 rows of 0 B to 1 row of 32 B')])
def test_the_rows_and_bytes_of_each_host_are_said_or_the_least_and_the_most(hosts, said):
    table = TableSpec(name='t', vocabulary_size=5, dimension=4, optimizer=Adagrad(learning_rate=.1))
    plan = resolve([table], [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts),
                   batch_size=hosts)
    assert shares(plan) == said
