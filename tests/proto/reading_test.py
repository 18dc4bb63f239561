import io
import os
import pathlib
import re
import socket
import sys
import tracemalloc
import types

import pytest
from google.protobuf import text_format
from harness import groups
from harness.processes import run_python
from harness.wire import field, graph, meta_graph, node, saved_model

from estimator_tpu_embedding.errors import UnreadableConfigError
from estimator_tpu_embedding.proto import reading
from estimator_tpu_embedding.proto.codec import Config

GOLDEN = (pathlib.Path(__file__).parent.parent / 'golden' / 'configs'
          / 'several_optimizers_2x2.pbtxt').read_bytes()
CONFIG = text_format.Parse(GOLDEN.decode(), Config())
BYTES = CONFIG.SerializeToString()
OTHER = b'\x10\x02'  # mode: TRAINING


def refusal(content):
    """The error for some bytes; it can be printed."""
    with pytest.raises(UnreadableConfigError) as caught:
        reading.read_bytes(content, 'x')
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400
    return caught.value


def code_of(source):
    with pytest.raises(UnreadableConfigError) as caught:
        reading.read_sources(str(source))
    assert '\n' not in str(caught.value)
    return caught.value.code


def wheres(content):
    return [source.where for source in reading.read_bytes(content, 'x')]


@pytest.mark.parametrize('content', [
    GOLDEN, b'\xef\xbb\xbf' + GOLDEN, b'# of the job\n\n' + GOLDEN, GOLDEN.replace(b'\n', b'\r\n'),
    BYTES])
def test_what_a_config_is_is_seen_from_its_bytes(content):
    assert reading.read_bytes(content, 'x') == [reading.Source(where='x', config=CONFIG)]


def given(monkeypatch, stream):
    """Gives the process a stream as its standard input."""
    monkeypatch.setattr(sys, 'stdin', types.SimpleNamespace(buffer=stream))


def test_files_and_streams_are_read_alike(tmp_path, monkeypatch):
    path = tmp_path / 'cfg.anything'
    path.write_bytes(BYTES)
    assert reading.read_sources(str(path)) == [reading.Source(where=str(path), config=CONFIG)]
    given(monkeypatch, io.BytesIO(GOLDEN))
    assert reading.read_sources('-') == [
        reading.Source(where='standard input', config=CONFIG)]


@pytest.mark.parametrize('content, code', [
    (b'', 'E482'), (b' \n\t', 'E482'), (b'# nothing\n', 'E482'), (b'mode: UNSPECIFIED', 'E482'),
    (b'\x10\x00', 'E482'), (b'\xc2\x3e\x01x', 'E484'), (b'# Title\n\nSome *words*.', 'E483'),
    (b'word', 'E483'), (b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'E484'),
    (b'PK\x03\x04' + b'\0' * 30, 'E484'), (b'{"format": 1}', 'E483'), (b'mode: 1 mode: 1', 'E483')])
def test_what_is_no_config_is_refused_with_what_was_tried(content, code):
    error = refusal(content)
    assert error.code == code
    assert 'empty' in str(error) or 'Accepted: a TPUEmbeddingConfiguration' in str(error)


def test_p01_too_much_is_refused_before_it_is_read(tmp_path):
    for head, size, most in ((b'mode: 1\n', 4 * 2**20, reading.MAX_TEXT),
                             (b'node {\n', 400 * 2**20, reading.MAX_TEXT_GRAPH),
                             (b'\x0a\x02', 400 * 2**20, reading.MAX_BINARY_GRAPH)):
        path = tmp_path / 'large'
        path.write_bytes(head * 2**16)
        os.truncate(path, size)  # The rest takes no room on the disk.
        tracemalloc.start()
        with pytest.raises(UnreadableConfigError, match=f'E481.*at most {most:,}.*got {size:,}'):
            reading.read_sources(str(path))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < size / 2
    assert refusal(BYTES + field(1000, bytes(reading.MAX_CONFIG_BYTES))).code == 'E481'


