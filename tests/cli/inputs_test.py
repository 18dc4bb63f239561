import os
import pathlib
import sys

import pytest
from google.protobuf import text_format
from harness import groups
from harness.processes import run_python
from harness.wire import graph, meta_graph, node, saved_model

from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.manifest import Manifest
from estimator_tpu_embedding.cli.input_argument import load
from estimator_tpu_embedding.errors import UnreadableConfigError
from estimator_tpu_embedding.proto.codec import Config

GOLDEN = (pathlib.Path(__file__).parent.parent / 'golden' / 'configs'
          / 'census_training_1x1.pbtxt').read_bytes()
CONFIG = text_format.Parse(GOLDEN.decode(), Config())
BYTES = CONFIG.SerializeToString()
GRAPH = graph(node(BYTES))
EMPTY_GRAPH = graph(b'\x0a\x01x')


def config_of(step):
    return Config(num_hosts=1, num_tensor_cores=step).SerializeToString()


def save(directory, step, name='model.ckpt', meta=None, with_manifest=True):
    """Files as beside a checkpoint; the config of a manifest tells its step."""
    prefix = f'{directory}/{name}-{step}'
    pathlib.Path(f'{prefix}.index').touch()
    if with_manifest:
        pathlib.Path(prefix + MANIFEST).write_bytes(Manifest(
            step=step, created_by='test', config=config_of(step), tables={}).to_json())
    if meta is not None:
        pathlib.Path(f'{prefix}.meta').write_bytes(meta_graph(meta))
    return prefix


