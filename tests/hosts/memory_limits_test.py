import resource

import pytest

from estimator_tpu_embedding.hosts import memory_limits

MACHINE = {'/proc/meminfo': 'MemTotal:     1000 kB\nMemFree: 3 kB\nSwapTotal:  24 kB\nHuge: 9\n'}
V2 = '0::/user.slice/job\n'
V1 = '5:cpu:/other\n4:memory,misc:/user.slice/job\n0::/\n'


@pytest.fixture
def system(monkeypatch):
    """Replaces the files of the system, and lifts the limits of this process."""
    def replace(files, **limits):
        kinds = {getattr(resource, name): value for name, value in limits.items()}
        monkeypatch.setattr(memory_limits, 'text_of', lambda path: files.get(path, ''))
        monkeypatch.setattr(memory_limits.resource, 'getrlimit', lambda kind: (
            kinds.get(kind, resource.RLIM_INFINITY), resource.RLIM_INFINITY))
        return memory_limits.limit()
    return replace


def test_the_machine_is_the_limit_where_nothing_else_is(system):
    assert system(MACHINE) == (1024 * 1024, 'the memory and swap of this machine')


def test_nothing_is_known_of_a_system_without_these_files(system):
    assert system({}) is None


@pytest.mark.parametrize('listing, path', [
    (V2, 'user.slice/job/memory.max'), (V2, 'user.slice/memory.max'), (V2, 'memory.max'),
    ('0::/../../job', 'memory.max'),
    (V1, 'memory/user.slice/job/memory.limit_in_bytes'), (V1, 'memory/memory.limit_in_bytes')])
def test_the_limit_of_a_group_or_one_around_it_counts_and_swap_beside_it(system, listing, path):
    assert system({**MACHINE, '/proc/self/cgroup': listing, f'/sys/fs/cgroup/{path}': '4096\n'}
                  ) == (4096 + 24 * 1024, f'the limit in /sys/fs/cgroup/{path} and swap')


@pytest.mark.parametrize('text', ['max\n', '9223372036854771712\n', '', '-1\n', 'x'])
def test_a_group_without_limit_does_not_count(system, text):
    assert system({**MACHINE, '/proc/self/cgroup': V2, '/sys/fs/cgroup/memory.max': text}
                  ).source == 'the memory and swap of this machine'


@pytest.mark.parametrize('name, field', [('RLIMIT_AS', 'VmSize'), ('RLIMIT_DATA', 'VmData')])
def test_of_a_limit_of_the_process_counts_what_is_left(system, name, field):
    files = {**MACHINE, '/proc/self/status': f'Name:\tpython\n{field}:\t   100 kB\n'}
    assert system(files, **{name: 300 * 1024}) == (200 * 1024, f'what is left of {name}')
    assert system(files, **{name: 1024}) == (0, f'what is left of {name}')


def test_the_real_system_has_a_limit():
    assert memory_limits.limit().bytes > 2**20
