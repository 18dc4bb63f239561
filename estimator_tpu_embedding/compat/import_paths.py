"""Puts restored names and modules where the imports of scripts look for them.

TensorFlow has several modules for one namespace, each made from the same file. Examples are
`tf.compat.v1.tpu`, `tensorflow.compat.v1.tpu` in an `import`, and
`tensorflow._api.v2.compat.v1.tpu`. A restored name must be in all of them. A name that moved is an
alias: it is looked up when it is asked for, so nothing is imported before, and a name that exists
is never replaced.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import old_names, tf1

V1_ROOTS = ('compat.v1', 'compat.v1.compat.v1', 'compat.v2.compat.v1')
V2_ROOTS = ('', 'compat.v2', 'compat.v1.compat.v2', 'compat.v2.compat.v2')
ROOTS = V1_ROOTS + V2_ROOTS
_PACKAGES = ('tensorflow', 'tensorflow._api.v2')
_OF_KERAS_2 = {f'keras.{name}': 'tf_keras.src.engine' for name in ('engine', 'src.engine')}


def namespaces(path: str, roots: Sequence[str] = ROOTS) -> list[Any]:
    """Returns all modules of a dotted path below roots; none if TensorFlow has none."""
    found = []
    for whole in (_joined(root, path) for root in roots):
        try:
            found.append(functools.reduce(getattr, whole.split('.') if whole else (), tf1.real()))
        except AttributeError:
            pass
        for package in _PACKAGES:
            try:
                found.append(importlib.import_module(_joined(package, whole)))
            except ModuleNotFoundError:
                pass
    return [namespace for namespace in found if not isinstance(namespace, tf1.TensorFlow1)]


def put(path: str, roots: Sequence[str] = ROOTS, /, **names: Any) -> None:
    """Sets names in every module of a dotted path below roots, such as `'tpu.experimental'`."""
    for namespace in namespaces(path, roots):
        for name, value in names.items():
            setattr(namespace, name, value)


def put_module(path: str, module: types.ModuleType) -> None:
    """Makes a module importable under a path, and an attribute of its package."""
    sys.modules[path] = module
    package, _, name = path.rpartition('.')
    setattr(importlib.import_module(package), name, module)


def put_api(root: str, api: Any) -> None:
    """Makes an API module, with the modules in it, importable as `estimator` below a root."""
    put('', (root,), estimator=api)
    for package in _PACKAGES:
        if isinstance(sys.modules[package], tf1.TensorFlow1) and not root:
            continue  # There `tensorflow.estimator` belongs to TensorFlow 1.
        for path, module in _modules_in(_joined(package, root, 'estimator'), api):
            sys.modules[path] = module


def _joined(*parts: str) -> str:
    return '.'.join(part for part in parts if part)


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


def move(packages: Mapping[str, str]) -> None:
    """Makes packages, by their old paths, and all modules in them importable there, once."""
    if not any(isinstance(finder, _Moved) and finder.packages == packages
               for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved(packages))


def advise(advice: Callable[[str], str | None]) -> None:
    """Ends imports of modules that nobody has with advice, as a note, where there is any."""
    sys.meta_path.append(_Advice(advice))


@functools.cache
def put_aliases() -> None:
    """Makes all names of `old_names.moved` available, once, after TensorFlow was imported.

    >>> put_aliases()
    >>> from tensorflow.python.util import nest
    >>> nest.is_sequence is nest.is_nested
    True
    """
    packages = dict(_OF_KERAS_2)
    for path, homes in old_names.homes().items():
        if importlib.util.find_spec(path) is not None:
            continue
        if len(homes) == 1:
            packages[path] = homes[0]
        else:
            spec = importlib.machinery.ModuleSpec(path, None, is_package=True)
            put_module(path, importlib.util.module_from_spec(spec))
    move(packages)
    for path in {*old_names.homes(), *old_names.moved()} & sys.modules.keys():
        look_up_in(sys.modules[path], functools.partial(_alias, path))
    module, _, name = old_names.BUILDER.rpartition('.')
    builder = getattr(sys.modules[module], name)
    for name, home in old_names.moved()[old_names.BUILDER].items():
        if not hasattr(builder, name):
            setattr(builder, name, staticmethod(_value(home)))
    advise(old_names.advice)


def look_up_in(module: types.ModuleType, look_up: Callable[[str], Any]) -> None:
    """Lets a module ask a function for names that it lacks, before it asks what it asked so far.

    The function raises `AttributeError` for a name that it does not know, either.
    """
    before = vars(module).get('__getattr__')

    def __getattr__(name: str) -> Any:  # noqa: N807
        try:
            return look_up(name)
        except (AttributeError, ModuleNotFoundError):  # Not every TensorFlow has every home.
            if before is not None:
                return before(name)
        raise AttributeError(f'module {module.__name__!r} has no attribute {name!r}', name=name,
                             obj=module)

    vars(module)['__getattr__'] = __getattr__


def exports_nothing(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Returns a decorator that changes nothing: no API is made of what it decorates.

    It is `tf_export.estimator_export`, which registered names of `tf.estimator`.
    """
    return lambda decorated: decorated


def _alias(path: str, name: str) -> Any:
    """Returns what a name of a module is today, or raises `AttributeError`."""
    known = old_names.moved().get(path, {}).get(name)
    if known is not None:
        return _value(known)
    homes = old_names.homes().get(path, ())
    if name == '__all__' and homes:
        return [each for home in homes for each in vars(importlib.import_module(home))
                if not each.startswith('_')]
    if not name.startswith('__'):
        for home in map(importlib.import_module, homes):
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(name)


def _value(home: tuple[str, str]) -> Any:
    module, name = home
    return getattr(importlib.import_module(module), name)


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


class _Advice(importlib.abc.MetaPathFinder):
    """Is asked last. unittest and pytest, which catch the error of an import, show its note."""

    def __init__(self, advice: Callable[[str], str | None]):
        self.advice = advice

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: types.ModuleType | None = None) -> None:
        """Finds nothing, and raises the error of an import of a module that is known."""
        is_import = sys._getframe(2).f_code.co_name != 'find_spec'  # That of importlib asks only.
        if is_import and (advice := self.advice(fullname)):
            # Without `name`, by which `from package import module` would forget this error.
            error = ModuleNotFoundError(f'No module named {fullname!r}')
            error.add_note(f'[etpe] {advice}')
            raise error
