"""What the installed libraries say of names, asked in real processes."""

import os
import sys
import sysconfig

import pytest
from harness.processes import ROOT, is_gone, run_python

from estimator_tpu_embedding.doctor import libraries, oracle, oracle_process
from estimator_tpu_embedding.doctor.findings import Answer, Question

DEADLINE = 200
EVERYWHERE = Answer(True, True, True, True, keras2=True)
IS_OLD = sys.version_info < (3, 12)
NOWHERE = Answer(False, False, False, False)


def brief(answer):
    """An answer without its texts."""
    return answer._replace(lacking='', refused='', is_examined=True,
                           is_module=False)


@pytest.mark.soak
def test_each_world_is_asked_without_what_another_one_changed():
    python, run = EVERYWHERE, EVERYWHERE._replace(python=False, keras2=False)
    tf1 = run._replace(run=False)
    expected = {
        Question('tensorflow', 'GradientTape'): python,
        Question('tensorflow', 'estimator.tpu.TPUEstimator'): run,
        Question('tensorflow.python.tpu.tpu_estimator', 'TensorPacker'): run,
        Question('tensorflow.compat.v1', 'layers.dense'): run._replace(keras2=True),
        Question('tensorflow', 'keras.ops.sum'): NOWHERE._replace(python=True),
        Question('tensorflow', 'placeholder'): tf1,
        Question('tensorflow.train', 'Saver', True): tf1,
        Question('tensorflow', 'optimizers.Adam'): tf1._replace(
            python=True, keras2=True, run=True, tf1=False, contrib=False),
        Question('tensorflow.contrib', 'tpu.TPUConfig'): tf1._replace(tf1=False),
        Question('tensorflow.contrib', 'slim', True): tf1._replace(tf1=False),
        Question('tensorflow.contrib', 'crf', True): NOWHERE,
        Question('tensorflow', 'plceholder'): NOWHERE,
        # TensorFlow imports it, so `import unittest` is enough.
        Question('unittest', 'mock.patch'): EVERYWHERE,
        # `tf.python` is no attribute of TensorFlow, although other questions import modules there.
        Question('tensorflow.python.ops', 'array_ops', True): python,
        Question('tensorflow', 'python.ops'): tf1,
        Question('estimator_tpu_embedding', 'TPUEstimator'): python,
        Question('numpy', 'float32'): python,
        Question('numpy', 'float'): run, Question('imp', 'reload'): python if IS_OLD else run,
        Question('numpy', 'in1d'): NOWHERE, Question('time', 'clock'): run}
    found, reason = oracle.ask(expected, [], DEADLINE)
    assert reason == ''
    assert {one: brief(answer) for one, answer in found.items()} == expected
    assert 'E930 TensorPacker' in found[
        Question('tensorflow.python.tpu.tpu_estimator', 'TensorPacker')].refused


@pytest.mark.soak
def test_what_is_scanned_is_not_imported_even_if_python_would_find_it(tmp_path):
    """A repository may have a tensorflow, a numpy and a json of its own, on PYTHONPATH."""
    for name in ('tensorflow', 'numpy', 'json', 'signal', 'of_nobody'):
        (tmp_path / f'{name}.py').write_text(f'open({str(tmp_path / "ran")!r}, "w")')
    (tmp_path / 'ask.py').write_text(f'''
import sys
sys.path.remove({str(tmp_path)!r})
from estimator_tpu_embedding.doctor import oracle
from estimator_tpu_embedding.doctor.findings import Question
found, reason = oracle.ask([Question('tensorflow', 'nn.relu'), Question('numpy', 'float32'),
                            Question('json', 'dumps'), Question('of_nobody')],
                           [{str(tmp_path)!r}], {DEADLINE})
print([answer.python for _, answer in sorted(found.items())], reason)
''')
    done = run_python('-P', tmp_path / 'ask.py', PYTHONPATH=os.pathsep.join(
        [*filter(None, [os.environ.get('PYTHONPATH')]), str(tmp_path)]))
    assert done.stdout == '[True, True, False, True] \n'
    assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize('way', ['PYTHONPATH', 'the working directory'])
def test_the_command_itself_runs_nothing_of_what_it_reads(tmp_path, way):
    """Modules that it imports late, of Python and of packages, may have namesakes in a project."""
    for name in ('json', 'numpy', 'tempfile', 'rich'):
        (tmp_path / f'{name}.py').write_text(f'open({str(tmp_path / "ran")!r}, "w")')
    (tmp_path / 'main.py').write_text('print(xrange(3))\n')
    path = os.pathsep.join([*[str(tmp_path)] * (way == 'PYTHONPATH'), str(ROOT),
                            *filter(None, [os.environ.get('PYTHONPATH')])])
    done = run_python(*['-P'] * (way == 'PYTHONPATH'), '-m', libraries.PACKAGE, 'doctor', tmp_path,
                      cwd=tmp_path, PYTHONPATH=path)
    assert 'xrange' in done.stdout
    assert not (tmp_path / 'ran').exists()


