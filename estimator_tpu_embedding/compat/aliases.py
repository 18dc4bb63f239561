"""Puts aliases of `moved` in place: old private names of TensorFlow lead to the objects of today.

An alias is looked up when it is asked for. So nothing is imported before, and a name that exists
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
from collections.abc import Callable, Sequence
from typing import Any

from . import moved, roads

_OF_KERAS_2 = {f'keras.{name}': 'tf_keras.src.engine' for name in ('engine', 'src.engine')}


def put_in_place() -> None:
    """Makes all aliases available, once, after TensorFlow was imported.

    >>> put_in_place()
    >>> from tensorflow.python.util import nest
    >>> nest.is_sequence is nest.is_nested
    True
    """
    if any(isinstance(finder, _Advice) for finder in sys.meta_path):
        return
    packages = dict(_OF_KERAS_2)
    for path, homes in moved.homes().items():
        if importlib.util.find_spec(path) is not None:
            continue
        if len(homes) == 1:
            packages[path] = homes[0]
        else:
            spec = importlib.machinery.ModuleSpec(path, None, is_package=True)
            roads.put_module(path, importlib.util.module_from_spec(spec))
    roads.move(packages)
    for path in {*moved.homes(), *moved.names()} & sys.modules.keys():
        add(sys.modules[path], functools.partial(_found, path))
    module, _, name = moved.BUILDER.rpartition('.')
    builder = getattr(sys.modules[module], name)
    for name, home in moved.names()[moved.BUILDER].items():
        if not hasattr(builder, name):
            setattr(builder, name, staticmethod(_value(home)))
    sys.meta_path.append(_Advice())


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


def _found(path: str, name: str) -> Any:
    """Returns what a name of a module is today.

    Raises:
      AttributeError: if nothing is known of it.
    """
    known = moved.names().get(path, {}).get(name)
    if known is not None:
        return _value(known)
    homes = moved.homes().get(path, ())
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


class _Advice(importlib.abc.MetaPathFinder):
    """Is asked last: ends the import of a module that nobody has with advice, as a note."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: types.ModuleType | None = None) -> None:
        """Finds nothing.

        Raises:
          ModuleNotFoundError: in an import of a module that is known. unittest and pytest, which
            catch it, show its note.
        """
        is_import = sys._getframe(2).f_code.co_name != 'find_spec'  # That of importlib asks only.
        if is_import and (advice := moved.advice(fullname)):
            # Without `name`, by which `from package import module` would forget this error.
            error = ModuleNotFoundError(f'No module named {fullname!r}')
            error.add_note(f'[etpe] {advice}')
            raise error
