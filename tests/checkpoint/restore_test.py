"""Rows of a table keep their ids, wherever they were stored: graphs and savers, no estimator."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.checkpoint import restore
from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.manifest import Applied, Manifest, StoredTable
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import Opened
from estimator_tpu_embedding.checkpoint.restore_plan import check_order_of_ids
from estimator_tpu_embedding.checkpoint.saver_builder import default_saver
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import IncompatibleCheckpointError
from estimator_tpu_embedding.proto.codec import Config

pytestmark = pytest.mark.no_rerun
ROWS, WIDTH = 13, 2


def value_of(ids, number=0):
    """A row that only this id of this variable has."""
    return np.stack([1000. * number + ids, -1000. * number - ids], 1).astype(np.float32)


class Job:
    """Tables on some hosts, each row told apart, a dense variable, and a session."""

    def __init__(self, strategy='div', hosts=1, tables=('t',), rows=ROWS, width=WIDTH,
                 slots=('Adagrad',)):
        self.names = [name for table in tables for name in (
            table, *[f'{table}/{slot}' for slot in slots])]
        self.partition = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
        self.tables = {table: StoredTable(rows=rows, width=width, strategy=strategy,
                                          hosts=hosts, slots=slots) for table in tables}
        with tf.Graph().as_default() as self.graph:
            self.parts = {name: list(tf.get_variable(
                name, [rows, width], initializer=tf.constant_initializer(7.), use_resource=True,
                partitioner=tf.fixed_size_partitioner(min(rows, hosts)))) for name in self.names}
            self.dense = tf.get_variable('w', [3], use_resource=True)
            self.start = tf.global_variables_initializer()
            self.saver = default_saver(5, 1e6)
            self.saver.build()
        self.session = tf.Session(graph=self.graph)

    def fill(self):
        self.session.run(self.start)
        with self.graph.as_default():
            for number, (name, parts) in enumerate(self.parts.items()):
                for host, part in enumerate(parts):
                    part.load(value_of(self.partition.ids_on(host), number), self.session)
            self.dense.load([1., 2., 3.], self.session)
        return self

    def save(self, directory, manifest=True, step=3, **changes):
        with self.graph.as_default():
            path = self.saver.save(self.session, str(directory / 'model.ckpt'), step)
        if manifest:
            with open(path + MANIFEST, 'wb') as file:
                file.write(Manifest(step=step, tables=self.tables, created_by='test',
                                    **changes).to_json())
        return path

    def restore(self, path, trains=True, **options):
        """Restores as a run does; gives the facts that it tells."""
        with self.graph.as_default():
            plan = restore.plan_for(Opened.open(path), self.tables, CheckpointOptions(**options),
                                    trains=trains)
            scaffold = restore.scaffold_for(
                tf.train.Scaffold(), path, plan, lambda: self.saver)
            saver = self.restoring = scaffold.saver or self.saver
            saver.build()
            self.graph.finalize()
            saver.restore(self.session, path)
        return plan

    def rows(self, name):
        """The rows of all ids, in order."""
        parts = self.session.run(self.parts[name])
        stored = np.concatenate(parts)
        return stored[self.partition.stored_row(np.arange(len(stored)))]

    def check(self, ids=ROWS, names=None):
        for number, name in enumerate(names or self.names):
            np.testing.assert_array_equal(self.rows(name)[:ids],
                                          value_of(np.arange(ids), number), name)
        assert self.session.run(self.dense).tolist() == [1, 2, 3]


HOSTS = (1, 2, 3, 5)


@pytest.fixture(scope='module')
def stored(tmp_path_factory):
    """Checkpoints by (strategy, hosts)."""
    found = {}
    for strategy in ('div', 'mod'):
        for hosts in HOSTS:
            folder = tmp_path_factory.mktemp(f'{strategy}{hosts}')
            found[strategy, hosts] = Job(strategy, hosts).fill().save(folder)
    return found


@pytest.mark.parametrize('hosts', HOSTS)
@pytest.mark.parametrize('there, here', list(itertools.product(('div', 'mod'), repeat=2)))
def test_c19_c20_c21_rows_keep_their_ids_on_other_hosts_and_with_another_strategy(
        stored, there, here, hosts):
    for before in HOSTS:
        job = Job(here, hosts)
        plan = job.restore(stored[there, before])
        if there == here:
            assert plan.is_plain == (before == hosts)
            assert bool(plan.facts) == (here == 'mod' and before != hosts), plan.facts
        job.check()


def problems_of(job, path, **options):
    """The codes and the text of what is refused; nothing was restored then."""
    with pytest.raises(IncompatibleCheckpointError) as caught:
        job.restore(path, **options)
    with job.graph.as_default(), pytest.raises(tf.errors.FailedPreconditionError):
        job.session.run(job.dense)
    return [problem.code for problem in caught.value.problems], str(caught.value)


@pytest.mark.parametrize('there, assume', [('mod', 'mod:2'), ('div', 'div')])
def test_c20_without_manifest_the_order_of_mod_rows_must_be_said(tmp_path, there, assume):
    path = Job(there, 2).fill().save(tmp_path, manifest=False)
    codes, text = problems_of(Job('mod', 2), path)
    assert codes == ['E608'] and '--assume mod:H' in text
    for strategy, hosts in (('mod', 2), ('mod', 3), ('div', 2)):
        job = Job(strategy, hosts)
        job.restore(path, assume=assume)
        job.check()


@pytest.mark.parametrize('beside', ['before', 'after', 'graph'])
def test_c20_mod_rows_whose_manifest_is_lost_are_not_taken_for_div(tmp_path, beside):
    for step in (2, 3, 4):
        job = Job('mod', 2).fill()
        path = job.save(tmp_path, step=step)
    path = path.removesuffix('4') + '3'
    for step in {'before': (3, 4), 'after': (2, 3), 'graph': (2, 3, 4)}[beside]:
        (tmp_path / f'model.ckpt-{step}.tables.json').unlink()
    sign = f'model.ckpt-{2 if beside == "before" else 4}.tables.json'
    if beside == 'graph':
        sign = 'model.ckpt-3.meta'
        (tmp_path / sign).write_bytes(Config(
            num_hosts=2, sharding_strategy='MOD').SerializeToString())
    for here in (('div', 2), ('mod', 2)):
        codes, text = problems_of(Job(*here), path)
        assert codes == ['E608'] and '--assume mod:2' in text
        assert f'{sign} says mod on 2 hosts' in text
    for check in (restore.plan_without_engine, check_order_of_ids):
        with tf.Graph().as_default(), pytest.raises(
                IncompatibleCheckpointError, match=f'E608 .* its tables .*{sign}'):
            check(Opened.open(path), CheckpointOptions())
    for order in ('mod:2', 'div'):
        job = Job('div', 2)
        job.restore(path, assume=order)
        if order == 'mod:2':
            job.check()


def test_c20_one_that_was_trained_without_a_tpu_after_a_mod_one_is_in_the_order_of_ids(tmp_path):
    for strategy, step in (('mod', 1), ('div', 2), ('div', 3)):
        path = Job(strategy, 2).fill().save(tmp_path, step=step, manifest=step < 3)
    check_order_of_ids(Opened.open(path), CheckpointOptions())
    job = Job('div', 2)
    fact, = job.restore(path).facts
    assert fact.startswith('it has no manifest, and its rows are taken in the order of ids')
    job.check()


@pytest.mark.parametrize('rows, width, remedy', [
    (ROWS + 1, WIDTH, 'If rows were added: --grow t'), (ROWS - 1, WIDTH, 'Use the sizes'),
    (ROWS, 2 * WIDTH, 'Use the sizes'), (2 * ROWS, WIDTH // 2, 'Use the sizes')])
def test_c18_a_table_of_another_shape_is_refused_with_both_shapes_and_a_remedy(
        stored, rows, width, remedy):
    codes, text = problems_of(Job('mod', 2, rows=rows, width=width), stored['mod', 2])
    assert codes == ['E604'] and remedy in text
    assert f'is {[rows, width]} in this job; got [13, 2] in the checkpoint' in text
    if remedy == 'Use the sizes':
        assert problems_of(Job('mod', 2, rows=rows, width=width), stored['mod', 2],
                           grow=['t'])[0] == ['E604']


@pytest.mark.parametrize('there, here', [('div', 'div'), ('mod', 'mod'), ('mod', 'div')])
def test_c18_a_table_grows_where_that_is_asked_for(stored, there, here):
    job = Job(here, 3, rows=ROWS + 4)
    plan = job.restore(stored[there, 2], grow=['t'])
    assert 'rows 13 to 16 of "t" are new' in plan.facts
    job.check()
    for name in ('t', 't/Adagrad'):
        assert (job.rows(name)[ROWS:] == 7).all()
    job = Job(here, 2)  # Started again with the same options when it is done.
    job.restore(stored[here, 2], grow=['t'])
    job.check()


def test_c22_a_table_that_is_new_begins_with_initial_values_and_is_reported(stored):
    job = Job('mod', 2, tables=('t', 'new'))
    plan = job.restore(stored['mod', 2])
    assert plan.facts == ('table "new" is not there and begins with initial values',)
    job.check(names=['t', 't/Adagrad'])
    assert (job.rows('new') == 7).all() and (job.rows('new/Adagrad') == 7).all()


def test_c22_a_table_that_is_gone_is_refused_unless_it_is_dropped(tmp_path):
    path = Job('mod', 2, tables=('t', 'scope/old')).fill().save(tmp_path)
    codes, text = problems_of(Job('mod', 3), path)
    assert codes == ['E632'] and '--drop scope/old' in text
    for options in ({'drop': ['scope/old']}, {'drop': ['old']}, {'trains': False}):
        job = Job('mod', 3)
        job.restore(path, **options)
        job.check()
    codes, text = problems_of(Job('mod', 3), path, drop=['odl'])
    assert codes == ['E632', 'E630'] and 'Similar names there: "scope/old"' in text
    job = Job('mod', 3)  # Started again with the same options when it is done.
    job.restore(Job('mod', 2).fill().save(tmp_path, step=4), drop=['old'])
    job.check()


def test_c22_a_table_that_was_renamed_is_found_by_shape_and_slots(stored, tmp_path):
    codes, text = problems_of(Job('div', 3, tables=('user',)), stored['mod', 2])
    assert codes == ['E632'] and 'If it was renamed: --rename t=user.' in text
    codes, text = problems_of(Job('div', 3, tables=('user',)), stored['mod', 2], trains=False)
    assert codes == ['E606'] and 'If it was renamed: --rename t=user.' in text
    job = Job('div', 3, tables=('user',))
    plan = job.restore(stored['mod', 2], rename={'t': 'user'})
    assert plan.facts[0] == 'table "user" is "t" there'
    job.check()
    again = Job('div', 2, tables=('user',))  # With the same options when it is done.
    again.restore(job.save(tmp_path), rename={'t': 'user'})
    again.check()


def test_c22_tables_may_swap_names(tmp_path):
    path = Job('mod', 2, tables=('a', 'b')).fill().save(tmp_path)
    job = Job('mod', 3, tables=('b', 'a'))
    job.restore(path, rename={'a': 'b', 'b': 'a'})
    job.check()


@pytest.mark.parametrize('trains', [True, False])
@pytest.mark.parametrize('rename', [{'a': 'b', 'b': 'a'}, {'a': 'b'}])
def test_c22_tables_that_were_renamed_are_not_renamed_again(tmp_path, rename, trains):
    # The second job has a new table "a".
    path = Job('mod', 2, tables=('a', 'b')).fill().save(tmp_path, applied=Applied(rename=rename))
    job = Job('mod', 3, tables=('a', 'b'))
    plan = job.restore(path, rename=rename, trains=trains, grow=['a'])
    assert ('rename a=b was done before it was saved' in plan.facts) == trains
    job.check()
    with tf.Graph().as_default():
        variable = tf.get_variable('b', [ROWS, WIDTH])
        plan = restore.plan_without_engine(Opened.open(path), CheckpointOptions(rename=rename))
        assert plan.streamed['b'].tensor == variable.op.name


@pytest.mark.parametrize('manifest', [True, False])
def test_c23_slots_of_another_optimizer_are_refused_or_begin_anew(tmp_path, manifest):
    path = Job('div', 2, slots=('Adagrad',)).fill().save(tmp_path, manifest)
    codes, text = problems_of(Job('div', 2, slots=('Adam/m', 'Adam/v')), path)
    assert codes == ['E631'] and '--reset-slots t' in text
    assert 'slots "Adam/m", "Adam/v" of table "t"' in text and 'got "t/Adagrad" in' in text
    job = Job('div', 3, slots=('Adam/m', 'Adam/v'))
    plan = job.restore(path, reset_slots=['t'])
    assert 'the slots of "t" begin with initial values' in plan.facts
    job.check(names=['t'])
    assert (job.rows('t/Adam/m') == 7).all() and (job.rows('t/Adam/v') == 7).all()


def test_c23_slots_that_are_only_called_otherwise_without_a_tpu_are_taken(tmp_path):
    path = Job('div', 1, slots=('Adam', 'Adam_1')).fill().save(tmp_path, manifest=False)
    job = Job('div', 2, slots=('Adam/m', 'Adam/v'))
    plan = job.restore(path)
    assert plan.facts[1:] == ('the slots of "t" are "t/Adam", "t/Adam_1" there',)
    job.check()


def test_a_saver_of_the_user_restores_what_it_can_and_rows_get_their_places_after_it(
        stored, tmp_path):
    for there, here, wraps in ((('div', 2), ('div', 3), False), (('mod', 2), ('mod', 3), True)):
        job = Job(*here)
        with job.graph.as_default():
            theirs = tf.train.Saver([*job.parts['t'], *job.parts['t/Adagrad'], job.dense])
            plan = restore.plan_for(Opened.open(stored[there]), job.tables, CheckpointOptions(),
                                    trains=True)
            given = tf.train.Scaffold(saver=theirs)
            scaffold = restore.scaffold_for(given, stored[there], plan, None)
            assert (scaffold is given, scaffold.saver is not theirs) == (True, wraps)
            scaffold.saver.build()
            scaffold.saver.restore(job.session, stored[there])
        job.check()
    job = Job('div', 2, rows=ROWS + 1)
    with job.graph.as_default():
        plan = restore.plan_for(Opened.open(stored['div', 2]), job.tables,
                                CheckpointOptions(grow=['t']), trains=True)
        with pytest.raises(IncompatibleCheckpointError, match='E633 scaffold: .*"t", "t/Adagrad"'):
            restore.scaffold_for(tf.train.Scaffold(saver=tf.train.Saver()), stored['div', 2],
                                 plan, None)
        with pytest.raises(IncompatibleCheckpointError, match='E609 scaffold: its saver must'):
            restore.scaffold_for(tf.train.Scaffold(saver=tf.train.Checkpoint()),
                                 stored['div', 2], plan, None)


@pytest.mark.parametrize('use_resource', [True, False])
def test_variables_of_a_graph_without_the_engine_get_rows_in_the_order_of_ids(
        stored, use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable('t', [ROWS, WIDTH], use_resource=use_resource)
        tf.get_variable('other', [1], use_resource=True, initializer=tf.zeros_initializer())
        plan = restore.plan_without_engine(Opened.open(stored['mod', 3]), CheckpointOptions())
        theirs = tf.train.Saver([table])
        saver = restore.scaffold_for(
            tf.train.Scaffold(saver=theirs), stored['mod', 3], plan, None).saver
        saver.build()
        saver.restore(session, stored['mod', 3])
        np.testing.assert_array_equal(session.run(table), value_of(np.arange(ROWS)))


def test_a_variable_in_other_parts_than_those_of_hosts_is_refused(stored):
    with tf.Graph().as_default():
        tf.get_variable('t', [ROWS, WIDTH], use_resource=True,
                        partitioner=tf.fixed_size_partitioner(2, axis=1))
        plan = restore.plan_without_engine(Opened.open(stored['mod', 3]), CheckpointOptions())
        scaffold = restore.scaffold_for(tf.train.Scaffold(), stored['mod', 3], plan,
                                        restore.saver_of_all)
        with pytest.raises(IncompatibleCheckpointError, match='E609 table "t": its parts must be'):
            scaffold.saver.build()
