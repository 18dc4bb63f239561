import pytest
from harness.commands import SEVERAL, config_of, saved

DOUBTS = ['W410', 'W411', 'W410', 'W425', 'W410', 'W425', 'W410', 'W410', 'W425']


def codes(report):
    return [finding['code'] for finding in report['findings']]


def test_each_finding_is_a_line_with_its_code_and_where_to_read_more(etpe):
    lines = etpe('validate', SEVERAL).splitlines()
    assert lines[1] == (f'{SEVERAL}: W411 table "a": it should have more rows than there are '
                        'hosts; got 2 on 2 hosts.  (etpe explain W411)')
    assert lines[-1] == '0 errors, 9 warnings in 1 config'
    assert [line.split()[1] for line in lines[:-1]] == DOUBTS


def test_warnings_alone_are_status_0_and_1_with_strict(etpe):
    assert codes(etpe.json('validate', SEVERAL)) == DOUBTS
    assert codes(etpe.json('validate', SEVERAL, '--strict', status=1)) == DOUBTS
    assert etpe('validate', SEVERAL, '--strict', '--ignore', 'W4') == (
        '0 errors, 0 warnings in 1 config\n')


def test_all_errors_come_at_once_before_the_warnings(etpe, tmp_path):
    config = config_of('census_training_1x1.pbtxt')
    config.num_tensor_cores = 0
    config.feature_descriptor[0].table_id = 9
    config.table_descriptor[0].optimization_parameters.online_yogi.l1 = 0.5
    report = etpe.json('validate', saved(tmp_path, config), status=1)
    assert codes(report) == ['E401', 'E918', 'E410', 'W410', 'W410', 'W410', 'W410']
    assert (report['errors'], report['warnings']) == (3, 4)
    assert report['findings'][0] == {
        'where': report['findings'][0]['where'], 'code': 'E401', 'severity': 'error',
        'object': 'feature 0', 'rule': 'table_id must be in [0, 5)', 'got': '9', 'remedy': ''}


@pytest.mark.parametrize('arguments, left', [
    (['--select', 'W411'], ['W411']), (['--select', 'w411, W425', '--ignore', 'W425'], ['W411']),
    (['--ignore', 'W410,W42'], ['W411']), (['--select', 'E'], []),
    (['--select', 'W4', '--ignore', 'W4'], [])])
def test_codes_are_selected_and_ignored_by_their_beginnings(etpe, arguments, left):
    assert codes(etpe.json('validate', SEVERAL, *arguments)) == left


def test_an_ignored_error_does_not_count(etpe, tmp_path):
    config = config_of()
    config.batch_size_per_tensor_core = 3
    path = saved(tmp_path, config)
    assert codes(etpe.json('validate', path, '--select', 'E', status=1)) == ['E470']
    assert codes(etpe.json('validate', path, '--ignore', 'E470,W')) == []


@pytest.mark.parametrize('prefixes', ['W4111', 'W410,', 'K'])
def test_beginnings_of_no_code_are_a_usage_error(etpe, prefixes):
    assert 'no code begins with ' in etpe('validate', SEVERAL, '--ignore', prefixes, status=2)


def test_an_unreadable_input_is_status_2(etpe, tmp_path):
    for command in ('inspect', 'validate', 'size', 'plan'):
        said = etpe(command, tmp_path / 'missing.pbtxt', status=2)
        assert said.startswith(f'etpe {command}: E48') and 'Traceback' not in said