def point(directory, name):
    pathlib.Path(directory, 'checkpoint').write_text(
        f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "model.ckpt-7"\n')


def found(source):
    """Of each config the place, and the config or the step of its manifest."""
    return [(one.where.removesuffix(': config'), one.config if one.config.table_descriptor else
             one.config.num_tensor_cores) for one in load(str(source))]


def refusal(source):
    with pytest.raises(UnreadableConfigError) as caught:
        load(str(source))
    assert str(caught.value).isprintable()
    return caught.value


def test_a_file_a_saved_model_and_a_stream_hold_configs(tmp_path):
    (tmp_path / 'saved_model.pb').write_bytes(saved_model(GRAPH))
    where = f'{tmp_path}/saved_model.pb: node "ConfigureTPUEmbedding"'
    assert found(tmp_path) == found(tmp_path / 'saved_model.pb') == [(where, CONFIG)]
    done = groups.run(
        [sys.executable, '-c', 'from estimator_tpu_embedding.cli.input_argument import load\n'
         'print(*[(one.where, len(one.config.table_descriptor)) for one in load("-")])'],
        input=BYTES, text=False, check=True)
    assert done.stdout == b"('standard input', 5)\n"


def test_a_checkpoint_has_its_manifest_first_and_the_configs_of_its_graph(tmp_path):
    prefix = save(tmp_path, 4, meta=GRAPH)
    assert found(prefix) == [
        (prefix, 4), (f'{prefix}.meta: node "ConfigureTPUEmbedding"', CONFIG)]
    assert found(f'{prefix}.meta') == found(prefix)[1:]
    # Most graphs have none, and one that cannot be read takes nothing away.
    for content in (meta_graph(EMPTY_GRAPH), b'\x0a\xff'):
        pathlib.Path(f'{prefix}.meta').write_bytes(content)
        assert found(prefix) == [(prefix, 4)]


def test_a_model_dir_means_its_newest_checkpoint_and_each_config_once(tmp_path):
    for step in (4, 7):
        save(tmp_path, step)
    point(tmp_path, 'model.ckpt-4')  # A job takes the newest all the same.
    assert found(tmp_path) == [(f'{tmp_path}/model.ckpt-7', 7)]
    (tmp_path / 'graph.pbtxt').write_bytes(
        b'node { name: "n" op: "ConfigureTPUEmbedding" attr { key: "config" value { s: "%s" } } }'
        % ''.join(f'\\{byte:03o}' for byte in BYTES).encode())
    assert found(tmp_path) == [
        (f'{tmp_path}/model.ckpt-7', 7), (f'{tmp_path}/graph.pbtxt: node "n"', CONFIG)]
    save(tmp_path, 7, meta=GRAPH)
    assert [where for where, _ in found(tmp_path)] == [
        f'{tmp_path}/model.ckpt-7',
        f'{tmp_path}/model.ckpt-7.meta: node "ConfigureTPUEmbedding"']
    (tmp_path / 'model.ckpt-7.tables.json').unlink()
    (tmp_path / 'model.ckpt-7.meta').unlink()
    assert [where for where, _ in found(tmp_path)] == [f'{tmp_path}/graph.pbtxt: node "n"']


@pytest.mark.parametrize('name', [
    '../other/model.ckpt-9', '/etc/model.ckpt-9', 'model.ckpt-8', '', 'a\\057b', '\x1b]52;c;'])
def test_the_file_checkpoint_never_leads_out_of_its_directory(tmp_path, name):
    (tmp_path / 'other').mkdir()
    save(tmp_path / 'other', 9)
    (tmp_path / 'job').mkdir()
    save(tmp_path / 'job', 3)
    point(tmp_path / 'job', name)
    assert found(tmp_path / 'job') == [(f'{tmp_path}/job/model.ckpt-3', 3)]


def test_links_and_pipes_in_a_model_dir_are_not_opened(tmp_path):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (tmp_path / 'job').mkdir()
    prefix = save(tmp_path / 'job', 3, with_manifest=False)
    for suffix in ('.tables.json', '.meta'):
        os.symlink(save(outside, 9, meta=GRAPH) + suffix, prefix + suffix)
    assert refusal(tmp_path / 'job').code == refusal(prefix).code == 'E611'
    os.unlink(f'{prefix}.tables.json')
    assert refusal(prefix).code == 'E480'
    os.unlink(f'{prefix}.meta')
    os.mkfifo(f'{prefix}.tables.json')
    assert refusal(prefix).code == 'E611'
    os.unlink(f'{prefix}.tables.json')
    os.mkfifo(tmp_path / 'job' / 'checkpoint')
    assert refusal(tmp_path / 'job').code == 'E491'  # As if it were not there.


def test_a_model_dir_that_tensorflow_wrote_is_read(tmp_path):
    tf = pytest.importorskip('tensorflow.compat.v1')
    with tf.Graph().as_default() as built:
        tf.raw_ops.ConfigureTPUEmbedding(config=BYTES)
        tf.io.write_graph(built, str(tmp_path), 'graph.pbtxt')
    with tf.Graph().as_default(), tf.Session() as session:  # CPUs cannot run the other graph.
        session.run(tf.get_variable('v', [2], use_resource=True).initializer)
        tf.train.Saver(save_relative_paths=True).save(session, str(tmp_path / 'model.ckpt'), 5)
    where = f'{tmp_path}/graph.pbtxt: node "ConfigureTPUEmbedding"'
    assert found(tmp_path) == [(where, CONFIG)]
    save(tmp_path, 5)
    assert found(tmp_path) == [(f'{tmp_path}/model.ckpt-5', 5), (where, CONFIG)]


MODULE = '''
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.proto.codec import Config, plan_to_config

plan = resolve([TableSpec(name='t', vocabulary_size=5, dimension=2)],
               [FeatureSpec(name='f', table='t')], Topology(), batch_size=2, mode='inference')
config = plan_to_config(plan)
serialized = config.SerializeToString()
number = 3

class Job:
    config = config

    @staticmethod
    def make():
        return plan

def exits():
    raise SystemExit('gone\\x1b')

def theirs():
    from tensorflow.core.protobuf.tpu import tpu_embedding_configuration_pb2 as pb2
    return pb2.TPUEmbeddingConfiguration.FromString(serialized)
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current directory, which is not on the path."""
    (tmp_path / 'jobs_for_inputs_test').mkdir()
    (tmp_path / 'jobs_for_inputs_test' / 'census.py').write_text(MODULE)
    (tmp_path / 'jobs_for_inputs_test' / 'broken.py').write_text('1 / 0')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [path for path in sys.path if path])
    yield 'jobs_for_inputs_test.census'
    for name in [name for name in sys.modules if name.startswith('jobs_for_inputs_test')]:
        del sys.modules[name]


@pytest.mark.parametrize('name', ['config', 'serialized', 'plan', 'Job.config', 'Job.make'])
def test_py_names_a_config_its_bytes_a_plan_or_a_function_of_none(module, name):
    one, = load(f'py:{module}:{name}')
    assert one.where == f'py:{module}:{name}'
    assert one.config.table_descriptor[0].name == 't'


def test_p25_py_takes_tensorflows_message_beside_ours(module):
    pytest.importorskip('tensorflow')
    one, = load(f'py:{module}:theirs')
    assert type(one.config) is Config and one.config == load(f'py:{module}:config')[0].config


@pytest.mark.parametrize('path, text', [
    ('', 'it must be py:module:object'), ('MODULE', 'it must be py:module:object'),
    ('nosuchmodule:x', 'ModuleNotFoundError'), ('MODULE:missing', 'has no attribute'),
    ('jobs_for_inputs_test.broken:x', 'the object must be importable; got ZeroDivisionError: div'),
    ('MODULE:exits', r'the function must return a config; got SystemExit: gone\\x1b'),
    ('MODULE:number', 'the object .* got int')])
def test_py_says_why_there_is_no_config(module, path, text):
    with pytest.raises(UnreadableConfigError, match=f'E492 .*{text}') as caught:
        load('py:' + path.replace('MODULE', module))
    assert str(caught.value).isprintable()


def test_code_is_run_only_if_py_says_so(module):
    for source in (f'{module}:config', module, 'jobs_for_inputs_test/census.py',
                   'jobs_for_inputs_test'):
        refusal(source)
    assert module not in sys.modules


def test_reading_protos_and_checkpoints_needs_neither_tensorflow_nor_numpy(tmp_path):
    (tmp_path / 'graph.pb').write_bytes(GRAPH)
    done = run_python(
        '-c', 'import sys; from estimator_tpu_embedding.cli.input_argument import load; '
        '[load(source) for source in sys.argv[1:]];'
        'print(sys.modules.keys() & {"tensorflow", "numpy"})',
        tmp_path / 'graph.pb', save(tmp_path, 4, meta=GRAPH), tmp_path)
    assert done.stdout == 'set()\n'
