"""What guards a name: a `try`, by what is there, and tests of names or versions, whatever is."""

import pytest
from harness.scanned import missing, one, scanned, uses

from estimator_tpu_embedding.doctor.findings import TESTED

TF = 'import tensorflow as tf\n'
FALLBACK = '''
    try:
        import a_one as x
    except ImportError:
        import a_two as x
'''


ALIAS = FALLBACK.replace('a_one', 'tensorflow.compat.v1').replace('a_two', 'tensorflow')


def test_a_fallback_is_needed_where_the_first_import_fails_and_only_there(tmp_path):
    file = one(tmp_path, FALLBACK)
    assert [use.is_guarded for use in file.uses] == [True, False]
    assert missing(file, 'a_one') == missing(file, 'a_two') == []
    assert missing(file) == ['a_two']


@pytest.mark.parametrize('there, wanted', [
    (['tensorflow.compat.v1'], ['tensorflow.compat.v1.y']), (['tensorflow'], ['tensorflow.y']),
    (['tensorflow.compat.v1', 'tensorflow', 'tensorflow.y'], ['tensorflow.compat.v1.y']),
    (['tensorflow', 'tensorflow.y'], [])])
def test_an_alias_means_the_import_that_succeeded_also_in_another_file(tmp_path, there, wanted):
    files = scanned(tmp_path, common=ALIAS + '    def f(): return x.y', main='import common\n'
                    'common.x.y')
    for file in files.values():
        assert missing(file, *there)[-1:] == wanted


@pytest.mark.parametrize('there, wanted', [([], []), (['tensorflow.gone'], ['tensorflow.gone.y'])])
def test_a_substitute_of_the_program_does_only_where_the_import_fails(tmp_path, there, wanted):
    file = one(tmp_path, 'try: import tensorflow.gone as x\n'
               'except ImportError:\n  class x: y = 1\nx.y')
    assert missing(file, *there) == wanted


@pytest.mark.parametrize('there, wanted', [([], ['a_two']), (['a_one'], ['tensorflow.gone'])])
def test_what_else_has_is_needed_where_the_body_lacks_nothing(tmp_path, there, wanted):
    file = one(tmp_path, 'try: import a_one as x\nexcept ImportError: import a_two as x\n'
               'else: import tensorflow.gone')
    assert missing(file, *there) == wanted


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
    assert [use.place.line for use in file.uses if use.question.path in missing(file)
            and not use.is_guarded] == [line]


@pytest.mark.parametrize('test', ['if x is not None:', 'if x:', 'if HAS:', 'if not (x is None):'])
def test_a_condition_on_the_import_guards_what_follows(tmp_path, test):
    file = one(tmp_path, f'''
        try:
            import tensorflow.gone as x
            HAS = True
        except ImportError:
            x, HAS = None, False
        {test}
            x.y
        x.z
    ''')
    assert [path for _, path in uses(file)] == ['tensorflow.gone.z']


@pytest.mark.parametrize('text', [
    'if hasattr(tf, "contrib"): tf.a\nelse: tf.a', 'tf.a if hasattr(tf, "contrib") else tf.a',
    'if x: pass\nelif "contrib" in dir(tf): tf.a\nelse: tf.a', 'hasattr(tf, "a") and tf.a',
    'HAS = hasattr(tf, "contrib")\ndef f():\n  if HAS: return tf.a\n  tf.a',
    'def f():\n  if hasattr(tf, "contrib"):\n    return tf.a\n  return tf.a',
    'if check(tf.__version__): tf.a', 'if importlib.util.find_spec("x") is not None: tf.a',
    *(f'OLD = {test}\nif {test}: tf.a\nelse: tf.a\nif not OLD: tf.a' for test in (
        'tf.__version__.startswith("1.")', 'LooseVersion(tf.__version__) < LooseVersion("2.0.0")',
        'version.parse(tf.version.VERSION) < version.parse("2")', 'tf.__version__ < "2" and True',
        'sys.version_info[0] < 3', 'six.PY2', 'not six.PY3', 'sys.version < "3"'))])
def test_what_a_test_of_names_or_versions_decides_is_guarded(tmp_path, text):
    file = one(tmp_path, f'import six, sys\n{TF}{text}\ntf.b')
    assert [path for _, path in uses(file) if path[:-1] == 'tensorflow.'] == ['tensorflow.b']
    assert [use.question.path for use in file.uses].count('tensorflow.a') == text.count('tf.a')


@pytest.mark.parametrize('text', [
    'if hasattr(args, "x"): tf.a', 'if version: tf.a', 'if sys.platform == "x": tf.a',
    'if six.PY2: sys.exit()\ntf.a', 'if isinstance(x, tf.Tensor): tf.a', 'if True: tf.a',
    'if tf is None: raise E\ntf.a', 'def f():\n  if x: return\n  tf.a', 'if TYPE_CHECKING: pass\n'
    'else: tf.a', 'try: t = tf.compat.v1\nexcept AttributeError: t = tf\nif t.x: tf.a'])
def test_other_tests_guard_nothing(tmp_path, text):
    assert (text.count('\n') + 3, 'tensorflow.a') in uses(one(
        tmp_path, f'import six, sys\n{TF}{text}'))


def test_a_test_may_come_from_another_file(tmp_path):
    files = scanned(tmp_path, common='import sys\nPY3 = sys.version_info[0] == 3\nOLD = not PY3',
                    main='from common import OLD\nimport common\nif OLD: unicode\n'
                         'if common.OLD: unicode')
    assert uses(files['main.py']) == []


@pytest.mark.parametrize('text', [
    'if tf.__version__ > "2": t = tf.compat.v1\nelse: t = tf',
    't = tf.compat.v1 if hasattr(tf, "compat") else tf',
    't = tf\nif hasattr(tf, "compat"): t = tf.compat.v1'])
def test_a_name_may_mean_what_a_test_chose(tmp_path, text):
    file = one(tmp_path, f'{TF}{text}\nt.x')
    assert {(use.question.path, use.choice, use.is_guarded) for use in file.uses
            if use.written == 't.x'} == {('tensorflow.x', TESTED, False),
                                         ('tensorflow.compat.v1.x', TESTED, False)}


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
