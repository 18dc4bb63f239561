"""Rows N01 to N08 of the matrix of faults: numbers that are none, and what comes close to it."""

import itertools
import pathlib
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs
from harness.numpy_reference import ReferenceTable

from estimator_tpu_embedding.core import optimizers as o
from estimator_tpu_embedding.core.optimizers import ConstantRate, DynamicRate
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import ConfigError, NonFiniteCheckpointError
from estimator_tpu_embedding.ops import update_rules
from estimator_tpu_embedding.runner import finite_checks
from estimator_tpu_embedding.runner.finite_checks import DivergedError

TABLE = 'dense_features/f_embedding/embedding_weights'
BATCH = {'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32),
         'poison': np.zeros(4, np.float32)}
NAN, INF = float('nan'), float('inf')
TINY = 1e-45
FEATURES = [FeatureSpec(name='f', table='movie')]
DIVIDES = [  # Every rule that divides by what slots and hyper-parameters may make 0.
    o.Adagrad(learning_rate=.5), o.ProximalAdagrad(learning_rate=.5, l1=.1, l2=.1),
    o.AdagradMomentum(learning_rate=.5, momentum=.9, epsilon=TINY),
    o.AdagradMomentum(learning_rate=.5, momentum=.9, epsilon=TINY, exponent=.5),
    o.Adam(learning_rate=.5, epsilon=TINY),
    o.Adam(learning_rate=.5, epsilon=TINY, use_sum_inside_sqrt=False),
    o.Ftrl(learning_rate=.5), o.Ftrl(learning_rate=.5, lr_power=-1.),
    o.Ftrl(learning_rate=.5, multiply_linear_by_lr=True),
    o.RMSProp(learning_rate=.5, rho=.9, momentum=.9, epsilon=0.),
    o.ProximalYogi(learning_rate=.5, epsilon=TINY),
    o.Adadelta(learning_rate=.5, rho=.9, epsilon=0.),
    o.CenteredRMSProp(learning_rate=.5, rho=.9, momentum=.9, epsilon=0.)]


class Job:
    """Ten steps of a model whose loss takes in `poison`, which no gradient depends on."""

    def __init__(self, directory, iterations=1, hooks=(), **kwargs):
        columns = [jobs.embedding('f')]

        def model_fn(features, labels, mode, params):
            poison = features.pop('poison')
            spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
            return spec._replace(loss=spec.loss + tf.reduce_sum(poison),
                                 training_hooks=tuple(hooks), eval_metrics=None)

        self.directory = str(directory)
        self.estimator = jobs.estimator(model_fn, columns, jobs.run_config(
            directory, 1, 1, iterations, **kwargs), batch_size=4)

    def train(self, at=None, hooks=(), **poison):
        """Changes the batch of step `at` as the other arguments say."""
        steps = [{**BATCH, **{name: np.full(4, value, np.float32)
                              for name, value in poison.items()}} if number == at else BATCH
                 for number in range(10)]
        self.estimator.train(jobs.input_fn_of(steps), max_steps=10, hooks=list(hooks))

    def check_is_finite(self, newest):
        """Every checkpoint is, and the newest one is of a step up to `newest`."""
        found = sorted(pathlib.Path(self.directory).glob('model.ckpt-*.index'))
        steps = sorted(int(path.stem.rpartition('-')[2]) for path in found)
        assert steps[-1] <= newest
        for path in found:
            reader = tf.train.load_checkpoint(str(path.with_suffix('')))
            for name in reader.get_variable_to_shape_map():
                assert np.isfinite(reader.get_tensor(name)).all(), (path, name)
        return f'{self.directory}/model.ckpt-{steps[-1]}'


@pytest.mark.parametrize('value, iterations, at, save_steps', [
    (NAN, 1, 0, 1), (NAN, 4, 5, 1), (NAN, 4, 3, 100),
    pytest.param(-INF, 4, 9, 1, id='n02, in the last loop')])
