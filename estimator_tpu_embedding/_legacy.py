"""Imports `tensorflow_estimator`, the nightly build of Estimators; no other module imports it.

TensorFlow 2.16 dropped Estimators, and the nightly imports modules that TensorFlow deleted too.
`load` puts stand-ins in their place, and then imports the nightly. Nothing that exists is changed.
The nightly's own TPU modules stay unloaded: `compat.install` fills their stand-ins with the classes
of this package. `TF_CONFIG`, which the nightly reads, is checked here.

The other functions return classes of the nightly, call its private functions, or add hooks to the
trainings of every plain Estimator. Some subclasses in this package also override private methods
of `Estimator` and `RunConfig`. TensorFlow 2.15 documents both as classes to extend.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import re
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import _distribution
from .errors import ConfigError, Problem, SetupError, UnsupportedError, shown

_LONGEST_TF_CONFIG = 2**22
"""In characters; a cluster of 4,096 tasks takes some 10^5."""


def _placeholders(*names: str) -> dict[str, Any]:
    """Makes classes that stand where `compat.install` will put others."""
    return {name: type(name, (), {}) for name in names}


_TPU = 'tensorflow_estimator.python.estimator.tpu'
STAND_INS: dict[str, dict[str, Any]] = {
    # module: the names that the nightly asks it for
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
    """A module whose missing names say that TensorFlow deleted them."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f'{self.__name__}.{name} was deleted in TensorFlow 2.16 and is '
                             'not among the names that estimator_tpu_embedding restores')


@functools.cache
def load() -> types.ModuleType:
    """Imports the nightly once and returns its `tensorflow_estimator._api.v1.estimator`."""
    for path, names in STAND_INS.items():
        vars(sys.modules.setdefault(path, StandIn(path))).update(names)
    try:
        run_config = importlib.import_module('tensorflow_estimator.python.estimator.run_config')
        # There it reads TF_CONFIG by `json.loads`.
        vars(run_config)['json'] = types.SimpleNamespace(loads=_read_tf_config)
        return importlib.import_module('tensorflow_estimator._api.v1.estimator')
    except ImportError as error:
        raise SetupError(Problem(
            'E003', 'tf-estimator-nightly', 'version 2.16.0.dev2024012409 must be importable',
            f'{type(error).__name__}: {error}',
            'pip install tf-estimator-nightly==2.16.0.dev2024012409')) from error


def load_v2() -> types.ModuleType:
    """Returns `tensorflow_estimator._api.v2.estimator`, which TensorFlow 2.x has under `tf`."""
    load()
    return importlib.import_module('tensorflow_estimator._api.v2.estimator')


def module(name: str) -> Any:
    """Returns a module of the nightly by its path below `tensorflow_estimator.python.estimator`."""
    load()
    return importlib.import_module(f'tensorflow_estimator.python.estimator.{name}')


def keras_module() -> Any:
    """Returns the module of `model_to_estimator`, once `estimator.keras` of TensorFlow 1.x."""
    keras = module('keras_lib')
    make = keras.model_to_estimator
    if not hasattr(make, '__wrapped__'):
        @functools.wraps(make)
        def model_to_estimator(keras_model: Any = None, *args: Any, **kwargs: Any) -> Any:
            for cls in type(keras_model).__mro__:
                if cls.__module__.startswith('keras.'):
                    raise UnsupportedError(Problem(
                        'E938', 'model_to_estimator', 'the model must be of Keras 2',
                        f'{type(keras_model).__name__}, of Keras 3', 'Make it of tf_keras: "import '
                        'tf_keras as keras". With TF_USE_LEGACY_KERAS=1 in the environment, which '
                        'etpe run sets, tf.keras is that too.'))
            return make(keras_model, *args, **kwargs)

        keras.model_to_estimator = model_to_estimator
    return keras


def original_tpu_estimator(*, tpu_embedding: dict[str, Any], gradients: dict[str, Any],
                           support: dict[str, Any], slot_names: Callable[..., Any], system: Any
                           ) -> types.ModuleType:
    """Imports the nightly's own `tpu_estimator`, which is the TPUEstimator of TensorFlow 2.15.

    `sys.modules` keeps the stand-ins and our classes in them; who imports finds these, as before.

    Args:
      tpu_embedding: the names of `tensorflow.python.tpu.tpu_embedding`, which TensorFlow deleted.
      gradients: those of `tpu_embedding_gradient`.
      support: those of `session_support`.
      slot_names: called with scope, name and parameters of a table, for the names of its slots.
      system: has the two functions of `tpu_system_metadata` that find a TPU.
    """
    load()
    folder = importlib.import_module('tensorflow.python.tpu')
    deleted = {f'{folder.__name__}.{name}': names for name, names in (
        ('tpu_embedding', tpu_embedding), ('tpu_embedding_gradient', gradients),
        ('session_support', support))}
    before = {path: module for path, module in sys.modules.items()
              if path in deleted or path == _TPU or path.startswith(f'{_TPU}.')}
    packages = [importlib.import_module(_TPU.rpartition('.')[0]), folder]
    names_before = [dict(vars(package)) for package in packages]
    for path in before:
        del sys.modules[path]
    try:
        for path, names in deleted.items():
            sys.modules[path] = types.ModuleType(path)
            vars(sys.modules[path]).update(names)
            setattr(folder, path.rpartition('.')[2], sys.modules[path])
        module: Any = importlib.import_module(f'{_TPU}.tpu_estimator')
    finally:
        for path in [path for path in sys.modules
                     if path in deleted or path.startswith(f'{_TPU}.')]:
            del sys.modules[path]
        sys.modules.update(before)
        for package, names in zip(packages, names_before):
            for name in vars(package).keys() - names.keys():
                delattr(package, name)
            vars(package).update(names)
    module._tpu_estimator_embedding._get_slot_variable_names = slot_names
    module.tpu_context.tpu_system_metadata_lib = system
    return module


