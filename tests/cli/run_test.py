"""`etpe run` as a user types it: real scripts in real processes."""

import argparse
import json
import re
import textwrap

import pytest
import tensorflow.compat.v1 as tf
from harness.names import tensorflow_names
from harness.parts import soak_except
from harness.processes import EXAMPLE, HANDWRITTEN, ROOT, run_etpe, run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.cli import etpe_run as run_command
from estimator_tpu_embedding.compat import notebook
from estimator_tpu_embedding.errors import SetupError

RESULT = re.compile(r'step (\d+): accuracy ([\d.]+), auc ([\d.]+), loss ([\d.]+)')


def script(tmp_path, text):
    path = tmp_path / 'job.py'
    path.write_text(textwrap.dedent(text))
    return path


@pytest.fixture(scope='module')
def census(tmp_path_factory):
    """The directory and the process of the census job, trained once on 2 hosts of 2 cores."""
    directory = tmp_path_factory.mktemp('census')
    return directory, run_etpe('run', '--hosts', 2, '--cores', 2, EXAMPLE,
                               f'--model_dir={directory}', f'--export_dir={directory}/export',
                               loaded=True)


def test_the_census_job_learns_on_several_hosts_and_cores(census):
    _, process = census
    assert process.returncode == 0
    results = RESULT.findall(process.stdout)
    assert [step for step, *_ in results] == ['600', '900']  # trains, evaluates, resumes, again
    for _, accuracy, auc, _ in results:
        assert float(accuracy) >= .835
        assert float(auc) >= .89


def structure(facts):
    """The names in facts, and of numbers and texts the types; of a list that of its first item."""
    if isinstance(facts, dict):
        return {name: structure(one) for name, one in facts.items()}
    return [structure(facts[0])] if isinstance(facts, list) and facts else type(facts).__name__


def test_the_report_of_the_census_job_has_the_structure_of_the_golden(census, tmp_path):
    directory, _ = census
    page = tmp_path / 'report.html'
    done = run_etpe('report', directory, '-o', page, '--format', 'json')
    run, = json.loads(done.stdout)['runs']
    golden = ROOT / 'tests' / 'cli' / 'census_report.json'
    assert structure(run) == json.loads(golden.read_text()), json.dumps(structure(run), indent=1)
    assert page.stat().st_size < 1.5e6
    assert [one.partition('"')[0] for one in page.read_text().split('<section id="')[1:]] == [
        'warnings', 'metrics', 'time', 'throughput', 'tables', 'ids', 'load', 'checkpoints',
        'topology', 'configuration']


def test_the_tool_says_topology_and_arithmetic_first_and_steps_and_rates_last(census):
    directory, process = census
    said = [line for line in process.stderr.splitlines() if line.startswith('[etpe] ')]
    expected = [
        'train: global 512 = 2 hosts x 2 cores x 128; 5 div-partitioned tables, trained by adagrad',
        'train: 600 steps, DONE; ids missing: native_country COUNT, workclass COUNT',
        'evaluate: global 176 = 2 hosts x 2 cores x 44; 5 div-partitioned tables',
        'evaluate: 37 steps, DONE; ids missing: native_country COUNT, workclass COUNT']
    expected += [expected[0], expected[1].replace('600', '300'), *expected[2:],
                 expected[2].replace('evaluate', 'predict'),
                 expected[3].replace('evaluate: 37', 'predict: 38'),
                 'export: a graph for a TPU, tagged "serve" and "tpu", beside that for a CPU, '
                 'which TensorFlow 2 loads with tags=["serve"]',
                 'in all: train 900 steps, RATE, saved in DIRECTORY; predict 38 steps, RATE; '
                 'evaluate 74 steps, RATE; KERNELS; TIME; ids missing: COUNT; ids truncated: 0; '
                 'ids out of range: 0']
    for line, pattern in zip(said, expected, strict=True):
        pattern = pattern.replace('DONE', 'RATESTART, KERNELS; TIMEADVICE')
        pattern = re.escape(f'[etpe] {pattern}').replace('RATE', r'[\d,]+ examples/s').replace(
            'START', r'(, start [\d.]+ s)?').replace(
            'ADVICE', '(; steps are small for 4 cores: fewer would be faster)?').replace(
            'KERNELS', '(native|stock) kernels').replace(
            'TIME', r'time: input \d+ %, lookup \d+ %, dense \d+ %, update \d+ %, other \d+ %')
        assert re.fullmatch(pattern.replace('COUNT', r'[\d,]+').replace(
            'DIRECTORY', re.escape(str(directory))), line), (pattern, line)
    assert '[etpe]' not in process.stdout


