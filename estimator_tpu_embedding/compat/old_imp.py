"""The module `imp`, which Python 3.12 dropped, over `importlib`."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import types
from importlib import reload
from importlib.util import MAGIC_NUMBER, cache_from_source, source_from_cache
from typing import Any

SEARCH_ERROR, PY_SOURCE, PY_COMPILED, C_EXTENSION, _, PKG_DIRECTORY = range(6)
__all__ = ['cache_from_source', 'find_module', 'get_magic', 'get_suffixes', 'load_compiled',
           'load_module', 'load_source', 'new_module', 'reload', 'source_from_cache']

new_module = types.ModuleType


def get_magic() -> bytes:
    """Returns the number with which compiled files begin."""
    return MAGIC_NUMBER


def get_suffixes() -> list[tuple[str, str, int]]:
    """Returns the endings of files of modules, with the mode to open each, and its kind."""
    machinery = importlib.machinery
    return [*((suffix, 'rb', C_EXTENSION) for suffix in machinery.EXTENSION_SUFFIXES),
            *((suffix, 'r', PY_SOURCE) for suffix in machinery.SOURCE_SUFFIXES),
            *((suffix, 'rb', PY_COMPILED) for suffix in machinery.BYTECODE_SUFFIXES)]


def find_module(name: str, path: Any = None) -> tuple[Any, str, tuple[str, str, int]]:
    """Returns the open file of a module, its path, and what it is.

    Raises:
      ImportError: if there is none.
    """
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.origin is None:
        raise ImportError(f'No module named {name!r}', name=name)
    if spec.submodule_search_locations:
        return None, os.path.dirname(spec.origin), ('', '', PKG_DIRECTORY)
    suffix = next(each for each in get_suffixes() if spec.origin.endswith(each[0]))
    return open(spec.origin, suffix[1]), spec.origin, suffix


def load_module(name: str, file: Any, filename: str, details: Any) -> types.ModuleType:
    """Imports what `find_module` found, whether or not it was imported before."""
    is_package = details[2] == PKG_DIRECTORY
    return load_source(name, os.path.join(filename, '__init__.py') if is_package else filename)


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Imports a file as the module `name`, whether or not that was imported before.

    Raises:
      ImportError: if it is no file of a module.
    """
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f'{pathname} is no module', name=name, path=pathname)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return sys.modules[name]


load_compiled = load_dynamic = load_source
