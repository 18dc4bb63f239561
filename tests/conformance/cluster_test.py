"""Laws of owners: it does not matter where they are, and little that there are several."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.parts import soak_except

from estimator_tpu_embedding.core.optimizers import (
    Adagrad,
    Adam,
    Ftrl,
    Momentum,
    StochasticGradientDescent,
)
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.rates import DynamicRate
from estimator_tpu_embedding.core.specs import FeatureSpec, Quantization, TableSpec, Topology
from estimator_tpu_embedding.hosts.pipelined import DelayedBackend

pytestmark = pytest.mark.no_rerun
STEPS, LENGTH, BATCH = 3, 2, 12
ROWS = {'user': 7, 'tiny': 1, 'item': 9, 'rated': 5, 'turns': 6}


def plan_of_all_kinds(hosts, cores, strategy):
    """Each table has another optimizer, and each feature is of another kind."""
    return resolve(
        [TableSpec(name='user', vocabulary_size=7, dimension=5, combiner='mean',
                   optimizer=Adagrad(learning_rate=.3),
                   quantization=Quantization(num_buckets=50, lower=-2., upper=2.)),
         # Fewer rows than hosts, and one id per sample.
         TableSpec(name='tiny', vocabulary_size=1, dimension=1, combiner=None,
                   optimizer=Ftrl(learning_rate=.3)),
         TableSpec(name='item', vocabulary_size=9, dimension=3, combiner='sum',
                   optimizer=Adam(learning_rate=.1, use_non_lazy_adam=True)),
         TableSpec(name='rated', vocabulary_size=5, dimension=3, combiner='sqrtn',
                   optimizer=StochasticGradientDescent(learning_rate=1.),
                   rate=DynamicRate(function=lambda step: .5 / tf.cast(step + 1, tf.float32))),
         TableSpec(name='turns', vocabulary_size=6, dimension=2, combiner='sum',
                   optimizer=Momentum(learning_rate=.1, momentum=.5, accumulate=False))],
        [FeatureSpec(name='friend', table='user'),
         FeatureSpec(name='self', table='user', weight_feature='w'),
         FeatureSpec(name='side', table='tiny'),
         FeatureSpec(name='path', table='item', max_sequence_length=LENGTH),
         FeatureSpec(name='last', table='item'), FeatureSpec(name='stars', table='rated'),
         FeatureSpec(name='turn', table='turns')],
        Topology(num_hosts=hosts, cores_per_host=cores), batch_size=BATCH, strategy=strategy)


def global_step(plan, generator):
    """Ids, weights and gradients of all samples, by feature."""
    batches, weights, gradients = {}, {}, {}
    for feature in plan.features:
        places = BATCH * max(feature.max_sequence_length, 1)
        rows, width = ROWS[feature.table], plan.table(feature.table).dimension
        batches[feature.name] = [[0]] * places if feature.table == 'tiny' else (
            graphs.random_samples(generator, places, rows))
        if feature.weight_feature:
            weights[feature.name] = [generator.uniform(.5, 2, len(ids)).astype(np.float32)
                                     for ids in batches[feature.name]]
        gradients[feature.name] = generator.normal(size=(places, width)).astype(np.float32)
    return batches, weights, gradients


def run(backend, plan, delayed=False):
    """Activations and ids of each step, then rows and slots, all by name, in the order of ids."""
    generator, found = np.random.default_rng(7), {}
    cores = range(plan.topology.num_cores)
    with graphs.building(backend):
        step = tf.train.create_global_step()
        made = graphs.BACKENDS[backend](plan, {name: name for name in ROWS}, step)
        made = DelayedBackend(made.engine, step) if delayed else made
        ids = [graphs.placeholders(plan) for _ in cores]
        enqueue = [made.enqueue(ids[core], core=core) for core in cores]
        looked_up = [made.lookup(core=core) for core in cores]
        places = [{feature.name: tf.placeholder(tf.float32, plan.output_shape(feature))
                   for feature in plan.features} for _ in cores]
        unpacked = [{name: [batch.samples, batch.ids] for name, batch in made.batches(
            receipt).items()} for _, receipt in looked_up]
        update = made.update([receipt for _, receipt in looked_up], places)
        with tf.control_dependencies([update]):
            following = step.assign_add(1)
        with graphs.session_of(backend) as session:
            session.run([tf.global_variables_initializer(), made.engine.open()])
            for name, table in made.tables.items():
                graphs.assign_rows(session, plan, table, np.random.default_rng(5).normal(
                    size=(ROWS[name], table.spec.dimension)))
            session.run(made.engine.load())
            for number in range(STEPS):
                batches, weights, gradients = global_step(plan, generator)
                feed = {}
                for core in cores:
                    for name, samples in batches.items():
                        feed.update(graphs.fed(
                            ids[core][name], graphs.split(samples, len(cores))[core],
                            graphs.split(weights[name], len(cores))[core]
                            if name in weights else None))
                        feed[places[core][name]] = np.split(gradients[name], len(cores))[
                            core].reshape(places[core][name].shape)
                session.run(enqueue, feed)
                activations, of_cores, _ = session.run(
                    [[each for each, _ in looked_up], unpacked, following], feed)
                for name in batches:
                    found[f'{name} {number}'] = np.concatenate([each[name]
                                                                for each in activations])
                    for core in cores:
                        found[f'ids {name} {number} {core}'] = np.stack(of_cores[core][name])
            session.run(made.retrieve())
            for name, table in made.tables.items():
                for suffix, parts in {'rows': table.rows, **table.slots}.items():
                    found[f'{name}/{suffix}'] = graphs.whole(session, plan, name, parts)
    return found


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], name)


PLACES = [(hosts, cores, strategy) for hosts, cores in ((1, 2), (2, 2), (3, 1))
          for strategy in ('div', 'mod')]


@pytest.mark.parametrize('hosts, cores, strategy', soak_except(PLACES, 3))
def test_owners_on_tasks_give_the_bits_of_owners_in_one_place_and_nearly_those_of_one_engine(
        hosts, cores, strategy):
    plan = plan_of_all_kinds(hosts, cores, strategy)
    owners = run('native_owners', plan)
    assert_same_bits(run('native_tasks', plan), owners)
    together = run('native', plan)
    assert together.keys() == owners.keys()
    for name, values in together.items():
        if name.startswith('ids'):  # The ids of a sample are in any order.
            np.testing.assert_array_equal(values[:, np.lexsort(values[::-1])],
                                          owners[name][:, np.lexsort(owners[name][::-1])], name)
        else:
            np.testing.assert_allclose(owners[name], values, rtol=2e-6, atol=2e-6, err_msg=name)


BIG = 2. ** 127  # 2 * BIG overflows.


@pytest.mark.parametrize('bad', ['a gradient', 'a sum'])
@pytest.mark.parametrize('skips', [True, False])
@pytest.mark.parametrize('backend', soak_except(map(graphs.of_backend, (
    'stock', 'native', 'native_owners', 'native_tasks', 'native_cluster')), 2))
def test_what_is_bad_at_one_owner_keeps_the_rows_of_all_owners(backend, skips, bad):
    """Host 1 has id 1 alone; hosts 0 and 2 have nothing but good gradients of ids 0 and 2."""
    plan = resolve([TableSpec(name='t', vocabulary_size=3, dimension=1, combiner='sum'),
                    TableSpec(name='u', vocabulary_size=3, dimension=1, combiner='sum')],
                   [FeatureSpec(name='f', table='t'), FeatureSpec(name='g', table='u')],
                   Topology(num_hosts=3), strategy='mod', batch_size=12,
                   optimizer=StochasticGradientDescent(learning_rate=2.**-100))
    values = [BIG, BIG] if bad == 'a sum' else [np.inf, 1.]
    with graphs.building(backend):
        made = graphs.BACKENDS[backend](plan, {'t': 't', 'u': 'u'},
                                        tf.train.create_global_step(), skips_nonfinite=skips)
        enqueue = [made.enqueue({name: graphs.id_batch([[1], [1], [0], [2]])
                                 for name in ('f', 'g')}, core=core)
                   for core in range(3)]
        looked_up = [made.lookup(core=core) for core in range(3)]
        gradient = tf.placeholder(tf.float32, [4])
        update = made.update([receipt for _, receipt in looked_up], [
            {'f': tf.reshape(gradient if core == 0 else tf.ones([4]), [4, 1]),
             'g': tf.ones([4, 1])} for core in range(3)])
        with graphs.session_of(backend) as session:
            session.run([tf.global_variables_initializer(), made.engine.open()])
            for table in made.tables.values():
                graphs.assign_rows(session, plan, table, np.zeros([3, 1]))
            session.run(made.engine.load())

            def step(first):
                session.run(enqueue)
                return session.run(update, {gradient: [*first, 1., 1.]}).tolist()

            def rows():
                session.run(made.retrieve())
                return {name: graphs.whole(session, plan, name, table.rows)[:, 0].tolist()
                        for name, table in made.tables.items()}

            if skips:
                assert step(values) == [True, False]
            else:
                with pytest.raises(tf.errors.InvalidArgumentError, match='E801'):
                    step(values)
            assert rows() == {'t': [0.] * 3, 'u': [0.] * 3}
            assert step([1., 1.]) == [False, False]
            # Each core has id 1 twice, the others once.
            assert rows() == dict.fromkeys('tu', [-3 * 2.**-100, -6 * 2.**-100, -3 * 2.**-100])
