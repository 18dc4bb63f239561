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

from . import _distribution
from .errors import Problem, SetupError


def _placeholders(*names: str) -> dict[str, Any]:
    """Classes that only stand where `compat.install` will put others."""
    return {name: type(name, (), {}) for name in names}


_TPU = 'tensorflow_estimator.python.estimator.tpu'
STAND_INS: dict[str, dict[str, Any]] = {
    # module: what the nightly asks it for
    'tensorflow.python.distribute.estimator_training': {
        name: getattr(_distribution, name) for name in (
            'CHIEF', 'EVALUATOR', 'PS', 'WORKER', 'estimator_evaluate', 'estimator_train',
            'init_run_config', 'should_run_distribute_coordinator', 'train_and_evaluate')},
    f'{_TPU}.tpu_config': _placeholders('InputPipelineConfig', 'RunConfig', 'TPUConfig'),
    f'{_TPU}.tpu_context': _placeholders('TPUContext'),
    f'{_TPU}.tpu_estimator': _placeholders(
        'AdagradParameters', 'AdamParameters', 'BatchConfig', 'EmbeddingConfigSpec',
        'ExportSavedModelApiVersion', 'StochasticGradientDescentParameters', 'TPUEstimator',
        'TPUEstimatorSpec', 'TPUInfeedOutfeedSessionHook', 'export_estimator_savedmodel'),
    f'{_TPU}._tpu_estimator_embedding': _placeholders(
        'AdagradParameters', 'AdamParameters', 'EmbeddingConfigSpec',
        'StochasticGradientDescentParameters'),
}


class StandIn(types.ModuleType):
    """A module that says what it lacks."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f'{self.__name__}.{name} was deleted in TensorFlow 2.16 and is '
                             'not among the names that estimator_tpu_embedding restores')


def load() -> types.ModuleType:
    """Imports the nightly once and returns its `tensorflow_estimator._api.v1.estimator`."""
    name = 'tensorflow_estimator._api.v1.estimator'
    if name not in sys.modules:
        for path, names in STAND_INS.items():
            vars(sys.modules.setdefault(path, StandIn(path))).update(names)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(Problem(
            'E003', 'tf-estimator-nightly', 'version 2.16.0.dev2024012409 must be importable',
            f'{type(error).__name__}: {error}',
            'pip install tf-estimator-nightly==2.16.0.dev2024012409')) from error


def load_v2() -> types.ModuleType:
    """`tensorflow_estimator._api.v2.estimator`, which TensorFlow 2.x has under `tf`."""
    load()
    return importlib.import_module('tensorflow_estimator._api.v2.estimator')


def keras_module() -> types.ModuleType:
    """The module of `model_to_estimator`, which TensorFlow 1.x called `estimator.keras`."""
    load()
    return importlib.import_module('tensorflow_estimator.python.estimator.keras_lib')


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
    """The module that defines `Estimator`, for its checks and its writers of event files."""
    load()
    return importlib.import_module('tensorflow_estimator.python.estimator.estimator')
