import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology


# By hand, of rows 1 and 3: mean divides by the sum, sqrtn by the root of the sum of squares.
@pytest.mark.parametrize('pair, combiner, expected', [
    ([1., -1.], 'sum', -2.), ([1., -1.], 'mean', 0.), ([1., -1.], 'sqrtn', -2 / 2**.5),
    ([-1., -3.], 'mean', -10 / -4), ([-1., -3.], 'sqrtn', -10 / 10**.5),
    ([0., 0.], 'sum', 0.), ([0., 0.], 'mean', 0.), ([0., 0.], 'sqrtn', 0.)])
@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
def test_i06_weights_of_any_sign_give_numbers_in_either_engine(backend, pair, combiner, expected):
    plan = resolve([TableSpec(name='t', vocabulary_size=2, dimension=1, combiner=combiner)],
                   [FeatureSpec(name='f', table='t', weight_feature='w')], Topology(),
                   batch_size=1, optimizer=Adagrad(learning_rate=.1))
    with graphs.building(backend), graphs.session_of(backend) as session:
        made = graphs.BACKENDS[backend](plan, {'t': 't'}, tf.train.create_global_step())
        session.run([tf.global_variables_initializer(), made.engine.open()])
        graphs.assign_rows(session, plan, made.tables['t'], [[1.], [3.]])
        session.run(made.engine.load())
        session.run(made.enqueue({'f': graphs.id_batch([[0, 1]], [pair])}, core=0))
        found, receipt = made.lookup(core=0)
        ones = {'f': tf.ones([1, 1])}
        value, _ = session.run([found['f'], made.update([receipt], [ones])])
        np.testing.assert_allclose(value, [[expected]], rtol=1e-6)
        session.run(made.retrieve())
        assert np.isfinite(graphs.whole(session, plan, 't', made.tables['t'].rows)).all()
