"""What becomes of the parts' results; no file here needs TensorFlow.

The command of each program has the flags that it needs, each with a reason, and no other.
"""

import importlib.util

import pytest
from harness.doctored import scanned
from harness.processes import run_python

from estimator_tpu_embedding.doctor.diagnose import diagnose, prescriptions
from estimator_tpu_embedding.doctor.findings import Finding, Place, Question, Use
from estimator_tpu_embedding.doctor.verdicts import Flags

OLD = 'import string\nprint(string.letters)\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'gen').mkdir()
    for name in ('b.py', 'a.py', 'gen/c.py'):
        (tmp_path / name).write_text(OLD)
    return tmp_path


def places(diagnosis):
    return [(finding.place.path, finding.code) for finding in diagnosis.findings if finding.place]


def test_findings_come_by_file_and_are_counted(folder):
    found = diagnose(['.'])
    assert places(found) == [('a.py', 'E122'), ('b.py', 'E122'), ('gen/c.py', 'E122')]
    assert (found.files, found.lines, found.ignored, found.left_out) == (3, 6, {}, [])
    assert [one.path for one in found.prescriptions] == ['a.py', 'b.py', 'gen/c.py']
    assert [len(one.stops) for one in found.prescriptions] == [1, 1, 1]


def test_a_finding_that_is_not_selected_stops_a_program_all_the_same(folder):
    found = diagnose(['a.py'], select=('W',))
    assert (places(found), found.ignored) == ([], {'E122': 1})
    assert [stop.code for stop in found.prescriptions[0].stops] == ['E122']
    found = diagnose(['a.py'], ignore=('E12',))
    assert (found.ignored, found.prescriptions[0].stops) == ({'E122': 1}, [])


def test_a_file_that_the_user_names_is_a_program_if_nothing_else_is(folder):
    (folder / 'a.py').write_text('import os\nx = os.sep\n')
    for name in ('b.py', 'gen/c.py'):
        (folder / name).unlink()
    assert diagnose(['.']).prescriptions == []
    assert [one.path for one in diagnose(['a.py']).prescriptions] == ['a.py']
    (folder / 'b.py').write_text(OLD)
    assert [one.path for one in diagnose(['a.py', 'b.py']).prescriptions] == ['b.py']


