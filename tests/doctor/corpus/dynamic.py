"""Names that are made at run time: constants are resolved, everything else is said to be unknown."""
# run: etpe run --tf1
import importlib
import sys

import tensorflow as tf

relu = getattr(tf.nn, 'relu')
layer = getattr(tf, 'placeholder')  # expect: I302 tensorflow.placeholder
optional = getattr(tf, 'nobody_has_it', None)  # expect: I305 tensorflow.nobody_has_it
name = sys.argv[1] if len(sys.argv) > 1 else 'tanh'
activation = getattr(tf.nn, name)  # expect: W202
optimizer = getattr(tf.train, '%sOptimizer' % 'Adam')(0.1)  # expect: W202
module = importlib.import_module('json')
other = importlib.import_module(sys.argv[2] if len(sys.argv) > 2 else 'csv')  # expect: W202
exec('x = tf.constant(%d)' % 3)  # expect: W202
y = eval('tf.constant(4)')  # expect: W202
again = __import__('tensorflow')
print(again.placeholder(again.float32, []))  # expect: I302 tensorflow.placeholder
third = importlib.import_module('tensorflow')
print(third.placeholder(third.float32, []))  # expect: I302 tensorflow.placeholder
print('reached the last line', relu, layer, optional, activation, optimizer, module, other, y)
