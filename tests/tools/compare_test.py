"""`tools/bench/compare.py`: which differences of two runs it prints and marks."""

import copy
import json

import pytest

CONTENT = {
    'format': 1, 'benchmark': 'job', 'figures': {
        'a': {'unit': 'ms', 'median': 10, 'low': 9, 'high': 11, 'windows': 5}},
    'circumstances': {
        'commit': 40 * '1', 'dirty': False, 'date': '2026-01-02T03:04:05+00:00',
        'command': 'tools/bench/job.py', 'versions': {'numpy': '2.1'},
        'machine': {'cores': 2}, 'load': {'before': [.1, 1, 1], 'after': [1, 1, 1],
                                          'during': None}}}


@pytest.fixture
def compared(bench, tmp_path, monkeypatch, capsys):
    """Compares `CONTENT` with a changed copy of it; returns status and lines."""
    def compare(change=lambda content: None, before=CONTENT):
        after = copy.deepcopy(before)
        change(after)
        for name, content in (('a.json', before), ('b.json', after)):
            (tmp_path / name).write_text(json.dumps(content))
        monkeypatch.setattr('sys.argv', [
            'compare.py', str(tmp_path / 'a.json'), str(tmp_path / 'b.json')])
        status = bench('compare').main()
        said = capsys.readouterr()
        return status, (said.out + said.err).splitlines()

    return compare


def test_equal_runs_differ_in_nothing(compared):
    status, lines = compared()
    assert status == 0 and len(lines) == 3
    assert lines[0].split() == ['a', '10', '10', 'ms', '1.000']
    assert lines[1:] == 2 * ['111111111111, 2026-01-02T03:04:05+00:00']


@pytest.mark.parametrize('median, low, high, windows, status', [
    (12, 10.9, 13, 5, 0), (12, 11.1, 13, 5, 1), (8, 7, 8.9, 5, 1), (12, 12, 12, 1, 0)])
def test_a_difference_is_marked_beyond_the_spread(compared, median, low, high, windows, status):
    got, lines = compared(lambda content: content['figures']['a'].update(
        median=median, low=low, high=high, windows=windows))
    assert got == status
    assert lines[0].endswith(' *') == bool(status)
    assert f'{median / 10:.3f}' in lines[0]


def test_a_figure_that_only_one_run_has_is_a_difference(compared):
    status, lines = compared(lambda content: content['figures'].update(
        b=content['figures'].pop('a')))
    assert status == 1
    assert [line.split()[1:] for line in lines[:2]] == [
        ['only', 'in', 'the', 'first'], ['only', 'in', 'the', 'second']]


def test_another_unit_is_a_difference_and_a_median_of_0_is_no_error(compared):
    status, lines = compared(lambda content: content['figures']['a'].update(unit='s'))
    assert status == 1 and lines[0].endswith('in ms and in s')
    zero = {**CONTENT, 'figures': {'a': {**CONTENT['figures']['a'], 'median': 0}}}
    assert compared(before=zero)[0] == 0


@pytest.mark.parametrize('path, value, said', [
    (('command',), 'tools/bench/job.py --steps 3', 'command: '),
    (('machine', 'cores'), 4, 'cores: 2 and 4'),
    (('versions', 'numpy'), None, 'numpy: 2.1 and None'),
    (('load', 'before'), [.7, 1, 1], 'load before: 0.1 and 0.7'),
    (('load', 'during'), {'median': 2.0}, 'load during: 1 and 2.0')])
def test_circumstances_that_differ_are_said_and_do_not_change_the_status(
        compared, path, value, said):
    def change(content):
        inner = content['circumstances']
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    status, lines = compared(change)
    assert status == 0
    assert [line for line in lines if line.startswith(f'differs: {said}')]


@pytest.mark.parametrize('change', [
    lambda content: content.update(benchmark='runner'), lambda content: content.update(format=2)])
def test_what_cannot_be_compared_is_status_2(compared, change):
    status, lines = compared(change)
    assert status == 2 and lines[0].startswith('compare: ')
