"""`etpe doctor` as a user types it, on files that need no TensorFlow unless a test says so."""


import pytest
from harness.commands import Etpe

WHOLE = 'every file was read to its end'
PYTHON2 = 'import os\nprint "a"\n'
OLD = 'import urllib\nx = urllib.urlencode({})  # maps\n'
NEW = ('import urllib\nimport urllib.parse\n'
       'x = urllib.parse.urlencode({})  # maps\n')


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


def test_a_comment_ignores_what_is_on_its_line(etpe, write):
    write('a.py', 'import os\nprint "a"  # etpe: ignore[E131]\n')
    text = etpe('doctor', '.')
    assert 'ignored: E131 (1)' in text and WHOLE not in text
    write('a.py', 'import os\nprint "a"  # etpe: ignore[E121]\n')
    etpe('doctor', '.', status=1)


def test_the_settings_of_the_project_ignore_and_exclude(etpe, write):
    write('job/a.py', PYTHON2)
    write('job/gen/b.py', PYTHON2)
    write('setup.cfg', '[etpe]\nexclude = job/gen\n')
    text = etpe('doctor', 'job', status=1)
    assert 'a.py:2' in text and 'b.py' not in text and 'not scanned: job/gen: 1 file' in text
    write('setup.cfg', '[etpe]\nignore = E13\n')
    assert 'ignored: E131 (2)' in etpe('doctor', 'job')
    assert WHOLE not in etpe('doctor', 'job', '--ignore', 'W2')  # Both count.
    write('setup.cfg', '[etpe]\nselect = W\n')
    etpe('doctor', 'job')
    etpe('doctor', 'job', '--select', 'E', status=1)  # What is typed counts.
    write('setup.cfg', '[etpe]\nignore = E1 X\n')
    error = etpe('doctor', 'job', status=2)
    assert "E135" in error and 'setup.cfg' in error and "'X'" in error


def test_files_that_are_excluded_are_there_for_others(etpe, write):
    write('a.py', 'from gen.b import name\nprint(name)\n')
    write('gen/b.py', f'name = 1\n{PYTHON2}')
    write('setup.cfg', '[etpe]\nexclude = gen\n')
    assert codes(etpe.json('doctor', '.')) == []


def test_the_diff_shows_what_fix_writes(etpe, write, tmp_path):
    write('a.py', OLD)
    text = etpe('doctor', '--diff', 'a.py', status=1)
    assert '-x = urllib.urlencode({})  # maps\n+import urllib.parse' in text
    assert last(text) == '1 place would be fixed; nothing was written'
    assert etpe('doctor', '--diff', '--fix', 'a.py', status=1) == text
    assert (tmp_path / 'a.py').read_text() == OLD
    report = etpe.json('doctor', '--diff', status=1)
    assert report['fixes'][0]['diff'] in text and codes(report) == ['E122']


def test_fix_writes_what_is_safe_once_and_says_what_it_left(etpe, write, tmp_path):
    write('a.py', OLD)
    write('b.py', f'def f(urllib): pass\n{OLD}')
    text = etpe('doctor', '--fix', '.', status=1)
    assert 'fixed: a.py: 1 place' in text and 'a.py:2' not in text
    assert 'not fixed: b.py:3:5  E122  urllib.urlencode: the file may give' in text
    assert (tmp_path / 'a.py').read_text() == NEW
    assert WHOLE in last(etpe('doctor', '--fix', 'a.py'))
    assert (tmp_path / 'a.py').read_text() == NEW
    report = etpe.json('doctor', '--fix', 'a.py')
    assert report['fixes'] == [] and codes(report) == []


def test_hostile_names_of_files_are_printable_in_every_form(etpe, tmp_path):
    (tmp_path / 'a\x1b[31m\n\u202e.py').write_text(PYTHON2)
    for form in ('text', 'json'):
        text = etpe('doctor', '.', '--format', form, status=1)
        assert all(line.isprintable() for line in text.split('\n'))
