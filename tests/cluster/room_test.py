import pytest

from estimator_tpu_embedding.cluster.room import require_room
from estimator_tpu_embedding.errors import ConfigError

ADDRESSES = ['10.0.0.3:8470', '10.0.0.4:8470', '10.0.0.4:8471']


def test_tables_that_fit_pass():
    require_room(ADDRESSES, [10, 12, 12], [10, 6, 6])


def test_the_worker_whose_memory_is_too_small_is_named_with_both_numbers():
    with pytest.raises(ConfigError) as caught:
        require_room(ADDRESSES, [9, 12, 12], [10, 6, 6])
    problem, = caught.value.problems
    assert (problem.code, problem.where) == ('E744', 'worker 10.0.0.3:8470 of host 0')
    assert '9 bytes' in str(problem) and '10 bytes' in str(problem)


def test_workers_on_one_machine_share_its_memory():
    with pytest.raises(ConfigError) as caught:
        require_room(ADDRESSES, [10, 12, 11], [10, 6, 6])
    problem, = caught.value.problems
    assert problem.where == 'worker 10.0.0.4:8470 of host 1, worker 10.0.0.4:8471 of host 2'
    assert '= 12 bytes' in str(problem) and 'on one machine' in str(problem)


def test_every_machine_with_too_little_is_named():
    with pytest.raises(ConfigError) as caught:
        require_room(ADDRESSES, [9, 11, 11], [10, 6, 6])
    assert [problem.code for problem in caught.value.problems] == ['E744', 'E744']