def test_n01_n02_a_loss_that_is_not_finite_ends_training_before_anything_of_it_is_saved(
        tmp_path, caplog, value, iterations, at, save_steps):
    job = Job(tmp_path, iterations, save_checkpoints_steps=save_steps)
    with pytest.raises(tf.train.NanLossDuringTrainingError) as caught:
        job.train(at, poison=value)
    assert isinstance(caught.value, DivergedError) and caught.value.step == at
    newest = job.check_is_finite(at)
    shown = 'NaN' if value != value else str(value)
    assert str(caught.value).startswith(
        f'E803 NaN loss during training: the loss must be finite; got {shown}, at global step '
        f'{at}.')
    assert str(caught.value).endswith(f'The newest checkpoint is {newest}.')
    assert caught.value.checkpoint == newest
    assert f'Model diverged with loss = {shown}.' in caplog.text


@pytest.mark.parametrize('where', ['of the call', 'of the model'])
def test_n01_a_saver_hook_of_the_user_saves_nothing_of_it_either(tmp_path, where):
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    job = Job(tmp_path, 2, hooks=[hook] if where == 'of the model' else [])
    with pytest.raises(DivergedError, match='E803'):
        job.train(4, [hook] if where == 'of the call' else [], poison=NAN)
    job.check_is_finite(4)


def test_n02_an_evaluation_has_whatever_loss_it_has(tmp_path):
    job = Job(tmp_path)
    bad = {**BATCH, 'poison': np.full(4, INF, np.float32)}
    assert job.estimator.evaluate(jobs.input_fn_of([bad]), steps=1)['loss'] == INF


def test_n03_a_gradient_of_a_table_that_is_not_finite_names_it_and_what_is_left(tmp_path):
    job = Job(tmp_path, 2, save_checkpoints_steps=2)
    with pytest.raises(DivergedError) as caught:
        job.train(5, label=NAN)
    assert str(caught.value).startswith(
        'E801 table "tbl_f": the gradients of its rows must be finite; got 6 elements that are '
        'not, at global step 5.')
    assert caught.value.step == 5
    assert caught.value.checkpoint == job.check_is_finite(5) == f'{tmp_path}/model.ckpt-4'


def test_n03_skipping_ends_where_steps_in_a_row_change_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(finite_checks, 'MOST_SKIPPED', 3)
    job = Job(tmp_path, 2, save_checkpoints_steps=2, nonfinite_gradients='skip')
    with pytest.raises(DivergedError, match='E803'):  # The loss of such a step counts as ever.
        job.train(3, label=NAN)
    finite_checks.require_few_skipped(2, 8)
    with pytest.raises(DivergedError, match='E805 .*; got 3, at global step 8'):
        finite_checks.require_few_skipped(3, 8)


@pytest.mark.parametrize('name', [f'{TABLE}/part_0', f'{TABLE}/Adagrad/part_0', 'counts'])
def test_c32_a_row_that_user_code_poisons_between_steps_is_never_saved(tmp_path, name):
    def poison(session):
        if session.run(tf.train.get_global_step(session.graph)) != 6:
            return
        variable, = (one for one in tf.global_variables() if one.op.name == name)
        rows = session.run(variable)
        rows[-1] = NAN  # One that no step looks up.
        variable.load(rows, session)

    class Counts(tf.train.SessionRunHook):
        def begin(self):
            tf.get_variable('counts', [3], initializer=tf.ones_initializer(), trainable=False)

    job = Job(tmp_path, 2, save_checkpoints_steps=2)
    with pytest.raises(DivergedError, match='E620 variable .*newest checkpoint') as caught:
        job.train(hooks=[Counts(), jobs.EveryRun(poison)])
    assert isinstance(caught.value, NonFiniteCheckpointError)
    assert caught.value.checkpoint == job.check_is_finite(6)


def updated(optimizer, slots, gradient, rate=.5):
    """A row of threes after a step: the new row, and its slots by suffix."""
    with tf.Graph().as_default(), tf.Session() as session:
        row, new = session.run(update_rules.update_rows(
            optimizer, tf.constant([[3.]]), tuple(tf.constant([[slot]]) for slot in slots),
            tf.constant([[gradient]]), tf.constant(rate)))
    return row[0, 0], {spec.suffix: value[0, 0] for spec, value in zip(optimizer.slots, new)}


