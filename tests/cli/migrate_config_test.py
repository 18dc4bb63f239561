import json
import pathlib
import sys

import pytest
from google.protobuf import text_format
from harness.commands import SEVERAL, config_of, saved
from harness.processes import run_python
from harness.source import PACKAGE
from harness.wire import graph, meta_graph, node

from estimator_tpu_embedding.compat import install
from estimator_tpu_embedding.proto.codec import Config

ADAGRAD = 'Adagrad_defaults.pbtxt'


def migrated(etpe, *arguments, **status):
    return etpe('migrate', 'config', *arguments, **status)


def reported(etpe, *arguments):
    return json.loads(migrated(etpe, *arguments, '--format', 'json'))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module `job_of_a_test`, whose names are already where `install` puts them."""
    monkeypatch.setattr(install, 'install', lambda: None)
    monkeypatch.syspath_prepend(tmp_path)

    def write(text):
        sys.modules.pop('job_of_a_test', None)
        (tmp_path / 'job_of_a_test.py').write_text(text)
    yield write
    sys.modules.pop('job_of_a_test', None)


def test_the_source_is_printed_as_it_is(etpe):
    text = migrated(etpe, SEVERAL, '--to', 'tf2')
    assert text.startswith('"""Tables and features of a job') and '\n    return api.TPU' in text
    compile(text, 'source', 'exec')
    assert reported(etpe, SEVERAL, '--to', 'tf2')['text'] == text


def test_a_config_with_an_illegal_name_is_printed_with_escapes(etpe, tmp_path):
    config = config_of()
    config.table_descriptor[0].name = 'a\x1b]52;c\n\u202e\x9b'
    text = migrated(etpe, saved(tmp_path, config), '--to', 'textproto')
    assert set(text) <= {'\n', *map(chr, range(32, 127))}


def test_a_config_comes_back_as_text(etpe):
    text = migrated(etpe, SEVERAL, '--to', 'textproto')
    assert text_format.Parse(text, Config()) == config_of()


def test_what_is_lost_is_noted_and_strict_refuses_all_of_it_at_once(etpe):
    said = migrated(etpe, SEVERAL, '--to', 'tf2', '--strict', status=2)
    assert [line.split()[3] for line in said.splitlines()] == ['E671', 'E673', 'E673']
    assert migrated(etpe, ADAGRAD, '--to', 'tf2', '--strict')
    notes = reported(etpe, SEVERAL, '--to', 'tf2')['notes']
    assert {note['code'] for note in notes} == {'', 'E671', 'E673'}
    assert all(set(note) == {'where', 'fact', 'remedy', 'code'} for note in notes)


def test_a_new_file_gets_the_source_and_the_notes_are_printed(etpe, tmp_path):
    path = tmp_path / 'new.py'
    said = migrated(etpe, SEVERAL, '--to', 'tf2', '-o', path)
    assert path.read_text() == migrated(etpe, SEVERAL, '--to', 'tf2')
    assert said.splitlines()[-1] == f'{path}: written, with {len(said.splitlines()) - 1} notes'
    assert [one.name for one in tmp_path.iterdir()] == ['new.py']


@pytest.mark.parametrize('name', ['there.py', 'dangling', 'missing/new.py', '.'])
def test_no_file_is_replaced_and_none_made_where_none_can_be(etpe, tmp_path, name):
    (tmp_path / 'there.py').write_text('kept')
    (tmp_path / 'dangling').symlink_to(tmp_path / 'nothing')
    said = migrated(etpe, SEVERAL, '--to', 'tf2', '-o', tmp_path / name, status=2)
    assert 'E678 -o' in said
    assert (tmp_path / 'there.py').read_text() == 'kept'
    assert sorted(one.name for one in tmp_path.iterdir()) == ['dangling', 'there.py']


def test_a_checkpoint_gives_the_config_of_its_training(etpe, tmp_path):
    config, other = config_of(ADAGRAD), config_of('Adagrad_inference.pbtxt')
    prefix = f'{tmp_path}/model.ckpt-4'
    pathlib.Path(f'{prefix}.index').touch()
    pathlib.Path(f'{prefix}.meta').write_bytes(meta_graph(graph(
        node(other.SerializeToString(), name=b'a'), node(config.SerializeToString(), name=b'b'))))
    assert 'api.Adagrad(' in migrated(etpe, prefix, '--to', 'tf2')
    assert 'api.Adagrad(' in migrated(etpe, tmp_path, '--to', 'tf2')


def test_several_configs_of_trainings_are_no_source(etpe, tmp_path):
    path = tmp_path / 'graph.pb'
    path.write_bytes(graph(node(config_of().SerializeToString(), name=b'a'),
                           node(config_of(ADAGRAD).SerializeToString(), name=b'b')))
    said = migrated(etpe, path, '--to', 'tf2', status=2)
    assert said.count('E676') == 2 and 'node "a"' in said and 'node "b"' in said