def test_plain_tensorflow_serves_what_the_census_job_predicts(census):
    directory, process = census
    predicted = re.search(r'predicted (\d+) rows, mean probability ([\d.]+)', process.stdout)
    assert predicted[1] == '6513'
    exported, = (directory / 'export').iterdir()
    done = run_python('-c', '''
import runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
assert not {"estimator_tpu_embedding", "tensorflow_estimator"} & set(sys.modules)
''', EXAMPLE.with_name('serve_census.py'), exported)
    assert done.returncode == 0
    served = re.search(r'served 6513 rows, mean probability ([\d.]+), accuracy ([\d.]+)',
                       done.stdout)
    assert float(served[1]) == pytest.approx(float(predicted[2]), abs=2e-5)
    assert float(served[2]) >= .835


def test_the_checkpoint_of_the_census_job_holds_what_the_original_would(census):
    tf = pytest.importorskip('tensorflow')
    directory, _ = census
    stored = dict(tf.train.list_variables(str(directory)))
    shared = 'education_occupation_shared_embedding'
    workclass = 'dense_features/workclass_embedding/embedding_weights'
    assert stored[shared] == stored[f'{shared}/Adagrad'] == [32, 8]
    assert stored[workclass] == stored[f'{workclass}/Adagrad'] == [8, 4]
    assert stored['dense/kernel'] == stored['dense/kernel/Adam_1'] == [5 + 8 + 8 + 4 * 4, 64]
    tables = [name for name in stored if 'embedding_weights' in name or name.startswith(shared)]
    assert len(tables) == 10
    assert not [name for name in tables if '/Adam' in name or '/part_' in name]
    assert tf.train.load_variable(str(directory), 'global_step') == 900


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_census_job_gives_the_same_names_and_numbers_without_v2_behavior(tmp_path):
    tf = pytest.importorskip('tensorflow')
    found = []
    for flag in ('--nodisable_v2_behavior', '--disable_v2_behavior'):
        process = run_etpe('run', '--hosts', 1, '--cores', 2, EXAMPLE, flag, '--train_steps=40',
                           f'--model_dir={tmp_path / flag}', loaded=True)
        assert process.returncode == 0
        reader = tf.train.load_checkpoint(str(tmp_path / flag))
        found.append((RESULT.findall(process.stdout), {
            name: reader.get_tensor(name).tolist() for name in
            reader.get_variable_to_shape_map()}))
    assert found[0][0] == found[1][0]
    assert found[0][1].keys() == found[1][1].keys()
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize('text, status', soak_except([
    ('import sys; sys.exit(7)', 7), ('raise SystemExit', 0), ('1 / 0', 1),
    ('import sys; sys.exit("no")', 1)], 0, 2))
def test_the_exit_status_is_that_of_the_script(tmp_path, text, status):
    done = run_etpe('run', script(tmp_path, text), loaded=True)
    assert done.returncode == status
    if text == '1 / 0':
        plain = run_python(tmp_path / 'job.py')
        said = done.stderr[done.stderr.find('Traceback'):].splitlines()
        assert [line for line in said if not line.startswith('[etpe] ')] == (
            plain.stderr.splitlines())


