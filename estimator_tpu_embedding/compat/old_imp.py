"""What old programs use of the module `imp`, which Python 3.12 dropped."""

from __future__ import annotations

import os
import sys
import types
from importlib import machinery, reload, util
from importlib.util import cache_from_source, source_from_cache
from typing import Any

PY_SOURCE, C_EXTENSION, PKG_DIRECTORY = 1, 3, 5
__all__ = ['cache_from_source', 'find_module', 'load_module', 'load_source', 'new_module',
           'reload', 'source_from_cache']

new_module = types.ModuleType


def find_module(name: str, path: Any = None) -> tuple[Any, str, tuple[str, str, int]]:
    """Returns the open file of a module, its path, and what it is.

    Raises:
      ImportError: if there is none.
    """
    spec = machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.origin is None:
        raise ImportError(f'No module named {name!r}', name=name)
    if spec.submodule_search_locations:
        return None, os.path.dirname(spec.origin), ('', '', PKG_DIRECTORY)
    suffix = os.path.splitext(spec.origin)[1]
    details = ('r', PY_SOURCE) if suffix == '.py' else ('rb', C_EXTENSION)
    return open(spec.origin, details[0]), spec.origin, (suffix, *details)


def load_module(name: str, file: Any, filename: str, details: Any) -> types.ModuleType:
    """Imports what `find_module` found, whether or not it was imported before."""
    is_package = details[2] == PKG_DIRECTORY
    return load_source(name, os.path.join(filename, '__init__.py') if is_package else filename)


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Imports a file as the module `name`, whether or not that was imported before."""
    loader = None if pathname.endswith(tuple(machinery.all_suffixes())) else (
        machinery.SourceFileLoader(name, pathname))
    spec = util.spec_from_file_location(name, pathname, loader=loader)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return sys.modules[name]


load_compiled = load_dynamic = load_source
