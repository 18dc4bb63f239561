"""Gives each name of a TPU construct one short form, by whatever road a script reaches it.

`tf.contrib.tpu.TPUConfig`, `tf.estimator.tpu.TPUConfig` and
`tensorflow.python.tpu.tpu_config.TPUConfig` are all `'TPUConfig'`.
"""

from __future__ import annotations

from ..compat.refused import FEED_OPERATIONS

_ROOTS = frozenset({
    'tensorflow', 'tensorflow_core', 'tensorflow_estimator', 'estimator_tpu_embedding'})
_UNIQUE = frozenset(
    'AsyncCheckpointSaverHook CrossShardOptimizer EmbeddingConfigSpec InfeedQueue '
    'InputPipelineConfig TPUClusterResolver TPUConfig TPUContext TPUEstimator TPUEstimatorSpec '
    'TPUInfeedOutfeedSessionHook TPUStrategy TPUEmbeddingForServing batch_parallel '
    'bfloat16_scope cross_replica_sum initialize_system initialize_tpu_system '
    'outside_compilation shutdown_system shutdown_tpu_system collective_permute'.split())
"""Names that nothing else in TensorFlow has."""

_OF_TPU = frozenset(
    'RunConfig TPUEmbedding all_to_all core embedding_column repeat replicate rewrite shard '
    'shared_embedding_columns TableConfig while_loop'.split())
"""Names that mean a TPU below a module for TPUs only."""

_OLDER = {
    'TPUStrategyV2': 'TPUStrategy', 'embedding_column_v2': 'embedding_column',
    'shared_embedding_columns_v2': 'shared_embedding_columns',
    'split_compile_and_replicate': 'replicate', 'TPUEmbeddingV2': 'TPUEmbedding'}
_MODULES_OF_TF2 = frozenset({
    'embedding', 'tpu_embedding_v2', 'tpu_embedding_v1', 'tpu_embedding_for_serving',
    'tpu_embedding_v2_utils'})
_RATES_OF_TF2 = frozenset({'Adagrad', 'AdagradMomentum', 'Adam', 'FTRL', 'SGD'})
_PLAIN = frozenset({'Estimator'})
READERS = frozenset({'NewCheckpointReader', 'load_checkpoint', 'load_variable'})
"""They read the tensors of a checkpoint as they are stored."""

_OPERATIONS = {name.lower(): name for name in FEED_OPERATIONS}
WORDS = frozenset({*_UNIQUE, *_OF_TPU, *_OLDER, *_RATES_OF_TF2, *_PLAIN, *READERS, 'compile'})
"""A file that spells none of these, and no operation of a feed, has no TPU construct."""


def construct_of(path: str) -> str | None:
    """Returns the short form of the path of a name; `None` for all other names.

    Args:
      path: the whole path, such as `'tensorflow.contrib.tpu.TPUConfig'`.

    >>> construct_of('tensorflow.python.tpu.tpu_config.TPUConfig')
    'TPUConfig'
    >>> construct_of('tensorflow.compat.v1.estimator.tpu.RunConfig')
    'RunConfig'
    >>> construct_of('tensorflow.estimator.RunConfig') is None
    True
    >>> construct_of('tensorflow.tpu.experimental.embedding.TPUEmbedding')
    'embedding.TPUEmbedding'
    """
    root, *modules, name = ['', *path.split('.')]
    root, modules = (modules[0], modules[1:]) if modules else (root, modules)
    if root not in _ROOTS:
        return None
    operation = _OPERATIONS.get(name.replace('_', '').lower())
    if operation is not None:
        return 'feed operation'
    name = _OLDER.get(name, name)
    if name in _UNIQUE or name in READERS:
        return name
    if name == 'compile':
        return 'xla.compile' if 'xla' in modules else None
    if name in _PLAIN:
        return name if 'estimator' in modules else None
    if not (any(part.startswith('tpu') for part in modules)
            or root == 'estimator_tpu_embedding' and not modules):
        return None
    if _MODULES_OF_TF2.intersection(modules):
        known = name in _RATES_OF_TF2 or name in ('TPUEmbedding', 'TableConfig')
        return f'embedding.{name}' if known else None
    return name if name in _OF_TPU else None


def may_be_construct(word: str) -> bool:
    """Whether an identifier may be the last part of the path of a construct."""
    return word in WORDS or word.replace('_', '').lower() in _OPERATIONS