def test_num_shards_of_a_script_sizes_the_system_when_no_flag_does(tmp_path):
    path = script(tmp_path, '''
        import tensorflow.compat.v1 as tf
        tpu = tf.estimator.tpu
        config = tpu.RunConfig(
            cluster=tf.distribute.cluster_resolver.TPUClusterResolver(),
            tpu_config=tpu.TPUConfig(num_shards=16, per_host_input_for_training=3))

        def model_fn(features, labels, mode, params):
            loss = tf.reduce_mean(tf.layers.dense(features, 1))
            optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1))
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
                loss, tf.train.get_global_step()))

        tpu.TPUEstimator(model_fn, config=config, train_batch_size=32).train(
            lambda params: tf.data.Dataset.from_tensors(
                tf.ones([params['batch_size'], 3])).repeat(), steps=3)
    ''')
    done = run_etpe('run', path, loaded=True)
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if line.startswith('[etpe] ')]
    assert said[0] == ('[etpe] TPUConfig.num_shards=16 sets the size of the emulated system: '
                       '2 hosts x 8 cores')
    assert said[1] == '[etpe] train: global 32 = 2 hosts x 8 cores x 2'
    assert said[2].startswith('[etpe] train: 3 steps, ')
    assert said[3].startswith('[etpe] in all: train 3 steps, ')


@pytest.mark.parametrize('arguments, text', [
    (['/nonexistent.py'], "etpe run: cannot find the script '/nonexistent.py'"),
    (['--hosts', '0', EXAMPLE],
     'etpe run: E410 topology: the number of hosts must be in [1, 4096]; got 0.'),
    (['--kernels', 'fast', EXAMPLE], "etpe run: error: argument --kernels: invalid choice: 'fast' "
     "(choose from 'auto', 'native', 'stock')"),
    (['--kernel-threads', '0', EXAMPLE], 'etpe run: E475 --kernel-threads: kernel_threads must be '
     'in [1, 1024]; got 0.  Leave it out to use all cores.'),
    (['--table-dir', '/ssd', EXAMPLE], 'etpe run: --table-dir and --resident need each other'),
    (['--table-dir', '/ssd', '--resident', '16GB', EXAMPLE], 'etpe run: E468 --table-dir: resident '
     "must be a number of bytes above 0; got '16GB'.  Write a number of bytes, or one with KiB, "
     'MiB, GiB or TiB, such as 16GiB.'),
    (['--steps', '0', EXAMPLE], 'etpe run: --steps must be at least 1, not 0'),
    (['--grow', 't', '--rename', 'old', EXAMPLE],
     "etpe run: E626 --rename: it must be OLD=NEW, with each OLD once; got 'old'."),
    (['--assume', 'mod', EXAMPLE], 'etpe run: E626 CheckpointOptions.assume: it must be "div" or '
     '"mod:H" with 1 <= H <= 4096; got \'mod\'.'),
    (['--host', '2', EXAMPLE], 'etpe run: error: unrecognized arguments: --host'),
    ([], 'etpe run: error: the following arguments are required: SCRIPT')])
def test_usage_errors_are_one_line_after_the_usage_and_status_2(arguments, text):
    done = run_etpe('run', *arguments)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if not line.startswith('usage: ')] == [text]


def test_what_is_meant_by_differences_to_a_checkpoint_reaches_the_options_of_jobs(monkeypatch):
    monkeypatch.setattr(defaults, '_current', defaults.Defaults())
    head, rest = run_command.split_at_script([
        '--grow', 'a', '--grow=b', '--drop', 'c', '--reset-slots', 'd', '--rename', 'e=x/f',
        '--assume', 'mod:2', '--follow-pointer', 'job.py', '--drop', 'mine'])
    assert rest == ['--drop', 'mine']
    parser = argparse.ArgumentParser()
    run_command.configure(parser)
    options = run_command.checkpoint_options(parser.parse_args(head))
    assert options == CheckpointOptions(
        grow=['a', 'b'], drop=['c'], reset_slots=['d'], rename={'e': 'x/f'}, assume='mod:2',
        follow_pointer=True)
    defaults.set_current(defaults.Defaults(checkpoint=options))
    said = CheckpointOptions(verify='size')
    for config, meant in ((ete.RunConfig(), options), (ete.RunConfig(checkpoint=said), said),
                          (ete.RunConfig().replace(checkpoint=said, tf_random_seed=1), said)):
        estimator = ete.TPUEstimator(lambda features: None, config=config, train_batch_size=8)
        assert estimator._job('train', None).checkpoint == meant
    with pytest.raises(TypeError, match='E498 RunConfig: checkpoint must be Che'):
        ete.RunConfig(checkpoint={'grow': ['t']})


