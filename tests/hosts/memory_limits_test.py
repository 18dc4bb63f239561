import resource
import types

import pytest

from estimator_tpu_embedding.hosts import memory_limits

V2 = '0::/user.slice/job\n'
V1 = '5:cpu:/other\n4:memory,misc:/user.slice/job\n0::/\n'


@pytest.fixture
def system(monkeypatch):
    """Replaces the files of the system, its memory, and the limits and use of this process."""
    def replace(files={}, **limits):
        kinds = {getattr(resource, name): value for name, value in limits.items()}
        monkeypatch.setattr(memory_limits, 'text_of', lambda path: files.get(path, ''))
        monkeypatch.setattr(memory_limits.resource, 'getrlimit', lambda kind: (
            kinds.get(kind, resource.RLIM_INFINITY), resource.RLIM_INFINITY))
        monkeypatch.setattr(memory_limits, 'psutil', types.SimpleNamespace(
            virtual_memory=lambda: types.SimpleNamespace(total=1000 * 1024),
            swap_memory=lambda: types.SimpleNamespace(total=24 * 1024),
            Process=lambda: types.SimpleNamespace(
                memory_info=lambda: types.SimpleNamespace(vms=100 * 1024, data=10 * 1024))))
        return memory_limits.limit()
    return replace


def test_the_machine_is_the_limit_where_nothing_else_is(system):
    assert system() == (1024 * 1024, 'the memory and swap of this machine')


@pytest.mark.parametrize('listing, path', [
    (V2, 'user.slice/job/memory.max'), (V2, 'user.slice/memory.max'), (V2, 'memory.max'),
    ('0::/../../job', 'memory.max'),
    (V1, 'memory/user.slice/job/memory.limit_in_bytes'), (V1, 'memory/memory.limit_in_bytes')])
def test_the_limit_of_a_group_or_one_around_it_counts_and_swap_beside_it(system, listing, path):
    assert system({'/proc/self/cgroup': listing, f'/sys/fs/cgroup/{path}': '4096\n'}
                  ) == (4096 + 24 * 1024, f'the limit in /sys/fs/cgroup/{path} and swap')


@pytest.mark.parametrize('text', ['max\n', '9223372036854771712\n', '', '-1\n', 'x'])
def test_a_group_without_limit_does_not_count(system, text):
    assert system({'/proc/self/cgroup': V2, '/sys/fs/cgroup/memory.max': text}
                  ).source == 'the memory and swap of this machine'


@pytest.mark.parametrize('name, taken', [('RLIMIT_AS', 100), ('RLIMIT_DATA', 10)])
def test_of_a_limit_of_the_process_counts_what_is_left(system, name, taken):
    assert system(**{name: 300 * 1024}) == ((300 - taken) * 1024, f'what is left of {name}')
    assert system(**{name: 1024}) == (0, f'what is left of {name}')


def test_the_real_system_has_a_limit():
    assert memory_limits.limit().bytes > 2**20
