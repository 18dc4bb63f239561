import pytest
from harness.commands import SEVERAL, config_of, saved, view
from harness.wire import graph, node

from estimator_tpu_embedding.cli.etpe_diff import differences

ONE, EIGHT = 'census_training_1x1.pbtxt', 'census_training_2x4_mod.pbtxt'
TEXT = '''\
   where  what                 change      restore  why
~  run    strategy             div -> mod  safe     rows get the new order when they are restored
~  run    hosts                1 -> 2      safe     rows get the new order when they are restored
~  run    cores                1 -> 8      safe     not in a checkpoint
~  run    batch_size_per_core  512 -> 64   safe     not in a checkpoint
0 breaking, 4 safe
'''


def test_differences_are_marked_breaking_or_safe(etpe):
    assert etpe('diff', ONE, EIGHT, status=1) == TEXT


def test_equal_configs_are_status_0_whatever_file_they_are_in(etpe, tmp_path):
    assert etpe('diff', SEVERAL, saved(tmp_path, config_of())) == 'no differences\n'
    config = config_of()
    config.table_descriptor[0].optimization_parameters.weight_decay_factor = float('nan')
    path = saved(tmp_path, config)
    assert etpe('diff', path, path) == 'no differences\n'


def test_programs_get_values_as_they_are(etpe):
    report = etpe.json('diff', ONE, EIGHT, status=1)
    assert (report['format'], report['a'], report['b']) == (1, ONE, EIGHT)
    assert (report['breaking'], report['safe']) == (0, 4)
    assert report['differences'][1] == {
        'kind': 'changed', 'where': '', 'what': 'hosts', 'before': 1, 'after': 2,
        'breaking': False, 'why': 'rows get the new order when they are restored'}


def test_an_order_that_is_not_compared_is_not_passed_over(etpe, tmp_path):
    config = config_of('census_training_1x1.pbtxt')
    first, second = config.feature_descriptor[4], config.feature_descriptor[5]
    first.table_id, second.table_id = second.table_id, first.table_id
    assert 'an order, or fields' in etpe('diff', ONE, saved(tmp_path, config), status=1)


def test_a_file_of_several_configs_is_no_side(etpe, tmp_path):
    configs = [config_of(name).SerializeToString() for name in (ONE, EIGHT)]
    (tmp_path / 'graph.pb').write_bytes(graph(*map(node, configs)))
    said = etpe('diff', ONE, str(tmp_path / 'graph.pb'), status=2)
    assert said.startswith('etpe diff: E478 diff: each side must hold one config; got ')


def found(change):
    """What differs after a change: (kind, table, what, before, after, breaking)."""
    a, b = config_of(), config_of()
    change(b)
    return [(one.kind, one.where, one.what, one.before, one.after, one.breaking)
            for one in differences(view(a), view(b))]


def test_what_a_checkpoint_does_not_hold_is_safe():
    def change(config):
        config.num_tensor_cores, config.pipeline_execution_with_tensor_core = 8, False
        for feature in config.feature_descriptor:
            feature.input_shape[0] = 3
        config.feature_descriptor[0].name = 'shown'
        parameters = config.table_descriptor[0].optimization_parameters
        parameters.learning_rate.dynamic.tag = 2
        parameters.ClearField('gradient_clipping_limits')

    assert found(change) == [
        ('changed', '', 'cores', 4, 8, False),
        ('changed', '', 'batch_size_per_core', 2, 3, False),
        ('changed', '', 'pipelined', True, False, False),
        ('changed', 'a', 'learning_rate', 0.5, 'tag 2', False),
        ('changed', 'a', 'clip_gradients', (-1.0, 0.0), None, False),
        ('changed', 'a', 'features', ('unnamed',), ('shown',), False)]


def test_another_shape_is_breaking():
    def change(config):
        config.table_descriptor[0].vocabulary_size, config.table_descriptor[1].dimension = 3, 6

    assert found(change) == [('changed', 'a', 'rows', 2, 3, True),
                             ('changed', 'b', 'dimension', 5, 6, True)]


