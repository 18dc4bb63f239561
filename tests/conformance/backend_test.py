"""What every backend promises besides what optimizers_test.py checks.

It does not matter where owners are, and little that there are several.
"""

import dataclasses
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

from estimator_tpu_embedding.core.optimizers import (
    Adagrad,
    Adam,
    DynamicRate,
    Ftrl,
    Momentum,
    StochasticGradientDescent,
)
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, Quantization, TableSpec, Topology
from estimator_tpu_embedding.hosts.backend import QUEUE_CAPACITY

pytestmark = pytest.mark.no_rerun
OPTIMIZERS = {  # One of each way to write rows; optimizers_test.py has every one.
    'adagrad': Adagrad(learning_rate=.3, initial_accumulator=.2),
    'adagrad, no accumulation': Adagrad(learning_rate=.3, accumulate=False, decay=.05),
    'adam, not lazy': Adam(learning_rate=.1, use_non_lazy_adam=True, beta1=.7, beta2=.8)}
STEPS = 5


def make_plan(optimizer, topology, strategy, combiner='mean', mode='training'):
    hosts, cores = topology
    return resolve(
        [TableSpec(name='user', vocabulary_size=7, dimension=3, combiner=combiner),
         # Fewer rows than hosts, and one id per sample.
         TableSpec(name='tiny', vocabulary_size=2, dimension=1, combiner=None)],
        [FeatureSpec(name='friend', table='user'), FeatureSpec(name='self', table='user'),
         FeatureSpec(name='side', table='tiny')],
        Topology(num_hosts=hosts, cores_per_host=cores), batch_size=3 * hosts * cores,
        optimizer=optimizer, strategy=strategy, mode=mode)


class Run:
    """One backend in a session, fed with global batches."""

    def __init__(self, backend, plan, **kwargs):
        self.plan = plan
        self.rows = {
            table.name: np.random.default_rng(5).normal(
                size=(table.vocabulary_size, table.dimension)).astype(np.float32)
            for table in plan.tables}
        self.step = tf.train.create_global_step()
        self.backend = graphs.BACKENDS[backend](
            plan, {table.name: table.name for table in plan.tables}, self.step, **kwargs)
        self.tables = self.backend.tables
        cores = range(plan.topology.num_cores)
        self.ids = [graphs.placeholders(plan) for _ in cores]
        self.enqueue = [self.backend.enqueue(self.ids[core], core=core) for core in cores]
        self.looked_up = [self.backend.lookup(core=core) for core in cores]
        self.gradients = [{
            feature.name: tf.placeholder(tf.float32, plan.output_shape(feature))
            for feature in plan.features} for _ in cores]
        self.update = self.backend.update(
            [receipt for _, receipt in self.looked_up], self.gradients
        ) if plan.mode == 'training' else tf.no_op()
        self.session = graphs.session_of(backend)
        self.session.run([tf.global_variables_initializer(), self.backend.engine.open()])
        for name, table in self.tables.items():
            graphs.assign_rows(self.session, plan, table, self.rows[name])
        self.session.run(self.backend.engine.load())

    def __call__(self, batches, gradients, weights={}):
        """One step; returns the activations of the global batch by feature."""
        num_cores, feed = self.plan.topology.num_cores, {}
        for core, ids in enumerate(self.ids):
            for name, batch in batches.items():
                feed.update(graphs.fed(
                    ids[name], graphs.split(batch, num_cores)[core],
                    graphs.split(weights[name], num_cores)[core] if name in weights else None))
        self.session.run(self.enqueue, feed)
        feed = {place: np.split(gradients[name], num_cores)[core].reshape(place.shape)
                for core, places in enumerate(self.gradients)
                for name, place in places.items() if name in gradients}
        values, self.refused = self.session.run(
            [[activations for activations, _ in self.looked_up], self.update], feed)
        return {name: np.concatenate([core[name] for core in values]) for name in batches}

    def state(self):
        """Rows and slots of all tables by checkpoint name, all ids in order."""
        self.session.run(self.backend.retrieve())
        found = {}
        for name, table in self.tables.items():
            found[name] = graphs.whole(self.session, self.plan, name, table.rows)
            for suffix, parts in table.slots.items():
                found[f'{name}/{suffix}'] = graphs.whole(self.session, self.plan, name, parts)
        return found


