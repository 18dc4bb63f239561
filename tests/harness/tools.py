"""Loads scripts of `tools` as modules, for tests."""

import functools
import importlib.util
import sys

from .processes import ROOT


@functools.cache
def load(name):
    """Returns `tools/<name>.py` as a module, which finds the scripts beside it."""
    sys.path.insert(0, str(ROOT / 'tools'))
    try:
        spec = importlib.util.spec_from_file_location(name, ROOT / 'tools' / f'{name}.py')
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        del sys.path[0]
