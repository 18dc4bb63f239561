#!/usr/bin/env python
"""Python 2: the first line that does not parse is named, and nothing else is."""
# run: etpe run
# stops: line 10
import cPickle
import sys

import tensorflow as tf

print 'ranking', sys.argv[1]  # expect: E131
with open(sys.argv[1]) as handle:
    pairs = cPickle.load(handle)
for key in sorted(pairs.iterkeys()):
    print >>sys.stderr, key, tf.mul(pairs[key], 2)
