"""What names of libraries a file uses, whatever they are called there."""

import pytest
from harness.scanned import one, scanned, uses

TF = 'import tensorflow as tf\n'


@pytest.mark.parametrize('text, wanted', [
    ('import tensorflow.compat.v1 as t\nt.Session()', 'tensorflow.compat.v1.Session'),
    ('import tensorflow.contrib.slim\ntensorflow.contrib.slim.conv2d()',
     'tensorflow.contrib.slim.conv2d'),
    ('from tensorflow import keras as k\nk.layers.Dense(1)', 'tensorflow.keras.layers.Dense'),
    (TF + 'tfe = tf.contrib.eager\ntfe.Variable', 'tensorflow.contrib.eager.Variable'),
    (TF + 'a, (b, c) = tf.nn, (tf.train, 1)\na.relu', 'tensorflow.nn.relu'),
    ('def f():\n  import tensorflow as tf\n  def g():\n    return lambda: tf.nn', 'tensorflow.nn'),
    (TF + 'def f(): return t.nn\nt = tf', 'tensorflow.nn'),
    (TF + 'getattr(tf, "nn").relu', 'tensorflow.nn.relu'),
    ('import importlib\nimportlib.import_module("tensorflow.nn").relu', 'tensorflow.nn.relu'),
    ('t = __import__("tensorflow.nn")\nt.nn.relu', 'tensorflow.nn.relu'),
    ('slim = LazyLoader("slim", globals(), "tensorflow.contrib.slim")\nslim.x',
     'tensorflow.contrib.slim.x'),
    ('from tensorflow import *\nplaceholder(1)', 'tensorflow.placeholder'),
    ('import numpy as np\nx: np.int = f"{np.float}"', 'numpy.float'),
    (TF + '[y for x in tf.nn for y in tf.train.x if tf.z]', 'tensorflow.z'),
    (TF + '@tf.function\ndef f(x: tf.Tensor, y=tf.int32) -> tf.bool: pass', 'tensorflow.bool'),
    (TF + 'class A(tf.Module, metaclass=tf.Meta): pass', 'tensorflow.Meta'),
    (TF + 'match x:\n  case tf.A(y=tf.B): pass', 'tensorflow.B'),
    (TF + 'with tf.Session() as tf2:\n  del tf.x', 'tensorflow.Session'),
    (TF + 'x = (y := tf.nn).relu\ny.elu', 'tensorflow.nn.elu'),
    (TF + 't = tf if x else tf.compat.v1\nt.y', 'tensorflow.compat.v1.y'),
    ('class A:\n  def f(self, x=unicode): return x', 'builtins.unicode'),
    ('from unittest import mock\nmock.patch("tensorflow.gone")', 'tensorflow.gone'),
])
def test_a_name_is_resolved(tmp_path, text, wanted):
    file = one(tmp_path, text)
    assert wanted in [path for _, path in uses(file)]
    assert file.unknown == []


def test_names_are_found_wherever_an_expression_may_stand(tmp_path):
    file = one(tmp_path, TF + 'x[tf.a:tf.b], tf.c[0], -tf.d + tf.e, tf.f < tf.g <= tf.h, [*tf.i]\n'
               'tf.j and not tf.k, f"{x!r:>{tf.l}}", x(y=tf.m), {1: tf.n}, x[y, tf.o]')
    assert {path[-1] for _, path in uses(file)} >= set('abcdefghijklmno')


