"""Optimizers x options x {div, mod} x hosts x kinds of ids, five steps each, all numbers checked.

The cases of one place are the tables of one plan, in one graph and one session, which starts anew
for each kind of ids. The reference computes a case once, for it knows no topology, and without
accumulation once for every number of cores.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import cases, graphs
from harness.numpy_reference import ReferenceTable, excess
from harness.parts import soak_except

from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, Topology
from estimator_tpu_embedding.hosts import tpu_ops
from estimator_tpu_embedding.ops.ids import IdBatch

pytestmark = pytest.mark.no_rerun
ALL = cases.all_cases()
TOPOLOGIES = [(1, 1), (2, 2), (3, 1), (5, 1)]
# In stock operations graphs are large: two places have all cases, each other one a sixth of them,
# which together are all again. Native kernels give the same bits in every place, as
# backend_test.py shows; without accumulation in every place with as many cores, which take turns.
TAKES_TURNS = [case for case in ALL if not case.optimizer.accumulate]
OF_TPU = [case for case in ALL if type(case.optimizer) in tpu_ops.ALGORITHMS]
PLACES = [
    ('stock', 'div', (1, 1), ALL), ('stock', 'mod', (2, 2), ALL),
    *[('stock', strategy, topology, ALL[number::6]) for number, (strategy, topology) in enumerate(
        [('mod', (1, 1)), ('div', (2, 2)), *itertools.product(['div', 'mod'], TOPOLOGIES[2:])])],
    ('native', 'div', (1, 1), ALL), ('native', 'mod', (3, 1), ALL),
    ('native', 'div', (2, 2), TAKES_TURNS), ('native', 'div', (5, 1), TAKES_TURNS),
    ('native_owners', 'mod', (3, 1), ALL),
    ('native_tasks', 'div', (2, 2), ALL), ('native_cluster', 'mod', (3, 1), ALL),
    ('native_tpu_ops', 'mod', (2, 2), OF_TPU), ('native_tpu_ops', 'div', (1, 1), OF_TPU)]


class Step:
    """What one global step feeds to the tables of one shape."""

    def __init__(self, kind, shape, number):
        generator = np.random.default_rng([list(cases.KINDS).index(kind), *shape, number])
        self.ids = cases.KINDS[kind](generator, shape[0])
        self.weights = {'weighted': cases.weights_of(generator, self.ids['weighted'])}
        # Of one sign in a column: what nearly cancels in a sum has no digits left to compare.
        signs = generator.choice([-1, 1], shape[1])
        self.gradients = {
            name: (signs * generator.uniform(.1, 2, (len(batch), shape[1]))).astype(np.float32)
            for name, batch in self.ids.items()}


@functools.cache
def steps_of(kind, shape):
    return [Step(kind, shape, number) for number in range(cases.STEPS)]


@functools.cache
def expected(kind, number, cores):
    """Rows and slots of a case after all steps, and the activations of the last.

    Those of a case that accumulates are asked for with one core.
    """
    case = ALL[number]
    table = ReferenceTable(case.rows, case.optimizer, case.spec().combiner)
    for at, step in enumerate(steps_of(kind, case.shape)):
        ids = {name: [[case.ids(one) for one in sample] for sample in batch]
               for name, batch in step.ids.items()}
        activations = {name: table.lookup(batch, step.weights.get(name))
                       for name, batch in ids.items()}
        if case.rate is not None:
            table.rate = cases.RATES[at]
        table.update([(ids[name], step.gradients[name] * case.scale, step.weights.get(name))
                      for name in cases.FEATURES], cores)
    return {'rows': table.rows, **table.slots,
            **{f'activations of {name}': values for name, values in activations.items()}}


class Engine:
    """Some cases as one plan in one session, with what it is fed."""

    def __init__(self, backend, strategy, hosts, cores, chosen):
        self.cases = chosen
        self.plan = resolve(
            [case.spec() for case in self.cases],
            [feature for case in self.cases for feature in (
                FeatureSpec(name=f'{case.table}/path', table=case.table,
                            max_sequence_length=cases.LENGTH),
                FeatureSpec(name=f'{case.table}/plain', table=case.table),
                FeatureSpec(name=f'{case.table}/weighted', table=case.table,
                            weight_feature='weights'))],
            Topology(num_hosts=hosts, cores_per_host=cores), batch_size=cases.SAMPLES,
            strategy=strategy)
        step = tf.train.create_global_step()
        self.backend = graphs.BACKENDS[backend](
            self.plan, {case.table: case.table for case in self.cases}, step)
        self.fed = [{shape: self._placeholders(shape) for shape in cases.SHAPES}
                    for _ in range(hosts * cores)]
        self.enqueue = [self.backend.enqueue(self._ids(core), core=core)
                        for core in range(hosts * cores)]
        looked_up = [self.backend.lookup(core=core) for core in range(hosts * cores)]
        update = self.backend.update([receipt for _, receipt in looked_up], [
            {f'{case.table}/{name}': case.scale * fed[case.shape][name, 'gradient']
             for case in self.cases for name in cases.FEATURES} for fed in self.fed])
        with tf.control_dependencies([update]):
            self.update = step.assign_add(1)
        self.activations = [activations for activations, _ in looked_up]
        self.start = tf.global_variables_initializer()
        self.open = [self.backend.engine.open(), self.backend.engine.load()]
        self.retrieve = self.backend.retrieve()
        # Grappler takes longer for a graph of this size than all the rest; what it does to an
        # engine is part of every test that is a job.
        config = tf.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        self.session = graphs.session_of(backend, config)

    def _placeholders(self, shape):
        """By feature and part of it, what one core is fed for tables of one shape."""
        size = self.plan.batch_size_per_core
        fed = {}
        for name in cases.FEATURES:
            kept_apart = [size, cases.LENGTH] if name == 'path' else [size]
            fed[name, 'samples'] = tf.placeholder(tf.int32, [None])
            fed[name, 'ids'] = tf.placeholder(tf.int64, [None])
            fed[name, 'gradient'] = tf.placeholder(tf.float32, [*kept_apart, shape[1]])
        return {**fed, ('weighted', 'weights'): tf.placeholder(tf.float32, [None])}

    def _ids(self, core):
        batches = {}
        for case in self.cases:
            fed = self.fed[core][case.shape]
            for name in cases.FEATURES:
                batches[f'{case.table}/{name}'] = IdBatch(
                    fed[name, 'samples'], case.ids(fed[name, 'ids']),
                    self.plan.batch_size_per_core * (cases.LENGTH if name == 'path' else 1),
                    fed.get((name, 'weights')))
        return batches

    def run(self, kind):
        """Makes all steps from the beginning; gives what `expected` gives, by case number."""
        self.session.run(self.start)
        self.session.run(self.open)
        for number in range(cases.STEPS):
            feeds = self._feeds(kind, number)
            self.session.run(self.enqueue, feeds)
            activations, _ = self.session.run([self.activations, self.update], feeds)
        self.session.run(self.retrieve)
        tables = self.session.run({name: {'rows': table.rows, **table.slots}
                                   for name, table in self.backend.tables.items()})
        return {case.number: {
            **{name: graphs.joined(self.plan, case.table, parts)
               for name, parts in tables[case.table].items()},
            **{f'activations of {name}': np.concatenate([
                core[f'{case.table}/{name}'].reshape(-1, case.shape[1]) for core in activations])
               for name in cases.FEATURES}} for case in self.cases}

    def _feeds(self, kind, number):
        feeds = {}
        for core, of_shapes in enumerate(self.fed):
            for shape, fed in of_shapes.items():
                step = steps_of(kind, shape)[number]
                for (name, part), place in fed.items():
                    own = graphs.split(step.ids[name], len(self.fed))[core]
                    feeds[place] = {
                        'samples': lambda: [at for at, ids in enumerate(own) for _ in ids],
                        'ids': lambda: [one for ids in own for one in ids],
                        'weights': lambda: np.concatenate(graphs.split(
                            step.weights[name], len(self.fed))[core]),
                        'gradient': lambda: np.split(step.gradients[name], len(self.fed))[
                            core].reshape(place.shape)}[part]()
        return feeds


@pytest.mark.timeout(600)
@pytest.mark.parametrize('backend, strategy, topology, chosen', soak_except([
    graphs.of_backend(*place) for place in PLACES], 3, 9))
def test_five_steps_of_every_case_agree_with_the_reference(backend, strategy, topology, chosen):
    wrong = []
    with graphs.building(backend):
        engine = Engine(backend, strategy, *topology, chosen)
        for kind in cases.KINDS:
            found = engine.run(kind)
            for case in chosen:
                wanted = expected(kind, case.number, 1 if case.optimizer.accumulate
                                  else engine.plan.topology.num_cores)
                assert found[case.number].keys() == wanted.keys()
                for name, values in found[case.number].items():
                    times = excess(values, wanted[name])
                    if not times <= 1:
                        wrong.append(f'{case.name}; {kind}; {name} is off by {times:.3g} times '
                                     'what is allowed')
    assert not wrong, '\n'.join(wrong)