def test_p01_p20_streams_are_read_no_further_than_the_limit(monkeypatch):
    class Endless(io.RawIOBase):
        taken = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            buffer[:] = b'# ' * (len(buffer) // 2)
            self.taken += len(buffer)
            return len(buffer)

    stream = Endless()
    given(monkeypatch, io.BufferedReader(stream, 2**10))
    assert code_of('-') == 'E481'
    assert stream.taken < reading.MAX_TEXT + 2**17


def test_a_stream_that_cannot_be_read_or_is_closed_is_refused(monkeypatch):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, 'Input/output error')

    given(monkeypatch, Broken())
    assert code_of('-') == 'E480'
    monkeypatch.setattr(sys, 'stdin', None)  # As Python has it in a process without one.
    assert code_of('-') == 'E482'


@pytest.mark.parametrize('content, code', [
    (b'table_descriptor {' * 900, 'E483'),  # P02
    (b'{' * 100_000, 'E483'), (b'[' * 100_000, 'E483'), (b'a <' * 33 + b'>' * 33, 'E483'),
    (b'\x0b' * 100_000, 'E484'), (field(1, b'\x0b' * 100_000), 'E484'),  # P03
    (b'num_hosts: ' + b'1' * 5_000, 'E483'), (b'num_hosts: 0x' + b'1' * 90, 'E483'),  # P04
    (b'profile_data_directory: "' + b'\\' * 99, 'E484'),
    (b'num_hosts: ' + b'1' * 90, 'E483'), (b'num_hosts: 2147483648', 'E483'),
    (b'\x0a\x00' * 2_000_000, 'E487'), (b'\x0a\x00' * 10_001, 'E487'),  # P10
    (b'\x52\x00' * 100_001, 'E487'), (b'table_descriptor{}' * 10_001, 'E487'),
    (b'profile_data_directory: "\xff"', 'E486'),  # P14
    (b'profile_data_directory: "\\377"', 'E483'),
    (field(9, b'\xff'), 'E484'), (b'mode: "', 'E483'),
    (b'[type.googleapis.com/x.Y] { }', 'E483'),  # P19
    (b'\x80\x05\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix', 'E484'),  # P16: a pickle
    (bytes(4 * 2**20), 'E484'), (b'\x0a\xff\xff\xff\xff\x0f', 'E484'),
    (b'\x08' + b'\xff' * 99, 'E484'), (field(2, b'\x0a\x00' * 2_000_000), 'E488'),
    (b'node ' + b'{}' * 2**21 + b'config', 'E488'),
    (b'node ' + b'{{}}' * 2**20 + b'config', 'E488'),
    (b'node ' + b'{' * 2**20 + b'config', 'E488'),
    (b'node { op: "TPU" attr { key: "config" value { s: ' + b'"aa"' * 2**20 + b'} } }', 'E489'),
    (b'node { } } config', 'E488'), (b'node { config', 'E488')])
def test_p02_p03_p04_p10_p14_p16_p19_hostile_content_is_refused(content, code):
    assert refusal(content).code == code


def test_p18_graphs_that_would_read_write_or_call_are_only_read(tmp_path):
    victim, path = tmp_path / 'victim', tmp_path / 'saved_model.pb'
    path.write_bytes(saved_model(graph(
        *[field(1, name) + field(2, name) for name in (b'ReadFile', b'PyFunc', b'EagerPyFunc')],
        field(1, b'w') + field(2, b'WriteFile') + field(3, str(victim).encode()), node(BYTES))))
    done = run_python('-X', 'importtime', '-m', 'estimator_tpu_embedding', 'inspect', str(path))
    assert done.returncode == 0 and CONFIG.table_descriptor[0].name in done.stdout
    assert not victim.exists()
    imported = {line.rpartition('|')[2].strip() for line in done.stderr.splitlines()}
    assert 'google.protobuf' in imported and not imported & {'tensorflow', 'numpy'}


