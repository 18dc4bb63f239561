"""The paths by which scripts come to a name.

One namespace of TensorFlow has several: `tf.compat.v1.tpu`, `tensorflow.compat.v1.tpu` in an
`import` and `tensorflow._api.v2.compat.v1.tpu` are modules of their own, each made of the same
file. What is restored must be put into all of them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from . import tf1

V1_ROOTS = ('compat.v1', 'compat.v1.compat.v1', 'compat.v2.compat.v1')
V2_ROOTS = ('', 'compat.v2', 'compat.v1.compat.v2', 'compat.v2.compat.v2')
ROOTS = V1_ROOTS + V2_ROOTS
_PACKAGES = ('tensorflow', 'tensorflow._api.v2')


def joined(*parts: str) -> str:
    """A dotted path of those parts that are not empty."""
    return '.'.join(part for part in parts if part)


def namespaces(path: str) -> list[Any]:
    """The modules that a dotted path below `tf` leads to; none where TensorFlow has none."""
    found = []
    try:
        found.append(functools.reduce(getattr, path.split('.') if path else (), tf1.real()))
    except AttributeError:
        pass
    for package in _PACKAGES:
        try:
            found.append(importlib.import_module(joined(package, path)))
        except ModuleNotFoundError:
            pass
    return [namespace for namespace in found if not isinstance(namespace, tf1.Face)]


def put(path: str, name: str, value: Any) -> None:
    """Makes `value` what `name` is in every module that a path below `tf` leads to."""
    for namespace in namespaces(path):
        setattr(namespace, name, value)


def put_module(path: str, module: types.ModuleType) -> None:
    """Makes a module importable by a path, and an attribute of the package there."""
    sys.modules[path] = module
    package, _, name = path.rpartition('.')
    setattr(importlib.import_module(package), name, module)


def put_api(root: str, api: Any) -> None:
    """Makes an API module `estimator` below a root, with the modules in it."""
    put(root, 'estimator', api)
    for package in _PACKAGES:
        if isinstance(sys.modules[package], tf1.Face) and not root:
            continue  # There `tensorflow.estimator` is that of TensorFlow 1.
        for path, module in _modules_in(joined(package, root, 'estimator'), api):
            sys.modules[path] = module


def _modules_in(path: str, api: Any) -> Iterator[tuple[str, Any]]:
    """The module itself and those in it that are part of the API, with their paths."""
    yield path, api
    for name, value in list(vars(api).items()):
        if isinstance(value, types.ModuleType) and '_api.' in value.__name__:
            yield from _modules_in(f'{path}.{name}', value)


def module_to_fill(path: str, empty: type[types.ModuleType]) -> types.ModuleType:
    """The module at a path; where there is none, a new `empty` one."""
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        module = empty(path)
    put_module(path, module)
    return module


def lead(path: str, target: str) -> None:
    """Makes a path lead to the module `target`, unless there is a module."""
    if path not in sys.modules and importlib.util.find_spec(path) is None:
        put_module(path, importlib.import_module(target))


class MovedPackage(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules of a package by the name that it had: they are the same objects."""

    def __init__(self, old: str, new: str):
        """Makes `old` and all below it lead to `new` and what is below that."""
        self._old, self._new = old, new

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: types.ModuleType | None = None
                  ) -> importlib.machinery.ModuleSpec | None:
        """What `import` calls; `None` for modules of others, and where there is none."""
        if fullname != self._old and not fullname.startswith(f'{self._old}.'):
            return None
        new = self._new + fullname.removeprefix(self._old)
        try:
            importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name == new:
                return None
            raise
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: types.ModuleType) -> None:
        """Puts the one module that there is in the place of the empty one that `import` made."""
        new = self._new + module.__name__.removeprefix(self._old)
        sys.modules[module.__name__] = sys.modules[new]
