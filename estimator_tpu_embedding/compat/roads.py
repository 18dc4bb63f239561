"""Puts restored names into every module through which scripts may reach them.

TensorFlow has several modules for one namespace, each made from the same file. Examples are
`tf.compat.v1.tpu`, `tensorflow.compat.v1.tpu` in an `import`, and
`tensorflow._api.v2.compat.v1.tpu`. A restored name must be in all of them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import tf1

V1_ROOTS = ('compat.v1', 'compat.v1.compat.v1', 'compat.v2.compat.v1')
V2_ROOTS = ('', 'compat.v2', 'compat.v1.compat.v2', 'compat.v2.compat.v2')
ROOTS = V1_ROOTS + V2_ROOTS
_PACKAGES = ('tensorflow', 'tensorflow._api.v2')


def joined(*parts: str) -> str:
    """Returns a dotted path of the parts that are not empty."""
    return '.'.join(part for part in parts if part)


def namespaces(path: str) -> list[Any]:
    """Returns all modules of a dotted path below `tf`; none if TensorFlow has none."""
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
    """Sets `name` to `value` in every module of a path below `tf`."""
    for namespace in namespaces(path):
        setattr(namespace, name, value)


def put_module(path: str, module: types.ModuleType) -> None:
    """Makes a module importable under a path, and an attribute of its package."""
    sys.modules[path] = module
    package, _, name = path.rpartition('.')
    setattr(importlib.import_module(package), name, module)


def put_api(root: str, api: Any) -> None:
    """Makes an API module, with the modules in it, importable as `estimator` below a root."""
    put(root, 'estimator', api)
    for package in _PACKAGES:
        if isinstance(sys.modules[package], tf1.Face) and not root:
            continue  # There `tensorflow.estimator` belongs to TensorFlow 1.
        for path, module in _modules_in(joined(package, root, 'estimator'), api):
            sys.modules[path] = module


def _modules_in(path: str, api: Any) -> Iterator[tuple[str, Any]]:
    """Yields the path and module of an API module, and of each module of the API in it."""
    yield path, api
    for name, value in list(vars(api).items()):
        if isinstance(value, types.ModuleType) and '_api.' in value.__name__:
            yield from _modules_in(f'{path}.{name}', value)


def module_to_fill(path: str, empty: type[types.ModuleType]) -> types.ModuleType:
    """Returns the module at a path; if there is none, a new one of the class `empty`."""
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        module = empty(path)
    put_module(path, module)
    return module


def lead(path: str, target: str) -> None:
    """Makes a path lead to the module `target`, unless the path has a module."""
    if path not in sys.modules and importlib.util.find_spec(path) is None:
        put_module(path, importlib.import_module(target))


def move(packages: Mapping[str, str]) -> None:
    """Makes packages, and all modules in them, importable under old names, once.

    Args:
      packages: by the old path of each the path of today. `import` makes the same objects of both.
    """
    if not any(isinstance(finder, _Moved) and finder.packages == packages
               for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved(packages))


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules that have another path today."""

    def __init__(self, packages: Mapping[str, str]):
        self.packages = packages

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: types.ModuleType | None = None
                  ) -> importlib.machinery.ModuleSpec | None:
        """Answers `import`; `None` for other packages, and for modules that do not exist."""
        if not (new := self._today(fullname)):
            return None
        try:
            importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name == new:
                return None
            raise
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: types.ModuleType) -> None:
        """Replaces the empty module that `import` made by the existing module."""
        sys.modules[module.__name__] = sys.modules[self._today(module.__name__)]

    def _today(self, path: str) -> str:
        known = path
        while known and known not in self.packages:
            known = known.rpartition('.')[0]
        return self.packages[known] + path.removeprefix(known) if known else ''