@pytest.mark.parametrize('text, absent', [
    (TF + 'for tf in []: tf.x', 'tensorflow.x'),
    (TF + 'tf = object()\ntf.x', 'tensorflow.x'),
    (TF + 'del tf\ntf.x', 'tensorflow.x'),
    (TF + 'def f(tf): return tf.x', 'tensorflow.x'),
    (TF + '[tf.x for tf in y]', 'tensorflow.x'),
    (TF + 'try: pass\nexcept E as tf: tf.x', 'tensorflow.x'),
    ('def unicode(): pass\nunicode()', 'builtins.unicode'),
    ('from six.moves import xrange\nxrange(1)', 'builtins.xrange'),
    (TF + 'tf.train.Saver().save.x', 'tensorflow.train.Saver.save'),
    (TF + 'FLAGS = tf.app.flags.FLAGS\nFLAGS.rate', 'tensorflow.app.flags.FLAGS.rate'),
    ('class unicode: pass\nclass A:\n  def f(self): unicode', 'builtins.unicode')])
def test_a_name_that_means_something_else_is_not_reported(tmp_path, text, absent):
    assert absent not in [path for _, path in uses(one(tmp_path, text))]


@pytest.mark.parametrize('text, wanted', [
    ('def f(tf):\n  tf.a\n  tf.b\ndef g(tf): tf.c', [('W201', 2), ('W201', 4)]),
    ('tf.a', [('W201', 1)]),
    ('class A:\n  def f(self, tf): self.tf = tf\n  def g(self): self.tf.x', []),
    ('tf1, tf, v = load()\ntf.x', [('W201', 2)]),
    (TF + 'getattr(tf, name)', [('W202', 2)]), (TF + 'vars(x), x.__dict__', []),
    (TF + 'getattr(tf, name, None)', [('W202', 2)]),
    (TF + 'getattr(tf, "nn.relu")', [('W202', 2)]), (TF + 'getattr(tf, "")', [('W202', 2)]),
    ('import importlib\nimportlib.import_module(name)', [('W202', 2)]),
    ('import importlib\nimportlib.import_module("." + name, __name__)', []),
    ('exec(text)', [('W202', 1)]), ('exec("a = 1")', []),
    ('eval("tensorflow.x")', [('W202', 1)]),
    ('from six.moves import *\nrange_of_nobody', [('W202', 1)]),
    ('from . import gone', [('E112', 1)]),
    ('class Fake: x = 1\ntf = Fake()\ntf.x', [])])
def test_what_cannot_be_resolved_is_listed_once_per_function(tmp_path, text, wanted):
    file = one(tmp_path, text)
    assert [(each.code, each.place.line) for each in file.unknown] == wanted


def test_places_count_characters_and_span_the_whole_chain(tmp_path):
    file = one(tmp_path, 'import tensorflow as tf\nprint("äöü", tf.nn.relu)\n')
    place = file.uses[-1].place
    assert (place.line, place.column, place.end_column) == (2, 14, 24)
    assert file.uses[-1].written == 'tf.nn.relu'
    assert file.lines == 2


def test_what_the_file_itself_puts_there_is_excused(tmp_path):
    file = one(tmp_path, 'import numpy as np\nnp.int = int\nnp.int(3)\nnp.float(3)')
    assert [path for _, path in uses(file)] == ['numpy', 'numpy.float']
    files = scanned(tmp_path, fix='import numpy\nsetattr(numpy, "bool", bool)',
                    use='import fix\nimport numpy\nnumpy.bool')
    assert [path for _, path in uses(files['use.py'])] == ['numpy']


@pytest.mark.parametrize('text, wanted', [
    ('x = 1', False), ('import a\na.b()', False), ('main()', True),
    ('def main(): pass\nif __name__ == "__main__": main()', True),
    (TF + 'tf.app.run()', True), (TF + 'tf.logging.set_verbosity(1)', False),
    (TF + 'with tf.Session(): pass', True)])
def test_programs_are_told_from_modules(tmp_path, text, wanted):
    assert one(tmp_path, text).is_program is wanted


def test_a_module_that_another_file_imports_is_no_program_unless_it_says_so(tmp_path):
    files = scanned(tmp_path, a='register()', b='import a\nif __name__ == "__main__": a.x()')
    assert [files[name].is_program for name in ('a.py', 'b.py')] == [False, True]
