"""Runs every form of import by which scripts reach names that TensorFlow lost, and reports each.

Run as a script, it prints JSON; it needs `tests` on the path.
"""

import contextlib
import functools
import importlib
import io
import json
import sys

E, NIGHTLY = 'estimator_tpu_embedding.', 'tensorflow_estimator.python.estimator.'
ESTIMATOR = E + 'estimator.tpu_estimator.'
TPU_CONFIG = E + 'estimator.tpu_config.TPUConfig'
RUN_CONFIG = E + 'estimator.tpu_config.RunConfig'
STRATEGY, EMBEDDING = E + 'midlevel.strategy.', E + 'midlevel.tpu_embedding_v2.TPUEmbedding'
V1, V2 = 'tensorflow_estimator._api.v1.', 'tensorflow_estimator._api.v2.'

PATHS = [  # a statement, what it names then, and what that must be
    ('import tensorflow as tf', 'tf.estimator.tpu.TPUEstimator', ESTIMATOR + 'TPUEstimator'),
    ('import tensorflow as tf', 'tf.estimator.Estimator', NIGHTLY + 'estimator.EstimatorV2'),
    ('import tensorflow as tf', 'tf.estimator.DNNClassifier',
     NIGHTLY + 'canned.dnn.DNNClassifierV2'),
    ('import tensorflow as tf', 'tf.compat.v1.estimator.tpu.RunConfig', RUN_CONFIG),
    ('import tensorflow as tf', 'tf.compat.v2.compat.v1.estimator.tpu.TPUConfig', TPU_CONFIG),
    ('import tensorflow as tf', 'tf.compat.v1.compat.v2.estimator.Estimator',
     NIGHTLY + 'estimator.EstimatorV2'),
    ('import tensorflow as tf', 'tf.data.experimental.CheckpointInputPipelineHook',
     E + 'runner.checkpoint_hooks.CheckpointInputPipelineHook'),
    ('import tensorflow as tf', 'tf.compat.v2.distribute.cluster_resolver.TPUClusterResolver',
     E + 'compat.resolver.TPUClusterResolver'),
    ('import tensorflow as tf', 'tf.distribute.TPUStrategy', STRATEGY + 'TPUStrategyV2'),
    ('import tensorflow as tf', 'tf.compat.v1.distribute.experimental.TPUStrategy',
     STRATEGY + 'TPUStrategyV1'),
    ('import tensorflow as tf', 'tf.distribute.InputOptions',
     STRATEGY + 'InputOptions'),
    ('import tensorflow as tf', 'tf.compat.v1.tpu.experimental.embedding.TPUEmbedding', EMBEDDING),
    ('from tensorflow.distribute import TPUStrategy', 'TPUStrategy', STRATEGY + 'TPUStrategyV2'),
    ('from tensorflow.python.distribute import tpu_strategy', 'tpu_strategy.TPUStrategy',
     STRATEGY + 'TPUStrategy'),
    ('from estimator_tpu_embedding.midlevel import TPUEmbedding', 'TPUEmbedding', EMBEDDING),
    ('import tensorflow.estimator', 'tensorflow.estimator', V2 + 'estimator'),
    ('import tensorflow.estimator.tpu as e', 'e', V1 + 'estimator.tpu'),
    ('from tensorflow.estimator import EstimatorSpec', 'EstimatorSpec',
     NIGHTLY + 'model_fn.EstimatorSpec'),
    ('import tensorflow.compat.v1 as tf', 'tf.estimator.tpu.TPUEstimatorSpec',
     E + 'estimator.tpu_estimator_spec.TPUEstimatorSpec'),
    ('import tensorflow.compat.v1.estimator.tpu as e', 'e', V1 + 'estimator.tpu'),
    ('from tensorflow.compat.v1.estimator.tpu import TPUEstimator', 'TPUEstimator',
     ESTIMATOR + 'TPUEstimator'),
    ('from tensorflow.compat.v2.compat.v1 import estimator', 'estimator', V1 + 'estimator'),
    ('from tensorflow._api.v2.compat.v1 import estimator', 'estimator', V1 + 'estimator'),
    ('from tensorflow.compat.v1.tpu.experimental import AdamParameters', 'AdamParameters',
     E + 'estimator.parameters.AdamParameters'),
    ('from tensorflow.python.distribute.cluster_resolver import TPUClusterResolver',
     'TPUClusterResolver', E + 'compat.resolver.TPUClusterResolver'),
    ('from tensorflow_estimator.python.estimator.api._v1 import estimator',
     'estimator.tpu.TPUEstimator', ESTIMATOR + 'TPUEstimator'),
    ('from tensorflow_estimator.python.estimator import estimator_lib',
     'estimator_lib.TPUEstimator', ESTIMATOR + 'TPUEstimator'),
    ('import tensorflow_estimator', 'tensorflow_estimator.estimator.tpu.TPUEstimator',
     ESTIMATOR + 'TPUEstimator'),
    ('import tensorflow_estimator.python.estimator.tpu.tpu_estimator',
     'tensorflow_estimator.python.estimator.tpu.tpu_estimator.TPUEstimator',
     ESTIMATOR + 'TPUEstimator'),
    ('from tensorflow_estimator.python.estimator.tpu import tpu_config', 'tpu_config.RunConfig',
     RUN_CONFIG),
    ('from tensorflow_estimator.python.estimator.tpu.tpu_estimator import BatchConfig',
     'BatchConfig', E + 'estimator.tpu_estimator_names.BatchConfig'),
    ('from tensorflow_estimator.python.estimator.tpu._tpu_estimator_embedding import '
     'MomentumParameters', 'MomentumParameters', E + 'estimator.parameters.MomentumParameters'),
    ('from tensorflow.python.tpu import tpu_estimator', 'tpu_estimator.TPUEstimator',
     ESTIMATOR + 'TPUEstimator'),
    ('import tensorflow.python.tpu.tpu_config as e', 'e.TPUConfig', TPU_CONFIG),
    ('from tensorflow.python.tpu import util', 'util', NIGHTLY + 'tpu.util'),
    ('import tensorflow.python.tpu.tpu_embedding as e', 'e.TPUEmbedding',
     E + 'estimator.tpu_embedding.TPUEmbedding'),
    ('from tensorflow.python.tpu import tpu_embedding_gradient',
     'tpu_embedding_gradient.create_dummy_table_variables',
     E + 'estimator.tpu_embedding_gradient.create_dummy_table_variables'),
    ('from tensorflow.python.tpu.async_checkpoint import AsyncCheckpointSaverHook',
     'AsyncCheckpointSaverHook', E + 'runner.checkpoint_hooks.AsyncCheckpointSaverHook'),
    ('from tensorflow.python.tpu import session_support', 'session_support.GracefulShutdownHook',
     E + 'estimator.session_support.GracefulShutdownHook'),
    ('from tensorflow.python.training import training_ops', 'training_ops',
     'tensorflow.python.ops.gen_training_ops'),
    ('from tensorflow.python.estimator import keras', 'keras', NIGHTLY + 'keras_lib'),
    ('from tensorflow.python.estimator.export import export', 'export',
     NIGHTLY + 'export.export'),
]


