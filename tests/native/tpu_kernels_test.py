"""The kernels of a TPU's operations compute, and answer illegal input with an error.

conformance/ has their numbers, and libraries/ those of TensorFlow 2.15 on them.
"""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.graphs import needs_native
from harness.processes import run_python

from estimator_tpu_embedding.core.optimizers import StochasticGradientDescent
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import UnsupportedError
from estimator_tpu_embedding.native import library, tpu_kernels
from estimator_tpu_embedding.proto.codec import plan_to_config

pytestmark = needs_native
SAMPLES, LENGTH, WRONG = 2, 3, tf.errors.InvalidArgumentError
ROWS = np.float32([[1], [10], [100], [1000]])


@functools.cache
def config():
    return plan_to_config(resolve(
        [TableSpec(name='t', vocabulary_size=4, dimension=1, combiner='sum')],
        [FeatureSpec(name='f', table='t'),
         FeatureSpec(name='path', table='t', max_sequence_length=LENGTH)],
        Topology(), batch_size=SAMPLES,
        optimizer=StochasticGradientDescent(learning_rate=1.))).SerializeToString()


@pytest.fixture
def session():
    """With the engine of `config`, whose rows are `ROWS`."""
    tpu_kernels.register()
    with tf.Graph().as_default(), tf.Session() as made:
        made.run(tf.raw_ops.ConfigureDistributedTPU(embedding_config=config()))
        made.run(load(ROWS))
        yield made
        made.run(tf.raw_ops.ShutdownDistributedTPU())


def load(rows, **kwargs):
    return tf.raw_ops.LoadTPUEmbeddingStochasticGradientDescentParameters(**{
        'parameters': rows, 'num_shards': 1, 'shard_id': 0, 'table_name': 't', **kwargs})


def arbitrary(where, ids, *, of_path=((0, 3), ()), weights=(), path_weights=(), mode='unspecified',
              combiners=('sum', 'sum'), core=0, kind=tf.int64, kind_of_weights=tf.float32):
    """Enqueues for `f`, and for `path`."""
    wheres = [(where, np.shape(where)), (of_path[0] if of_path[1] else (), (-1, LENGTH))]
    return tf.raw_ops.EnqueueTPUEmbeddingArbitraryTensorBatch(
        sample_indices_or_row_splits=[tf.constant(np.reshape(one, shape), kind)
                                      for one, shape in wheres],
        embedding_indices=[tf.constant(one, kind) for one in (ids, of_path[1])],
        aggregation_weights=[tf.constant(one, kind_of_weights)
                             for one in (weights, path_weights)],
        mode_override=mode, device_ordinal=core, combiners=combiners)


def receive():
    return tf.raw_ops.RecvTPUEmbeddingActivations(num_outputs=2, config=config())


def send(*gradients):
    return tf.raw_ops.SendTPUEmbeddingGradients(
        inputs=[np.float32(one) for one in gradients], learning_rates=[], config=config())


ZEROS = np.zeros([SAMPLES, 1]), np.zeros([SAMPLES, LENGTH, 1])


