"""The engine of a TPUEmbedding is closed when the object is garbage."""

import gc

import pytest
import tensorflow as tf
from harness import graphs, replicas

from estimator_tpu_embedding.native import library

pytestmark = graphs.needs_native
api = tf.tpu.experimental.embedding


def test_the_engine_of_an_object_that_is_garbage_is_closed_also_where_a_graph_is_built():
    embedding = replicas.embedding_under(
        replicas.make('none'), api.FeatureConfig(api.TableConfig(3, 2)), api.SGD(.1))
    embedding.build(per_replica_batch_size=1)
    handle = embedding._runtime._engine._engine

    def group():
        return library.load().ete_group(
            engine=handle, samples=[[0]], ids=[tf.constant([0], tf.int64)], weights=[],
            weighted=[0])

    group()
    del embedding
    with tf.Graph().as_default():
        gc.collect()
    with pytest.raises(tf.errors.InvalidArgumentError, match='no engine'):
        group()
