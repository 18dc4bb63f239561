"""Objects and variables whose names are those of libraries; names that a mock replaces."""
import argparse
import collections
import unittest.mock
from unittest import mock

import numpy


class Backend:
    """Has attributes that are called as libraries are."""

    def __init__(self, tf):
        self.tf = tf
        self.np = tf
        self.contrib = tf

    def placeholder(self):
        return self.tf.placeholder(self.np.int)


def fit(tf, np=None):
    for keras in [tf]:
        np = np or keras
    return tf.contrib.slim, np.float, [string.letters for string in [tf]]


def unpack():
    (tf, np), *collections = [(mock.Mock(), mock.Mock())]
    with mock.patch.object(numpy, 'rad2deg') as rad2deg:
        return tf.mul, np.object, collections, rad2deg, numpy.rad2deg(1)


def group(rows):
    reduce = file = 0
    for long in rows:
        reduce += long
        file = max(file, long)
    return reduce, file


parser = argparse.ArgumentParser()
parser.add_argument('--tf', default='x')
tf = parser.parse_args([])
tf.placeholder = tf.tf
Point = collections.namedtuple('Point', 'x contrib')
with unittest.mock.patch('numpy.random.rand', return_value=1):
    print(numpy.random.rand())
print(Backend(mock.MagicMock()).placeholder(), fit(mock.MagicMock()), unpack(), group([1, 2]))
print(tf.placeholder, Point(1, 2).contrib, {tf: 1 for tf in 'ab'})
print('reached the last line')
