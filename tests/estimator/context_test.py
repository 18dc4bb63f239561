import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.estimator.tpu_context import deploy

DEPLOYMENT = deploy(ete.RunConfig(
    cluster=ete.TPUClusterResolver(hosts=2, cores=4), tpu_config=ete.TPUConfig(
        per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2)), 'train', 8)


def test_an_input_fn_learns_its_host_and_a_model_fn_only_the_size():
    of_input, of_model = (ete.TPUContext(DEPLOYMENT, call)
                          for call in (DEPLOYMENT.invocations[1], None))
    for context in (of_input, of_model):
        assert (context.num_hosts, context.num_replicas, context.num_of_replicas_per_host) == (
            2, 8, 4)
        assert context.tpu_host_placement_function(1) == '/device:CPU:0'
    assert of_input.current_input_fn_deployment() == ('/device:CPU:0', 1, 2, 4)
    assert of_input.current_host == 1
    with pytest.raises(RuntimeError, match='must not be called from input_fn.'):
        of_input.device_assignment
    assert of_model.device_assignment is None
    assert [of_model.device_for_replica(replica) for replica in (0, 3, 5)] == [
        ('/task:0/device:CPU:0', ordinal) for ordinal in (0, 3, 1)]
    for ask in (of_model.current_input_fn_deployment, lambda: of_model.current_host):
        with pytest.raises(RuntimeError, match='must not be called from model_fn.'):
            ask()


@pytest.mark.parametrize('use_tpu', [True, False])
def test_hooks_read_the_system_and_the_batches_of_an_estimator(tmp_path, use_tpu):
    context = ete.TPUEstimator(
        lambda features, params: None, config=ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=2, cores=4), model_dir=str(tmp_path),
            tpu_config=ete.TPUConfig(num_cores_per_replica=2)),
        use_tpu=use_tpu, train_batch_size=16, eval_batch_size=8)._ctx
    assert (context.num_hosts, context.num_cores, context.num_of_cores_per_host) == (2, 8, 4)
    assert (context.num_replicas, context.num_of_replicas_per_host) == (4, 2)
    assert context.model_parallelism_enabled and context.mode == 'train'
    # One call of input_fn per host, and two replicas on each.
    assert (context.global_batch_size, context.batch_size_for_input_fn,
            context.batch_size_for_model_fn) == (16, 8, 4)
    assert context.is_running_on_cpu() == (not use_tpu)
    with context.with_mode('eval') as evaluation:
        assert (evaluation.mode, evaluation.global_batch_size) == ('eval', 8)
