"""NumPy 2 and modules of it that are attributes of others."""
import collections.abc
import functools
import os.path
import xml.etree.ElementTree as ElementTree
from concurrent import futures

import numpy as np
import numpy.typing as npt
from numpy.lib import stride_tricks
from numpy.random import default_rng


def windows(values: npt.NDArray[np.float64], size: int) -> np.ndarray:
    return stride_tricks.sliding_window_view(values, size)


def kind(value):
    match value:
        case np.ndarray(ndim=1):
            return 'row'
        case collections.abc.Mapping():
            return 'mapping'
    return 'other'


random = default_rng(1)
values = random.random(5)
print(windows(values, 2).shape, kind(values), kind({}), np.bool_(True), np.char.upper('a'))
print(np.linalg.norm(values), np.testing.assert_allclose(1, 1), np.iinfo(np.int32).max)
print(np.add.reduce(values), np.random.RandomState(0).rand(), np.ma.masked, np.c_[1, 2])
print(np.lib.stride_tricks.as_strided(values).shape, np.dtypes.Float64DType, np.float64.__name__)
with futures.ThreadPoolExecutor(1) as pool:
    total = functools.reduce(lambda a, b: a + b, pool.map(int, [1, 2]))
print(total, os.path.exists('.'), ElementTree.fromstring('<a/>').tag)
print('reached the last line')
