"""Objects and variables whose names are those of libraries; names that a mock replaces."""
import argparse
import collections
import unittest.mock
from unittest import mock

import numpy


class Frequency:
    """Of terms; has attributes that are called as libraries are."""

    mul = contrib = placeholder = int = 2


class Index:
    """Keeps frequencies as `tf`."""

    np = None

    def __init__(self):
        self.tf = Frequency()
        self.contrib = self.tf.contrib

    def total(self):
        np = self.np or self.tf
        return self.tf.mul * np.int + self.contrib


def fit(keras, np=None):
    np = np or Frequency()
    return keras.backend.get_session, np.float, [string.letters for string in [keras]]


def unpack():
    tf, np = Frequency(), Frequency()
    with mock.patch.object(numpy, 'rad2deg') as rad2deg:
        return tf.mul, np.int, rad2deg, numpy.rad2deg(1)


def group(rows):
    reduce = file = 0
    for long in rows:
        reduce += long
        file = max(file, long)
    return reduce, file


parser = argparse.ArgumentParser()
parser.add_argument('--placeholder', default='x')
arguments = parser.parse_args([])
print(arguments.placeholder)
Point = collections.namedtuple('Point', 'x contrib')
with unittest.mock.patch('numpy.random.rand', return_value=1):
    print(numpy.random.rand())
print(Index().total(), fit(mock.MagicMock(), mock.MagicMock()), unpack(), group([1, 2]))
print(Point(1, 2).contrib, {tf: 1 for tf in 'ab'})
print('reached the last line')