@pytest.mark.parametrize('optimizer', DIVIDES, ids=lambda optimizer: optimizer.field)
def test_n04_slots_of_zero_or_denormal_and_no_gradient_keep_everything_finite(optimizer):
    for slots in itertools.product([0., TINY, 2.**-126], repeat=len(optimizer.slots)):
        row, new = updated(optimizer, slots, TINY)
        assert np.isfinite([row, *new.values()]).all(), slots
    reference = ReferenceTable([[3.]], optimizer, 'sum')
    for slot in reference.slots.values():
        slot[:] = 0.
    reference.update([([[0]], [[0.]], None)])
    row, new = updated(optimizer, [0.] * len(optimizer.slots), 0.)
    assert row == reference.rows[0, 0]
    assert new == {suffix: slot[0, 0] for suffix, slot in reference.slots.items()}


def test_n05_a_rate_of_0_and_a_decay_of_0_are_values_and_nan_is_none():
    for rate in (NAN, -.1):
        with pytest.raises(ConfigError, match='E421'):
            plan_of(ConstantRate(value=rate))
    assert plan_of(None, o.Adagrad(learning_rate=0., decay=0.)).rate('movie').value == 0.
    assert plan_of(ConstantRate(value=0.)).rate('movie').value == 0.
    assert updated(o.Adagrad(learning_rate=.7), [.1], 2., rate=0.)[0] == 3.
    assert updated(o.StochasticGradientDescent(learning_rate=.7, decay=0.), [], 2.)[0] == 2.


def plan_of(rate, optimizer=o.StochasticGradientDescent(learning_rate=.5)):
    table = TableSpec(name='movie', vocabulary_size=3, dimension=1, combiner='sum', rate=rate)
    return resolve([table], FEATURES, Topology(), batch_size=2, optimizer=optimizer)


def one_step(rate_fn):
    """Rows of ones after a step with gradients of ones, in the default graph."""
    plan = plan_of(DynamicRate(function=rate_fn))
    backend = graphs.stock_backend(plan, {'movie': 'movie'}, tf.train.create_global_step())
    enqueue = backend.enqueue({'f': graphs.id_batch([[0], [1]])}, core=0)
    _, receipt = backend.lookup(core=0)
    update = backend.update([receipt], [{'f': tf.ones([2, 1])}])
    rows = backend.tables['movie'].rows
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), backend.engine.open()])
        graphs.assign_rows(session, plan, backend.tables['movie'], np.ones([3, 1]))
        try:
            session.run([enqueue, update])
        finally:
            after = graphs.whole(session, plan, 'movie', rows)
            assert np.isfinite(after).all()
    return after[:, 0].tolist()


def fails(step):
    raise ZeroDivisionError('as asked')


def test_n06_a_rate_function_that_raises_is_named_by_its_table():
    with tf.Graph().as_default(), pytest.raises(ZeroDivisionError, match='as asked') as caught:
        one_step(fails)
    assert caught.value.__notes__ == ['raised by the learning_rate_fn of table "movie"']


def test_n06_a_rate_that_is_no_scalar_is_refused_when_the_graph_is_built():
    with tf.Graph().as_default(), pytest.raises(ConfigError, match=(
            r'E421 table "movie": .*; got a tensor of shape \(1,\)\.  Let learning_rate_fn')):
        one_step(lambda step: tf.constant([.5]))


@pytest.mark.parametrize('rate_fn, text', [
    (lambda step: tf.py_func(fails, [step], tf.float32), 'learning_rate_of/movie.*as asked'),
    (lambda step: tf.placeholder_with_default([.5], None), r'learning_rate_of/movie'),
    (lambda step: tf.cast(step, tf.float32) / 0., 'E421.*table .*movie.*nan, at global step 0')])
def test_n06_a_rate_that_fails_in_a_step_names_the_table_and_writes_nothing(rate_fn, text):
    with tf.Graph().as_default(), pytest.raises(tf.errors.OpError) as caught:
        one_step(rate_fn)
    assert re.search(text, str(caught.value), re.DOTALL)


def test_n08_two_jobs_of_one_seed_and_one_thread_agree_in_every_bit(tmp_path):
    one_thread = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    steps = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 4
    for name in 'ab':
        columns = [jobs.embedding('f')]
        jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
            tmp_path / name, 2, 2, session_config=one_thread), batch_size=4).train(
                jobs.input_fn_of(steps), steps=4)
    a, b = (tf.train.load_checkpoint(str(tmp_path / name)) for name in 'ab')
    assert a.get_variable_to_shape_map() == b.get_variable_to_shape_map()
    for name in a.get_variable_to_shape_map():
        np.testing.assert_array_equal(a.get_tensor(name), b.get_tensor(name), name)
