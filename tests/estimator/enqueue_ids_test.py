"""Ids of the raw `TPUEmbedding`: one bad feature of several, on one core, in one step."""

import contextlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, legacy_api
from harness.parts import soak_except

from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.core.kernels import Kernels
from estimator_tpu_embedding.defaults import Defaults, current, set_current
from estimator_tpu_embedding.errors import InputError
from estimator_tpu_embedding.estimator import replicate
from estimator_tpu_embedding.runner.faults import typed

CORES = 4
PLACES = [[0, 0], [0, 1], [1, 0]]  # Two ids, and one, of the two samples of a core.
SPLITS = [0, 2, 3]
GOOD = {'plain': [4, 0], 'weighted': [4, 5, 6], 'weights': [1., 2., 3.], 'series': [7, 8, 9],
        'places': PLACES, 'splits': SPLITS}
SMALL, LARGE = (f'ids must be in [0, {size}), the vocabulary size of its table; got '
                for size in (5, 10))


@pytest.fixture(autouse=True)
def replicas(monkeypatch):
    monkeypatch.setattr(_tf.tpu_module(), 'split_compile_and_replicate',
                        replicate.split_compile_and_replicate)
    before = current()
    yield
    set_current(before)


class Loop:
    """A look-up of four cores of two hosts, which are fed anew in each step."""

    def __init__(self, ragged=False, kernels='native'):
        set_current(Defaults(kernels=Kernels(kernels)))
        with tf.Graph().as_default():
            made = legacy_api.TPUEmbedding(
                {name: legacy_api.TableConfig(rows, 1, tf.constant_initializer(3.), combiner='sum')
                 for name, rows in (('small', 5), ('large', 10))},
                {'plain': legacy_api.FeatureConfig('small'),
                 'weighted': legacy_api.FeatureConfig('large'),
                 'series': legacy_api.FeatureConfig('large', max_sequence_length=2)},
                2 * CORES, legacy_api.TRAINING,
                optimization_parameters=legacy_api.AdagradParameters(.1),
                device_config=legacy_api.DeviceConfig(2, CORES, '/job:worker'))
            self.fed = [self._placeholders() for _ in range(CORES)]
            made.create_variables_and_ops()
            self.enqueue = made.generate_enqueue_ops(
                [self._data(fed, ragged) for fed in self.fed], ragged=ragged)
            self.activations = tf.tpu.shard(
                lambda: made.get_activations()['weighted'], num_shards=CORES)[0]
            self.start = [tf.global_variables_initializer(), tf.local_variables_initializer()]

    def _placeholders(self):
        return {name: tf.placeholder(
            tf.float32 if name == 'weights' else tf.int32 if name == 'weighted' else tf.int64,
            [2] if name == 'plain' else [None, 2] if name == 'places' else [None])
            for name in GOOD}

    def _data(self, fed, ragged):
        if ragged:
            return {'plain': legacy_api.RaggedEnqueueData(fed['plain']),
                    'weighted': legacy_api.RaggedEnqueueData(
                        fed['weighted'], fed['splits'], fed['weights']),
                    'series': legacy_api.RaggedEnqueueData(fed['series'], fed['splits'])}
        return {'plain': legacy_api.EnqueueData(fed['plain']),
                'weighted': legacy_api.EnqueueData(
                    fed['weighted'], fed['places'], fed['weights']),
                'series': legacy_api.EnqueueData(fed['series'], fed['places'])}

    @contextlib.contextmanager
    def begun(self):
        """A new session: the queues of one that failed hold the ids of other cores."""
        with self.enqueue[0].graph.as_default(), graphs.session_of('native') as self.session:
            self.session.run(self.start)
            yield

    def step(self, core=0, **changed):
        """Looks up feature `weighted` of `GOOD`, with something `changed` on one core."""
        feed = {tensor: changed[name] if index == core and name in changed else GOOD[name]
                for index, fed in enumerate(self.fed) for name, tensor in fed.items()}
        try:
            self.session.run(self.enqueue, feed)
            return self.session.run(self.activations)
        except tf.errors.OpError as error:
            raise typed(error) from None


CASES = [
    ({'plain': [4, 5]}, 'E501', 'plain', SMALL + '5 in sample 1 (1 in all).'),
    ({'plain': [-1, 2**40]}, 'E501', 'plain', SMALL + '-1, 1099511627776 in sample 0, 1 (2 in'),
    ({'weighted': [4, -3, 6]}, 'E501', 'weighted', LARGE + '-3 in sample 0 (1 in all).'),
    ({'series': [7, 8, 10]}, 'E501', 'series', LARGE + '10 in sample 2 (1 in all).'),
    ({'weights': [1., np.nan, 3.]}, 'E518', 'weighted', 'weights must be finite; got nan.'),
    ({'weights': [1., 2.]}, 'E518', 'weighted', 'there must be one weight per id; got 2 for 3.'),
    # Two are bad. Features are in the order of the names of their tables.
    ({'plain': [9, 9], 'series': [10, 8, 9]}, 'E501', 'series', LARGE + '10 in sample 0 (1 in')]


@pytest.mark.parametrize('ragged, kernels', soak_except([
    pytest.param(False, 'native', marks=graphs.needs_native), (True, 'stock')], 0))
def test_a_bad_feature_of_the_last_core_in_the_third_step_is_named(ragged, kernels):
    loop = Loop(ragged, kernels)
    for core, (changed, code, feature, text) in [(1, CASES[0]), *((CORES - 1, of) for of in CASES)]:
        with loop.begun():
            for _ in range(2):
                assert loop.step()[:, 0].tolist() == [3. * (1 + 2), 3. * 3] * CORES
            with pytest.raises(InputError) as caught:
                loop.step(core, **changed)
            assert str(caught.value).startswith(
                f'{code} feature "{feature}" on core {core}: {text}')
