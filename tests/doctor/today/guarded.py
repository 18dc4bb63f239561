"""Imports that may fail, and a name for each that did."""
from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from package_of_nobody import Model

try:
    import ujson_of_nobody as json
except ImportError:
    import json

try:
    from math import prod
except ImportError:  # Python 3.7
    def prod(values):
        return np.prod(values)

with contextlib.suppress(ImportError):
    import horovod.tensorflow as hvd

if importlib.util.find_spec('tensor2tensor') is not None:
    import tensor2tensor

try:
    import torch_of_nobody
    HAS_TORCH = True
except Exception:
    HAS_TORCH = False

if sys.version_info[0] == 2:
    string_types = basestring,
else:
    string_types = str,

integer = np.int64 if sys.platform != 'win32' else np.int32
bool_ = getattr(np, 'bool_', None) or np.bool8


def to_torch(array) -> Model:
    if not HAS_TORCH:
        raise RuntimeError('torch is not installed')
    return torch_of_nobody.tensor(array)


def sizes(tables: Mapping[str, int]) -> int:
    return prod(tables.values())


reader = importlib.import_module('csv')
print(json.dumps(sizes({'a': 2})), isinstance('x', string_types), integer, bool_, reader.reader)
print('reached the last line')
