"""Holds this package's classes under their names in `tensorflow.python.tpu.tpu_embedding`."""

from estimator_tpu_embedding.estimator.embedding_spec import EmbeddingConfigSpec  # noqa: F401
from estimator_tpu_embedding.estimator.enqueue import *  # noqa: F401,F403
from estimator_tpu_embedding.estimator.optimizer_parameters import *  # noqa: F401,F403
from estimator_tpu_embedding.estimator.table_config import DeviceConfig, FeatureConfig, TableConfig  # noqa: F401
from estimator_tpu_embedding.estimator.tpu_embedding import *  # noqa: F401,F403
from estimator_tpu_embedding.estimator.tpu_embedding import INFERENCE, TRAINING, TPUEmbedding  # noqa: F401
