"""`etpe doctor` as a user types it, on files that need no TensorFlow, and the forms of a diagnosis
that was written by hand.
"""

import json

import pytest
from harness.commands import Etpe

from estimator_tpu_embedding.cli.etpe_doctor import blocks_of, data_of
from estimator_tpu_embedding.doctor.findings import Diagnosis, Finding, Place, Prescription

WHOLE = 'every file was read to its end'
PYTHON2 = 'import os\nprint "a"\n'


@pytest.fixture
def etpe(capsys, monkeypatch, tmp_path):
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Etpe(capsys)


@pytest.fixture
def write(tmp_path):
    """Writes a file of the project."""
    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return write


def last(text):
    return text.splitlines()[-1]


def codes(report):
    return [finding['code'] for finding in report['findings'] if finding['place']]


def test_a_file_that_needs_nothing_is_clean(etpe, write):
    write('a.py', 'import os\nprint(os.sep)\n')
    assert WHOLE in last(etpe('doctor', 'a.py'))
    report = etpe.json('doctor')  # The working directory is what is meant without a path.
    assert (report['files'], report['lines'], report['errors'], report['warnings']) == (1, 2, 0, 0)
    assert (report['format'], report['command'], codes(report)) == (1, 'doctor', [])


def test_a_folder_without_python_is_said_and_not_clean(etpe, write):
    write('a.txt', 'x')
    assert 'nothing was checked' in last(etpe('doctor', '.', status=1))


@pytest.mark.parametrize('arguments, said', [
    (['nowhere.py'], "cannot look at 'nowhere.py': No such file or directory"),
    (['a\0b'], 'cannot look at'), (['.', '--select', 'K1'], "no code begins with 'K1'"),
    (['.', '--ignore', ''], "no code begins with ''"), (['.', '--most', '0'], 'at least 1'),
    (['.', '--format', 'html'], 'invalid choice')])
def test_wrong_usage_is_status_2(etpe, arguments, said):
    assert said in etpe('doctor', *arguments, status=2)


def test_codes_are_selected_and_ignored(etpe, write):
    write('a.py', PYTHON2)
    for arguments in (['--ignore', 'E131'], ['--select', 'W'], ['--select', 'E12,W2']):
        text = etpe('doctor', 'a.py', *arguments)
        assert 'ignored: E131 (1)' in text and WHOLE not in text
    assert etpe('doctor', '.', '--select', 'e13', status=1)


def test_what_python_renamed_is_left_to_ruff(etpe, write):
    write('a.py', 'import urllib\nx = urllib.urlencode({})\n')
    assert 'ruff check --select NPY,UP --fix' in etpe('doctor', '.', status=1)


def test_hostile_names_of_files_are_printable_in_every_form(etpe, tmp_path):
    (tmp_path / 'a\x1b[31m\n::error::b%25,c:d\udce9\u202e.py').write_text(PYTHON2)
    for form in ('text', 'json'):
        text = etpe('doctor', '.', '--format', form, status=1)
        assert all(line.isprintable() for line in text.split('\n'))


LOST = Finding('E101', Place('job/train.py', 7, 3, 7, 11), 'tensorflow.xyz', 'tf.xyz',
               'no TensorFlow that we know has it', 'lost')
UNKNOWN = Finding('W201', Place('job/nb.ipynb', 2, 1, 2, 4, 3), 'x', 'x', 'nobody knows', 'unknown')
LACKING = Finding('E111', None, 'tf_keras', '', 'etpe run needs the module tf_keras', 'package')
OLD = Finding('I302', Place('job/train.py', 1, 1, 1, 9), 'tensorflow.Session', 'tf.Session',
              'etpe run --tf1 restores it', 'tf1')
RUN = Prescription('job/train.py', 'etpe run --tf1 job/train.py', ['--tf1: tf.Session'], [LOST])


def diagnosis(*findings, **changes):
    facts = {'environment': [('Python', '3.11.7')], 'findings': findings, 'prescriptions': [],
             'verdicts': {'there': 4, 'lost': 0, 'unknown': 0}, 'files': 2, 'lines': 30,
             'ignored': {}, 'left_out': []}
    return Diagnosis(**{**facts, **changes})


def text(found, most=100):
    return [block.text for block in blocks_of(found, most)]