def context_of_tpu_estimator(estimator: Any, mode: str) -> Any:
    """Returns what the original's TPUEstimator knows of its system in a mode, as a context."""
    return estimator._ctx.with_mode(mode)


def step_reached(directory: str) -> int:
    """Returns the global step of the newest checkpoint in a directory; 0 without one."""
    return int(module('estimator')._load_global_step_from_checkpoint_dir(directory))


def check_model_fn(model_fn: Callable[..., Any] | None, params: Any) -> None:
    """Raises ValueError, in the original's words, unless an Estimator can call a model_fn."""
    module('estimator')._verify_model_fn_args(model_fn, params)


def checked_hooks(hooks: Sequence[Any] | None) -> list[Any]:
    """Returns hooks as a list; raises TypeError if one of them is no `SessionRunHook`."""
    found: list[Any] = module('estimator')._check_hooks_type(hooks)
    return found


def write_evaluation(directory: str, metrics: dict[str, Any], step: int, prefix: str | None
                     ) -> None:
    """Writes metrics at a global step, and the checkpoint if any, to a directory's event file."""
    module('estimator')._write_dict_to_summary(directory, metrics, step)
    if prefix is not None:
        module('estimator')._write_checkpoint_path_to_summary(directory, prefix, step)


def model_fn_of(estimator: Any) -> Callable[..., Any]:
    """Returns the model_fn that an Estimator was given; its property `model_fn` hides `params`."""
    found: Callable[..., Any] = estimator._model_fn
    return found


class Training(NamedTuple):
    """A training of a plain Estimator whose graph is built; `hooks` lack those of `spec`."""

    estimator: Any
    spec: Any
    hooks: Sequence[Any]
    global_step: Any
    listeners: Sequence[Any] | None


def surround_trainings(
        around: Callable[[Training], contextlib.AbstractContextManager[Sequence[Any]]]) -> None:
    """Runs every training of every plain Estimator within a context, unless an earlier call did.

    The value of the context is more hooks.
    """
    original = load().Estimator._train_with_estimator_spec
    if hasattr(original, '__wrapped__'):
        return

    @functools.wraps(original)
    def surrounded(self: Any, estimator_spec: Any, worker_hooks: list[Any], hooks: Sequence[Any],
                   global_step_tensor: Any, saving_listeners: Any) -> Any:
        training = Training(self, estimator_spec, (*worker_hooks, *hooks), global_step_tensor,
                            saving_listeners)
        with around(training) as more:
            return original(self, estimator_spec, worker_hooks, [*hooks, *more],
                            global_step_tensor, saving_listeners)

    load().Estimator._train_with_estimator_spec = surrounded


def _read_tf_config(text: str) -> Any:
    """Returns the value of `TF_CONFIG`; raises ConfigError if its form is not the expected one."""
    found, got = None, f'{len(text):,} characters'
    if len(text) <= _LONGEST_TF_CONFIG:
        got = shown(text) or 'nothing'
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            got = f'{type(error).__name__}: {error}, in {got}'
    if not _is_tf_config(found):
        raise ConfigError(Problem(
            'E469', 'TF_CONFIG', f'it must hold an object of JSON, at most {_LONGEST_TF_CONFIG:,} '
            'characters long, such as {"cluster": {"worker": ["host:port"]}, "task": {"type": '
            '"worker", "index": 0}}', got,
            'Correct the environment variable, or unset it to run in one process.'))
    return found


def _is_tf_config(found: Any) -> bool:
    if not isinstance(found, dict):
        return False
    cluster, task = found.get('cluster', {}), found.get('task', {})
    if not isinstance(cluster, dict) or not isinstance(task, dict):
        return False
    jobs = [list(tasks.values()) if isinstance(tasks, dict) and all(
        re.fullmatch('[0-9]+', one) for one in tasks) else tasks for tasks in cluster.values()]
    return (all(isinstance(tasks, list) and all(isinstance(one, str) for one in tasks)
                for tasks in jobs)
            and re.fullmatch('-?[0-9]{1,9}', str(task.get('index', 0))) is not None
            and isinstance(task.get('type', ''), str))
