"""Gives each worker a network namespace of its own, behind a link of limited bandwidth.

It works without privileges, where the system lets users make namespaces: `command` begins a
command line whose process may do all this, and sees nothing of the machine's own networks. Linux.

    client, bridge 10.9.0.254 --- link --- worker 0, 10.9.0.1
                              --- link --- worker 1, 10.9.0.2
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import private_network  # noqa: E402

from estimator_tpu_embedding.cluster import listening  # noqa: E402

MTU = 9000
PORT = 8470
BURST = '256kb'
"""What a link lets pass at once; a message of a step is much longer."""

_BRIDGE = 'bench'
PROBE_BYTES = 2**28
"""That `gbit_of_socket` sends."""


def keep_private():
    """Goes on in a network of its own: servers of TensorFlow obey everybody who reaches them."""
    words = private_network.before(sys.executable) if listening.interfaces() else []
    if words:
        os.execvp(str(words[0]), [*map(str, words), sys.executable, *sys.argv])


def die_with_parent():
    """Has the system kill this process when the one that started it ends, however it does."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def why_not():
    """Returns why links cannot be made here; empty if they can."""
    missing = [name for name in ('unshare', 'ip', 'tc') if shutil.which(name) is None]
    if missing:
        return f'there is no {" and no ".join(missing)} here'
    done = subprocess.run([*command(), sys.executable, __file__], capture_output=True, text=True)
    return '' if done.returncode == 0 else f'no namespaces here: {_last_line(done.stderr)}'


def command():
    """Returns the beginning of a command line that may call `made`."""
    return ['unshare', '--user', '--map-root-user', '--net', '--mount', '--kill-child']


def made(hosts, gbit):
    """Makes the links, and returns the address of each worker and what begins its command line.

    Args:
      hosts: the number of workers.
      gbit: of each link, in each direction, per second.
    """
    _run('mount', '-t', 'tmpfs', 'tmpfs', '/run')
    pathlib.Path('/run/netns').mkdir()
    _ip('link', 'set', 'lo', 'up')
    _ip('link', 'add', _BRIDGE, 'mtu', MTU, 'type', 'bridge')
    _ip('addr', 'add', '10.9.0.254/24', 'dev', _BRIDGE)
    _ip('link', 'set', _BRIDGE, 'up')
    for host in range(hosts):
        name, outer, inside = f'host{host}', f'link{host}', ['-n', f'host{host}']
        _ip('netns', 'add', name)
        _ip('link', 'add', outer, 'mtu', MTU, 'type', 'veth',
            'peer', 'name', 'eth0', 'mtu', MTU, 'netns', name)
        _ip('link', 'set', outer, 'master', _BRIDGE, 'up')
        _ip(*inside, 'addr', 'add', f'10.9.0.{host + 1}/24', 'dev', 'eth0')
        for device in ('lo', 'eth0'):
            _ip(*inside, 'link', 'set', device, 'up')
        for where, device in ((inside, 'eth0'), ([], outer)):
            _run('tc', *where, 'qdisc', 'add', 'dev', device, 'root', 'tbf',
                 'rate', f'{gbit}gbit', 'burst', BURST, 'latency', '50ms')
    return ([f'10.9.0.{host + 1}:{PORT}' for host in range(hosts)],
            lambda host: ['ip', 'netns', 'exec', f'host{host}'])


def counted(hosts):
    """Returns the bytes that each worker has sent and received, with all headers."""
    lines = pathlib.Path('/proc/net/dev').read_text().splitlines()
    found = {line.partition(':')[0].strip(): line.partition(':')[2].split() for line in lines}
    # What the outer end of a link received, its worker has sent.
    return [(int(found[f'link{host}'][0]), int(found[f'link{host}'][8])) for host in range(hosts)]


def gbit_of_socket(before):
    """Returns what a plain socket carries from worker 0 to worker 1, in Gbit per second.

    Args:
      before: as `made` returns it.
    """
    address = ('10.9.0.2', PORT + 1)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(subprocess.Popen(
            [*before(host), sys.executable, __file__, verb, *map(str, address)],
            stdout=subprocess.PIPE, text=True)) for host, verb in ((1, 'receive'), (0, 'send'))]
        return float(processes[0].stdout.read())


def _receive(address):
    with socket.create_server(address) as server:
        connection, _ = server.accept()
        with connection:
            buffer, total = bytearray(2**20), connection.recv_into(bytearray(1))
            began = time.perf_counter()
            while count := connection.recv_into(buffer):
                total += count
            print(8e-9 * total / (time.perf_counter() - began))


def _send(address):
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(address) as one:
            part = bytes(2**20)
            for _ in range(PROBE_BYTES // len(part)):
                one.sendall(part)
            return
        threading.Event().wait(.05)


def _ip(*words):
    _run('ip', *words)


def _run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        raise OSError(f'{" ".join(map(str, words))}: {_last_line(done.stderr)}')


def _last_line(text):
    return (text.strip().splitlines() or [''])[-1]


if __name__ == '__main__':
    if sys.argv[1:]:
        {'receive': _receive, 'send': _send}[sys.argv[1]]((sys.argv[2], int(sys.argv[3])))
    else:
        made(1, 10)
