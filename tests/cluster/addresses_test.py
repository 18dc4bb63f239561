"""Addresses are checked all at once, before anybody is contacted."""

import socket
import threading

import pytest

from estimator_tpu_embedding.cluster import addresses
from estimator_tpu_embedding.cluster.addresses import Address


def found(*texts):
    return [(one.code, one.where) for one in addresses.problems(texts)]


@pytest.mark.parametrize('text, host, port', [
    ('10.0.0.3:8470', '10.0.0.3', 8470), ('[fd00::3]:1', 'fd00::3', 1),
    ('worker-1.lan:65535', 'worker-1.lan', 65535)])
def test_an_address_is_a_machine_and_a_port_and_is_written_back_as_it_was(text, host, port):
    assert addresses.parsed(text) == (host, port)
    assert str(addresses.parsed(text)) == text


@pytest.mark.parametrize('text', [
    '', ':', '10.0.0.3', '10.0.0.3:', ':8470', '10.0.0.3:0', '10.0.0.3:65536', '10.0.0.3:-1',
    '10.0.0.3:8470x', '10.0.0.3:٣', 'fd00::3:8470', 'http://10.0.0.3:80'])
def test_h15_anything_else_is_no_address(text):
    assert addresses.parsed(text) is None
    assert found(text) == [('E702', 'worker 0')]


def test_h15_all_problems_of_a_list_come_at_once():
    assert found('127.0.0.1:1', '127.0.0.1:99999', '127.0.0.1:1', 'no-such-machine.invalid:3',
                 'localhost:1') == [
        ('E702', 'worker 1'), ('E703', 'worker 2'), ('E704', 'worker 3'), ('E703', 'worker 4')]


def test_an_address_of_loopback_does_not_fit_one_of_another_machine():
    assert found('192.0.2.1:1', '127.0.0.1:1') == [('E715', 'worker 1')]
    assert found('192.0.2.1:1', '192.0.2.2:1') == found('127.0.0.1:1', '127.0.0.1:2') == []


@pytest.mark.parametrize('answer, told', [
    (b'HTTP/1.1 400 Bad Request\r\nServer: x\r\n', 'HTTP/1.1 400 Bad Request'),
    (b'SSH-2.0-OpenSSH\r\n', 'SSH-2.0-OpenSSH'),
    (b'\0\0\0\4\0\0\0\0\0', ''), (b'', '')])
def test_h11_a_server_that_knows_no_grpc_is_told_by_its_first_word(answer, told):
    """The third one is an empty SETTINGS frame, with which every server of HTTP/2 begins."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        def serve():
            line, _ = server.accept()
            with line:
                line.recv(100)
                line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        found = addresses.stranger_at(Address(*server.getsockname()), 30)
        thread.join()
    assert told in found and bool(found) == bool(told)
