"""Which look-ups a run makes, by what is there: `try`, `hasattr` and versions decide."""

import pytest
from harness.scanned import one, reached, scanned, uses

TF = 'import tensorflow as tf\n'
FALLBACK = '''
    try:
        import a_one as x
    except ImportError:
        import a_two as x
'''
PLAIN = {'tensorflow'}  # What is there without `--tf1`, as far as these tests need it.
TF1 = {'tensorflow', 'tensorflow.placeholder'}


def test_a_fallback_is_needed_where_the_first_import_fails_and_only_there(tmp_path):
    file = one(tmp_path, FALLBACK)
    assert [use.is_guarded for use in file.uses] == [True, False]
    assert reached(file, {'a_one'}) == []
    assert reached(file, {}) == reached(file, {'a_two'}) == ['a_two']


@pytest.mark.parametrize('there, wanted', [
    ({'tensorflow.compat.v1'}, 'tensorflow.compat.v1.x'), ({'tensorflow'}, 'tensorflow.x')])
def test_an_alias_means_the_import_that_succeeded(tmp_path, there, wanted):
    file = one(tmp_path, '''
        try:
            import tensorflow.compat.v1 as tf
        except ImportError:
            import tensorflow as tf
        def f(): return tf.x
    ''')
    assert [path for path in reached(file, there) if path.endswith('.x')] == [wanted]


def test_an_alias_means_the_same_in_another_file(tmp_path):
    files = scanned(tmp_path, common='''
        try:
            import tensorflow.compat.v1 as tf
        except ImportError:
            import tensorflow as tf
    ''', main='from common import tf\ntf.x')
    assert reached(files['main.py'], {'tensorflow.compat.v1'}) == ['tensorflow.compat.v1.x']
    assert reached(files['main.py'], {}) == ['tensorflow.x']


@pytest.mark.parametrize('handler, wanted', [
    ('except ImportError: tf2 = None', True), ('except: pass', True),
    ('except (KeyError, ModuleNotFoundError): pass', True), ('except Exception as e: log(e)', True),
    ('except ImportError: raise', False), ('except ImportError: raise SystemExit(1)', False),
    ('except ImportError:\n  import sys\n  sys.exit("no")', False),
    ('except AttributeError: pass', False), ('except ValueError: pass', False),
    ('except ImportError:\n  raise unittest.SkipTest("no")', True)])
def test_an_import_is_guarded_where_the_program_survives_it(tmp_path, handler, wanted):
    file = one(tmp_path, f'try:\n  import tensorflow.gone as tf2\n{handler}')
    assert file.uses[0].is_guarded is wanted


@pytest.mark.parametrize('text, line', [
    ('try: from tensorflow.gone import x\nexcept ImportError: x = None\nx(1)', 3),
    ('try: import tensorflow.gone as x\nexcept ImportError: pass\nx.y', 3),
    ('try: import tensorflow.gone as x\nexcept ImportError: x = None\nclass A(x.Y): pass', 3)])
def test_what_is_called_after_its_import_failed_is_needed(tmp_path, text, line):
    file = one(tmp_path, text)
    answers = dict.fromkeys((each for use in file.uses for each in use.questions), False)
    assert [use.place.line for use in file.uses
            if use.is_reached(answers) and not use.is_guarded] == [line]


@pytest.mark.parametrize('test', ['if x is not None:', 'if x:', 'if HAS:', 'if not (x is None):'])
def test_a_condition_on_the_import_excuses_what_follows(tmp_path, test):
    file = one(tmp_path, f'''
        try:
            import tensorflow.gone as x
            HAS = True
        except ImportError:
            x, HAS = None, False
        {test}
            x.y
    ''')
    assert reached(file, {}) == []
    assert reached(file, {'tensorflow.gone'}) == ['tensorflow.gone.y']


@pytest.mark.parametrize('text', [
    'if hasattr(tf, "contrib"): tf.contrib.a\nelse: tf.b',
    'tf.contrib.a if hasattr(tf, "contrib") else tf.b',
    'if not hasattr(tf, "contrib"): tf.b\nelse: tf.contrib.a',
    'if "contrib" in dir(tf): tf.contrib.a\nelse: tf.b',
    'HAS = hasattr(tf, "contrib")\ndef f():\n  if HAS: return tf.contrib.a\n  tf.b',
    'def f():\n  if hasattr(tf, "contrib"):\n    return tf.contrib.a\n  return tf.b'])
