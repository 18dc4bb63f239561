"""Makes `tf.contrib` and its modules importable, and names replacements for names it lacks."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import tf_slim

from ... import _tf
from .. import roads, tf1
from ..resolver import TPUClusterResolver
from . import advice, data, opt, same, slim, summary, tpu

_ROOT = 'tensorflow.contrib'
AREAS: dict[str, dict[str, Any]] = {
    **slim.AREAS, 'data': data.NAMES, 'cluster_resolver': {
        **same.names_of('cluster_resolver'), 'TPUClusterResolver': TPUClusterResolver},
    'opt': opt.NAMES, 'summary': summary.NAMES, 'tpu': tpu.NAMES}
"""By area, its names."""

_INNER_PATHS: dict[str, dict[str, tuple[str, ...]]] = {
    # area: packages in it that scripts of 2018 imported from, and modules in them
    'cluster_resolver': {'python.training': (
        'cluster_resolver', 'tpu_cluster_resolver')},
    'data': {'python.ops': ('batching', 'grouping', 'interleave_ops', 'shuffle_ops')},
    'framework': {'python.framework': ('checkpoint_utils',),
                  'python.ops': ('arg_scope', 'variables')},
    'layers': {'python.layers': ('initializers', 'layers', 'optimizers', 'regularizers')},
    'metrics': {'python.metrics': ('classification',),
                'python.ops': ('confusion_matrix_ops', 'metric_ops', 'set_ops')},
    'opt': {'python.training': (
        'lars_optimizer', 'lazy_adam_optimizer', 'weight_decay_optimizers')},
    'summary': {'': ('summary',)},
    'tpu': {'python.tpu': ('async_checkpoint',)},
    'training': {'python.training': ('evaluation', 'hparam')}}
_NIGHTLY = 'tensorflow_estimator.python.estimator.tpu'


class _Area(types.ModuleType):
    """The module `tensorflow.contrib`, or a module below it."""

    def __init__(self, path: str, names: Mapping[str, Any]):
        super().__init__(path)
        spec = importlib.machinery.ModuleSpec(path, None, is_package=True)
        vars(self).update(names, __path__=[], __spec__=spec, __all__=sorted(names))

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        raise AttributeError(advice.missing(f'{self.__name__}.{name}'), name=name, obj=self)


class _Answer:
    """Refuses to import unknown modules below `tensorflow.contrib`, and names replacements."""

    @staticmethod
    def find_spec(name: str, path: Any, target: types.ModuleType | None = None) -> None:
        if name.startswith(f'{_ROOT}.'):
            # Of one with a `name`, `from ... import ...` would swallow the message.
            raise ModuleNotFoundError(advice.missing(name))


def put_in_place() -> None:
    """Makes `tf.contrib` and the modules below it; another call does nothing."""
    if _ROOT in sys.modules:
        return
    modules: dict[str, types.ModuleType] = {}
    for name, names in AREAS.items():
        modules[name] = _Area(f'{_ROOT}.{name}', names)
    root = _Area(_ROOT, {**modules, 'slim': tf_slim})
    for path, module in [*modules.items(), *_inner(modules)]:
        sys.modules[f'{_ROOT}.{path}'] = module
        package, _, name = path.rpartition('.')
        setattr(sys.modules[f'{_ROOT}.{package}'] if package else root, name, module)
    sys.modules[_ROOT] = root
    real = tf1.real()
    for namespace in (real, real.compat.v1):
        namespace.contrib = root
    sys.meta_path.insert(0, _Answer())
    roads.move({f'{_ROOT}.slim': 'tf_slim'})  # It is asked before that one.


def _inner(modules: Mapping[str, types.ModuleType]) -> Iterator[tuple[str, types.ModuleType]]:
    """Yields the path and module of each inner path, packages before their modules."""
    for area, packages in _INNER_PATHS.items():
        for package, leaves in packages.items():
            path = area
            for part in package.split('.') if package else ():
                path = f'{path}.{part}'
                yield path, _Area(f'{_ROOT}.{path}', {})
            for leaf in leaves:
                yield f'{path}.{leaf}', modules[area]
    for name in ('tpu_config', 'tpu_context', 'tpu_estimator'):
        yield f'tpu.python.tpu.{name}', sys.modules[f'{_NIGHTLY}.{name}']
    for name, module in _tf.modules_of_contrib().items():
        if module.__name__.startswith('tensorflow.python.tpu.'):
            yield f'tpu.python.tpu.{name}', module
    yield 'tpu.python.ops', _Area(f'{_ROOT}.tpu.python.ops', {})
    yield 'tpu.python.ops.tpu_ops', _tf.tpu_ops_module()
