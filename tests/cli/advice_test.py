import pytest
from harness.commands import config_of

from estimator_tpu_embedding.cli.config_view import view_of
from estimator_tpu_embedding.cli.etpe_validate import advise
from estimator_tpu_embedding.proto.reading import Source


def warnings_of(config, *codes):
    """The warnings of the given codes, or the codes of all."""
    found = advise(view_of(Source(where='here', config=config)))
    return [f'{one.where}: {one.got}' for one in found if one.code in codes] if codes else [
        one.code for one in found]


def sound():
    """One table of which nothing can be said."""
    config = config_of('census_training_1x1.pbtxt')
    del config.table_descriptor[1:], config.feature_descriptor[1:]
    assert warnings_of(config) == []
    return config, config.table_descriptor[0], config.table_descriptor[0].optimization_parameters


@pytest.mark.parametrize('dimension, share', [
    (1, '88%'), (5, '38%'), (6, None), (8, None), (9, '44%'), (11, '31%'), (12, None)])
def test_padding_is_said_above_a_quarter_of_the_memory(dimension, share):
    config, table, _ = sound()
    table.dimension = dimension
    wanted = f'table "{table.name}": {share} of its memory as padding'
    assert warnings_of(config, 'W410') == ([wanted] if share else [])


@pytest.mark.parametrize('rows, hosts, said', [
    (4, 4, True), (3, 4, True), (5, 4, False), (1, 1, False), (0, 4, False)])
def test_a_row_per_host_or_less_is_said(rows, hosts, said):
    config, table, _ = sound()
    table.vocabulary_size, config.num_hosts = rows, hosts
    assert ('W411' in warnings_of(config)) == said


def test_a_frozen_table_is_said_unless_its_rate_depends_on_the_step():
    config, table, parameters = sound()
    parameters.learning_rate.constant = 0
    assert warnings_of(config) == ['W420']
    parameters.learning_rate.dynamic.tag = 0
    assert warnings_of(config) == []


@pytest.mark.parametrize('tags, got', [
    ([0, 1, 2], '3 tags for 3 tables'), ([0, 1, 2, 0, 1], '3 tags for 5 tables'),
    ([0, 1, 2, 0, 1, 2], None), ([0, 1], None), ([], None)])
def test_a_tag_for_nearly_every_table_is_said(tags, got):
    config, table, _ = sound()
    for tag in tags:
        config.table_descriptor.add().CopyFrom(table)
        config.table_descriptor[-1].optimization_parameters.learning_rate.dynamic.tag = tag
    assert warnings_of(config, 'W422') == ([f'learning rates: {got}'] if got else [])


def test_a_gap_in_the_tags_is_said():
    config, _, parameters = sound()
    parameters.learning_rate.dynamic.tag = 1
    assert warnings_of(config, 'W423') == ['learning rates: the highest is 1, the lowest 1']


def test_doubtful_training_is_said():
    config, table, parameters = sound()
    parameters.gradient_accumulation_status = 2
    parameters.multiply_weight_decay_factor_by_learning_rate = True
    parameters.gradient_clipping_limits.lower.value = 0.5
    parameters.clipping_limits.upper.value = -0.5
    assert warnings_of(config) == ['W425', 'W426', 'W428', 'W428']
    parameters.gradient_accumulation_status = 1
    parameters.weight_decay_factor = 0.1
    parameters.gradient_clipping_limits.lower.value = 0
    parameters.clipping_limits.upper.value = 0
    assert warnings_of(config) == []
    parameters.ftrl.SetInParent()
    assert warnings_of(config) == ['W429']
    table.dimension = 1
    assert warnings_of(config) == ['W410']


def test_non_lazy_adam_is_said_for_a_million_rows():
    config, table, parameters = sound()
    parameters.adam.use_non_lazy_adam = True
    table.vocabulary_size = 999_999
    assert warnings_of(config) == []
    table.vocabulary_size = 1_000_000
    assert warnings_of(config) == ['W427']


@pytest.mark.parametrize('rows, hosts, strategy, got', [
    (1_000_000, 4, 0, '1 of 4 hosts'), (1_000_000, 4, 1, None), (999_999, 4, 0, None),
    (1_000_000, 1, 0, None),
    # The newest 10,000 ids are 2.56 times the 3,906 of a host.
    (1_000_000, 256, 0, '3 of 256 hosts')])
def test_div_with_a_large_table_says_how_few_hosts_share_the_newest_ids(
        rows, hosts, strategy, got):
    config, table, _ = sound()
    table.vocabulary_size, config.num_hosts, config.sharding_strategy = rows, hosts, strategy
    assert warnings_of(config, 'W440') == ([
        f'sharding_strategy: the newest 1 % of table "{table.name}" on {got}'] if got else [])


@pytest.mark.parametrize('names, said', [(['user', 'User'], True), (['user', 'users'], False)])
def test_names_that_differ_only_in_case_are_said(names, said):
    config, table, _ = sound()
    table.name = names[0]
    config.table_descriptor.add().CopyFrom(table)
    config.table_descriptor[1].name = names[1]
    assert warnings_of(config, 'W412') == (['table "User": "User", "user"'] if said else [])


@pytest.mark.parametrize('directory, said', [
    ('/var/tmp/p', ''), ('p/..q/r..', ''), ('a:b', 'a URL scheme'), ('', ''),
    ('gs://bucket/p', 'a URL scheme'), ('../p', 'a part ".."'), ('/p/..', 'a part ".."'),
    ('~/p', '"~"'), ('/p/$HOME', '"$"'), ('/p\x1b[2J', 'a control character'),
    ('~/../$x\n', 'a part "..", "~", "$", a control character')])
def test_a_directory_for_profiles_that_may_lead_elsewhere_is_said(directory, said):
    config, _, _ = sound()
    config.profile_data_directory = directory
    got = warnings_of(config, 'W441')
    assert len(got) == bool(said)
    assert not said or got[0].startswith(f'profile_data_directory: {said} in "')
    assert all(one.isprintable() for one in got)
