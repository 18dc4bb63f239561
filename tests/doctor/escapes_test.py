"""Never "all is well" where a module of a library went where nobody looked: it is counted.

Each probe asks a module for a name on a way of its own. The doctor may follow the module to that
name. Otherwise it must say where it lost the module.
"""

import pytest
from harness.commands import Etpe
from harness.scanned import write

from estimator_tpu_embedding.doctor.diagnose import diagnose

HEAD = '''import tensorflow as tf
import numpy as np
def use(lib): return lib.Session()
'''
PROBES = """
use(lib=tf)
[tf][0].Session()
libs = {'tf': tf}; libs['tf'].Session()
libs = {}; libs['x'] = tf; libs['x'].Session()
(tf if tf else np).Session()
lib = (tf if tf else np) or np; lib.Session()
(tf or np).Session()
(lib := tf).Session()
(lambda: tf)().Session()
(lambda lib: lib.Session())(tf)
[lib.Session() for lib in (tf,)]
[one.Session() for one, _ in [(tf, 1)]]
{1: tf for _ in 'a'}[1].Session()
a, (b, c) = np, (tf, 1); b.Session()
a, *b = np, tf; b[0].Session()
[a, b] = [np, tf]; b.Session()
for lib in (tf, np): lib.Session()
globals()['tf'].Session()
names = globals(); names['tf'].Session()
vars()['tf'].Session()
globals().get('tf').Session()
import operator; operator.attrgetter('Session')(tf)()
get = getattr; get(tf, 'Session')
from builtins import getattr as get; get(tf, 'Session')
import functools; functools.reduce(getattr, ['train', 'Saver'], tf)
getattr(tf, 'train').Saver()
setattr(tf, 'a' + 'b', 1)
delattr(tf, 'a' + 'b')
tf.__getattribute__('Session')
tf.__dict__['Session']
vars(tf)['Session']
import importlib; load = importlib.import_module; load('tensorflow').Session()
import importlib; use(importlib.import_module('tensorflow'))
import importlib; importlib.import_module(name='tensor' + 'flow').Session()
import importlib; importlib.import_module('.train', 'tensorflow').Saver()
load = __import__; load('tensorflow').Session()
import runpy; runpy.run_path('/tmp/x.py')
import importlib; importlib.reload(tf).Session()
import sys; sys.modules['tensorflow'].Session()
import sys; sys.modules['tensor' + 'flow'].Session()
from sys import modules; modules.get('tensorflow').Session()
exec('lib = tf\\nlib.Session()')
run = exec; run('tf.Session()')
eval('np').float(1)
__builtins__.getattr(tf, 'Session')
import pkgutil; pkgutil.resolve_name('tensorflow:Session')
import json; getattr(json, 'no' + 'thing')
import unittest.mock; unittest.mock.patch.object(tf, 'Ses' + 'sion')
from six import tf; tf.Session()
class A(metaclass=lambda *a, lib=[tf], **k: lib[0].Session()): pass
assert tf, tf.Session()
del tf.Session
tf.Session += 1
import code; code.InteractiveInterpreter().runsource('tf.Session()')
import timeit; timeit.timeit('tf.Session()', 'import tensorflow as tf')
import __main__; __main__.tf.Session()
from unittest import mock; mock.patch('tensorflow.Sess' + 'ion')
from unittest.mock import patch; patch.multiple('tensorflow', Session=1)
lib = np; values = (lib.arange(one) for one in range(3)); lib = tf; list(values)
tf.__spec__.loader.load_module('tensorflow').Session()
import importlib; importlib.import_module('.keras', package='tensorflow').no_name()
np.msort([1]); np.msort = sorted
import random; from numpy import *; random.gauss(1, 2)
import math; from tensorflow import *; math.hypot(1., 2.)
""".strip().split('\n') + '''
def use(lib): return lib.get_default_graph()
use(tf)
---
def use(**libs): return libs['lib'].Session()
use(**{'lib': tf})
---
def lib(): return tf
lib().Session()
---
def libs(): yield tf
next(libs()).Session()
---
def libs(): yield from (tf, np)
next(libs()).Session()
---
class A: pass
A.lib = tf; a = A(); a.lib.Session()
---
class A: lib = tf
def use(a): return a.lib.Session()
use(A())
---
class A:
  def __init__(self): self.lib = tf
def use(a): return a.lib.Session()
use(A())
---
def use(lib=tf): return lib.Session()
use()
---
def use(*, lib=tf.train): return lib.Saver()
use()
---
match tf:
  case lib: lib.Session()
---
lib = None
def bind():
  global lib
  lib = tf
bind(); lib.Session()
---
def outer():
  lib = None
  def bind():
    nonlocal lib
    lib = tf
  bind()
  return lib.Session()
outer()
---
def use():
  import tensorflow as lib
  return locals()['lib'].Session()
use()
---
def use(lib): return lib.Saver()
use(getattr(tf, 'train'))
---
def lib(): return __import__('tensorflow')
lib().Session()
---
def use(): pass
use.__globals__['tf'].Session()
---
class A: import tensorflow as lib
def use(a): return a.lib.Session()
use(A())
---
def outer():
  lib = None
  def bind():
    nonlocal lib
    import tensorflow as lib
  bind()
  return lib.Session()
outer()
---
class A:
  lib = tf
  def use(self, x=lib): return x.Session()
A().use()
---
class A:
  def __init__(self, tf): self.lib = tf
  def use(self): return self.lib.Session()
A(tf).use()
---
import importlib.util
importlib.util.module_from_spec(importlib.util.find_spec('tensorflow')).Session()
---
lib = tf
def use(): return lib.arange(3)
use(); lib = np
---
lib = np
def use(): return lib.float(1)
use(); lib = 3
---
lib = np
def use(): return lib.float(1)
use(); del lib
---
def outer():
  lib = tf
  use = lambda: lib.arange(3)
  use()
  lib = np
outer()
---
lib = np
for one in range(2):
  lib.arange(3)
  lib = tf
---
lib = np
for one in range(2):
  if one: lib.arange(3)
  else: lib = tf
---
lib, one = np, 0
while one < 2:
  lib.arange(3)
  lib = tf
  one += 1
---
for one in range(2):
  if one: lib.arange(3)
  lib = tf
---
def use():
  for one in range(2):
    if one: lib.arange(3)
    import tensorflow as lib
use()
'''.strip().split('\n---\n')
FINE = """
x = tf.zeros([2], dtype=tf.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation=tf.nn.relu)])
from tensorflow import keras; keras.layers.Dense(1)
layers = tf.keras.layers; layers.Dense(1)
print(isinstance(3, tf.Tensor), isinstance(tf, str), hasattr(tf, 'nothing'), tf, f'{tf}')
with tf.GradientTape() as tape, tf.name_scope('a'): pass
with tf.compat.v1.Session() as session: session.run(tf.constant(1))
if tf is None or not np: raise ImportError('%s' % tf)
v1 = tf.compat.v1 if hasattr(tf, 'compat') else tf; v1.Session()
import functools; dense = functools.partial(tf.keras.layers.Dense, activation='relu')
getattr(tf, 'Session', None); getattr(tf.nn, 'relu')(1.)
import os, sys; print(os.path.join('a', 'b'), 'numpy' in sys.modules, os.environ)
print('tf' in globals(), sorted({*globals()})); globals()['name'] = 1; globals().update(a=1)
import logging; log = logging.getLogger(__name__); log.info('%s', tf.__version__)
with tf.device('/cpu:0'): x = [tf.zeros(i) for i in range(3)]
x = np.zeros((2, 3), np.float32)[np.newaxis]
exec('a = 1')
from numpy import *; import random; random.gauss(1, 2)
import timeit; timeit.timeit(lambda: 1, number=1)
""".strip().split('\n') + '''
@tf.function
def step(x: tf.Tensor, dtype=tf.float32) -> tf.Tensor: return tf.cast(x, dtype)
---
class Model(tf.keras.Model):
  def __init__(self):
    super().__init__()
    self.dense = tf.keras.layers.Dense(1)
    self.dtype_ = tf.float32
  def call(self, x): return self.dense(x)
---
if tf and np: pass
assert tf
while not tf: pass
---
try:
  import tensorflow.compat.v1 as tf1
except ImportError:
  tf1 = tf
tf1.Session()
---
optimizers = {'adam': tf.keras.optimizers.Adam, 'sgd': tf.keras.optimizers.SGD}
optimizers['adam'](0.1)
---
dataset = tf.data.Dataset.range(3).map(tf.square).batch(2)
for row in dataset: print(row.numpy(), np.asarray(row, np.float32))
---
import argparse; args = argparse.ArgumentParser().parse_args()
print(vars(args), '%(x)s' % locals(), '{tf}'.format(**globals()))
---
def use(x): return dict(locals())
use(1)
---
import sys
if sys.version_info[0] < 3:
  reload(sys)
  sys.setdefaultencoding('utf8')
---
try:
  from tensorflow.python.framework import ops
except ImportError:
  ops = None
if ops is not None: ops.convert_to_tensor(1)
---
def model_fn(features, labels, mode, params):
  return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_mean(features))
tf.estimator.Estimator(model_fn)
---
import unittest; from unittest import mock
class ATest(tf.test.TestCase):
  @mock.patch.object(tf.io, 'gfile')
  def test(self, gfile): self.assertEqual(tf.float32, np.float32)
---
def f(a, b): return a(b)
f(tf.square, tf.float32)
---
class Layer:
  def __init__(self, rng=np.random): self.seed = rng.randint(3)
---
lib = tf; lib = tf.compat.v1
def use(): return lib.Session()
lib = tf.compat.v1
---
try: lib = tf.compat.v1
except AttributeError: lib = tf
def use(lib): return lib
lib.zeros([1])
---
for name in ('a', 'b'):
  lib = tf.nn
  lib.relu(1.)
---
if not hasattr(np, 'float'): np.float = float
def use(): return np.float(1)
np.float(1)
---
from absl import app, flags; FLAGS = flags.FLAGS; flags.DEFINE_string('a', '', 'A.')
def main(argv): print(FLAGS.a)
if __name__ == '__main__': app.run(main)
'''.strip().split('\n---\n')

