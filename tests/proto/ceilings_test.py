import pytest
from harness.wire import field, graph, node

from estimator_tpu_embedding.errors import UnreadableConfigError
from estimator_tpu_embedding.proto import reading
from estimator_tpu_embedding.proto.codec import Config

TABLE, FEATURE = b'\x0a\x00', b'\x52\x00'


def refusal(content, code, text):
    """Checks that some bytes are refused, in few words."""
    with pytest.raises(UnreadableConfigError, match=text) as caught:
        reading.read_bytes(content, 'x')
    assert caught.value.code == code and len(str(caught.value)) < 200


def carrying(parts, configs):
    """A graph of different configs."""
    return graph(*[node(parts + field(9, b'%d' % number)) for number in range(configs)])


@pytest.mark.parametrize('parts, configs, kind', [
    (TABLE * 10_000, 68, 'tables'), (TABLE * 101, 100, 'tables'), (FEATURE * 1_001, 100, 'features')
])
def test_the_configs_of_a_graph_are_counted_together(parts, configs, kind):
    refusal(carrying(parts, configs), 'E487', f'all configs of a graph together .* {kind}')


def test_many_configs_of_a_usual_size_are_read():
    assert len(reading.read_bytes(carrying(TABLE * 100 + FEATURE * 1_000, 100), 'x')) == 100


def test_fields_and_bytes_of_all_configs_are_counted_together(monkeypatch):
    refusal(carrying(b'\x10\x02' * 20_000, 100), 'E489', 'more than 1,000,000 fields')
    monkeypatch.setattr(reading, 'MAX_CONFIG_BYTES', 1_000)
    assert len(reading.read_bytes(carrying(b'\x10\x02' * 100, 4), 'x')) == 4
    refusal(carrying(b'\x10\x02' * 100, 5), 'E481', 'at most 1,000 bytes')


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
    refusal(content, 'E487', LONG)


def test_shapes_of_legal_length_are_read_whatever_is_beside_them():
    config = shaped(*[2**31 - 1] * 8)
    for content in (config.SerializeToString(), str(config).encode()):
        assert reading.read_bytes(content, 'x')[0].config == config
