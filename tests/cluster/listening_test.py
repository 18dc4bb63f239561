"""What a process listens on is read from the system, and not from what it was told to do."""

import socket
import subprocess
import sys

import pytest
from harness import groups
from harness.network import require_private_network
from harness.processes import run_python

from estimator_tpu_embedding.cluster import listening
from estimator_tpu_embedding.errors import SetupError

ASK = '''
import subprocess, sys
from estimator_tpu_embedding.cluster import listening
from estimator_tpu_embedding.errors import ExposedServerError
subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
assert listening.interfaces() == {}
listening.require_private('test', expose=False)
for command in ('link add away0 type bridge', 'addr add 10.9.8.7/24 dev away0',
                'link set away0 up'):
    subprocess.run(['ip', *command.split()], check=True)
assert listening.interfaces() == {'away0': '10.9.8.7'}
listening.require_private('test', expose=True)
try:
    listening.require_private('test', expose=False)
except ExposedServerError as error:
    print(error)
'''


@pytest.fixture
def listener():
    with socket.create_server(('127.0.0.1', 0)) as server:
        yield server


def test_h13_what_is_really_bound_is_seen(listener):
    require_private_network()
    port = listener.getsockname()[1]
    with socket.socket() as silent, socket.create_server(('::', 0), family=socket.AF_INET6) as all:
        silent.bind(('127.0.0.1', 0))
        seen = listening.own_addresses()
        assert {f'127.0.0.1:{port}', f'[::]:{all.getsockname()[1]}'} <= set(seen)
        assert not any(one.endswith(f':{silent.getsockname()[1]}') for one in seen)


def test_h14_a_port_of_another_process_names_that_process(tmp_path):
    code = ('import socket, sys; s = socket.create_server(("127.0.0.1", 0)); '
            'print(s.getsockname()[1], flush=True); sys.stdin.read()')
    with groups.running([sys.executable, '-c', code], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline())
        with pytest.raises(SetupError, match=(
                f'E706 worker 3: port {port} must be free; got process {process.pid} listens')):
            listening.require_free('worker 3', port)
    listening.require_free('worker 3', port)


def test_h13_only_a_machine_with_loopback_alone_lets_a_server_start_unasked():
    if groups.run(['unshare', '-rn', 'ip', 'link']).returncode:
        pytest.skip('this system makes no network namespaces')
    ended = run_python('-c', ASK, before=('unshare', '-rn'))
    assert ended.returncode == 0 and ended.stdout.startswith('E705 test: a server of TensorFlow')
    assert 'away0 (10.9.8.7)' in ended.stdout and '--expose' in ended.stdout
