"""What reaches for a TPU does nothing for resolvers of the emulated system, and only for them."""

import pytest
import tensorflow as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat import remote
from estimator_tpu_embedding.midlevel import TPUEmbedding, TPUStrategy


@pytest.fixture(scope='module')
def functions():
    return {name: function for _, name, function in remote.replaced()}


def test_the_emulated_system_is_ready_as_it_is(functions):
    resolver = ete.TPUClusterResolver('grpc://10.0.0.1:8470', hosts=2, cores=4)
    assert functions['experimental_connect_to_cluster'](resolver) is None
    topology = functions['initialize_tpu_system'](cluster_resolver=resolver)
    assert topology.mesh_shape.tolist() == [4, 2, 1, 1]
    assert topology.num_tasks == 2
    assert functions['shutdown_tpu_system'](resolver) is None
    assert functions['experimental_connect_to_host'](resolver.get_master()) is None
    assert functions['initialize_tpu_system']().num_tasks == 1  # That of install().


def test_a_strategy_has_one_tpu_embedding_until_the_system_is_initialized_again(functions):
    api = tf.tpu.experimental.embedding

    def make():
        with TPUStrategy().scope():
            made = TPUEmbedding(api.FeatureConfig(api.TableConfig(4, 2)), api.SGD(.1))
        made.build(per_replica_batch_size=2)
        return made

    functions['initialize_tpu_system']()
    kept = [make()]
    for name in ('shutdown_tpu_system', 'initialize_tpu_system'):
        with pytest.raises(RuntimeError, match='E559 .*TPU is already initialized for embeddings'):
            make()
        functions[name]()
        kept.append(make())
    functions['initialize_tpu_system']()


def test_other_systems_get_tensorflows_own_function(functions):
    with pytest.raises(ValueError, match='must be'):
        functions['experimental_connect_to_cluster']('no cluster')


def test_installing_twice_wraps_once(functions, monkeypatch):
    monkeypatch.setattr(tf.tpu.experimental, 'shutdown_tpu_system',
                        functions['shutdown_tpu_system'])
    again = {name: function for _, name, function in remote.replaced()}
    assert again['shutdown_tpu_system'].__wrapped__ is functions['shutdown_tpu_system'].__wrapped__
    assert tf.tpu.experimental.shutdown_tpu_system() is None
