"""The written public surface: what SemVer promises."""

import inspect
import re

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import errors

NAMES = '''
AdagradMomentumParameters AdagradParameters AdamParameters CheckpointOptions ConfigError
CrossShardOptimizer DeviceConfig EmbeddingConfigSpec EteError FeatureConfig
FrequencyEstimatorParameters FtrlParameters IdRangeError InputPipelineConfig
MomentumParameters ProximalAdagradParameters
ProximalYogiParameters RMSPropParameters RunConfig StochasticGradientDescentParameters
TPUClusterResolver TPUConfig TPUContext TPUEmbedding TPUEstimator TPUEstimatorSpec TableConfig
TableMemory UnreadableConfigError UnsupportedError cross_replica_sum embedding_column install
shared_embedding_columns'''.split()

SIGNATURES = {
    'TPUEstimator': 'model_fn model_dir config params use_tpu train_batch_size eval_batch_size '
    'predict_batch_size batch_axis eval_on_tpu export_to_tpu export_to_cpu warm_start_from '
    'embedding_config_spec export_saved_model_api_version',
    'TPUEstimatorSpec': 'mode predictions loss train_op eval_metrics export_outputs scaffold_fn '
    'host_call training_hooks evaluation_hooks prediction_hooks',
    'EmbeddingConfigSpec': 'feature_columns optimization_parameters clipping_limit '
    'pipeline_execution_with_tensor_core experimental_gradient_multiplier_fn '
    'feature_to_config_dict table_to_config_dict partition_strategy profile_data_directory '
    'unknown',
    'RunConfig': 'tpu_config evaluation_master master cluster input_deadline_secs id_policy '
    'nonfinite_gradients shutdown_deadline_secs checkpoint kernels kernel_threads workers '
    'worker_deadline_secs step_deadline_secs input_on_workers backend table_memory kwargs',
    'embedding_column': 'categorical_column dimension combiner initializer max_sequence_length '
    'learning_rate_fn embedding_lookup_device tensor_core_shape use_safe_embedding_lookup',
    'shared_embedding_columns': 'categorical_columns dimension combiner initializer '
    'shared_embedding_collection_name max_sequence_lengths learning_rate_fn '
    'embedding_lookup_device tensor_core_shape use_safe_embedding_lookup',
    'cross_replica_sum': 'x group_assignment name',
    'CrossShardOptimizer': 'opt reduction name group_assignment'}


def test_the_public_names_are_written_down():
    assert ete.__all__ == sorted(NAMES)
    assert all(getattr(ete, name) is not None for name in NAMES)
    assert set(NAMES) <= set(dir(ete))
    assert re.fullmatch(r'\d+\.\d+\.\d+', ete.__version__)


@pytest.mark.parametrize('name', SIGNATURES)
def test_faces_keep_the_arguments_of_the_original_in_their_order(name):
    assert ' '.join(inspect.signature(getattr(ete, name)).parameters) == SIGNATURES[name]


def test_what_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match='has no attribute .Plan.'):
        ete.Plan


def test_every_error_is_caught_as_the_builtin_that_callers_know():
    assert issubclass(errors.ConfigError, ValueError)
    assert issubclass(errors.IdRangeError, ValueError)
    assert issubclass(errors.UnsupportedError, NotImplementedError)
    for cls in vars(errors).values():
        if inspect.isclass(cls) and issubclass(cls, Exception):
            assert issubclass(cls, errors.EteError)
