"""Files that do not parse, and files that somebody wrote to do harm."""

import pytest
from harness.parts import soak_except
from harness.scanned import one

from estimator_tpu_embedding.doctor import diagnose, sources
from estimator_tpu_embedding.doctor.findings import ScannedFile


@pytest.mark.parametrize('text, line', [
    ('x = 1\nexcept_ = 0777', 2), ('try: x\nexcept A, e: pass', 2), ('raise A, "b"', 1),
    ('x = `1`', 1), ('if 1 <> 2: pass', 1), ('exec "x"', 1), ('x = ur"a"', 1),
    ('def f((a, b)): pass', 1), ('def f():\n  from x import *', 2), ('x = 1\nreturn x', 2),
    ('def f():\n  x = 1\n  global x', 3), ('x = 1\n\0', 2), ('if x:\n\ty\n        z', 3),
    ('lambda (a, b): a', 1), ('from __future__ import gone', 1)])
def test_what_python_3_does_not_compile_is_one_line(tmp_path, text, line):
    (problem,) = one(tmp_path, text).problems
    assert (problem.code, problem.place.line, problem.verdict) == ('E131', line, 'unknown')


TOKENS = ['(', '[', '{', '-', '.', '\n', '\x00', '@', 'a', '@a\n', 'a.b;', 'not ', 'lambda:', 'f"{',
          '"', '\\', 'a(', '1+', 'if a:\n ', '[a for a in ', 'a if b else ', '(a:=', '#', '\ufeff']
HOSTILE = {
    **{f'64 KiB of {token!r}': (token * (2**16 // len(token)))[:2**16] for token in TOKENS},
    'chain': 'import tensorflow as tf\ntf' + '.b' * 50000, 'sum': 'x = 1' + '+1' * 100000,
    'short sum': 'import tensorflow as tf\nx = tf.a' + ' + tf.a' * 900,
    'elif': 'if a: b\n' + 'elif a: b\n' * 900, 'calls': 'x = a' + '()' * 900,
    'aliases': 'import tensorflow as a0\n' + ''.join(f'a{i + 1} = a{i}.x\n' for i in range(2000)),
    'meanings': 'import tensorflow as tf\n' + 'if c: tf = tf.x\n' * 400 + 'tf.y',
    'conditions': 'import tensorflow as t\n' + 'if hasattr(t, "a"): t = t.a\n' * 400 + 't.y',
    'stars': ''.join(f'from tensorflow.m{i} import *\n' for i in range(300)) + 'a\n' * 300,
    'self': 'class A(A):\n def f(self):\n  self.tf = self.tf.tf\n  self.tf.x\n  self.a = self',
    'line': 'x = "' + 'a' * 2**19 + '"', 'f-strings': 'f"{a:{b}}"' * 2000,
    'conditionals': 'import six\nx = ' + '1 if six.PY2 else ' * 300 + '2',
    'versions': 'import sys\nx = sys.version' + '.replace("1", "11")' * 300 + ' > "1"'}


@pytest.mark.parametrize('what', soak_except(list(HOSTILE), 0, len(TOKENS), -1 % len(HOSTILE)))
@pytest.mark.timeout(60)
def test_a_hostile_text_costs_a_line_at_most(tmp_path, what):
    file = one(tmp_path, HOSTILE[what])
    assert isinstance(file, ScannedFile)
    assert len(file.problems) <= 1
    assert all(problem.code in ('E131', 'E133') for problem in file.problems)


def test_nothing_of_a_file_is_executed_or_imported(tmp_path):
    (tmp_path / 'beside.py').write_text('open(__file__ + ".ran", "w")')
    (tmp_path / 'main.py').write_text(
        'import beside\nfrom beside import *\nopen(__file__ + ".ran", "w")\n'
        'x = f"{open(__file__ + \'.ran\', \'w\')}"\n@open(__file__ + ".ran", "w")\ndef f(): pass')
    assert len(diagnose.scan(sources.find([str(tmp_path)]))) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ['beside.py', 'main.py']