def resolved(name):
    """Returns the object of a dotted name: an attribute below `tf`, a module, or a name in one.

    Raises:
      ImportError, AttributeError: if it is nothing.
    """
    first, *rest = name.split('.')
    if first == 'tf':
        return functools.reduce(getattr, rest, importlib.import_module('tensorflow'))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition('.')
        return getattr(importlib.import_module(module), last)


def taken(statement, expression):
    """Returns the object that a path leads to."""
    namespace = {}
    exec(statement, namespace)
    return eval(expression, namespace)


def problem(function, *arguments):
    """Returns the error that `function` raises, as text; `''` if it raises none."""
    try:
        function(*arguments)
    except Exception as error:
        return f'{type(error).__name__}: {error}'
    return ''


def leads_to(statement, expression, path):
    """Raises unless a path leads to the very object that has a path."""
    found, wanted = taken(statement, expression), resolved(path)
    if found is not wanted:
        raise AssertionError(f'{found!r} is not {wanted!r}')


def main():
    """Prints the error of each path, and of each name in the golden."""
    from harness.tools import load

    import estimator_tpu_embedding
    from estimator_tpu_embedding.compat import old_names
    estimator_tpu_embedding.install()
    with contextlib.redirect_stdout(io.StringIO()):
        paths = [problem(leads_to, *each) for each in PATHS]
        names = {name: problem(resolved, name) for name in load('make_api_table').all_lost()}
        uses = {name: problem(resolved(name), None, None) for name in names
                if old_names.rule_of(name).fate == 'refused'}
    json.dump({'paths': paths, 'names': names, 'uses': uses}, sys.stdout)


if __name__ == '__main__':
    main()