@pytest.mark.parametrize('text, expected', [
    ('value = lambda: 3', 'E675'), ('1 / 0', 'E492'), ('raise SystemExit', 'E492'),
    ('value = b""', 'E482'), ('def value(needed):\n    pass', 'function that needs no arguments')])
def test_an_object_that_declares_nothing_is_told(etpe, module, text, expected):
    module(text)
    said = migrated(etpe, 'py:job_of_a_test:value', '--to', 'tf2', status=2)
    assert expected in said and 'Traceback' not in said


SPEC = '''
from estimator_tpu_embedding.estimator.embedding_spec import EmbeddingConfigSpec
from estimator_tpu_embedding.estimator.optimizer_parameters import AdamParameters
from estimator_tpu_embedding.estimator.table_config import FeatureConfig, TableConfig

def spec():
    return EmbeddingConfigSpec(
        table_to_config_dict={'video': TableConfig(22, 4, combiner='sum')},
        feature_to_config_dict={'watched': FeatureConfig('video')},
        optimization_parameters=AdamParameters(.1))

class jobs:
    one = spec()
'''


def test_an_object_and_a_function_that_returns_it_are_the_same(etpe, module):
    module(SPEC)
    text = migrated(etpe, 'py:job_of_a_test:spec', '--to', 'tfrs', '--strict')
    assert "combiner='sum',\n" in text and 'epsilon=1e-08,\n' in text
    other = migrated(etpe, 'py:job_of_a_test:jobs.one', '--to', 'tfrs')
    assert other.replace('jobs.one', 'spec') == text


def test_a_spec_is_a_config_with_the_sizes_that_the_user_states(etpe, module):
    module(SPEC)
    sizes = ['--batch-size', '64', '--hosts', '2', '--cores', '4']
    assert 'E674' in migrated(etpe, 'py:job_of_a_test:spec', '--to', 'textproto', status=2)
    config = text_format.Parse(
        migrated(etpe, 'py:job_of_a_test:spec', '--to', 'textproto', *sizes), Config())
    assert (config.num_hosts, config.num_tensor_cores) == (2, 8)
    assert [feature.input_shape[0] for feature in config.feature_descriptor] == [8]
    text = migrated(etpe, 'py:job_of_a_test:spec', '--to', 'tf2', *sizes)
    assert 'BATCH_SIZE = 64\nBATCH_SIZE_PER_REPLICA = 8\n' in text


def test_the_guide_shows_what_is_written(etpe, module):
    module(SPEC.replace('22, 4', '1000, 16').replace('AdamParameters(.1)', 'AdamParameters(.05)')
           .replace("FeatureConfig('video')", "FeatureConfig('video', 5)"))
    text = migrated(etpe, 'py:job_of_a_test:spec', '--to', 'tf2', '--batch-size', '512',
                    '--hosts', '2', '--cores', '4')
    guide = (PACKAGE / 'docs' / 'migrating.md').read_text()
    assert f'```python\n{text[text.index("import tensorflow"):]}```\n' in guide


@pytest.mark.parametrize('sizes, code', [
    (['--batch-size', '7', '--cores', '2'], 'E411'), (['--batch-size', '0'], 'E411'),
    (['--batch-size', '8', '--hosts', '0'], 'E410'),
    (['--cores', '2'], 'E674 --hosts and --cores')])
def test_sizes_that_cannot_be_are_told(etpe, module, sizes, code):
    module(SPEC)
    assert code in migrated(etpe, 'py:job_of_a_test:spec', '--to', 'tf2', *sizes, status=2)


def test_sizes_of_a_config_cannot_be_changed(etpe):
    for target in ('tf2', 'textproto'):
        assert 'E679' in migrated(etpe, SEVERAL, '--to', target, '--batch-size', '8', status=2)


JOB = '''
import tensorflow.compat.v1 as tf
column = tf.feature_column.categorical_column_with_identity('user', 10)
spec = tf.estimator.tpu.experimental.EmbeddingConfigSpec(
    feature_columns=[tf.tpu.experimental.embedding_column(column, 4, combiner='sum')],
    optimization_parameters=tf.tpu.experimental.AdagradParameters(.05))
'''

STEPS = '''
import sys
from estimator_tpu_embedding.cli.main import main
assert 'tensorflow' not in sys.modules
for target in ('tf2', 'tfrs'):
    assert main(['migrate', 'config', 'py:job:spec', '--to', target, '-o', target + '.py']) == 0
import tfrs
assert {one.name for one in tfrs.make_layer().embedding_tables} == {'tbl_user'}
'''


def test_a_job_that_knows_nothing_of_this_package_goes_to_tf2_and_to_tfrs(tmp_path):
    (tmp_path / 'job.py').write_text(JOB)
    (tmp_path / 'steps.py').write_text(STEPS)
    done = run_python('steps.py', cwd=tmp_path,
                      PYTHONPATH=str(pathlib.Path(__file__).parents[2]))
    assert done.returncode == 0
    assert 'learning_rate=0.05,\n    initial_accumulator_value=0.1,' in (
        tmp_path / 'tf2.py').read_text()
