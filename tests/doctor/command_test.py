"""The command of each program has the flags that it needs, each with a reason, and no other."""

import pytest
from harness.doctored import scanned

from estimator_tpu_embedding.doctor import command
from estimator_tpu_embedding.doctor.facts import Finding, Place, Question, Use
from estimator_tpu_embedding.doctor.verdicts import Flags

MAIN = "\nif __name__ == '__main__':\n  main()\n"


def of(*files, findings=(), flags=None):
    """Returns the only prescription."""
    only, = command.prescriptions(files, findings, flags or {})
    return only


def test_a_program_without_needs():
    made = of(scanned('print(1)' + MAIN))
    assert (made.command, made.reasons, made.stops) == ('etpe run train.py', [], [])


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
    ('num_shards=8', '', 'sets the size to 1 x 8 (hosts x cores)'),
    ('num_shards=32', '', 'sets the size to 4 x 8 (hosts x cores)'),
    ('num_shards=12', '--hosts 2 --cores 6 ', '8 cores each'),
    ('num_shards=FLAGS.cores', '', 'the default of FLAGS.cores (train.py:2)'),
    ('num_cores_per_replica=2', '--cores 2 ', 'a replica takes 2 cores'),
    ('num_shards=3, num_cores_per_replica=4', '--hosts 3 --cores 4 ', '8 cores each')])
def test_sizes_are_stated_only_where_etpe_run_does_not_find_them(arguments, options, said):
    made = of(scanned('from tensorflow.contrib import tpu\n'
                      "flags.DEFINE_integer('cores', 16, 'Cores.')\n"
                      f'config = tpu.TPUConfig({arguments})' + MAIN))
    assert made.command == f'etpe run {options}train.py'
    reason, = made.reasons
    assert said in reason


def test_a_loop_with_a_raw_embedding_needs_the_cores_of_its_shards():
    made = of(scanned('''
from tensorflow.python.tpu import tpu, tpu_embedding
embedding = tpu_embedding.TPUEmbedding(tables, features, 64, mode)
tpu.shard(step, num_shards=4)''' + MAIN))
    assert made.command == 'etpe run --cores 4 train.py'


@pytest.mark.parametrize('path, line, expected', [
    ('trainer/task.py', 'from . import model', 'etpe run -m trainer.task'),
    ('trainer/task.py', 'from trainer import model', 'etpe run -m trainer.task'),
    ('trainer/__main__.py', 'from .model import f', 'etpe run -m trainer'),
    ('trainer/task.py', 'import model', 'etpe run trainer/task.py'),
    ('trainer/task.py', 'import json', 'etpe run trainer/task.py')])
def test_a_module_of_a_package_runs_as_a_module(path, line, expected):
    task = scanned(line + MAIN, path, ['trainer.model'])
    model = scanned('f = 1', 'trainer/model.py', ['trainer'])
    assert of(task, model).command == expected


def test_a_package_in_another_folder_is_run_from_there():
    task = scanned('from official.r1 import model' + MAIN, '/my models/official/r1/task.py',
                   ['official.r1.model'])
    task.module = 'official.r1.task'
    model = scanned('f = 1', '/my models/official/r1/model.py', ['official'])
    assert of(task, model).command == "cd '/my models' && etpe run -m official.r1.task"


def test_arguments_that_must_be_given_are_named():
    made = of(scanned('''
flags.DEFINE_string('data_dir', None, 'Data.')
flags.DEFINE_string('out', None, 'Out.', required=True)
flags.DEFINE_string('other', None, 'Other.')
flags.mark_flag_as_required('data_dir')
parser.add_argument('--job-dir', required=True)
parser.add_argument('--steps', default=3)
parser.add_argument('files', nargs='*')
parser.add_argument('source')''' + MAIN))
    assert made.command == ('etpe run train.py --data_dir=DATA_DIR --out=OUT --job-dir=JOB_DIR '
                            'SOURCE')
    assert '--data_dir: the program requires it (train.py:2)' in made.reasons


def finding(code, path, line):
    return Finding(code, Place(path, line), 'x', 'x', 'm')


def test_what_stops_it_comes_in_the_order_of_imports():
    main = scanned('import early\nimport lib.a\nx = 1' + MAIN, 'main.py', ['early', 'lib.a'])
    early = scanned('x = 1', 'early.py', ['lib.b'])
    files = [main, early, *[scanned('x = 1', path, ['json']) for path in (
        'lib/__init__.py', 'lib/a.py', 'lib/b.py', 'lib/unused.py')]]
    of_main = finding('E101', 'main.py', 3)
    of_a, of_b = finding('E111', 'lib/a.py', 1), finding('E101', 'lib/b.py', 9)
    of_package = finding('E101', 'lib/__init__.py', 1)
    others = [finding('W201', 'lib/a.py', 1), finding('E101', 'lib/unused.py', 1),
              Finding('W221', None, '', '', '')]
    made = of(*files, findings=[*others, of_main, of_a, of_b, of_package])
    assert made.stops == [of_package, of_b, of_a, of_main]


def test_what_stands_in_functions_comes_after_what_runs_at_import():
    main = scanned('import a\ndef f():\n  x = 1\ny = 2' + MAIN, 'main.py', ['a'])
    a = scanned('async def f(x=1):\n\n  return x\n\nclass A:\n  x = 1', 'a.py', ['json'])
    of_f, of_main = finding('E101', 'main.py', 3), finding('E101', 'main.py', 4)
    of_a, of_default, of_class = (finding('E101', 'a.py', line) for line in (3, 1, 6))
    made = of(main, a, findings=[of_f, of_main, of_a, of_default, of_class])
    assert made.stops == [of_default, of_class, of_main, of_a, of_f]


def test_a_file_that_does_not_parse_is_met_before_its_imports():
    main = scanned('import a\nx = 1' + MAIN, 'main.py', ['a'])
    a = scanned('x = 1', 'a.py', ['json'])
    syntax, missing = finding('E131', 'main.py', 9), finding('E101', 'a.py', 1)
    assert of(main, a, findings=[missing, syntax]).stops == [syntax, missing]


def test_circular_imports_end():
    one = scanned('import b' + MAIN, 'a.py', ['b'])
    other = scanned('import a', 'b.py', ['a'])
    assert of(one, other).stops == []


def keras_3(line):
    return Finding('E105', Place('train.py', line), 'tensorflow.keras.ops', 'tf.keras.ops', 'm')


def test_what_needs_keras_3_and_nothing_of_etpe_runs_with_plain_python():
    made = of(scanned('x = 1' + MAIN), findings=[keras_3(3)])
    assert (made.command, made.stops) == ('python train.py', [])
    assert 'tf.keras.ops (line 3) needs Keras 3' in made.reasons[0]


@pytest.mark.parametrize('more, flags', [
    ([finding('I301', 'train.py', 1)], {}), ([finding('E101', 'train.py', 1)], {}),
    ([], {'train.py': Flags([use('Session', 3)])})])
def test_what_needs_keras_3_and_etpe_too_is_stopped(more, flags):
    made = of(scanned('x = 1' + MAIN), findings=[*more, keras_3(3)], flags=flags)
    assert made.command.startswith('etpe run ') and keras_3(3) in made.stops


def test_an_argument_of_tensorflow_1_asks_for_the_flag():
    old = Finding('W218', Place('train.py', 7), 'tensorflow.reduce_sum(keep_dims=)', 'x', 'm')
    made = of(scanned('x = 1' + MAIN), findings=[old])
    assert made.command == 'etpe run --tf1 train.py'
    assert made.reasons == ['--tf1: tensorflow.reduce_sum(keep_dims=) (train.py:7)']
