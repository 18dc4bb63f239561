from harness import forged_job
from harness.commands import SEVERAL, config_of, saved
from harness.wire import graph, node

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


def test_checkpoints_without_configs_are_compared_row_by_row(etpe, tmp_path):
    a, b = (forged_job.save(tmp_path / name, values=forged_job.VALUES + add)
            for name, add in (('a', 0), ('b', 1)))
    assert etpe('diff', a, b, status=1) == etpe('checkpoint', 'diff', a, b, status=1)
    assert etpe('diff', a, SEVERAL, status=2).startswith('etpe diff: E491 ')


def test_a_file_of_several_configs_is_no_side(etpe, tmp_path):
    configs = [config_of(name).SerializeToString() for name in (ONE, EIGHT)]
    (tmp_path / 'graph.pb').write_bytes(graph(*map(node, configs)))
    said = etpe('diff', ONE, str(tmp_path / 'graph.pb'), status=2)
    assert said.startswith('etpe diff: E478 diff: each side must hold one config; got ')


def test_the_same_job_with_tags_dealt_out_anew_does_not_differ(etpe, tmp_path):
    config = config_of('dynamic_rates.pbtxt')
    rates = [table.optimization_parameters.learning_rate for table in config.table_descriptor]
    assert {rate.dynamic.tag for rate in rates} == {0, 1, 2}
    a = saved(tmp_path, config)
    for rate in rates:
        rate.dynamic.tag = (rate.dynamic.tag + 1) % 3
    (tmp_path / 'b').mkdir()
    assert etpe('diff', a, saved(tmp_path / 'b', config)) == 'no differences\n'
    rates[0].dynamic.tag = rates[1].dynamic.tag  # Now two tables share that did not.
    assert 'learning_rate' in etpe('diff', a, saved(tmp_path / 'b', config), status=1)
