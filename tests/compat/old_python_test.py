"""What Python and NumPy dropped is there under `etpe run`, and what exists is left alone."""

import sys

import pytest
from harness.processes import run_etpe, run_python

from estimator_tpu_embedding.compat import old_imp

JOB = """
import asyncio, collections, fractions, inspect, math, time
import numpy as np
from collections import Iterator, Mapping
assert Mapping is collections.abc.Mapping and Iterator is collections.abc.Iterator
assert fractions.gcd(4, -6) == -2 and fractions.gcd(-4, 0) == -4 and fractions.gcd(-4, 6) == 2
assert inspect.getargspec(lambda a, b=1, *c: 0) == (['a', 'b'], 'c', None, (1,))
try:
    inspect.getargspec(lambda *, a: 0)
except ValueError as error:
    assert 'keyword-only' in str(error)
assert inspect.formatargspec(['a', 'b'], 'c', 'd', (1,)) == '(a, b=1, *c, **d)'
assert inspect.formatargspec(['a'], None, None, None, ['k'], {'k': 2}, {'a': int, 'return': str}
                             ) == '(a: int, *, k=2) -> str'
assert np.float is float and np.int is int and np.object is object and np.str is str
assert np.string_ is np.bytes_ and np.unicode_ is np.str_ and np.float_ is np.float64
assert np.asscalar(np.int64(3)) == 3 and np.NINF == -math.inf and math.copysign(1, np.NZERO) == -1
is_2 = np.__version__ >= '2'  # It has types of its own by these names.
assert (np.bool is bool, np.long is int) == (not is_2, not is_2)
before = time.clock()
assert before <= time.process_time()
assert not hasattr(np, 'nothing_of_that_name') and not hasattr(inspect, 'nothing_of_that_name')

@asyncio.coroutine
def three():
    yield from asyncio.sleep(0)
    return 3

@asyncio.coroutine
def six():
    return three()

def undecorated():
    return (yield from three())

@asyncio.coroutine
def times_out():
    try:
        yield from asyncio.wait_for(asyncio.sleep(60), .01)
    except asyncio.TimeoutError:
        return (yield from undecorated())

async def awaits():
    return await three()

for coroutine in three, six, times_out, awaits:
    assert asyncio.run(coroutine()) == 3
assert Mapping is collections.Mapping
print('reached the last line')
"""


def test_old_names_are_there_and_each_is_told_of_once(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text(JOB)
    done = run_etpe('run', path, loaded=True)
    assert (done.returncode, done.stdout) == (0, 'reached the last line\n')
    told = [line for line in done.stderr.splitlines() if 'old name collections.Mapping' in line]
    assert told == [f'[etpe] old name collections.Mapping, used by {path}; --no-old-python leaves '
                    'it out']


def test_a_library_asks_for_them():
    code = ('import estimator_tpu_embedding as ete; ete.install({}); import fractions; '
            'assert hasattr(fractions, "gcd") is {}')
    assert run_python('-c', code.format('', False)).returncode == 0
    assert run_python('-c', code.format('old_python=True', True)).returncode == 0


OLD_CODE = """
from google.protobuf import descriptor
descriptor.FieldDescriptor(
    name='x', full_name='a.x', index=0, number=1, type=9, cpp_type=9, label=1,
    has_default_value=False, default_value='', message_type=None, enum_type=None,
    containing_type=None, is_extension=False, extension_scope=None)
"""


def test_code_of_an_old_protoc_runs_with_the_protobuf_in_python(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text(f'import os, sys\nos.chdir("/")\n{OLD_CODE}\nprint(*sys.argv[1:])\n')
    done = run_etpe('run', 'job.py', '--flag', 'a b', cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, '--flag a b\n')
    assert done.stderr.count('the script begins anew with PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION='
                             'python, which is slower') == 1
    chosen = run_etpe('run', path, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION='upb')
    assert chosen.returncode == 1
    assert ('[etpe] the installed protobuf refuses code that a protoc before 3.19 made: '
            in chosen.stderr)
    assert 'set PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python' in chosen.stderr


def test_unittest_shows_where_a_module_is_today(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text('import unittest\nclass Test(unittest.TestCase):\n    def test_it(self):\n'
                    '        from tensorflow.python.ops import spectral_ops\nunittest.main()\n')
    done = run_etpe('run', path, loaded=True)
    assert done.returncode == 1
    assert done.stderr.count('[etpe] tensorflow.python.ops.spectral_ops is private and has moved: '
                             'use tf.signal') == 1


def test_imp_finds_and_loads_files_as_it_did(tmp_path):
    (tmp_path / 'mine.py').write_text('x = 1\n')
    (tmp_path / 'package').mkdir()
    (tmp_path / 'package' / '__init__.py').write_text('y = 2\n')
    (tmp_path / 'settings.conf').write_text('z = 3\n')
    for name, kind in (('mine', old_imp.PY_SOURCE), ('package', old_imp.PKG_DIRECTORY)):
        file, path, details = old_imp.find_module(name, [str(tmp_path)])
        assert details[2] == kind
        old_imp.load_module(f'etpe_{name}', file, path, details)
        assert file is None or not file.close()
    assert (sys.modules['etpe_mine'].x, sys.modules['etpe_package'].y) == (1, 2)
    assert old_imp.load_source('etpe_conf', str(tmp_path / 'settings.conf')).z == 3
    with pytest.raises(ImportError, match='of_nobody'):
        old_imp.find_module('of_nobody', [str(tmp_path)])


WITHOUT = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == 'imp' else real(name)
from estimator_tpu_embedding.compat import import_paths, old_python
for _ in range(2):
    old_python.put_in_place(print)
import_paths.move({'tensorflow.python.estimator': 'json'})
import imp
assert imp.__name__.endswith('old_imp') and imp.reload(imp) is imp
assert len([each for each in sys.meta_path if type(each).__name__ == '_Moved']) == 2
"""


def test_imp_comes_back_where_python_has_dropped_it_once_and_beside_other_packages():
    assert run_python('-W', 'ignore', '-c', WITHOUT).returncode == 0
