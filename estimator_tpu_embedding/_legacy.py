"""The only door to `tensorflow_estimator`, the nightly build that outlived TensorFlow's own.

That package imports modules which TensorFlow 2.16 deleted. Before its first import, empty
stand-ins are put where it looks: adding a module that TensorFlow lacks changes nothing that
exists. Its TPU modules are not loaded either; `compat.install` fills all stand-ins with the
classes of this package.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from .errors import EnvironmentProblem, Problem

_TPU = 'tensorflow_estimator.python.estimator.tpu.'
TPU_NAMES = ('InputPipelineConfig', 'RunConfig', 'TPUConfig', 'TPUEstimator',
             'TPUEstimatorSpec')
STAND_INS = {
    # module: the names that the nightly binds when it is imported
    'tensorflow.python.distribute.estimator_training': (),
    _TPU + 'tpu_config': ('InputPipelineConfig', 'RunConfig', 'TPUConfig'),
    _TPU + 'tpu_estimator': ('TPUEstimator', 'TPUEstimatorSpec'),
    _TPU + '_tpu_estimator_embedding': ('EmbeddingConfigSpec',),
}


class _StandIn(types.ModuleType):
    """A module that says what it lacks."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f'{self.__name__}.{name} was deleted in TensorFlow 2.16; call '
            'estimator_tpu_embedding.install() for the names that are restored')


def load() -> types.ModuleType:
    """Imports the nightly once and returns its `tensorflow_estimator._api.v1.estimator`."""
    name = 'tensorflow_estimator._api.v1.estimator'
    if name not in sys.modules:
        for module, names in STAND_INS.items():
            stand_in = sys.modules.setdefault(module, _StandIn(module))
            for attribute in names:
                setattr(stand_in, attribute, type(attribute, (), {'__module__': module}))
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EnvironmentProblem(Problem(
            'E003', 'tf-estimator-nightly', 'version 2.16.0.dev2024012409 must be importable',
            f'{type(error).__name__}: {error}',
            'pip install "estimator_tpu_embedding[cpu]"')) from error


def estimator_class() -> Any:
    """`tf.compat.v1.estimator.Estimator`."""
    return load().Estimator


def run_config_class() -> Any:
    """`tf.compat.v1.estimator.RunConfig`."""
    return load().RunConfig


def estimator_spec_class() -> Any:
    """`tf.compat.v1.estimator.EstimatorSpec`."""
    return load().EstimatorSpec


def mode_keys() -> Any:
    """`tf.compat.v1.estimator.ModeKeys`: TRAIN, EVAL and PREDICT."""
    return load().ModeKeys


def estimator_module() -> types.ModuleType:
    """The module that defines `Estimator`, for its functions that write event files."""
    load()
    return importlib.import_module('tensorflow_estimator.python.estimator.estimator')