@pytest.mark.parametrize('kind', [graph, lambda *nodes: meta_graph(graph(*nodes)),
                                  lambda *nodes: saved_model(graph(*nodes))])
def test_graphs_say_which_nodes_carry_which_config(kind):
    content = kind(
        field(1, b'x') + field(2, b'NoOp'), node(BYTES), node(OTHER, b'b', b'RecvTPUEmbedding'),
        node(BYTES, b'c', b'ConfigureDistributedTPU', b'tpu_embedding_config'),
        # Neither a config, nor of the embedding engine, nor set.
        node(b'!', b'd', b'PartitionedCall'), node(b'!', b'e', attribute=b'common_config'),
        node(b'', b'f'))
    sources = reading.read_bytes(content, 'x')
    assert [(source.where, source.config) for source in sources] == [
        ('x: node "ConfigureTPUEmbedding" and 1 more', CONFIG),
        ('x: node "b"', Config.FromString(OTHER))]


def test_graphs_without_a_config_are_told_apart_from_what_cannot_be_read():
    for content in (graph(field(1, b'x')), saved_model(graph(field(1, b'x'))),
                    b'node { name: "x" } versions { producer: 1 }'):
        assert refusal(content).code == reading.NO_CONFIG
    assert refusal(graph(node(b'!!'))).code == 'E489'
    assert refusal(graph(*[node(field(9, b'%d' % i)) for i in range(101)])).code == 'E487'


def test_p12_names_of_nodes_cannot_reach_a_terminal():
    for name in (b'\x1b]52;c;', b'a\nb', '\u202eb'.encode(), b'\xff', b'n' * 5_000):
        where, = wheres(graph(node(BYTES, name)))
        assert where.isprintable() and where.isascii() and len(where) < 200


def test_p20_only_regular_files_are_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo('pipe')
    os.symlink('loop', 'loop')
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind('socket')
        for source in ('pipe', 'loop', 'socket', '/dev/zero', '/dev/stdin', 'missing', '', 'a\0b',
                       'x' * 5_000, '\udcff'):
            assert code_of(source) == 'E480', source
    with pytest.raises(UnreadableConfigError, match='use - and standard input'):
        reading.read_sources('pipe')
    assert code_of('.') == 'E491'
    pathlib.Path('cfg').write_bytes(BYTES)
    os.symlink('cfg', 'link')  # The user's own; only what lies in a directory is not followed.
    assert reading.read_sources('link')[0].config == CONFIG


def test_links_in_a_directory_are_not_followed(tmp_path):
    (tmp_path / 'elsewhere').write_bytes(saved_model(graph(node(BYTES))))
    model = tmp_path / 'model'
    model.mkdir()
    (model / 'saved_model.pb').symlink_to('../elsewhere')
    assert code_of(model) == 'E480'
    (model / 'saved_model.pb').unlink()
    os.mkfifo(model / 'saved_model.pb')
    assert code_of(model) == 'E480'


def read_standard_input(**kwargs):
    return groups.run(
        [sys.executable, '-c', 'from estimator_tpu_embedding.proto.reading import *\n'
         'try: print([len(one.config.table_descriptor) for one in read_sources("-")])\n'
         'except ValueError as error: print(error.code)'],
        text=False, check=True, **kwargs).stdout.strip()


def test_standard_input_of_a_process_is_read():
    assert read_standard_input(input=GOLDEN) == b'[5]'
    assert read_standard_input(input=saved_model(graph(node(BYTES)))) == b'[5]'
    assert read_standard_input(input=b'') == b'E482'
    with open('/dev/zero', 'rb') as zeros:
        assert read_standard_input(stdin=zeros) == b'E484'