LIB, BOTH = 'import tensorflow as lib\n', 'import numpy\nimport tensorflow as lib\n'
PROJECTS = [  # The job after `import own`, the module, and where a warning is.
    ('own.lib.zeros(1)', LIB, []),
    ('def use(it): return it.lib.Session()\nuse(own)', LIB, ['job.py:3']),
    ('{"a": own}["a"].lib.Session()', LIB, ['job.py:2']),
    ('def get(): return own\nget().lib.Session()', LIB, ['job.py:2']),
    ('vars(own)["lib"].Session()', LIB, ['job.py:2']),
    ('own.__dict__["lib"].Session()', LIB, ['job.py:2']),
    ('getattr(own, "li" + "b").Session()', LIB, ['job.py:2']),
    ('getattr(own, "lib").zeros(1)', LIB, []),
    ('use(own)', 'def lib(): pass', []),
    ('import numpy as lib\nfrom own import *\nlib.arange(3)', LIB, ['job.py:4']),
    ('import tensorflow as lib\nfrom own import *\nlib.zeros(1)', LIB, []),
    ('own.lib = own.numpy', BOTH, ['job.py:2']),
    ('setattr(own, "lib", own.numpy)', BOTH, ['job.py:2']),
    ('own.A().lib.Session()', BOTH + 'class A: lib = numpy', ['own.py:3']),
    ('from own import A\nclass B(A): lib = own.lib', BOTH + 'class A: lib = numpy',
     ['job.py:3', 'own.py:3']),
    ('from pack import own\nown.lib.zeros(1)', LIB, []),
    ('from pack import deep as tf\ntf.lib.zeros(1)', LIB, []),
    ('own.sys.modules["tensorflow"].Session()', 'import sys', ['job.py:2']),
    ('from own import load\nload("tensorflow").Session()',
     'from importlib import import_module as load', ['job.py:3']),
    ('use(own)', 'from tensorflow import *', ['job.py:2']),
    ('import pack\npack.deep.lib.float_of_nobody', LIB, ['job.py:3']),
    ('import pack\nuse(pack)', LIB, ['job.py:3']),
    ('use(own.lib)', LIB, ['job.py:2']),
    ('own.late.no_name', 'def load():\n  global late\n  import json as late', ['own.py:3']),
    ('import other\nfrom own import numpy', 'import numpy\nglobals()["numpy"].float\n'
     '(lambda: 0).__globals__\nuse(numpy)', ['own.py:2', 'own.py:3', 'own.py:4'])]


