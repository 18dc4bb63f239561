"""`etpe doctor` as a user types it, on files that need no TensorFlow unless a test says so."""


import pytest
from harness.commands import Etpe

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


def test_python_2_is_one_finding_and_the_rest_is_not_called_whole(etpe, write):
    write('a.py', PYTHON2)
    text = etpe('doctor', '.', status=1)
    assert len([line for line in text.splitlines() if line.startswith('a.py:2:')]) == 1
    assert WHOLE not in text
    assert codes(etpe.json('doctor', '.', status=1)) == ['E131']


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
    (tmp_path / 'a\x1b[31m\n\u202e.py').write_text(PYTHON2)
    for form in ('text', 'json'):
        text = etpe('doctor', '.', '--format', form, status=1)
        assert all(line.isprintable() for line in text.split('\n'))