@pytest.mark.parametrize('kinds', [{}, {'kind': tf.int32, 'kind_of_weights': tf.float64}])
@pytest.mark.parametrize('where, ids, weights, combiner, found', [
    ([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [], 'sum', [110, 1000]),
    ([[0, 0], [0, 1]], [1, 2], [], 'mean', [55, 0]),
    ([[0, 0], [0, 1]], [1, 2], [1, 3], 'mean', [77.5, 0]),
    ([[0, 0], [0, 1]], [1, 2], [3, 4], 'sqrtn', [86, 0]),
    ([0, 2, 2], [1, 2], [], 'sum', [110, 0]), ([], [3, 1], [], 'mean', [1000, 10]),
    ([[1, 0], [0, 0]], [1, 2], [1, 3], 'sum', [300, 10]),
    ([], [], [], 'sum', [0, 0]), (np.zeros([0, 2]), [], [], 'sqrtn', [0, 0])])
def test_ids_come_with_indices_or_row_splits_or_one_for_each_sample(
        session, where, ids, weights, combiner, found, kinds):
    session.run(arbitrary(where, ids, weights=weights, combiners=[combiner, 'sum'],
                          mode='inference', **kinds))
    activations, path = session.run(receive())
    assert activations.tolist() == [[one] for one in found]
    assert path.shape == (SAMPLES, LENGTH, 1)


def test_a_sequence_keeps_its_places_and_is_cut(session):
    session.run(arbitrary([], [], of_path=([[0, 2, 0], [0, 3, 0], [1, 0, 0]], [1, 3, 2]),
                          mode='inference'))
    assert session.run(receive())[1][..., 0].tolist() == [[0, 0, 10], [100, 0, 0]]


@pytest.mark.parametrize('build', [
    lambda **kwargs: tf.raw_ops.EnqueueTPUEmbeddingSparseTensorBatch(
        sample_indices=[[[0, 0], [1, 0]], [[1, 0], [1, 1], [1, 2], [1, 3]]], **kwargs),
    lambda **kwargs: tf.raw_ops.EnqueueTPUEmbeddingRaggedTensorBatch(
        sample_splits=[[0, 1, 2], [0, 0, 4]], **kwargs)])
def test_the_older_operations_enqueue_too(session, build):
    session.run(build(
        embedding_indices=[[3, 1], [0, 1, 2, 3]],
        aggregation_weights=[np.zeros([0], np.float32)] * 2,
        mode_override='inference', device_ordinal=0, table_ids=[0, 0], combiners=['sum', 'sum'],
        max_sequence_lengths=[0, LENGTH]))
    activations, path = session.run(receive())
    assert activations.tolist() == [[1000], [10]]
    assert path[..., 0].tolist() == [[0, 0, 0], [1, 10, 100]]


@pytest.mark.parametrize('says, arguments', [
    ('"0".*index of 2 numbers for each of 1 ids, got .1, 3.', ([[0, 0, 0]], [1])),
    ('"0".*index of 2 numbers for each of 2 ids, got .1, 2.', ([[0, 0]], [1, 2])),
    ('"0".*number 0 of an index must be from 0 to 1, got 2', ([[2, 0]], [1])),
    ('"0".*number 0 of an index must be from 0 to 1, got -1', ([[-1, 0]], [1])),
    ('"0".*row splits must be 3 ascending numbers from 0 to 1', ([0, 1], [1])),
    ('"0".*row splits must be', ([0, 2, 1], [1])),
    ('"0".*an id for each of 2 samples, or none, got 1', ([], [1])),
    ('"0" of table "t".*from 0 to 3, got 4', ([[0, 0]], [4])),
    ('"0" of table "t".*from 0 to 3, got -1', ([[0, 0]], [-1]))])
def test_ids_that_do_not_fit_are_refused_with_the_number_of_the_feature(session, says, arguments):
    with pytest.raises(WRONG, match=says):
        session.run(arbitrary(*arguments))


@pytest.mark.parametrize('says, arguments, error', [
    ('"0".*a weight for each of 1 ids', {'weights': [1, 2]}, WRONG),
    ('"0".*combiner must be sum, mean or sqrtn, got max', {'combiners': ['max', 'sum']}, WRONG),
    ('2 features of the config', {'combiners': ['sum']}, WRONG),
    ('core must be from 0 to 0, got 1', {'core': 1}, WRONG),
    ('mode_override must be.*"backward_pass_only"', {'mode': 'backward_pass_only'},
     tf.errors.UnimplementedError),
    ('number 1 of an index must be from 0 to 2, got -1', {'of_path': ([[0, -1, 0]], [1])}, WRONG)])
def test_arguments_that_do_not_fit_are_refused(session, says, arguments, error):
    with pytest.raises(error, match=says):
        session.run(arbitrary([[0, 0]], [1], **arguments))


@pytest.mark.parametrize('says, build', [
    ('no table "u"', lambda: load(ROWS, table_name='u')),
    ('"t".*has the shape .4, 1., not .3, 1.', lambda: load(ROWS[:3])),
    ('"t": there is no shard 1 of 2; it has 1', lambda: load(ROWS, num_shards=2, shard_id=1)),
    ('"t" is trained by StochasticGradientDescent, not by Adagrad', lambda:
        tf.raw_ops.LoadTPUEmbeddingAdagradParameters(
            parameters=ROWS, accumulators=ROWS, num_shards=1, shard_id=0, table_name='t')),
    ('not that with which the embedding engine was configured', lambda: load(ROWS, config='x')),
    ('gradient for each of 2 features', lambda: send(ZEROS[0])),
    ('"1": its gradient must have the shape .2, 3, 1., not .2, 1.', lambda: send(*ZEROS[:1] * 2))])
def test_what_contradicts_the_config_is_refused(session, says, build):
    with pytest.raises(WRONG, match=says):
        session.run(build())
    session.run(arbitrary([], [1, 2], mode='inference'))
    assert session.run(receive())[0].tolist() == [[10], [100]]


def test_gradients_without_a_lookup_and_those_that_are_not_finite_change_nothing(session):
    with pytest.raises(tf.errors.FailedPreconditionError, match='must run after'):
        session.run(send(*ZEROS))
    for gradient in np.nan, 5.:
        session.run(arbitrary([], [1, 2]))
        found = session.run(receive())[0].tolist()
        try:
            session.run(send([[gradient], [0.]], ZEROS[1]))
        except WRONG as error:
            assert 'Table "t": 1 elements of its gradients are not finite' in str(error)
    assert found == [[10], [100]]
    assert session.run(tf.raw_ops.RetrieveTPUEmbeddingStochasticGradientDescentParameters(
        num_shards=1, shard_id=0, table_name='t')).tolist() == [[1], [5], [100], [1000]]


def test_a_bad_config_leaves_the_engine_as_it_is(session):
    for bad in b'x', config()[:-3]:
        with pytest.raises(WRONG, match='TPUEmbeddingConfiguration|protobuf'):
            session.run(tf.raw_ops.ConfigureDistributedTPU(embedding_config=bad))
    session.run(arbitrary([], [1, 2], mode='inference'))
    assert session.run(receive())[0].tolist() == [[10], [100]]


def test_without_a_config_there_is_no_engine(session):
    session.run(tf.raw_ops.ShutdownDistributedTPU())
    with pytest.raises(tf.errors.FailedPreconditionError, match='ConfigureDistributedTPU'):
        session.run(receive())


def test_kernels_are_refused_where_the_library_is_missing(monkeypatch):
    monkeypatch.setattr(library, 'load', lambda: None)
    with pytest.raises(UnsupportedError, match='E941'):
        tpu_kernels.register()


ANOTHER_COPY = """
import ctypes, shutil, sys
from estimator_tpu_embedding.native import library, tpu_kernels
library.load()
ctypes.CDLL(shutil.copy(library.PATH, sys.argv[1])).ete_register_tpu_kernels()
tpu_kernels.register()
"""


def test_kernels_are_refused_where_others_are(tmp_path):
    done = run_python('-c', ANOTHER_COPY, tmp_path)
    assert 'E941' in done.stderr and 'ConfigureDistributedTPU may have one' in done.stderr
