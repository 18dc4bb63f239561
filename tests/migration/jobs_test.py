"""A job of TF1 becomes one of TF2 and comes back: its numbers are those of the job that stayed."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, replicas
from harness import migrated_checkpoints as migrated
from harness.parts import soak_except

import estimator_tpu_embedding as ete

api = tf.compat.v2.tpu.experimental.embedding
ROWS, SAMPLES = 10, 6
TABLE = 'dense_features/a_embedding/embedding_weights'
OPTIMIZERS = {
    'sgd': (ete.StochasticGradientDescentParameters(.1), api.SGD(.1)),
    'adagrad': (ete.AdagradParameters(.1), api.Adagrad(.1, .1)),
    'ftrl': (ete.FtrlParameters(.1), api.FTRL(.1)),
    'adam': (ete.AdamParameters(.1, epsilon=1e-3), api.Adam(.1, epsilon=1e-3))}
CASES = soak_except([*OPTIMIZERS], 3)
THERE = 're w/(.*) -> model/\\1'
BACK = f're model/(.*) -> w/\\1\ntbl_a -> {TABLE}'
OF_TF1 = 'drop re beta._power\ndrop re tpu_embedding_dummy_table_variable_.*'
POWERS = '\npower beta1_power 0.9\npower beta2_power 0.999'


def batch(step):
    """Ids and labels of the samples of a step."""
    return {'a': (np.arange(SAMPLES) * (step + 3) + step) % ROWS,
            'label': np.linspace(-1, 1, SAMPLES, dtype=np.float32) * (step + 1)}


def train_tf1(folder, kind, first, count, strategy='div', hosts=1, **kwargs):
    """Trains so many steps of the job in a folder; the first one has that number."""
    columns = [jobs.embedding('a', ROWS)]
    estimator = jobs.estimator(
        jobs.linear_model_fn(columns, lambda: ete.CrossShardOptimizer(
            tf.train.AdamOptimizer(.01, epsilon=1e-3))), columns,
        jobs.run_config(folder, hosts=hosts, iterations=1), strategy=strategy,
        optimizer=OPTIMIZERS[kind][0], batch_size=SAMPLES, **kwargs)
    batches = [batch(first + number) for number in range(count)]
    estimator.train(jobs.input_fn_of(batches) if kwargs.get('use_tpu', True) else (
        lambda params: jobs.dataset_of(batches)), steps=count)
    return f'{folder}/model.ckpt-{first + count}'


class Tf2:
    """The same job as a loop of TF2."""

    def __init__(self, kind, path):
        table = api.TableConfig(ROWS, 2, None, None, 'sum', 'tbl_a')
        self.embedding = replicas.embedding_under(
            replicas.make('none'), {'a': api.FeatureConfig(table, output_shape=[SAMPLES])},
            OPTIMIZERS[kind][1])
        self.embedding.build()
        self.model = tf.Module()
        self.model.kernel = tf.Variable(tf.zeros([2, 1]))
        self.optimizer = tf.keras.optimizers.legacy.Adam(.01, epsilon=1e-3)
        self.checkpoint = tf.compat.v2.train.Checkpoint(
            embedding=self.embedding, model=self.model, optimizer=self.optimizer)
        self.checkpoint.restore(path).expect_partial()

    def train(self, first, count, folder):
        """Trains so many steps, and saves."""
        @tf.function
        def step(ids, labels):
            self.embedding.enqueue({'a': ids})
            activations = self.embedding.dequeue()['a']
            with tf.GradientTape() as tape:
                tape.watch(activations)
                found = tf.matmul(activations, self.model.kernel)[:, 0]
                loss = tf.reduce_mean(tf.square(found - labels))
            gradient, *rest = tape.gradient(loss, [activations, self.model.kernel])
            self.embedding.apply_gradients({'a': gradient})
            self.optimizer.apply_gradients(zip(rest, [self.model.kernel]))

        for number in range(first, first + count):
            own = batch(number)
            step(own['a'], own['label'])
        return self.checkpoint.save(f'{folder}/ckpt')


def assert_close(one, other):
    """Two checkpoints have the same tensors, with numbers that differ by rounding alone."""
    one, other = (tf.train.load_checkpoint(str(path)) for path in (one, other))
    names = one.get_variable_to_shape_map()
    assert names.keys() == other.get_variable_to_shape_map().keys()
    for name in names:
        np.testing.assert_allclose(one.get_tensor(name), other.get_tensor(name), 2e-5, 1e-6, name)


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """The checkpoint after 2 steps in TF1, and what it becomes in TF2, by kind."""
    made = {}

    def train(kind):
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            path = train_tf1(folder / 'job', kind, 0, 2)
            made[kind] = path, migrated.migrate(path, folder / 'there', 'tf2', lines=THERE)
        return made[kind]
    return train


@pytest.mark.parametrize('kind', CASES)
def test_the_loop_of_tf2_goes_on_as_the_job_of_tf1_does_and_the_job_as_the_loop_does(
        kind, trained, tmp_path):
    source, path = trained(kind)
    stayed = migrated.migrate(train_tf1(migrated.copied(source, tmp_path / 'job'), kind, 2, 2),
                              tmp_path / 'stayed', 'tf1', lines=OF_TF1)
    loop = Tf2(kind, path)
    saved = loop.train(2, 1, tmp_path / 'loop')
    back = migrated.migrate(saved, tmp_path / 'back', 'tf1', lines=BACK + POWERS)
    assert back.endswith('model.ckpt-3')
    # The last step, in either API.
    one = migrated.migrate(loop.train(3, 1, tmp_path / 'loop'), tmp_path / 'one', 'tf1',
                           lines=BACK)
    assert_close(one, stayed)
    other = train_tf1(tmp_path / 'back', kind, 3, 1)
    found = migrated.migrate(other, tmp_path / 'other', 'tf1', lines=OF_TF1)
    assert_close(found, stayed)


@pytest.mark.soak
@pytest.mark.parametrize('kind, strategy, hosts', [
    *((kind, 'mod', 3) for kind in OPTIMIZERS), ('adam', 'div', 2), ('adagrad', 'mod', 2)])
def test_what_comes_back_is_the_checkpoint_that_went_bit_for_bit_and_trains_on_alike(
        kind, strategy, hosts, tmp_path):
    source = train_tf1(tmp_path / 'job', kind, 0, 2, strategy, hosts)
    there = migrated.migrate(source, tmp_path / 'there', 'tf2', lines=THERE)
    order = 'div' if strategy == 'div' else f'mod:{hosts}'
    back = migrated.migrate(there, tmp_path / 'back', 'tf1', '--order', order, lines=BACK)
    migrated.assert_equal_files(back, source)
    migrated.assert_equal_files(
        train_tf1(tmp_path / 'back', kind, 2, 2, strategy, hosts),
        train_tf1(tmp_path / 'job', kind, 2, 2, strategy, hosts))


@pytest.mark.soak
def test_a_job_without_tpu_goes_and_comes_back_by_lines_for_its_slots(tmp_path):
    """Its tables are plain variables, trained by `tf.train.AdamOptimizer` as the others are."""
    source = train_tf1(tmp_path / 'job', 'adam', 0, 2, use_tpu=False)
    there = migrated.migrate(source, tmp_path / 'there', 'tf2', lines=(
        f'table {TABLE} -> tbl_a\n{THERE}'))
    names = {'embedding/tbl_a': TABLE, 'embedding/tbl_a.Smomenta': f'{TABLE}/Adam',
             'embedding/tbl_a.Svelocities': f'{TABLE}/Adam_1'}
    found, were = migrated.bytes_of(there), migrated.bytes_of(source)
    for path, name in names.items():
        assert found[f'{path}/.ATTRIBUTES/VARIABLE_VALUE'] == were[name]
    lines = ''.join(f'\n{path} -> {name}' for path, name in names.items() if '.S' in path)
    back = migrated.migrate(there, tmp_path / 'back', 'tf1', lines=BACK + lines)
    migrated.assert_equal_files(back, source)
    migrated.assert_equal_files(train_tf1(tmp_path / 'back', 'adam', 2, 2, use_tpu=False),
                                train_tf1(tmp_path / 'job', 'adam', 2, 2, use_tpu=False))