def test_hasattr_decides(tmp_path, text):
    file = one(tmp_path, TF + text)
    assert reached(file, PLAIN) == ['tensorflow', 'tensorflow.b']
    assert reached(file, {'tensorflow', 'tensorflow.contrib'}) == [
        'tensorflow', 'tensorflow.contrib.a']


@pytest.mark.parametrize('test', [
    'tf.__version__.startswith("1.")', 'int(tf.__version__.split(".")[0]) < 2',
    'LooseVersion(tf.__version__) < LooseVersion("2.0.0")', 'not tf.VERSION >= "2"',
    'version.parse(tf.version.VERSION) <= version.parse("1.15.5")',
    'tuple([int(tf.__version__[0])]) == (1,)', 'tf.__version__ < "2" and True'])
def test_a_version_of_tensorflow_is_another_with_tf1(tmp_path, test):
    file = one(tmp_path, f'{TF}OLD = {test}\nif {test}: tf.old\nelse: tf.new\nif OLD: tf.older')
    assert [path for path in reached(file, PLAIN) if path[-3:] in ('new', 'old', 'der')] == [
        'tensorflow.new']
    assert [path for path in reached(file, TF1) if path[-3:] in ('new', 'old', 'der')] == [
        'tensorflow.old', 'tensorflow.older']


@pytest.mark.parametrize('test', [
    'sys.version_info[0] < 3', 'sys.version_info < (3, 0)', 'six.PY2',
    'sys.version_info.major == 2', 'not six.PY3', 'sys.version < "3"', 'TYPE_CHECKING', 'False'])
def test_a_branch_that_this_python_never_takes_is_excused_and_the_other_is_not(tmp_path, test):
    file = one(tmp_path, 'import six, sys\nfrom typing import TYPE_CHECKING\n'
               f'if {test}: import a_old as x\nelse: import a_new as x\nx.y')
    paths = [path for _, path in uses(file)]
    assert 'a_new' in paths and 'a_old' not in paths


@pytest.mark.parametrize('value', [
    'tf.__version__.split(".")', 'LooseVersion(tf.__version__)', '[1, 15]'])
def test_a_version_in_parts_may_be_assigned_in_one_of_two_branches(tmp_path, value):
    file = one(tmp_path, f'{TF}if x: parts = {value}\nelse: parts = 0\n'
               f'try: more = {value}\nexcept ImportError: more = 0\ntf.a')
    assert 'tensorflow.a' in reached(file, PLAIN)


def test_a_branch_on_a_version_that_nobody_can_compute_is_excused(tmp_path):
    file = one(tmp_path, TF + 'if check(tf.__version__): tf.a\nelse: tf.b\nif x: tf.c')
    assert [path for _, path in uses(file)] == [
        'tensorflow', 'tensorflow.__version__', 'tensorflow.c']


def test_a_guard_around_a_definition_does_not_guard_its_calls(tmp_path):
    file = one(tmp_path, TF + 'try:\n  def f(): return tf.a\n  tf.b\nexcept AttributeError: pass')
    assert [path for _, path in uses(file)] == ['tensorflow', 'tensorflow.a']


@pytest.mark.parametrize('text, wanted', [
    ('try: unicode\nexcept NameError: unicode = str', []),
    ('with contextlib.suppress(ImportError): import a_gone', []),
    ('getattr(tf, "gone", None)', []), ('if False: import a_gone', []),
    ('from __future__ import annotations\ndef f(x: tf.Gone): y: tf.Gone = 1',
     ['__future__.annotations']),
    ('def f():\n  x: tf.Gone = 1', [])])
def test_what_the_program_goes_on_without_is_guarded(tmp_path, text, wanted):
    file = one(tmp_path, f'import tensorflow as tf\n{text}' if 'future' not in text else
               text.replace('\n', '\nimport tensorflow as tf\n', 1))
    assert sorted(path for _, path in uses(file)) == [*wanted, 'tensorflow']


def test_a_handler_after_an_import_from_the_project_never_runs(tmp_path):
    files = scanned(tmp_path, own='x = 1', main='''
        try:
            from own import x
        except ImportError:
            from a_package import x
    ''')
    assert uses(files['main.py']) == []


def test_a_question_without_an_answer_excuses_nothing(tmp_path):
    file = one(tmp_path, FALLBACK)
    assert all(use.is_reached({}) for use in file.uses)