def random_step(plan, generator):
    size = plan.global_batch_size
    batches = {'friend': graphs.random_samples(generator, size, 7),
               'self': graphs.random_samples(generator, size, 7, most=1),
               'side': [[one] for one in generator.integers(0, 2, size).tolist()]}
    gradients = {feature.name: generator.normal(size=(
        size, plan.table(feature.table).dimension)).astype(np.float32)
        for feature in plan.features}
    return batches, gradients


def reference_of(run):
    return {table.name: ReferenceTable(run.rows[table.name], table.optimizer, table.combiner,
                                       quantization=table.quantization)
            for table in run.plan.tables}


def reference_step(tables, batches, gradients, cores):
    activations = {'friend': tables['user'].lookup(batches['friend']),
                   'self': tables['user'].lookup(batches['self']),
                   'side': tables['tiny'].lookup(batches['side'])}
    tables['user'].update([(batches[name], gradients[name], None)
                           for name in ('friend', 'self')], cores)
    tables['tiny'].update([(batches['side'], gradients['side'], None)], cores)
    return activations


def reference_state(tables):
    return {name if suffix is None else f'{name}/{suffix}': values
            for name, table in tables.items()
            for suffix, values in [(None, table.rows), *table.slots.items()]}


@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
@pytest.mark.parametrize('buckets, lower, upper', [
    (2, -1., .5), (5, -.75, 1.), (1000, -.3, .3), (3, .5, .5), (3, .5, -.5)])
def test_rows_are_rounded_where_they_are_looked_up_and_nowhere_else(
        backend, buckets, lower, upper):
    generator = np.random.default_rng(14)
    quantization = Quantization(num_buckets=buckets, lower=lower, upper=upper)
    plan = make_plan(OPTIMIZERS['adagrad'], (2, 2), 'mod')
    plan = dataclasses.replace(plan, tables=tuple(
        dataclasses.replace(table, quantization=quantization) if table.name == 'user' else table
        for table in plan.tables))
    with graphs.building(backend):
        run = Run(backend, plan)
        reference = reference_of(run)
        for _ in range(2):
            batches, gradients = random_step(plan, generator)
            expected = reference_step(reference, batches, gradients, run.plan.topology.num_cores)
            for name, values in run(batches, gradients).items():
                assert_close(values, expected[name])
        for name, values in run.state().items():
            assert_close(values, reference_state(reference)[name])


@pytest.mark.parametrize('combiner', ['sum', 'mean', 'sqrtn'])
@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
def test_i04_absent_ids_give_exact_zeros_and_touch_no_row(backend, combiner):
    with graphs.building(backend):
        run = Run(backend, make_plan(OPTIMIZERS['adagrad'], (2, 1), 'div', combiner))
        before = run.state()
        nothing = {'friend': [[]] * 6, 'self': [[]] * 6, 'side': [[]] * 6}
        ones = {name: np.ones([6, 1 if name == 'side' else 3], np.float32) for name in nothing}
        for values in run(nothing, ones).values():
            assert (values == 0).all()
        for name, values in run.state().items():
            np.testing.assert_array_equal(values, before[name])


@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
def test_two_runs_are_bit_equal(backend):
    states = []
    for _ in range(2):
        generator = np.random.default_rng(13)
        with graphs.building(backend):
            run = Run(backend, make_plan(OPTIMIZERS['adagrad'], (2, 2), 'mod'))
            for _ in range(STEPS):
                run(*random_step(run.plan, generator))
            states.append(run.state())
    for name in states[0]:
        np.testing.assert_array_equal(states[0][name], states[1][name])


@pytest.mark.parametrize('backend, optimizer', [graphs.of_backend(*one) for one in (
    ('stock', 'adagrad'), ('native', 'adagrad'), ('native', 'adam, not lazy'))])
