"""The raw `TPUEmbedding` in loops of a session, as TF1 programs wrote them by hand."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, legacy_api
from harness.graphs import enqueue_data
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except
from harness.processes import run_python
from tensorflow.python.tpu import training_loop

from estimator_tpu_embedding import _tf, defaults
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import ConfigError, UnsupportedError
from estimator_tpu_embedding.estimator import tf_tpu, tpu_embedding_gradient
from estimator_tpu_embedding.estimator.tf_tpu import CrossShardOptimizer
from estimator_tpu_embedding.runner.root_cause import typed

SGD = legacy_api.StochasticGradientDescentParameters(1.)


@pytest.fixture(autouse=True)
def replicas(monkeypatch):
    """A graph in which `tf.tpu.shard` makes replicas, as after `install()`."""
    monkeypatch.setattr(_tf.modules_of_contrib()['tpu'], 'split_compile_and_replicate',
                        tf_tpu.split_compile_and_replicate)
    with tf.Graph().as_default():
        yield


def embedding(tables=None, features=None, by=SGD, hosts=1, cores=1, batch_size=4, **kwargs):
    """One table `t` of 5 rows of width 1 and a feature `f`, unless told otherwise."""
    return legacy_api.TPUEmbedding(
        tables or {'t': legacy_api.TableConfig(5, 1, tf.zeros_initializer(), combiner='sum')},
        features or {'f': legacy_api.FeatureConfig('t')}, batch_size,
        kwargs.pop('mode', legacy_api.TRAINING), optimization_parameters=by,
        device_config=legacy_api.DeviceConfig(hosts, hosts * cores, '/job:worker'), **kwargs)


def started(load=None):
    """A session in which all variables have their values."""
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run(load() if load else [])
    return session


def activations_of(made, *enqueue, **kwargs):
    """What one core looks up in a table whose row `i` is `[i + 1]`."""
    variables = made.create_variables_and_ops()
    ops = made.generate_enqueue_ops(*enqueue, **kwargs)
    activations = made.get_activations()
    with started() as session:
        rows = variables.embedding_variables_by_table['t'][0]
        rows.load(np.arange(1., 6.)[:, np.newaxis], session)
        try:
            session.run(ops)
            return session.run(activations)
        except tf.errors.OpError as error:
            raise typed(error) from None


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
@pytest.mark.parametrize('hosts, cores, accumulate', soak_except(
    [(1, 1, True), (2, 2, True), (3, 1, True), (2, 2, False)], 1))
def test_the_loop_of_the_documentation_gives_the_numbers_of_the_reference(
        hosts, cores, accumulate, strategy):
    batch_size, generator = 12, np.random.default_rng(3)
    made = embedding(
        {'user': legacy_api.TableConfig(7, 3, combiner='mean'),
         'item': legacy_api.TableConfig(2, 1, combiner='sum')},  # fewer rows than 3 hosts
        {'viewer': legacy_api.FeatureConfig('user'), 'author': legacy_api.FeatureConfig('user'),
         'watched': legacy_api.FeatureConfig('item')},
        legacy_api.AdamParameters(.1, use_gradient_accumulation=accumulate), hosts, cores,
        batch_size, partition_strategy=strategy)
    tables = {'viewer': 'user', 'author': 'user', 'watched': 'item'}
    steps = [{feature: graphs.random_samples(generator, batch_size, 7 if table == 'user' else 2)
              for feature, table in tables.items()} for _ in range(3)]

    def of_core(batch, core):
        return {feature: enqueue_data(graphs.split(samples, hosts * cores)[core])
                for feature, samples in batch.items()}

    enqueues = [made.generate_enqueue_ops([of_core(batch, core) for core in range(hosts * cores)])
                for batch in steps]
    variables = made.create_variables_and_ops()

    def computation():
        activations = made.get_activations()
        loss = tf.add_n([tf.reduce_mean(tf.reduce_sum(value**2, 1))
                         for value in activations.values()])
        optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.))
        gradients = tpu_embedding_gradient.get_gradients_through_compute_gradients(
            optimizer, loss, activations)
        with tf.control_dependencies([made.generate_send_gradients_op(gradients)]):
            return tf.reshape(loss, [1])

    losses = tf.tpu.shard(computation, num_shards=hosts * cores)
    with started(load=variables.load_ops) as session:
        by_table = variables.embedding_variables_by_table
        first = {table: graphs.whole(session, made.plan, table, by_table[table][:rows])
                 for table, rows in (('user', 7), ('item', 2))}
        for enqueue in enqueues:
            session.run(enqueue)
            assert len(session.run(losses)[0]) == hosts * cores
        session.run(variables.retrieve_ops())
        after = {table: graphs.whole(session, made.plan, table, by_table[table][:rows])
                 for table, rows in (('user', 7), ('item', 2))}
        moments = graphs.whole(session, made.plan, 'user',
                               variables.slot_variables_by_table['user'].v)
    reference = {table.name: ReferenceTable(first[table.name], table.optimizer, table.combiner)
                 for table in made.plan.tables}
    for batch in steps:
        # The loss of a core is the mean over its samples, divided by the number of cores.
        gradients = {feature: 2 * reference[table].lookup(batch[feature]) / batch_size
                     for feature, table in tables.items()}
        for table, one in reference.items():
            one.update([(batch[feature], gradients[feature], None)
                        for feature, own in tables.items() if own == table], hosts * cores)
    for table in after:
        assert_close(after[table], reference[table].rows)
    assert_close(moments, reference['user'].slots['Adam/v'])


def test_every_host_has_a_variable_and_hosts_without_rows_a_local_dummy():
    made = embedding({'t': legacy_api.TableConfig(1, 4)}, by=legacy_api.AdamParameters(.1),
                     hosts=2, cores=2)
    with tf.variable_scope('s'):
        variables = made.create_variables_and_ops(
            {'t': 'weights'}, {'t': legacy_api.AdamSlotVariableNames('first', 'second')})
    assert [each.op.name for each in variables.embedding_variables_by_table['t']] == [
        's/weights/part_0', 'dummy_1_s/weights']
    slots = variables.slot_variables_by_table['t']
    assert [[each.op.name for each in field] for field in (slots.m, slots.v)] == [
        ['s/first/part_0', 'dummy_1_s/first'], ['s/second/part_0', 'dummy_1_s/second']]
    assert {each.op.name for each in tf.local_variables()} == {
        'dummy_1_s/weights', 'dummy_1_s/first', 'dummy_1_s/second'}
    assert len(variables.load_ops()) == len(variables.retrieve_ops()) == 2


def test_slots_are_called_after_the_table_and_sgd_has_none():
    made = embedding(
        {'a': legacy_api.TableConfig(5, 1), 'b': legacy_api.TableConfig(
            5, 1, optimization_parameters=legacy_api.FtrlParameters(.1))},
        {'f': legacy_api.FeatureConfig('a'), 'g': legacy_api.FeatureConfig('b')})
    slots = made.create_variables_and_ops({'a': 'x', 'b': 'y'}).slot_variables_by_table
    assert slots['a'] is None
    assert [slots['b'].accumulator[0].op.name, slots['b'].linear[0].op.name] == [
        'b/Ftrl/part_0', 'b/Ftrl_1/part_0']


def test_a_saver_hands_slots_through_an_inference(tmp_path):
    names = {'t': legacy_api.AdagradSlotVariableNames('sums')}

    def made(mode):
        return embedding({'t': legacy_api.TableConfig(
            5, 1, tf.zeros_initializer(), combiner='sum',
            optimization_parameters=legacy_api.AdagradParameters(2., 12.))}, by=None, mode=mode)

    train = made(legacy_api.TRAINING)
    train.create_variables_and_ops({'t': 'rows'}, names)
    ops = train.generate_enqueue_ops([{'f': enqueue_data([[1], [], [], []])}])
    value = train.get_activations()['f']
    send = train.generate_send_gradients_op({'f': tf.fill(tf.shape(value), 2.)})
    with started() as session:
        session.run(ops)
        session.run(send)  # The sum of row 1 becomes 12 + 2 * 2, the row -2 * 2 / 4.
        tf.train.Saver().save(session, str(tmp_path / 'trained'))
    with tf.Graph().as_default():
        infer = made(legacy_api.INFERENCE)
        variables = infer.create_variables_and_ops({'t': 'rows'}, names)
        ops = infer.generate_enqueue_ops([{'f': enqueue_data([[1], [0], [], []])}])
        value = infer.get_activations()['f']
        saver = tf.train.Saver()
        with tf.Session() as session:
            saver.restore(session, str(tmp_path / 'trained'))
            session.run([variables.load_ops(), ops])
            np.testing.assert_array_equal(session.run(value)[:, 0], [-1, 0, 0, 0])
            session.run(variables.retrieve_ops())
            assert session.run(variables.slot_variables_by_table['t'].accumulator[0]
                               )[:, 0].tolist() == [12, 16, 12, 12, 12]
            saver.save(session, str(tmp_path / 'again'))
    first, second = (tf.train.load_checkpoint(str(tmp_path / name))
                     for name in ('trained', 'again'))
    assert first.get_variable_to_shape_map() == second.get_variable_to_shape_map() == {
        'rows': [5, 1], 'sums': [5, 1]}
    for name in ('rows', 'sums'):
        np.testing.assert_array_equal(first.get_tensor(name), second.get_tensor(name))


@pytest.mark.parametrize('names', [
    None, ('first', 'second'), legacy_api.AdagradSlotVariableNames('sums'),
    legacy_api.AdamSlotVariableNames('first', None)])
def test_names_of_other_slots_than_those_of_the_optimizer_are_refused(names):
    made = embedding({'t': legacy_api.TableConfig(
        5, 1, optimization_parameters=legacy_api.AdamParameters(.1))}, by=None)
    with pytest.raises(ConfigError, match=r'E927 .*\["t"\]: it must name the slots of adam: "m", '
                                          r'"v"; got .* AdamSlotVariableNames'):
        made.create_variables_and_ops(slot_variable_names_by_table={'t': names})


@pytest.mark.parametrize('given, ragged, expected', [
    (lambda: enqueue_data([[0, 1], [], [4], [2]], [1., 2., 3., .5]), False, [5, 0, 15, 1.5]),
    # The k-th id belongs to sample k.
    (lambda: legacy_api.EnqueueData(tf.constant([3, 2, 1, 0])), False, [4, 3, 2, 1]),
    (lambda: legacy_api.EnqueueData(tf.constant([3, 2, 1, 0]), tf.zeros([4, 1], tf.int64)),
     False, [4, 3, 2, 1]),
    (lambda: legacy_api.EnqueueData.from_sparse_tensor(tf.SparseTensor(
        [[2, 0], [0, 5], [2, 9]], [1, 2, 3], [4, 10])), False, [3, 0, 6, 0]),
    (lambda: legacy_api.RaggedEnqueueData(tf.constant([0, 1, 4, 2]), tf.constant([0, 2, 2, 3, 4]),
                                          tf.constant([1., 2., 3., .5], tf.float64)),
     True, [5, 0, 15, 1.5]),
    (lambda: legacy_api.RaggedEnqueueData(tf.constant([3, 2, 1, 0])), True, [4, 3, 2, 1])])
def test_ids_of_every_form_are_summed_per_sample(given, ragged, expected):
    found = activations_of(embedding(), [{'f': given()}], ragged=ragged)
    np.testing.assert_allclose(found['f'][:, 0], expected)


def test_a_sequence_has_places_and_is_cut_to_its_length():
    # Places 0, 2 and 3 of sample 0, place 1 of sample 1; only the session knows the shape.
    given = legacy_api.EnqueueData(tf.constant([0, 1, 2, 3]), tf.placeholder_with_default(
        np.int64([[0, 0], [0, 2], [0, 3], [1, 1]]), [None, None]))
    found = activations_of(embedding(
        features={'f': legacy_api.FeatureConfig('t', max_sequence_length=3)}, batch_size=2),
        [{'f': given}])
    np.testing.assert_allclose(found['f'][..., 0], [[1, 0, 2], [0, 4, 0]])


@pytest.mark.parametrize('given, code', [
    (lambda: enqueue_data([[9], [], [], []]), 'E501'),
    (lambda: enqueue_data([[0], [], [], [], [1]]), 'E511'),
    (lambda: legacy_api.EnqueueData(tf.constant([1]), tf.constant([[-1, 0]], tf.int64)), 'E511'),
    (lambda: legacy_api.EnqueueData(tf.constant([1, 2, 3])), 'E511'),
    (lambda: legacy_api.EnqueueData(tf.constant([1]), tf.constant([0], tf.int64)), 'E511'),
    (lambda: enqueue_data([[0, 1], [], [], []], [1.]), 'E518'),
    (lambda: enqueue_data([[0], [], [], []], [float('nan')]), 'E518'),
    (lambda: legacy_api.EnqueueData(
        tf.constant([1, 2]), tf.constant([[0, 0], [1, 0]], tf.int64),
        tf.placeholder_with_default([1.], [None])), 'E518'),
    (lambda: legacy_api.EnqueueData(tf.constant([1.]), tf.constant([[0, 0]], tf.int64)), 'E510')])
def test_ids_that_cannot_be_are_told_with_their_feature_and_core(given, code):
    with pytest.raises(Exception, match=f'{code} feature "f" on core 0: '):
        activations_of(embedding(), [{'f': given()}])


def test_a_policy_for_ids_out_of_range_holds_here_too_and_is_told(capfd, monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults(id_policy='drop'))
    found = activations_of(embedding(), [{'f': enqueue_data([[0, 9], [], [7], [1]])}])
    np.testing.assert_allclose(found['f'][:, 0], [1, 0, 0, 2])
    assert 'feature "f" on core 0: 2 ids out of range; policy "drop"' in capfd.readouterr().err


def trained(made, steps, ids_come_first=True, **send):
    """Activations of row 0 and its value at the end, when every gradient is 1."""
    ids = [{'f': enqueue_data([[0], [], [], []])}]
    ops = made.generate_enqueue_ops(ids) if ids_come_first else None
    variables = made.create_variables_and_ops()
    ops = ops or made.generate_enqueue_ops(ids)
    activations = made.get_activations()
    update = made.generate_send_gradients_op({'f': tf.ones_like(activations['f'])}, **send)
    retrieve = variables.retrieve_ops()
    with started() as session:
        seen = []
        for _ in range(steps):
            session.run(ops)
            value, _ = session.run([activations['f'], update])
            seen.append(value[0, 0])
        session.run(retrieve)
        row = session.run(variables.embedding_variables_by_table['t'][0])[0, 0]
    return seen, row


@pytest.mark.parametrize('ids_come_first', [True, False])
def test_pipelined_a_step_lacks_the_update_before_it_and_retrieve_lacks_none(ids_come_first):
    made = embedding(pipeline_execution_with_tensor_core=True)
    assert trained(made, 3, ids_come_first) == ([0, 0, -1], -3)


@pytest.mark.parametrize('pipelined, expected', [(False, [0, -2, -4]), (True, [0, 0, -2])])
def test_rates_are_functions_of_the_step_that_is_sent(pipelined, expected):
    made = embedding({'t': legacy_api.TableConfig(
        5, 1, tf.zeros_initializer(), combiner='sum',
        learning_rate_fn=lambda step: tf.cast(step, tf.float32))},
        pipeline_execution_with_tensor_core=pipelined)
    assert trained(made, 3, step=tf.constant(2)) == (expected, -6)


def test_dummy_variables_catch_the_gradients_of_an_optimizer_that_minimizes():
    made = embedding({'t': legacy_api.TableConfig(5, 1, combiner='sum'),
                      'unused': legacy_api.TableConfig(5, 1)},
                     {'f': legacy_api.FeatureConfig('t'), 'g': legacy_api.FeatureConfig('unused')},
                     cores=2, batch_size=4)
    made.create_variables_and_ops()
    ops = made.generate_enqueue_ops([
        {'f': enqueue_data([[core], []]), 'g': enqueue_data([[], []])} for core in range(2)])

    def computation():
        dummies, initializer = tpu_embedding_gradient.create_dummy_table_variables(made)
        activations = tpu_embedding_gradient.hook_dummy_table_variables_to_activations(
            made, made.get_activations(), dummies)
        weight = tf.get_variable('weight', [], initializer=tf.ones_initializer())
        loss = 3 * weight * tf.reduce_sum(activations['f'])
        optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.))
        train_op = optimizer.minimize(loss)
        gradients = tpu_embedding_gradient.get_gradients_through_dummy_table_variables(made)
        assert list(gradients) == ['f', 'g']
        with tf.control_dependencies([train_op]):
            return [tf.identity(gradients['f']), tf.identity(gradients['g'])]

    both = tf.tpu.shard(computation, num_shards=2)
    initializer = tf.get_default_graph().get_operation_by_name(
        'tpu_embedding_dummy_table_variables_init')
    names = [each.op.name for each in tf.get_collection('tpu_embedding_dummy_table_variables')]
    assert names == [f'tpu_embedding_dummy_table_variable_{table}' for table in ('t', 'unused')]
    assert not {*names} & {each.op.name for each in tf.global_variables()}
    with started() as session:
        session.run(initializer)
        session.run(ops)
        of_f, of_g = session.run(both)
    np.testing.assert_allclose(of_f, np.full([4, 1], 3 / 2))  # the mean of replicas
    np.testing.assert_allclose(of_g, np.zeros([4, 1]))


def test_training_and_evaluation_may_be_two_computations_of_one_graph():
    made = embedding(cores=2)
    made.create_variables_and_ops()
    ops = made.generate_enqueue_ops([{'f': enqueue_data([[row], []])} for row in (0, 1)])

    def train():
        with tf.variable_scope('m', reuse=tf.AUTO_REUSE):
            bias = tf.get_variable('bias', [], initializer=tf.zeros_initializer())
        value = made.get_activations()['f'] + bias
        optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.))
        send = made.generate_send_gradients_op({'f': tf.ones_like(value)})
        return [optimizer.minimize(tf.reduce_sum(value)), send]

    def evaluate():
        with tf.variable_scope('m', reuse=True):
            return made.get_activations()['f'] + tf.get_variable('bias', [])

    step = tf.tpu.shard(train, num_shards=2)
    value = tf.tpu.shard(evaluate, num_shards=2)
    assert [each.op.name for each in tf.trainable_variables()] == ['m/bias']
    with started() as session:
        session.run(ops)
        session.run(step)
        session.run(ops)
        # Rows 0 and 1 went from 0 to -1, the bias to minus the mean over cores of 2 samples.
        np.testing.assert_allclose(session.run(value)[0][:, 0], [-3, -2, -3, -2])


def test_a_loop_within_the_graph_trains_on_one_core():
    made = embedding()
    ops = made.generate_enqueue_ops([{'f': enqueue_data([[0], [], [], []])}])
    variables = made.create_variables_and_ops()

    def step(total):
        value = made.get_activations()['f']
        send = made.generate_send_gradients_op({'f': tf.ones_like(value)})
        with tf.control_dependencies([send]):
            return total + value[0, 0]

    total, = tf.tpu.rewrite(lambda: training_loop.repeat(2, step, [0.]))
    with started() as session:
        session.run(ops)
        session.run(ops)
        assert session.run(total) == -1  # 0, then -1
        assert session.run(variables.embedding_variables_by_table['t'][0])[0, 0] == -2


def test_look_ups_say_what_they_lack():
    made = embedding(cores=2)
    with pytest.raises(ConfigError, match='E464 .* the variables of the tables must exist'):
        tf.tpu.shard(made.get_activations, num_shards=2)
    with tf.Graph().as_default():
        made.create_variables_and_ops()
        with pytest.raises(ConfigError, match='E465 .* 2 replicas, one per core; got 1'):
            made.get_activations()
        with pytest.raises(ConfigError, match='E466 .* must follow get_activations'):
            tf.tpu.shard(lambda: made.generate_send_gradients_op(
                {'f': tf.zeros([2, 1])}), num_shards=2)
        with pytest.raises(ConfigError, match='E467 .* the dummy variables must exist'):
            tpu_embedding_gradient.get_gradients_through_dummy_table_variables(made)
        with pytest.raises(ValueError, match='at most 2 entries, one per core; got 3'):
            made.generate_enqueue_ops([{'f': enqueue_data([[]])}] * 3)
        with pytest.raises(ValueError, match='Unsupported value bogus specified for mode_over'):
            made.generate_enqueue_ops([{'f': enqueue_data([[]])}], mode_override='bogus')


def test_verbs_and_replicas_need_a_graph():
    done = run_python('-c', '''
import estimator_tpu_embedding
estimator_tpu_embedding.install()
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_embedding as te
made = te.TPUEmbedding({"t": te.TableConfig(5, 1)}, {"f": te.FeatureConfig("t")}, 4,
                       te.INFERENCE, master="")
for call in (made.create_variables_and_ops, made.get_activations,
             lambda: tf.tpu.shard(lambda: tf.constant([1]), num_shards=1)):
    try:
        call()
    except estimator_tpu_embedding.UnsupportedError as error:
        print(error)
''', loaded=True)
    lines = done.stdout.splitlines()
    assert [line.partition(':')[0] for line in lines] == [
        'E917 TPUEmbedding', 'E917 TPUEmbedding', 'E917 tf.tpu.replicate']
    assert all('need a graph; got eager execution' in line for line in lines)


def test_an_infeed_queue_is_refused():
    with pytest.raises(UnsupportedError, match='E920 tf.tpu.shard: infeed_queue is not supported'):
        tf.tpu.rewrite(lambda: tf.constant([1]), infeed_queue=object())