@pytest.fixture(scope='module')
def tensorflow_graph():
    """TensorFlow, and a graph with a config at the top and another in a function."""
    tf = pytest.importorskip('tensorflow.compat.v1')
    with tf.Graph().as_default() as built:
        tf.raw_ops.ConfigureTPUEmbedding(config=BYTES, name='configure')

        @tf.function
        def called():
            tf.raw_ops.ConfigureTPUEmbedding(config=OTHER, name='inner')
            return tf.constant(1.)

        tf.get_variable('v', [2], use_resource=True)
        called()
        tf.raw_ops.ConfigureDistributedTPU(tpu_embedding_config=BYTES)
    return tf, built


def check_sources_of_graph(path):
    found = reading.read_sources(str(path))
    assert [source.config for source in found] == [CONFIG, Config.FromString(OTHER)]
    assert found[0].where.endswith(': node "configure" and 1 more')
    assert ': node "inner" of function "__inference_called' in found[1].where


def test_graphs_that_tensorflow_wrote_are_read(tensorflow_graph, tmp_path):
    tf, built = tensorflow_graph
    tf.io.write_graph(built, str(tmp_path), 'graph.pbtxt')
    tf.io.write_graph(built, str(tmp_path), 'graph.pb', as_text=False)
    with built.as_default():
        tf.train.Saver().export_meta_graph(str(tmp_path / 'model.ckpt-1.meta'))
        tf.train.Saver().export_meta_graph(str(tmp_path / 'text.meta'), as_text=True)
    for name in ('graph.pbtxt', 'graph.pb', 'model.ckpt-1.meta', 'text.meta'):
        check_sources_of_graph(tmp_path / name)


def test_saved_models_with_several_graphs_are_read(tensorflow_graph, tmp_path):
    tf, built = tensorflow_graph
    messages = pytest.importorskip('tensorflow.core.protobuf.saved_model_pb2')
    model = messages.SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().graph_def.versions.producer = 1
    with built.as_default():
        model.meta_graphs.add().CopyFrom(tf.train.export_meta_graph())
    for name, content in (('saved_model.pbtxt', text_format.MessageToString(model).encode()),
                          ('saved_model.pb', model.SerializeToString())):  # It comes first.
        (tmp_path / name).write_bytes(content)
        check_sources_of_graph(tmp_path)
        check_sources_of_graph(tmp_path / name)


TABLE, FEATURE = b'\x0a\x00', b'\x52\x00'


def refused(content, code, text):
    """Checks that some bytes are refused for a reason."""
    error = refusal(content)
    assert error.code == code and re.search(text, str(error))


def carrying(parts, configs):
    """A graph of different configs."""
    return graph(*[node(parts + field(9, b'%d' % number)) for number in range(configs)])


@pytest.mark.parametrize('parts, configs, kind', [
    (TABLE * 10_000, 68, 'tables'), (TABLE * 101, 100, 'tables'), (FEATURE * 1_001, 100, 'features')
])
def test_the_configs_of_a_graph_are_counted_together(parts, configs, kind):
    refused(carrying(parts, configs), 'E487', f'all configs of a graph together .* {kind}')


def test_bytes_of_all_configs_are_counted_together(monkeypatch):
    monkeypatch.setattr(reading, 'MAX_CONFIG_BYTES', 1_000)
    assert len(reading.read_bytes(carrying(b'\x10\x02' * 100, 4), 'x')) == 4
    refused(carrying(b'\x10\x02' * 100, 5), 'E481', 'at most 1,000 bytes')


def shaped(*numbers):
    config = Config(num_hosts=1)
    config.feature_descriptor.add(name='f' * 500, input_shape=numbers)
    return config


LONG = '_shape of a feature must have at most 8 numbers'


@pytest.mark.parametrize('content', [
    shaped(*range(9)).SerializeToString(), str(shaped(*range(9))).encode(),
    field(10, field(3, b'\x01' * 4_000_000)), field(10, b'\x18\x01' * 9),
    graph(node(field(10, field(3, b'\x01' * 4_000_000))))])
def test_a_long_shape_is_refused(content):
    refused(content, 'E487', LONG)
