"""Puts aliases of `moved` in place: old private names of TensorFlow lead to the objects of today.

An alias is looked up when it is asked for. So nothing is imported before, and a name that exists
is never replaced.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import moved

_HAS = '_etpe_aliases'


def put_in_place() -> None:
    """Makes all aliases available, in modules that are loaded and in those that will be.

    >>> put_in_place()
    >>> from tensorflow.python.util import nest
    >>> nest.is_sequence is nest.is_nested
    True
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for path in _owners():
        if path in sys.modules:
            _answer(sys.modules[path])


def add(module: types.ModuleType, look_up: Callable[[str], Any]) -> None:
    """Lets a module ask a function for names that it lacks, before it asks what it asked so far.

    Args:
      module: any module; it is asked first itself, as Python does.
      look_up: returns the value of a name; raises `AttributeError` if it knows none.
    """
    before = vars(module).get('__getattr__')

    def __getattr__(name: str) -> Any:  # noqa: N807
        try:
            return look_up(name)
        except AttributeError:
            if before is not None:
                return before(name)
        raise AttributeError(f'module {module.__name__!r} has no attribute {name!r}', name=name,
                             obj=module)

    vars(module)['__getattr__'] = __getattr__


@functools.cache
def _owners() -> dict[str, dict[str, dict[str, tuple[str, str]]]]:
    """Returns the aliases of each module, by class; those of the module itself by `''`."""
    found: dict[str, dict[str, dict[str, tuple[str, str]]]] = {}
    for path, names in moved.names().items():
        module, _, last = path.rpartition('.')
        owner, part = (module, last) if last[:1].isupper() else (path, '')
        found.setdefault(owner, {})[part] = names
    return found


def exports_nothing(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Returns a decorator that changes nothing: no API is made of what it decorates.

    It is `tf_export.estimator_export`, which registered names of `tf.estimator`.
    """
    return lambda decorated: decorated


def _answer(module: types.ModuleType) -> None:
    """Gives a module that is loaded its aliases, once."""
    parts = _owners()[module.__name__]
    if _HAS in vars(module):
        return
    vars(module)[_HAS] = True
    add(module, functools.partial(_found, module.__name__))
    for part, names in parts.items():
        for name, home in names.items() if part else ():
            if not hasattr(getattr(module, part), name):
                setattr(getattr(module, part), name, _OnClass(home))


def _found(path: str, name: str) -> Any:
    """Returns what a name of a module is today.

    Raises:
      AttributeError: if nothing is known of it.
    """
    known = moved.names().get(path, {}).get(name)
    if known is not None:
        return _value(known)
    if not name.startswith('__'):
        for home in moved.homes().get(path, ()):
            if hasattr(module := importlib.import_module(home), name):
                return getattr(module, name)
    raise AttributeError(name)


def _value(home: tuple[str, str]) -> Any:
    module, name = home
    return getattr(importlib.import_module(module), name)


class _OnClass:
    """An alias of a static method."""

    def __init__(self, home: tuple[str, str]):
        self._home = home

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return _value(self._home)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules that are gone, and gives aliases to others as soon as they are imported."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: types.ModuleType | None = None
                  ) -> importlib.machinery.ModuleSpec | None:
        """Answers `import`; `None` for modules without aliases.

        Raises:
          ModuleNotFoundError: with advice as a note, for a module that is gone without an alias.
        """
        if not fullname.startswith('tensorflow.python.'):
            return None
        if fullname.removeprefix('tensorflow.python.') in moved.TODAY and (
                importlib.machinery.PathFinder.find_spec(fullname, path) is None):
            # Without `name`, by which `from package import module` would forget this error.
            error = ModuleNotFoundError(f'No module named {fullname!r}')
            # Here, since unittest and pytest catch the error, and show its notes.
            error.add_note(f'[etpe] {moved.advice(fullname)}')
            raise error
        home = _only_home(fullname)
        if not home and fullname not in moved.homes() and fullname not in _owners():
            return None
        found = None if home and _only_home(fullname.rpartition('.')[0]) else (
            importlib.machinery.PathFinder.find_spec(fullname, path))
        if found is None and home:
            try:
                importlib.import_module(home)
            except ModuleNotFoundError as error:
                if error.name != home:
                    raise
                return None
        if found is None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if fullname in _owners() and found.loader is not None:
            execute = found.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                _answer(module)

            vars(found.loader)['exec_module'] = exec_module
        return found

    def exec_module(self, module: types.ModuleType) -> None:
        """Puts the module of today in the place of a new one, or lets that look in its homes."""
        if home := _only_home(module.__name__):
            sys.modules[module.__name__] = sys.modules[home]
        else:
            add(module, functools.partial(_found, module.__name__))


def _only_home(path: str) -> str:
    """Returns the module that a module which is gone is today; `''` if it has not just one.

    Modules of a package have their home in that of the package.
    """
    known, rest = path, ''
    while known and known not in moved.homes():
        known, _, last = known.rpartition('.')
        rest = f'.{last}{rest}'
    new = moved.homes().get(known, ())
    return f'{new[0]}{rest}' if len(new) == 1 and path not in moved.names() else ''
