"""The only door to `tensorflow_estimator`, the nightly build that outlived TensorFlow's own.

That package imports modules which TensorFlow 2.16 deleted. Before its first import, empty
stand-ins are put where it looks: adding a module that TensorFlow lacks changes nothing that
exists. Its TPU modules are not loaded either; `compat.install` fills all stand-ins with the
classes of this package.

The nightly is also the one reader of `TF_CONFIG`, in its module `run_config`. There the module
`json` is exchanged for `_TfConfig`, which says what is wrong with that variable.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

from . import _distribution
from .errors import ConfigError, Problem, SetupError, shown


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


class _TfConfig:
    """Reads `TF_CONFIG` in the place of the module `json`."""

    MAX_LENGTH = 2**22
    """Characters; a cluster of 4,096 tasks has some 10^5."""

    MAX_DEPTH = 32

    @classmethod
    def loads(cls, text: str) -> dict[str, Any]:
        """The object that the variable holds; an empty one is none.

        Raises:
          ConfigError: if it cannot be read, or its parts are not of the documented form.
        """
        if len(text) > cls.MAX_LENGTH:
            raise ConfigError(_wrong_tf_config(
                f'it must have at most {cls.MAX_LENGTH:,} characters', f'{len(text):,}'))
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(_wrong_tf_config(
                'it must hold an object of JSON', f'{type(error).__name__}: {error}, in '
                f'{shown(text) or "nothing"}')) from error
        problems = list(_problems_of_tf_config(found, cls.MAX_DEPTH))
        if problems:
            raise ConfigError(*problems)
        return found


def _problems_of_tf_config(found: Any, max_depth: int) -> Iterator[Problem]:
    """What is wrong with the value of `TF_CONFIG`, where its readers could not say it."""
    level = [found]
    for _ in range(max_depth):
        level = [part for one in level if isinstance(one, (dict, list))
                 for part in (one.values() if isinstance(one, dict) else one)]
    if level:
        yield _wrong_tf_config(f'it may be nested {max_depth} deep', 'more')
    elif not isinstance(found, dict):
        yield _wrong_tf_config('it must hold an object of JSON', _as_json(found))
    else:
        yield from _problems_of_cluster(found.get('cluster', {}))
        yield from _problems_of_task(found.get('task', {}))


def _problems_of_cluster(cluster: Any) -> Iterator[Problem]:
    if not isinstance(cluster, dict):
        yield _wrong_tf_config('its "cluster" must be an object', _as_json(cluster))
        return
    for job, tasks in cluster.items():
        is_numbered = isinstance(tasks, dict) and all(re.fullmatch('[0-9]+', one) for one in tasks)
        addresses = list(tasks.values()) if is_numbered else tasks
        if not isinstance(addresses, list) or not all(isinstance(one, str) for one in addresses):
            yield _wrong_tf_config(f'job "{shown(job)}" of its "cluster" must list addresses',
                                   _as_json(tasks))


def _problems_of_task(task: Any) -> Iterator[Problem]:
    if not isinstance(task, dict):
        yield _wrong_tf_config('its "task" must be an object', _as_json(task))
        return
    if not re.fullmatch('-?[0-9]{1,9}', str(task.get('index', 0))):
        yield _wrong_tf_config('"index" of its "task" must be a whole number',
                               _as_json(task['index']))
    if not isinstance(task.get('type', ''), str):
        yield _wrong_tf_config('"type" of its "task" must be a string', _as_json(task['type']))


def _as_json(value: Any) -> str:
    return shown(json.dumps(value))


def _wrong_tf_config(rule: str, got: str) -> Problem:
    return Problem('E469', 'TF_CONFIG', rule, got,
                   'Correct the environment variable, or unset it to run in one process.')


def load() -> types.ModuleType:
    """Imports the nightly once and returns its `tensorflow_estimator._api.v1.estimator`."""
    name = 'tensorflow_estimator._api.v1.estimator'
    if name not in sys.modules:
        for path, names in STAND_INS.items():
            vars(sys.modules.setdefault(path, StandIn(path))).update(names)
    try:
        run_config = importlib.import_module('tensorflow_estimator.python.estimator.run_config')
        vars(run_config)['json'] = _TfConfig
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
