"""Which features have weights is said by each batch, not by the plan."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology

pytestmark = pytest.mark.no_rerun
CORES, SAMPLES, ROWS, WIDTH = 2, 3, 7, 3
FEATURES = 'first', 'second'
WEIGHTED = [[{'first'}, {'first', 'second'}], [set(), {'second'}], [set(), set()]]
"""By step, then core: which features have weights."""


def make_plan(combiner, weighted):
    return resolve(
        [TableSpec(name='t', vocabulary_size=ROWS, dimension=WIDTH, combiner=combiner)],
        [FeatureSpec(name=name, table='t', weight_feature=weighted and 'weights')
         for name in FEATURES],
        Topology(cores_per_host=CORES), batch_size=CORES * SAMPLES,
        optimizer=Adagrad(learning_rate=.3))


class Step:
    """Ids, weights and gradients by core, then feature; weights of 1 where there are none."""

    def __init__(self, generator, weighted):
        self.weighted = weighted
        self.ids = [{name: graphs.random_samples(generator, SAMPLES, ROWS) for name in FEATURES}
                    for _ in weighted]
        self.weights = [{name: [
            generator.uniform(.5, 2, len(ids)) if name in own else np.ones(len(ids))
            for ids in batch[name]] for name in FEATURES}
            for batch, own in zip(self.ids, weighted)]
        self.gradients = [{name: generator.normal(size=(SAMPLES, WIDTH)).astype(np.float32)
                           for name in FEATURES} for _ in weighted]

    def run(self, session, backend):
        """The activations by core, then feature."""
        session.run([backend.enqueue({name: graphs.id_batch(
            ids, self.weights[core][name] if name in self.weighted[core] else None)
            for name, ids in batch.items()}, core=core)
            for core, batch in enumerate(self.ids)])
        looked_up = [backend.lookup(core=core) for core in range(CORES)]
        update = backend.update([receipt for _, receipt in looked_up], [
            {name: tf.constant(values) for name, values in own.items()}
            for own in self.gradients])
        return session.run([[activations for activations, _ in looked_up], update])[0]

    def run_reference(self, table):
        """What `run` is to give."""
        found = [{name: table.lookup(batch[name], weights[name]) for name in FEATURES}
                 for batch, weights in zip(self.ids, self.weights)]
        table.update([(batch[name], gradients[name], weights[name])
                      for batch, weights, gradients in zip(
                          self.ids, self.weights, self.gradients) for name in FEATURES])
        return found


@pytest.mark.parametrize('combiner', ['sum', 'mean', 'sqrtn'])
@pytest.mark.parametrize('backend, weighted', [
    graphs.of_backend('stock', True), graphs.of_backend('native', True),
    graphs.of_backend('native', False), graphs.of_backend('native_tpu_ops', False), *soak_except([
        graphs.of_backend(name, True)
        for name in ('native_owners', 'native_tasks', 'native_cluster')], 0)])
def test_batches_with_weights_and_without_agree_with_the_reference(backend, weighted, combiner):
    """Also those that are looked up in one step, by two cores, and update the same rows."""
    generator = np.random.default_rng(4)
    rows = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
    with graphs.building(backend), graphs.session_of(backend) as session:
        plan = make_plan(combiner, weighted)
        made = graphs.BACKENDS[backend](plan, {'t': 't'}, tf.train.create_global_step())
        session.run([tf.global_variables_initializer(), made.engine.open()])
        graphs.assign_rows(session, plan, made.tables['t'], rows)
        session.run(made.engine.load())
        reference = ReferenceTable(rows, plan.tables[0].optimizer, combiner)
        for of_cores in WEIGHTED:
            step = Step(generator, of_cores)
            for found, wanted in zip(step.run(session, made), step.run_reference(reference)):
                for name in FEATURES:
                    assert_close(found[name], wanted[name])
        session.run(made.retrieve())
        assert_close(graphs.whole(session, plan, 't', made.tables['t'].rows), reference.rows)


def test_weights_that_no_queue_of_the_stock_engine_has_room_for_are_not_dropped():
    with tf.Graph().as_default():
        made = graphs.stock_backend(
            make_plan('sum', False), {'t': 't'}, tf.train.create_global_step())
        batch = {name: graphs.id_batch([[1]], [[2.]]) for name in FEATURES}
        with pytest.raises(ValueError, match='no weights for feature "first"'):
            made.enqueue(batch, core=0)
