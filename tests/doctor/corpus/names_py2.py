"""Python 2 that parses: names and modules that Python 3 has no longer."""
# run: etpe run
# stops: urllib2
import collections
import itertools
import os
import string
import time

try:
    import cPickle as pickle  # expect: I305 cPickle
except ImportError:
    import pickle

import urllib2  # expect: E123 urllib2
from StringIO import StringIO  # expect: E123 StringIO
from collections import Iterable, OrderedDict  # expect: I301 collections.Iterable
from itertools import izip  # expect: E122 itertools.izip


class Bag(collections.MutableMapping):  # expect: I301 collections.MutableMapping
    def __init__(self, words):
        self.words = OrderedDict((word, unicode(word)) for word in words)  # expect: E122 unicode

    def __len__(self):
        return reduce(lambda a, b: a + 1, self.words, 0)  # expect: E122 reduce


def letters():
    return [c for c in string.letters if isinstance(c, basestring)]  # expect: E122 string.letters; E122 basestring


for i in xrange(3):  # expect: E122 xrange
    began = time.clock()  # expect: I301 time.clock
    print(os.getcwdu(), long(i))  # expect: E122 os.getcwdu; E122 long
print(list(itertools.imap(str, [1])))  # expect: E122 itertools.imap
print(isinstance({}, collections.Mapping), Iterable, izip, StringIO, urllib2)  # expect: I301 collections.Mapping
print(pickle.dumps([raw_input('name')]))  # expect: E122 raw_input
print('reached the last line')