@pytest.fixture(scope='module')
def diagnosis(tmp_path_factory):
    folder = tmp_path_factory.mktemp('escapes')
    for kind, texts in (('probe', PROBES), ('fine', FINE)):
        write(folder, **{f'{kind}_{number}': HEAD + text for number, text in enumerate(texts)})
    for number, (job, own, _) in enumerate(PROJECTS):
        write(folder / str(number), job=f'import own\n{job}', own=own, pack__deep=LIB,
              pack__own=LIB, pack__init='from . import deep, own\n', other='import own\n')
    found = {}
    for one in diagnose([str(folder)]).findings:
        if one.place is not None:
            found.setdefault(one.place.path.rpartition('/escapes0/')[2], []).append(one)
    return found


def name(text):
    return text.replace('\n', '; ')[:60]


@pytest.mark.parametrize('number', range(len(PROBES)), ids=map(name, PROBES))
def test_what_nobody_checked_is_said(diagnosis, number):
    """A name that was followed is lost, restored (I301) or needs `--tf1` (I302)."""
    codes = {one.code for one in diagnosis.get(f'probe_{number}.py', ())}
    assert codes & {'W201', 'W202', 'W203', 'E101', 'E121', 'I301', 'I302'}


@pytest.mark.parametrize('number', range(len(FINE)), ids=map(name, FINE))
def test_ordinary_code_raises_no_alarm(diagnosis, number):
    assert [(one.code, one.place.line, one.message)
            for one in diagnosis.get(f'fine_{number}.py', ()) if one.code[0] in 'EW'] == []


@pytest.mark.parametrize('number', range(len(PROJECTS)), ids=map(name, (
    job for job, _, _ in PROJECTS)))
def test_a_module_of_the_project_hands_on_those_of_libraries(diagnosis, number):
    found = [f'{path.rpartition("/")[2]}:{one.place.line}' for path, several in diagnosis.items()
             if path.startswith(f'{number}/') for one in several if one.code[0] in 'EW']
    assert found == PROJECTS[number][2]


def test_the_report_does_not_end_well(tmp_path, capsys):
    write(tmp_path, job='import numpy\nuse(numpy)\n')
    etpe = Etpe(capsys)
    text = etpe('doctor', str(tmp_path), status=1)
    assert 'numpy escapes here: what is asked of it there was not checked' in text
    for arguments in ([], ['--ignore', 'W203'], ['--select', 'E']):
        text = etpe('doctor', str(tmp_path), *arguments, status=int(not arguments))
        assert 'every name' not in text
    assert '"W203"' in etpe('doctor', str(tmp_path), '--format', 'json', status=1)
