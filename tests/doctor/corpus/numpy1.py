"""NumPy 1: aliases of Python's types and functions that NumPy 2 dropped."""
# run: etpe run
# stops: numpy.in1d
import numpy
import numpy as np
from numpy import random

ids = np.asarray([1, 2, 3], dtype=np.int64)
kept = np.zeros([3], dtype=np.bool)  # expect: W219 numpy.bool
weights = np.ones([3], dtype=np.float)  # expect: I301 numpy.float
count = np.int(3)  # expect: I301 numpy.int
texts = np.array(['a'], dtype=np.object)  # expect: I301 numpy.object
text = np.array(['a'], dtype=numpy.str)  # expect: I301 numpy.str
missing = [np.NaN, np.nan, np.Inf, np.inf]  # expect: I301 numpy.NaN; I301 numpy.Inf
wide = np.float_(1.0)  # expect: I301 numpy.float_
joined = np.row_stack([ids, ids])
total = np.product(ids)  # expect: I301 numpy.product
named = np.string_('x')  # expect: I301 numpy.string_
state = random.RandomState(1).rand(2)
scalar = np.asscalar(ids[:1])  # expect: I301 numpy.asscalar
print(np.in1d(ids, ids))  # expect: E121 numpy.in1d
print(np.random.rand(2).astype(numpy.float32), np.linalg.norm(weights), np.matrix([[1]]))
print('reached the last line')
