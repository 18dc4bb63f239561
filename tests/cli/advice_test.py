"""Each warning W4xx of `etpe validate` comes at its limit, and not before."""

import pytest
from harness.commands import config_of, view

from estimator_tpu_embedding.cli.etpe_validate import advise

LARGE = 1_000_000


def config_with(rows=None, dimension=None, hosts=1, strategy=0, tags=(), names=(), directory='',
                **changes):
    """A config about which nothing can be said, but for these changes."""
    config = config_of('census_training_1x1.pbtxt')
    del config.table_descriptor[1:], config.feature_descriptor[1:]
    config.num_hosts, config.sharding_strategy = hosts, strategy
    config.profile_data_directory = directory
    table = config.table_descriptor[0]
    table.vocabulary_size = table.vocabulary_size if rows is None else rows
    table.dimension = dimension or table.dimension
    for path, value in changes.items():
        *parts, last = path.split('__')
        place = table.optimization_parameters
        for part in parts:
            place = getattr(place, part)
        setattr(place, last, value)
    for tag, name in zip(tags or [None] * len(names), names or [table.name] * len(tags)):
        added = config.table_descriptor.add()
        added.CopyFrom(table)
        added.name = name
        if tag is not None:
            added.optimization_parameters.learning_rate.dynamic.tag = tag
    return config


@pytest.mark.parametrize('changes, said', [
    ({}, []), ({'dimension': 6}, []), ({'dimension': 12}, []),
    ({'dimension': 5}, ['W410 38% of its memory as padding']),
    ({'dimension': 11}, ['W410 31% of its memory as padding']),
    ({'rows': 5, 'hosts': 4}, []), ({'rows': 0, 'hosts': 4}, []), ({'rows': 1}, []),
    ({'rows': 4, 'hosts': 4}, ['W411 4 on 4 hosts']),
    ({'names': ['users', 'Users']}, ['W412 "Users", "users"']), ({'names': ['user', 'users']}, []),
    ({'learning_rate__constant': 0}, ['W420 ']),
    ({'learning_rate__constant': 0, 'learning_rate__dynamic__tag': 0}, []),
    ({'tags': [0, 1, 2]}, ['W422 3 tags for 3 tables']),
    ({'tags': [0, 1, 2, 0, 1]}, ['W422 3 tags for 5 tables']),
    ({'tags': [0, 1, 2, 0, 1, 2]}, []), ({'tags': [0, 1]}, []),
    ({'learning_rate__dynamic__tag': 1}, ['W423 the highest is 1, the lowest 1']),
    ({'gradient_accumulation_status': 2}, ['W425 ']),
    ({'multiply_weight_decay_factor_by_learning_rate': True}, ['W426 ']),
    ({'multiply_weight_decay_factor_by_learning_rate': True, 'weight_decay_factor': .1}, []),
    ({'rows': LARGE - 1, 'adam__use_non_lazy_adam': True}, []),
    ({'rows': LARGE, 'adam__use_non_lazy_adam': True}, [f'W427 {LARGE} rows']),
    ({'gradient_clipping_limits__lower__value': .5}, ['W428 [0.5, None]']),
    ({'clipping_limits__upper__value': -.5}, ['W428 [None, -0.5]']),
    ({'clipping_limits__upper__value': 0}, []),
    ({'ftrl__l1': 0.}, ['W429 dimension 8']),
    ({'rows': LARGE - 1, 'hosts': 4}, []), ({'rows': LARGE}, []),
    ({'rows': LARGE, 'hosts': 4, 'strategy': 1}, []),
    ({'directory': '/var/tmp/p'}, []), ({'directory': 'p/..q/r..'}, []), ({'directory': 'a:b'}, [
        'W441 a URL scheme in "a:b"']), ({'directory': '/p/..'}, ['W441 a part ".." in "/p/.."']),
    ({'directory': '~/../$x\n'}, [
        r'W441 a part "..", "~", "$", a control character in "~/../$x\n"'])])
def test_a_doubtful_choice_is_said_with_its_code(changes, said):
    found = advise(view(config_with(**changes)))
    assert [f'{one.code} {one.got}' for one in found] == said


# The newest 10,000 ids are 2.56 times the 3,906 of a host, if there are 256.
@pytest.mark.parametrize('hosts, few', [(4, 1), (256, 3)])
def test_div_with_a_large_table_says_how_few_hosts_share_the_newest_ids(hosts, few):
    config = config_with(rows=LARGE, hosts=hosts)
    found, = advise(view(config))
    assert (found.code, found.where) == ('W440', 'sharding_strategy')
    assert found.got.endswith(f'on {few} of {hosts} hosts')