def first_on_path(monkeypatch, folder):
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
        [str(folder), *filter(None, [os.environ.get('PYTHONPATH')])]))


def test_without_questions_about_tensorflow_it_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / 'tensorflow.py').write_text(f'open({str(tmp_path / "ran")!r}, "w")')
    first_on_path(monkeypatch, tmp_path)
    names = [Question('math', 'prod'), Question('builtins', 'xrange'), Question('os', 'path.join'),
             Question('collections', 'Mapping', True), Question('xml.dom', 'minidom', True),
             Question('of_nobody'), Question('six.moves', 'urllib', True)]
    found, reason = oracle.ask(names, [], DEADLINE)
    assert reason == '' and not (tmp_path / 'ran').exists()
    assert [found[one].python for one in names] == [True, False, True, False, True, False, True]
    assert found[names[1]].lacking == 'builtins.xrange'
    assert found[names[5]].lacking == 'of_nobody'


def test_a_library_that_does_not_answer_in_time_is_unknown_and_its_process_ends(
        tmp_path, monkeypatch):
    pid = tmp_path / 'pid'
    monkeypatch.setattr(oracle, '_CODE', 'import os, time; print(os.getpid(), '
                        f'file=open({str(pid)!r}, "w"), flush=True); time.sleep(600)')
    assert oracle.ask([Question('math', 'prod')], [], 1) == (
        {}, 'the installed libraries did not answer within 1 s')
    assert not pid.exists() or is_gone(int(pid.read_text()))


def test_a_process_that_dies_is_named_with_its_last_words(monkeypatch):
    monkeypatch.setattr(oracle, '_CODE', 'raise SystemExit("no such library")')
    assert oracle.ask([Question('math', 'prod')], [], DEADLINE) == (
        {}, 'the process that asked them ended with status 1: no such library')


def test_a_look_up_that_raises_prints_or_ends_its_process_is_an_answer(tmp_path, monkeypatch):
    (tmp_path / 'six.py').write_text('print("noise")\ndef __getattr__(name):\n'
                                     '    raise SystemExit("I am " + name)\n')
    (tmp_path / 'absl.py').write_text('raise KeyboardInterrupt\n')
    first_on_path(monkeypatch, tmp_path)
    six, absl, prod = Question('six', 'PY2'), Question('absl', 'flags'), Question('math', 'prod')
    found, _ = oracle.ask([six, absl, prod], [], DEADLINE)
    assert [found[one].python for one in (six, absl, prod)] == [False, False, True]
    assert [found[one].lacking for one in (six, absl)] == ['six.PY2', 'absl']


@pytest.mark.parametrize('entry, stays', [
    ('scanned', False), ('scanned/lib', False), ('', False), ('scanned_too', True),
    (os.path.dirname(os.__file__), True)])
def test_folders_that_are_scanned_leave_the_search_path(tmp_path, monkeypatch, entry, stays):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'scanned').mkdir()
    scanned = [str(tmp_path / 'scanned'), str(tmp_path / 'job.py'), '.'] if not entry else [
        'scanned']
    assert libraries.outside([entry], scanned) == [entry] * stays


def test_the_libraries_of_python_stay_if_they_lie_in_a_scanned_folder():
    paths = [sysconfig.get_path(name) for name in ('stdlib', 'purelib', 'platlib')]
    assert libraries.outside(paths, [sys.prefix, sys.base_prefix]) == paths


@pytest.mark.parametrize('question, found', [
    (Question('of_nobody'), False), (Question('pkg'), True), (Question('pkg.inner'), True),
    (Question('pkg.of_nobody'), True), (Question('pkg', 'anything', True), True),
    (Question('spaced.there'), True), (Question('spaced.of_nobody'), False),
    (Question('spaced', 'of_nobody', True), False), (Question('single.of_nobody'), True)])
def test_a_package_that_nobody_may_import_is_sought_in_folders(tmp_path, monkeypatch, question,
                                                               found):
    for file in ('pkg/__init__.py', 'pkg/inner.py', 'spaced/there.py', 'single.py'):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text('raise AssertionError("nobody may import this")')
    monkeypatch.syspath_prepend(tmp_path)
    assert oracle_process.look_up(question).is_there is found


@pytest.mark.parametrize('name', ['antigravity', 'this', 'idlelib', 'turtle', 'test', '__main__'])
def test_modules_that_do_something_when_they_are_imported_are_not(name):
    assert not libraries.is_imported(Question(name, 'x'))


def test_what_comes_after_a_function_or_an_object_counts_as_found():
    assert oracle_process.look_up(Question('os', 'getcwd.of_nobody')).is_there
    assert oracle_process.look_up(Question('collections', 'OrderedDict.fromkeys')).is_there
    assert not oracle_process.look_up(Question('collections', 'OrderedDict.of_nobody')).is_there
