"""What the protobuf that happens to be installed must not change; see tools/check_protobuf.py."""

import pathlib

import pytest
from harness.processes import run_python

GENERATED = sorted((pathlib.Path(__file__).parent.parent.parent / 'estimator_tpu_embedding'
                    / 'proto').glob('*_pb2.py'))
GOLDEN = (pathlib.Path(__file__).parent.parent / 'golden' / 'configs'
          / 'census_training_1x1.pbtxt')
READ = f'''
from google.protobuf.internal import api_implementation
from estimator_tpu_embedding.errors import UnreadableConfigError
from estimator_tpu_embedding.proto.codec import plan_to_config
from estimator_tpu_embedding.proto.codec import config_to_plan
from estimator_tpu_embedding.proto.reading import read_bytes, read_sources
config = read_sources({str(GOLDEN)!r})[0].config
assert read_bytes(config.SerializeToString(), 'x')[0].config == config
assert plan_to_config(config_to_plan(config)) == config
for content in (b'\\x0a\\x80\\x0b' + b'\\x0b' * 11 * 128,  # nested groups, in a table
                b'\\x0a\\x03\\x0a\\x01\\xff', b'mode: 1e9'):
    try:
        read_bytes(content, 'x')
    except UnreadableConfigError as error:
        assert str(error).isprintable()
    else:
        raise AssertionError(content)
print(api_implementation.Type())
'''
TENSORFLOW = 'from tensorflow.core.protobuf.tpu import tpu_embedding_configuration_pb2\n'


def test_generated_classes_ask_for_no_newer_runtime():
    assert len(GENERATED) == 3
    for path in GENERATED:
        assert '# Protobuf Python Version: 4.25.' in path.read_text()
        assert 'runtime_version' not in path.read_text()


@pytest.mark.parametrize('implementation', ['upb', 'python'])
def test_configs_are_read_by_every_implementation_of_protobuf(implementation):
    done = run_python('-W', 'error', '-c', READ,
                      PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation)
    assert (done.returncode, done.stdout) == (0, f'{implementation}\n')


@pytest.mark.parametrize('script', [READ + TENSORFLOW, TENSORFLOW + READ])
def test_p25_our_messages_and_tensorflows_share_a_process_in_either_order(script):
    pytest.importorskip('tensorflow')
    done = run_python('-c', script)
    assert (done.returncode, done.stdout) == (0, 'upb\n')