def test_all_topologies_and_strategies_give_the_same_tables(backend, optimizer):
    """Same global batches; activations may differ in the last bits of sums, rows hardly more.

    Native kernels sum in an order that is the same for all, so there nothing differs.
    """
    # Of one host both strategies are one.
    assert_same_states(backend, [state_after_20_steps(backend, optimizer, *place) for place in (
        ((1, 1), 'div'), ((1, 4), 'mod'), ((2, 2), 'div'), ((2, 2), 'mod'), ((4, 1), 'mod'))])


@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
def test_without_accumulation_the_number_of_cores_shows_but_not_that_of_hosts_nor_div_or_mod(
        backend):
    optimizer = 'adagrad, no accumulation'
    states = [state_after_20_steps(backend, optimizer, *place) for place in (
        ((1, 4), 'mod'), ((2, 2), 'div'), ((2, 2), 'mod'), ((4, 1), 'div'), ((4, 1), 'mod'))]
    assert_same_states(backend, states)
    of_one_core = state_after_20_steps(backend, optimizer, (1, 1), 'div')
    assert np.abs(of_one_core['user'] - states[0]['user']).max() > .01


def state_after_20_steps(backend, optimizer, topology, strategy):
    generator = np.random.default_rng(14)
    with graphs.building(backend):
        run = Run(backend, resolve_for_twelve(optimizer, topology, strategy))
        for _ in range(20):
            run(*random_step(run.plan, generator))
        return run.state()


def assert_same_states(backend, states):
    """In stock operations nearly so."""
    for state in states[1:]:
        for name, values in state.items():
            if backend == 'native':
                np.testing.assert_array_equal(values, states[0][name])
            else:
                np.testing.assert_allclose(values, states[0][name], atol=1e-5)


def resolve_for_twelve(optimizer, topology, strategy):
    """A plan with a global batch of 12, whatever the topology."""
    plan = make_plan(OPTIMIZERS[optimizer], topology, strategy)
    return resolve(plan.tables, plan.features, plan.topology, batch_size=12, strategy=strategy)


@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
@pytest.mark.parametrize('waits_in', ['lookup', 'enqueue'])
def test_closing_ends_a_wait_for_ids(backend, waits_in):
    with graphs.building(backend):
        run = Run(backend, make_plan(None, (1, 1), 'div', mode='inference'))
        ids = {name: graphs.id_batch([[0]] * 3) for name in ('friend', 'self', 'side')}
        wait = run.looked_up[0][0]
        if waits_in == 'enqueue':
            wait = run.backend.enqueue(ids, core=0)
            for _ in range(QUEUE_CAPACITY):
                run.session.run(wait)  # until it is full
        close, ended = run.backend.close(), []

        def wait_for_it():
            try:
                run.session.run(wait)
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError) as error:
                ended.append(error)

        waiting = threading.Thread(target=wait_for_it)
        waiting.start()
        waiting.join(.5)
        assert waiting.is_alive()
        run.session.run(close)
        waiting.join()
        assert len(ended) == 1


LENGTH = 3


SAMPLES = 12


def plan_of_owners(hosts, cores, strategy):
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
        Topology(num_hosts=hosts, cores_per_host=cores), batch_size=SAMPLES, strategy=strategy)


def global_step(plan, generator):
    """Ids, weights and gradients of all samples, by feature."""
    batches, weights, gradients = {}, {}, {}
    for feature in plan.features:
        places = SAMPLES * max(feature.max_sequence_length, 1)
        table = plan.table(feature.table)
        batches[feature.name] = [[0]] * places if feature.table == 'tiny' else (
            graphs.random_samples(generator, places, table.vocabulary_size))
        if feature.weight_feature:
            weights[feature.name] = [generator.uniform(.5, 2, len(ids)).astype(np.float32)
                                     for ids in batches[feature.name]]
        gradients[feature.name] = generator.normal(
            size=(places, table.dimension)).astype(np.float32)
    return batches, weights, gradients


