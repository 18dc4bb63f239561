"""Modules of `tensorflow.python.tpu` that TensorFlow 2.16 deleted, made of ours."""

from __future__ import annotations

import types
from typing import Any

from .. import _legacy
from ..estimator import (
    enqueue_data, parameters, slot_variables, table_config, tpu_embedding, tpu_embedding_gradient)

_PARTS = {
    'tensorflow.python.tpu.tpu_embedding': (
        enqueue_data, parameters, slot_variables, table_config, tpu_embedding),
    'tensorflow.python.tpu.tpu_embedding_gradient': (tpu_embedding_gradient,)}


def deleted_modules() -> dict[str, types.ModuleType]:
    """By the path that scripts import them by."""
    modules: dict[str, types.ModuleType] = {}
    for path, parts in _PARTS.items():
        modules[path] = _legacy.StandIn(path)
        for part in parts:
            vars(modules[path]).update(_names_of(part))
    return modules


def _names_of(part: types.ModuleType) -> dict[str, Any]:
    """What a module defines: constants, classes and functions, and no imports of its own."""
    return {name: value for name, value in vars(part).items()
            if name.isupper() and isinstance(value, int)
            or getattr(value, '__module__', None) == part.__name__}