def test_a_script_finds_itself_and_what_is_beside_it_as_with_python(tmp_path):
    (tmp_path / 'statistics.py').write_text('mean = "that beside the script"\n')
    script(tmp_path, '''
        import atexit, os, pickle, statistics, sys
        class A: pass
        os.chdir('/')
        print(os.path.exists(__file__), __file__, __name__, sys.argv, sys.path[0], statistics.mean)
        atexit.register(lambda: print(len(pickle.dumps(A())) > 0))
        def annotated(x: int): pass
        print(annotated.__annotations__)
        sys.stderr.close()
        sys.exit(0)
    ''')
    done, plain = [run(*command, 'job.py', '--', '-x', 'a b', '--help', cwd=tmp_path)
                   for run, command in ((run_etpe, ['run']), (run_python, []))]
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stdout.startswith(f'True {tmp_path}/job.py') and done.stdout.endswith('True\n')


def test_a_module_sees_and_ends_as_python_has_it(tmp_path):
    package = tmp_path / 'package'
    package.mkdir()
    (package / '__init__.py').write_text('')
    (package / 'helper.py').write_text('def fail():\n    return 1 / 0\n')
    (package / '__main__.py').write_text(textwrap.dedent('''
        import sys
        from . import helper
        print(__name__, __package__, sys.argv, sys.path[0])
        helper.fail()
    '''))
    done = [run(*command, '-m', '--steps', cwd=tmp_path)
            for run, command in ((run_etpe, ['run', '-mpackage']), (run_python, ['-mpackage']))]
    assert [one.returncode for one in done] == [1, 1]
    assert done[0].stdout == done[1].stdout
    shown = [[line for line in one.stderr[one.stderr.find('Traceback'):].splitlines()
              if '[etpe]' not in line and 'runpy' not in line] for one in done]
    assert shown[0] == shown[1]