def everything(backend, plan):
    """Activations of each step, then rows and slots, all by name, in the order of ids."""
    generator, found = np.random.default_rng(7), {}
    with graphs.building(backend):
        run = Run(backend, plan)
        following = run.step.assign_add(1)
        for number in range(3):
            batches, weights, gradients = global_step(plan, generator)
            for name, values in run(batches, gradients, weights).items():
                found[f'{name} {number}'] = values
            run.session.run(following)
        return {**found, **run.state()}


@pytest.mark.parametrize('hosts, cores, strategy', soak_except([
    (1, 2, 'div'), (2, 2, 'div'), (2, 2, 'mod'), (3, 1, 'mod')], 2))
def test_owners_on_tasks_give_the_bits_of_owners_in_one_place_and_nearly_those_of_one_engine(
        hosts, cores, strategy):
    plan = plan_of_owners(hosts, cores, strategy)
    owners, tasks = everything('native_owners', plan), everything('native_tasks', plan)
    together = everything('native', plan)
    assert owners.keys() == tasks.keys() == together.keys()
    for name, values in owners.items():
        np.testing.assert_array_equal(tasks[name], values, name)
        np.testing.assert_allclose(together[name], values, rtol=2e-6, atol=2e-6, err_msg=name)


@graphs.needs_native
def test_tables_on_a_disk_give_the_bits_of_tables_in_memory():
    plan = plan_of_owners(2, 2, 'mod')
    memory, disk = everything('native', plan), everything('native_disk', plan)
    assert memory.keys() == disk.keys()
    for name, values in memory.items():
        np.testing.assert_array_equal(disk[name], values, name)


@pytest.mark.parametrize('backend', soak_except(map(graphs.of_backend, (
    'stock', 'native', 'native_owners', 'native_tasks')), 3))
def test_rows_that_a_step_touches_are_counted_once(backend):
    """Whatever core or feature looks a row up, however often, and wherever it is."""
    plan = plan_of_owners(2, 2, 'mod')
    with graphs.building(backend):
        run = Run(backend, plan)
        touched = run.backend.rows_touched([receipt for _, receipt in run.looked_up])
        batches, weights, gradients = global_step(plan, np.random.default_rng(3))
        run.update = run.update, touched
        run(batches, gradients, weights)
        for table in plan.tables:
            assert run.refused[1][table.name] == len({
                one for feature in plan.features_of(table.name)
                for sample in batches[feature.name] for one in sample})


BIG = 2. ** 127  # 2 * BIG overflows.


@pytest.mark.parametrize('bad', [[np.nan, 1.], [-np.inf, 1.], [BIG, BIG]])
@pytest.mark.parametrize('skips', [True, False])
@pytest.mark.parametrize('backend', soak_except(map(graphs.of_backend, (
    'stock', 'native', 'native_owners', 'native_tasks', 'native_cluster')), 2))
def test_what_is_bad_at_one_owner_keeps_the_rows_of_all_owners(backend, skips, bad):
    """Host 1 has id 1 alone; hosts 0 and 2 have nothing but good gradients of ids 0 and 2."""
    plan = resolve([TableSpec(name=name, vocabulary_size=3, dimension=1, combiner='sum')
                    for name in 'tu'],
                   [FeatureSpec(name='f', table='t'), FeatureSpec(name='g', table='u')],
                   Topology(num_hosts=3), strategy='mod', batch_size=SAMPLES,
                   optimizer=StochasticGradientDescent(learning_rate=.5))
    batches = {name: [[1], [1], [0], [2]] * 3 for name in 'fg'}
    good = {name: np.ones([SAMPLES, 1], np.float32) for name in 'fg'}
    with graphs.building(backend):
        run = Run(backend, plan, skips_nonfinite=skips)
        refused = {**good, 'f': np.float32([*bad, *[1.] * 10])[:, None]}
        if skips:
            run(batches, refused)
            assert run.refused.tolist() == [True, False]
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match='E801'):
                run(batches, refused)
        for name, values in run.state().items():
            np.testing.assert_array_equal(values, run.rows[name])
        run(batches, good)
        assert run.refused.tolist() == [False, False]
        for name, values in run.state().items():  # Each core has id 1 twice, the others once.
            assert_close(values[:, 0], run.rows[name][:, 0] - [1.5, 3, 1.5])
