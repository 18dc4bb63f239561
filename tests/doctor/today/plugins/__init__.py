"""Modules that are imported when somebody asks for them."""
import importlib

__all__ = ['readers', 'table']


def __getattr__(name):
    if name in __all__:
        return importlib.import_module('.' + name, __name__)
    raise AttributeError(name)