def test_a_package_that_etpe_run_needs_is_named_with_its_version(folder, monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    found = [one for one in diagnose(['a.py']).findings if one.code == 'E111']
    assert [one.subject for one in found] == [
        'psutil', 'tensorflow', 'tensorflow_estimator', 'tf_keras']
    assert 'pip install tf-estimator-nightly==2.16.0.dev2024012409' in found[2].message
    assert {one.place for one in found} == {None}


def test_nothing_is_imported_to_describe_the_environment(folder):
    done = run_python('-c', '''
import sys
from estimator_tpu_embedding.doctor.diagnose import diagnose
said = dict(diagnose(["a.py"]).environment)
print(said["tf-estimator-nightly"], {"tensorflow", "numpy", "keras"} & sys.modules.keys())
''', cwd=folder)
    assert done.stdout == '2.16.0.dev2024012409 set()\n'


MAIN = "\nif __name__ == '__main__':\n  main()\n"


def of(*files, findings=(), flags=None):
    """Returns the only prescription."""
    only, = prescriptions(files, findings, flags or {})
    return only


def use(name, line):
    return Use(Place('train.py', line), Question('tensorflow', name), f'tf.{name}')


def test_flags_have_their_first_name_and_the_number_of_others():
    flags = Flags([use('Session', 3), use('placeholder', 4), use('placeholder', 9)],
                  [use('contrib.slim', 8)])
    made = of(scanned('print(1)' + MAIN), flags={'train.py': flags})
    assert made.command == 'etpe run --tf1 --contrib train.py'
    assert made.reasons == ['--tf1: tf.Session (train.py:3) and 1 other name',
                            '--contrib: tf.contrib.slim (train.py:8)']


@pytest.mark.parametrize('arguments, options, said', [
    ('num_shards=8', '', ''), ('num_shards=FLAGS.cores', '', ''),
    ('num_shards=12', '--hosts 2 --cores 6 ', '8 cores each'),
    ('num_cores_per_replica=2', '--cores 2 ', 'a replica takes 2 cores'),
    ('num_shards=3, num_cores_per_replica=4', '--hosts 3 --cores 4 ', '8 cores each')])
def test_sizes_are_stated_only_where_etpe_run_does_not_find_them(arguments, options, said):
    made = of(scanned('from tensorflow.contrib import tpu\n'
                      "flags.DEFINE_integer('cores', 16, 'Cores.')\n"
                      f'config = tpu.TPUConfig({arguments})' + MAIN))
    assert made.command == f'etpe run {options}train.py'
    assert said in ''.join(made.reasons)


def test_a_loop_with_a_raw_embedding_needs_the_cores_of_its_shards():
    made = of(scanned('''
from tensorflow.python.tpu import tpu, tpu_embedding
embedding = tpu_embedding.TPUEmbedding(tables, features, 64, mode)
tpu.shard(step, num_shards=4)''' + MAIN))
    assert made.command == 'etpe run --cores 4 train.py'


@pytest.mark.parametrize('path, line, expected', [
    ('trainer/task.py', 'from . import model', '-m trainer.task'),
    ('trainer/task.py', 'from trainer import model', '-m trainer.task'),
    ('trainer/__main__.py', 'from .model import f', '-m trainer'),
    ('trainer/task.py', 'import model', 'trainer/task.py'),
    ('trainer/task.py', 'import json', 'trainer/task.py'),
    ('trainer/jobs/task.py', 'from .. import model', '-m trainer.jobs.task')])
@pytest.mark.parametrize('folder', ['', 'my models/'])
def test_a_module_of_a_package_runs_as_a_module(tmp_path, monkeypatch, path, line, expected,
                                                folder):
    monkeypatch.chdir(tmp_path)
    for name, text in {path: line + MAIN, 'trainer/__init__.py': '', 'trainer/model.py': 'f = 1',
                       'trainer/jobs/__init__.py': ''}.items():
        (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).write_text(text)
    only, = diagnose(['.']).prescriptions
    if not folder:
        assert only.command == f'etpe run {expected}'
    elif expected.startswith('-m'):
        assert only.command == f"cd 'my models' && etpe run {expected}"
    else:
        assert only.command == f"etpe run '{folder}{expected}'"


def finding(code, path, line):
    return Finding(code, Place(path, line), 'x', 'x', 'm')


def test_what_stops_it_comes_in_the_order_of_imports():
    main = scanned('import early\nimport lib.a\nx = 1' + MAIN, 'main.py',
                   ['early.py', 'lib/__init__.py', 'lib/a.py'])
    early = scanned('x = 1', 'early.py', ['lib/__init__.py', 'lib/b.py'])
    files = [main, early, *[scanned('x = 1', path) for path in (
        'lib/__init__.py', 'lib/a.py', 'lib/b.py', 'lib/unused.py')]]
    of_main = finding('E101', 'main.py', 3)
    of_a, of_b = finding('E111', 'lib/a.py', 1), finding('E101', 'lib/b.py', 9)
    of_package = finding('E101', 'lib/__init__.py', 1)
    others = [finding('W201', 'lib/a.py', 1), finding('E101', 'lib/unused.py', 1),
              Finding('E111', None, '', '', '')]
    made = of(*files, findings=[*others, of_main, of_a, of_b, of_package])
    assert made.stops == [of_package, of_b, of_a, of_main]


def test_what_stands_in_functions_comes_after_what_runs_at_import():
    main = scanned('import a\ndef f():\n  x = 1\ny = 2' + MAIN, 'main.py', ['a.py'])
    a = scanned('async def f(x=1):\n\n  return x\n\nclass A:\n  x = 1', 'a.py')
    of_f, of_main = finding('E101', 'main.py', 3), finding('E101', 'main.py', 4)
    of_a, of_default, of_class = (finding('E101', 'a.py', line) for line in (3, 1, 6))
    made = of(main, a, findings=[of_f, of_main, of_a, of_default, of_class])
    assert made.stops == [of_default, of_class, of_main, of_a, of_f]


def test_a_file_that_does_not_parse_is_met_before_its_imports():
    main = scanned('import a\nx = 1' + MAIN, 'main.py', ['a.py'])
    a = scanned('x = 1', 'a.py')
    syntax, missing = finding('E131', 'main.py', 9), finding('E101', 'a.py', 1)
    assert of(main, a, findings=[missing, syntax]).stops == [syntax, missing]


def test_circular_imports_end():
    one = scanned('import b' + MAIN, 'a.py', ['b.py'])
    other = scanned('import a', 'b.py', ['a.py'])
    assert of(one, other).stops == []