def test_a_module_that_is_not_there_is_told_from_one_that_misses_another(tmp_path):
    (tmp_path / 'lacking.py').write_text('import nowhere_at_all')
    done = run_etpe('run', '-m', 'nowhere', cwd=tmp_path, loaded=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith('etpe run: E004 -m: it must name a module')
    done = run_etpe('run', '-m', 'lacking', cwd=tmp_path, loaded=True)
    assert done.returncode == 1
    assert "No module named 'nowhere_at_all'" in done.stderr


def test_a_failing_cell_is_shown_with_its_line(tmp_path):
    path = tmp_path / 'failing.ipynb'
    path.write_text(json.dumps({'nbformat': 4, 'metadata': {}, 'cells': [
        {'cell_type': 'code', 'source': ['def fail():\n', '    return 1 / 0\n']},
        {'cell_type': 'code', 'source': ['print("so far")\n', 'fail()']},
        {'cell_type': 'code', 'source': ['print("never")']}]}))
    done = run_etpe('run', path, loaded=True)
    assert (done.returncode, done.stdout) == (1, 'so far\n')
    shown = [line for line in done.stderr[done.stderr.find('Traceback'):].splitlines()
             if set(line) - set(' ^~')]  # Without the marks below an expression.
    assert shown[1:5] == [
        f'  File "{path}[code cell 2]", line 2, in <module>', '    fail()',
        f'  File "{path}[code cell 1]", line 2, in fail', '    return 1 / 0']


@pytest.mark.parametrize('source, skipped, expected', [
    ('!pip install x\ny = (7\n   % 4)', ['!pip install x'], 3),
    ('%matplotlib inline\ny = \"\"\"\n!kept\n%d\n\"\"\" % 5',
     ['%matplotlib inline'], '\n!kept\n5\n'),
    ('!pip install \\\n   a \\\n   b\ny = 1', ['!pip install \\'], 1),
    ('y = 2\nif y:\n    !ls\nstr?\n', ['!ls', 'str?'], 2),
    ('y = 8 \\\n  % 5\n%time', ['%time'], 3),
    ('%%time\ny = 4', ['%%time'], 4)])
def test_of_a_cell_only_what_is_for_ipython_is_skipped(source, skipped, expected):
    said, namespace = [], {}
    for code in notebook.codes([source], 'a.ipynb', said.append):
        exec(code, namespace)
    assert said == [f'a.ipynb, code cell 1: skipped "{line}", which needs IPython'
                    for line in skipped]
    assert namespace['y'] == expected


@pytest.mark.parametrize('content', [
    b'', b'[]', b'{"cells": [{}]}', b'\xff', b'{"cells": [], "metadata": {"kernelspec": {'
    b'"language": "R"}}}', b'[' * 10**5])
def test_what_is_no_notebook_in_python_is_refused(tmp_path, content):
    path = tmp_path / 'job.ipynb'
    path.write_bytes(content)
    with pytest.raises(SetupError, match='E005 .*job.ipynb: it must be a notebook'):
        notebook.read(str(path))


@pytest.mark.parametrize('hosts, cores, flags', soak_except([
    (1, 1, []), (2, 2, ['--pipelined'])], 1))
def test_a_loop_without_an_estimator_trains_evaluates_and_saves(hosts, cores, flags, tmp_path):
    done = run_etpe('run', '--hosts', hosts, '--cores', cores, HANDWRITTEN,
                    f'--model_dir={tmp_path}', *flags, loaded=True)
    assert done.returncode == 0
    losses = [float(loss) for loss in re.findall(r'loss ([\d.]+)', done.stdout)]
    assert losses[-1] < .45 < .5 < losses[0]
    assert float(re.search(r'accuracy ([\d.]+)', done.stdout)[1]) > .8  # .76 is no skill
    shapes = dict(tf.train.list_variables(str(tmp_path)))
    assert shapes['skill'] == shapes['skill/Adagrad'] == [64, 8]
    assert shapes['life'] == shapes['life/Adagrad'] == [64, 4]
    assert ('[etpe] in all: TPUEmbedding in a graph of the script\'s own, whose steps are not '
            'counted\n') in done.stderr


def test_a_loop_without_an_estimator_ends_when_its_input_fails(tmp_path):
    (tmp_path / 'broken.gz').write_bytes(b'no archive')
    done = run_etpe('run', HANDWRITTEN, f'--data={tmp_path / "broken.gz"}', loaded=True)
    assert done.returncode == 1
    assert 'step 1' not in done.stdout


def test_the_examples_could_have_been_written_for_the_original():
    names = set()
    for example in EXAMPLE.parent.glob('*.py'):
        text = example.read_text()
        if example.name == 'census_sides.py':
            continue  # It is for `etpe migrate check`.
        assert 'estimator_tpu_embedding' not in text and 'etpe' not in text
        names |= {*tensorflow_names(text)}
    # tools/make_goldens.py found each of these in TensorFlow 2.15.
    assert sorted(names) == (ROOT / 'tests/golden/example_names.txt').read_text().split()


def test_a_program_that_a_missing_name_ended_is_sent_to_the_doctor(tmp_path):
    (tmp_path / 'job.py').write_text('import math\nmath.of_nobody\n')
    done = run_etpe('run', tmp_path / 'job.py')
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f'[etpe] "etpe doctor {tmp_path}/job.py" says of each name that is gone what to use '
        'instead')


def options():
    """(name, whether it has a value) of each option that comes before the script."""
    parser = argparse.ArgumentParser(add_help=False)
    run_command.configure(parser)
    return [(name, action.nargs != 0) for action in parser._actions
            for name in action.option_strings if name != '-m']


@pytest.mark.parametrize('name, has_value', options())
def test_the_script_comes_after_the_value_of_an_option(name, has_value):
    before = [name, 'value'] if has_value else [name]
    assert run_command.split_at_script([*before, 'job.py', name, 'other']) == (
        [*before, 'job.py'], [name, 'other'])
    assert run_command.split_at_script([f'{name}=value', 'job.py']) == (
        [f'{name}=value', 'job.py'], [])
