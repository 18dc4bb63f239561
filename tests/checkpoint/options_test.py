import pytest

from estimator_tpu_embedding import CheckpointOptions
from estimator_tpu_embedding.errors import ConfigError


@pytest.mark.parametrize('assume, order', [
    (None, None), ('div', ('div', 1)), ('mod:2', ('mod', 2)), ('div:3', ('div', 3))])
def test_an_order_is_a_strategy_and_a_number_of_hosts(assume, order):
    assert CheckpointOptions(assume=assume).assumed_order() == order


@pytest.mark.parametrize('values', [
    {'assume': 'mod'}, {'assume': 'mod:0'}, {'assume': 'mod:x'}, {'assume': 'hash:2'},
    {'assume': 'mod:99999'}, {'assume': 'mod:2 '}, {'assume': 5}, {'verify': 'md5'},
    {'grow': 'table'}, {'drop': [1]}, {'reset_slots': [None]}, {'rename': ['a']},
    {'rename': {'a': 'c', 'b': 'c'}}, {'rename': {1: 'a'}}, {'expected_digest': 'abc'},
    {'expected_digest': 'A' * 64}, {'max_save_failures': 0}, {'max_save_failures': True},
    {'keep_every_steps': 0}, {'keep_every_steps': 1.5}])
def test_a_value_that_is_none_is_refused(values):
    with pytest.raises(ConfigError, match=rf'^E626 CheckpointOptions.{next(iter(values))}: '):
        CheckpointOptions(**values)
