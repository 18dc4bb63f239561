"""`etpe worker` and `etpe worker ls`."""

import socket
import subprocess
import sys

import pytest
from harness import groups, workers
from harness.processes import free_addresses, run_etpe

from estimator_tpu_embedding.cluster import worker_calls

REQUIRED = 'the following arguments are required: --listen'


@pytest.mark.parametrize('arguments, message', [
    ([], REQUIRED), (['--expose'], REQUIRED),
    (['--listen', '10.0.0.3'], "such as 10.0.0.3:8470, not '10.0.0.3'"),
    (['--listen', '127.0.0.1:0'], "not '127.0.0.1:0'"),
    (['ls'], 'ADDRESSES')])
def test_a_wrong_usage_is_said_before_anything_starts(etpe, arguments, message):
    assert message in etpe('worker', *arguments, status=2)


def test_h15_ls_names_all_problems_of_its_addresses(etpe):
    said = etpe('worker', 'ls', '127.0.0.1,127.0.0.1:1,127.0.0.1:1', status=2)
    assert [line.split()[3] for line in said.splitlines()] == ['E702', 'E703']


def test_ls_tells_at_once_where_nobody_listens(etpe):
    nobody, = free_addresses(1)
    arguments = ('worker', 'ls', nobody, '--deadline', '1000')
    why = 'connection refused: nobody listens there'
    assert f'{nobody}: {why}' in etpe(*arguments, status=1)
    assert etpe.json(*arguments, status=1)['workers'] == [{'address': nobody, 'why_not': why}]


def test_ls_gives_up_at_its_deadline_where_somebody_listens_and_says_nothing(etpe):
    with socket.create_server(('127.0.0.1', 0)) as silent:
        address = f'127.0.0.1:{silent.getsockname()[1]}'
        assert f'{address}: no answer within 0.5 s' in etpe(
            'worker', 'ls', address, '--deadline', '.5', status=1)


@pytest.mark.soak
def test_ls_shows_versions_memory_tables_claims_and_what_is_really_bound(etpe):
    with workers.running(2) as running:
        first, second = running.addresses
        for verb, more in (('claim', {'client': 'alice'}),
                           ('tables', {'tables': [{'name': 'v', 'rows': 3, 'bytes': 2048}]})):
            assert worker_calls.ask(first, verb, run='run-1', deadline=60, **more)['is_ours']
        found = etpe.json('worker', 'ls', str(running), '--deadline', '60')['workers']
        assert [one['address'] for one in found] == [first, second]
        assert [one['pid'] for one in found] == [one.pid for one in running.processes]
        assert found[0]['tables'] == [{'name': 'v', 'rows': 3, 'bytes': 2048}]
        assert found[0]['claim']['client'] == 'alice' and found[1]['claim'] is None
        for one in found:
            assert one['versions'] == found[0]['versions'] and one['memory']['used'] > 2**20
            assert [bound.rpartition(':')[2] for bound in one['listens']] == [
                one['address'].rpartition(':')[2]]
        text = etpe('worker', 'ls', str(running), '--deadline', '60')
        assert '1: 2.0 KiB' in text and 'alice, silent for' in text and 'free' in text


@pytest.mark.soak
def test_an_address_of_another_machine_is_refused():
    ended = run_etpe('worker', '--listen', '192.0.2.77:8470', '--expose')
    assert ended.returncode == 2 and 'E714 worker 192.0.2.77:8470' in ended.stderr


@pytest.mark.soak
@pytest.mark.parametrize('is_exposed', [False, True])
def test_h13_a_server_that_others_reach_starts_only_if_it_is_exposed_and_says_so(is_exposed):
    network = ('ip link set lo up; ip link add away0 type bridge; '
               'ip addr add 10.9.8.7/24 dev away0; ip link set away0 up; ')
    if groups.run(['unshare', '-rn', 'sh', '-c', network]).returncode:
        pytest.skip('this system makes no network namespaces')
    with groups.running(
            ['unshare', '-rn', 'sh', '-c', network + 'exec "$@"', 'sh', sys.executable, '-m',
             'estimator_tpu_embedding', 'worker', '--listen', '10.9.8.7:8470',
             *['--expose'] * is_exposed], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said = [process.stdout.readline() for _ in range(3)]
        if is_exposed:
            process.terminate()
        errors = process.communicate(timeout=groups.DEADLINE)[1]
    if not is_exposed:
        assert process.returncode == 2 and 'E705 worker 10.9.8.7:8470' in errors
        return
    assert process.returncode == 0 and said[0].startswith('[etpe] worker at 10.9.8.7:8470: etpe 0')
    assert ('it really listens on [::]:8470; other machines reach it by away0 (10.9.8.7)'
            in said[1]) and 'private network' in said[2]