@pytest.mark.parametrize('table, optimizer, before, breaking', [
    (1, 'proximal_adagrad', 'adagrad', True),  # Its slot is not there.
    (1, 'stochastic_gradient_descent', 'adagrad', False),  # The slot is left unread.
    (0, 'adagrad', 'stochastic_gradient_descent', True),
    (1, 'bounded_adagrad', 'adagrad', True)])  # Its slots are not known.
def test_another_optimizer_is_breaking_where_it_needs_other_slots(
        table, optimizer, before, breaking):
    def change(config):
        getattr(config.table_descriptor[table].optimization_parameters, optimizer).SetInParent()

    name = 'ab'[table]
    assert found(change) == [('changed', name, 'optimizer', before, optimizer, breaking)]


def test_tables_that_go_are_breaking_and_tables_that_come_are_safe():
    def change(config):
        config.table_descriptor[0].name = 'new'
        config.table_descriptor[0].vocabulary_size = 9

    assert found(change) == [('removed', 'a', 'table', '2 x 4', None, True),
                             ('added', 'new', 'table', None, '9 x 4', False)]


def test_the_mode_is_safe_where_slots_are_dropped_and_breaking_where_they_are_needed():
    training, inference = config_of(), config_of()
    inference.mode = inference.INFERENCE
    down = differences(view(training), view(inference))
    up = differences(view(inference), view(training))
    # Tables b to e have a slot; a is trained by SGD.
    assert [(one.what, one.breaking) for one in down] == [('mode', False)] + [('slots', False)] * 4
    assert [(one.what, one.breaking) for one in up] == [('mode', False)] + [('slots', True)] * 4


@pytest.mark.parametrize('rows, hosts, others, on, breaking', [
    (3, 1, 4, 4, False), (4, 4, 3, 1, False), (2, 2, 4, 4, False), (4, 4, 4, 2, None),
    (5, 1, 4, 4, True), (3, 1, 6, 4, True), (8, 4, 4, 4, True), (3, 2, 4, 2, True)])
def test_rows_that_the_number_of_hosts_explains_are_not_breaking(
        rows, hosts, others, on, breaking):
    a, b = config_of(), config_of()
    for config, size, number in ((a, rows, hosts), (b, others, on)):
        config.num_hosts, config.sharding_strategy = number, 0
        config.table_descriptor[1].vocabulary_size = size
    said = [one for one in differences(view(a), view(b)) if (one.where, one.what) == ('b', 'rows')]
    assert [one.breaking for one in said] == ([] if breaking is None else [breaking])
    assert all(one.breaking or 'the checkpoint decides' in one.why for one in said)


def tagged(*tags, names='abcde'):
    """A config whose tables have these tags; `None` is a constant rate."""
    config = config_of()
    for table, tag, name in zip(config.table_descriptor, tags, names):
        table.name = name
        rate = table.optimization_parameters.learning_rate
        if tag is None:
            rate.constant = 0.5
        else:
            rate.dynamic.tag = tag
    return view(config)


def rates(a, b):
    """What differs between configs with these tags: (table, before, after)."""
    return [(one.where, one.before, one.after) for one in differences(tagged(*a), tagged(*b))]


@pytest.mark.parametrize('a, b', [
    ((0, 1, 0, 2, 1), (2, 0, 2, 1, 0)), ((None, 1, 0, 2, 1), (None, 0, 1, 5, 0))])
def test_tags_that_are_numbered_in_another_order_are_the_same(a, b):
    assert rates(a, b) == rates(b, a) == []


def test_functions_that_are_shared_otherwise_are_a_difference():
    assert rates((0, 1, 0, 2, 1), (2, 0, 2, 1, 1)) == [
        ('e', 'tag 1, as table b', 'tag 1, as table d')]
    assert rates((None, 1, 0, 2, 1), (3, 0, 1, 2, 0)) == [('a', 0.5, 'tag 3')]
    assert rates((0, 1, 2, 3, 4), (0, 1, 2, 3, 3)) == [('e', 'tag 4', 'tag 3')]
