"""Makes `import tensorflow as tf` give scripts the names of TensorFlow 1.15.

A module of ours takes the place of TensorFlow 2 under that name, and changes nothing in it.
Libraries need the names of TensorFlow 2. Libraries that are loaded already keep the module that
they imported. A library in `LIBRARIES` that is loaded later gets TensorFlow 2, too.

TensorFlow's own module must not get the names of TensorFlow 1, such as `tf.losses`: the heads of
tensorflow_estimator would then refuse their own defaults.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from . import old_names

VERSION = '1.15.5'
LIBRARIES = frozenset({  # packages whose present releases use names of TensorFlow 2
    'keras', 'tensorboard', 'tensorflow', 'tensorflow_datasets', 'tensorflow_estimator',
    'tensorflow_addons', 'tensorflow_hub', 'tensorflow_io', 'tensorflow_model_optimization',
    'tensorflow_probability', 'tf_keras'})
NO_CONTRIB = ('tf.contrib was removed in TensorFlow 2; "etpe run --contrib" or '
              'install(contrib=True) gives the part of it that jobs for TPUs use')


class TensorFlow1(types.ModuleType):
    """A module `tensorflow` with the names of TensorFlow 1.15."""

    def __init__(self, real: types.ModuleType):
        """Takes `real`, which is TensorFlow 2."""
        super().__init__('tensorflow', 'TensorFlow 1.15, by estimator_tpu_embedding.')
        names = real.compat.v1
        self._real = real
        vars(self).update(
            __file__=real.__file__, __path__=real.__path__, __spec__=real.__spec__,
            __all__=[name for name in dir(names) if not name.startswith('_')],
            # Not compat.v1.compat: statements such as `import tensorflow.compat.v2 as tf` use
            # this attribute, and all share one `tensorflow.compat`.
            compat=real.compat, VERSION=VERSION, __version__=VERSION, version=_version(names))

    def __getattr__(self, name: str) -> Any:
        """Looks among the names of TensorFlow 1, then among the packages that are loaded."""
        try:
            return getattr(self._real.compat.v1, name)
        except AttributeError:
            if f'tensorflow.{name}' in sys.modules:  # For example `tf.python` or `tf.core`.
                return sys.modules[f'tensorflow.{name}']
        if name == 'contrib':
            raise AttributeError(NO_CONTRIB, name=name, obj=self)
        use = old_names.before_1_15().get(name)
        advice = f'; use {use}' if use else ''
        raise AttributeError(f'TensorFlow 1.15, as install(tf1=True) gives it, has no tf.{name}'
                             f'{advice}', name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(self._real.compat.v1)})


def put_in_place() -> None:
    """Makes `tensorflow` that module, with the behaviour of TensorFlow 1.

    Modules that imported `tensorflow` before keep the module that they have. Another call does
    nothing.
    """
    import tensorflow as tf

    from .. import _tf
    if isinstance(tf, TensorFlow1):
        return
    with _tf.without_deprecation_warnings():
        tf.compat.v1.disable_v2_behavior()
    module = sys.modules['tensorflow'] = TensorFlow1(tf)
    for name in module.__all__:  # So `import tensorflow.nn` finds them.
        if isinstance(getattr(module, name), types.ModuleType):
            sys.modules.setdefault(f'tensorflow.{name}', getattr(module, name))
    sys.modules['tensorflow.estimator'] = module.estimator  # Replaces that of 2.
    sys.meta_path.insert(0, _Finder())


def real() -> Any:
    """Returns the module of TensorFlow 2, even if scripts get another under that name."""
    import tensorflow as tf
    return tf._real if isinstance(tf, TensorFlow1) else tf


def _version(names: Any) -> types.ModuleType:
    """Returns a module `tf.version` that agrees with `tf.VERSION`."""
    module = types.ModuleType('tensorflow.version')
    vars(module).update({name: getattr(names.version, name) for name in dir(names.version)
                         if not name.startswith('_')}, VERSION=VERSION)
    return module


class _Finder:
    """Finds the modules of `LIBRARIES`, to be loaded by `_Loader`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
                  ) -> importlib.machinery.ModuleSpec | None:
        if name.partition('.')[0] not in LIBRARIES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module whose import statements, early and late, get TensorFlow 2."""

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)['__builtins__'] = {**vars(builtins), '__import__': _import_tensorflow_2}
        super().exec_module(module)


def _import_tensorflow_2(name: str, globals: Mapping[str, Any] | None = None,
                         locals: Mapping[str, Any] | None = None,
                         fromlist: Sequence[str] = (), level: int = 0) -> Any:
    found = builtins.__import__(name, globals, locals, fromlist, level)
    return found._real if isinstance(found, TensorFlow1) else found