def test_the_text_goes_from_the_environment_to_what_stops_the_program_first():
    found = diagnosis(LACKING, LOST, UNKNOWN, OLD, OLD, prescriptions=[RUN], ignored={'E121': 2},
                      verdicts={'there': 4, 'tf1': 2, 'lost': 1, 'unknown': 1},
                      left_out=[('job/link', 'a link')])
    assert text(found) == [
        'Python: 3.11.7',
        'environment  E111  module whose package is missing  tf_keras  etpe run needs the module '
        'tf_keras',
        'job/train.py:7:3  E101  TensorFlow name that is gone  tf.xyz  no TensorFlow that we know '
        'has it',
        'job/nb.ipynb[code cell 3]:2:1  W201  name that cannot be resolved  x  nobody knows',
        'I302  tensorflow.Session  2 places, first job/train.py:1:1  etpe run --tf1 restores it',
        'not scanned: job/link: a link',
        'unknown: 1 use of names; nobody can tell whether they are there',
        'ignored: E121 (2)',
        'checked: 2 files with 30 lines',
        'uses of names: 4 there, 2 with --tf1, 1 not supported, 1 unknown',
        'job/train.py:  etpe run --tf1 job/train.py',
        '  --tf1: tf.Session',
        '  may be stopped by job/train.py:7:3  E101  TensorFlow name that is gone  tf.xyz  no '
        'TensorFlow that we know has it',
        '2 errors, 1 warning, 2 for information  (etpe docs doctor says more)']


@pytest.mark.parametrize('change', [
    {'findings': [UNKNOWN]}, {'findings': [LACKING]}, {'ignored': {'I301': 1}},
    {'left_out': [('a', 'a link')]}, {'verdicts': {'there': 1, 'unknown': 1}}, {'files': 0}])
def test_nothing_is_called_whole_that_was_not_checked_whole(change):
    assert WHOLE in text(diagnosis(OLD))[-1]
    assert WHOLE not in text(diagnosis(**change))[-1]


def test_lines_are_bounded_by_program_and_the_others_are_counted_by_code():
    many = [LOST._replace(place=Place('a.py', line)) for line in range(1, 8)]
    names = [OLD._replace(subject=f'tensorflow.x{number}') for number in range(5)]
    lines = text(diagnosis(*many, UNKNOWN, *names,
                           prescriptions=[RUN._replace(stops=[LOST] * 8)] * 4,
                           left_out=[(str(number), 'a link') for number in range(9)]), most=3)
    assert sum('E101  TensorFlow' in line and line.startswith('a.py') for line in lines) == 7
    one = text(diagnosis(*many, UNKNOWN, *names, prescriptions=[RUN]), most=3)
    assert [line.split('  ')[1] for line in one if line.startswith(('a.py', 'job/nb'))] == [
        'E101', 'E101', 'W201']
    assert 'and 5 other findings: E101 (5): --most 8, or --format json' in one
    assert 'I302  and 2 other names: --most 5, or --format json' in lines
    assert 'and 1 other program' in lines and 'not scanned: 6 other paths' in lines
    assert '  and then by 3 other findings' in lines


def test_names_with_the_same_message_have_it_once_and_the_most_frequent_comes_first():
    lines = text(diagnosis(OLD._replace(subject='tensorflow.a'), OLD, OLD))
    assert lines[1:4] == [
        'I302  etpe run --tf1 restores it:',
        '  tensorflow.Session  2 places, first job/train.py:1:1',
        '  tensorflow.a  1 place, first job/train.py:1:1']


def test_where_nothing_is_a_program_that_is_said():
    assert any(line.startswith('no program was found') for line in text(diagnosis()))
    assert not any('no program' in line for line in text(diagnosis(prescriptions=[RUN])))


def test_programs_get_every_fact():
    data = data_of(diagnosis(LOST, LACKING, OLD, prescriptions=[RUN], left_out=[('b', 'a link')]))
    assert json.loads(json.dumps(data)) == data
    assert data['findings'][0] == {
        'code': 'E101', 'severity': 'error', 'subject': 'tensorflow.xyz', 'written': 'tf.xyz',
        'message': 'no TensorFlow that we know has it', 'verdict': 'lost',
        'place': {'path': 'job/train.py', 'line': 7, 'column': 3, 'end_line': 7,
                  'end_column': 11, 'cell': 0}}
    assert data['findings'][1]['place'] is None
    assert data['programs'][0]['stops'] == data['findings'][:1]
    assert (data['errors'], data['warnings'], data['information']) == (2, 0, 1)
    assert data['not_scanned'] == [{'path': 'b', 'reason': 'a link'}]
