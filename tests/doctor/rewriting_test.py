"""Files as they are on disk before and after `--fix`."""

import codecs
import os
import stat

import pytest
from harness.successors import found

from estimator_tpu_embedding.doctor import rewriting
from estimator_tpu_embedding.doctor.rewriting import rewritten
from estimator_tpu_embedding.errors import SetupError

TEXT = 'import numpy as np\nx = np.int(3)  # three\n'
NEW = 'import numpy as np\nx = int(3)  # three\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rewrite(path, text, *written):
    """What becomes of a file with a text; its findings are those of the text."""
    (one,) = rewritten(['.'], found(text, *written or ['np.int'], path=str(path)))
    return one.written()


def reasons(one):
    return [reason for _, reason in one.left]


@pytest.mark.parametrize('before, after', [
    (TEXT.encode(), NEW.encode()),
    (TEXT.replace('\n', '\r\n').encode(), NEW.replace('\n', '\r\n').encode()),
    (codecs.BOM_UTF8 + TEXT.encode(), codecs.BOM_UTF8 + NEW.encode()),
    (f'# coding: latin-1\n{TEXT}# \xe9'.encode('latin-1'),
     f'# coding: latin-1\n{NEW}# \xe9'.encode('latin-1')),
    (f'{TEXT}# é \x0c'.encode(), f'{NEW}# é \x0c'.encode())])
def test_all_other_bytes_stay_and_a_second_fix_changes_nothing(folder, before, after):
    file = folder / 'a.py'
    file.write_bytes(before)
    text = before.decode('latin-1' if b'latin-1' in before else 'utf-8-sig')
    one = rewrite('a.py', text)
    assert (file.read_bytes(), len(one.done), one.left) == (after, 1, [])
    status = file.stat()
    again = rewrite('a.py', text)
    assert (file.read_bytes(), list(again.done)) == (after, [])
    assert reasons(again) == ['the file has changed since it was read']
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)


def test_permissions_stay_and_nothing_is_left_beside(folder):
    file = folder / 'a.py'
    file.write_text(TEXT)
    file.chmod(0o750)
    rewrite('a.py', TEXT)
    assert file.read_text() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert [path.name for path in folder.iterdir()] == ['a.py']


def test_the_diff_says_what_would_be_written_and_nothing_is(folder):
    (folder / 'a.py').write_text(TEXT[:-1])
    (one,) = rewritten(['a.py'], found(TEXT, 'np.int', path='a.py'))
    assert one.diff() == (
        '--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n import numpy as np\n'
        '-x = np.int(3)  # three\n\\ No newline at end of file\n'
        '+x = int(3)  # three\n\\ No newline at end of file\n')
    assert (folder / 'a.py').read_text() == TEXT[:-1]


def test_a_link_is_not_written_through(folder):
    (folder / 'real').mkdir()
    (folder / 'real' / 'b.py').write_text(TEXT)
    (folder / 'a.py').symlink_to('real/b.py')
    one = rewrite('a.py', TEXT)
    assert (folder / 'real' / 'b.py').read_text() == TEXT and (folder / 'a.py').is_symlink()
    assert reasons(one) == ['it cannot be read: a link, which is not followed here']


def test_a_link_that_takes_the_place_of_the_file_is_left(folder):
    (folder / 'a.py').write_text(TEXT)
    (one,) = rewritten(['.'], found(TEXT, 'np.int', path='a.py'))
    os.rename('a.py', 'b')
    (folder / 'a.py').symlink_to('b')
    assert reasons(one.written()) == ['the file has changed since it was read']
    assert (folder / 'b').read_text() == TEXT


@pytest.mark.parametrize('newer', ['import numpy as np\ny = np.int(3)  # three\n', 'x = 1\n', '('])
def test_a_file_that_changed_after_the_fix_was_made_is_left(folder, newer):
    (folder / 'a.py').write_text(TEXT)
    (one,) = rewritten(['.'], found(TEXT, 'np.int', path='a.py'))
    (folder / 'a.py').write_text(newer)
    assert reasons(one.written()) == ['the file has changed since it was read']
    assert (folder / 'a.py').read_text() == newer


@pytest.mark.parametrize('newer', ['x = 1\n', '\n' + TEXT, TEXT.replace('np.int', 'np.str'), '('])
def test_a_file_that_changed_after_the_diagnosis_is_left(folder, newer):
    (folder / 'a.py').write_text(newer)
    one = rewrite('a.py', TEXT)
    assert reasons(one) == ['the file has changed since it was read']
    assert (folder / 'a.py').read_text() == newer and one.diff() == ''


def test_a_file_that_is_gone_or_read_only_is_named(folder, monkeypatch):
    assert reasons(rewrite('a.py', TEXT)) == ['it cannot be read: No such file or directory']
    (folder / 'a.py').write_text(TEXT)
    monkeypatch.setattr(os, 'access', lambda path, mode: False)  # Tests may run as root.
    assert reasons(rewrite('a.py', TEXT)) == ['the file is not writable']
    assert (folder / 'a.py').read_text() == TEXT


def test_a_file_that_does_not_parse_to_its_end_is_left(folder):
    text = f'{TEXT}print "x"\n'
    (folder / 'a.py').write_text(text)
    assert reasons(rewrite('a.py', text)) == ['the file does not parse']
    assert (folder / 'a.py').read_text() == text


@pytest.mark.parametrize('deep', [
    'x = ' + 'not ' * 5000 + '1', 'x = ' + '+'.join(['1'] * 5000),
    'if x: pass\n' + 'elif x: pass\n' * 5000])
def test_a_file_that_would_overflow_the_stack_is_left(folder, deep):
    text = f'{TEXT}{deep}\n'
    (folder / 'a.py').write_text(text)
    assert len(reasons(rewrite('a.py', text))) == 1
    assert (folder / 'a.py').read_text() == text


def test_notebooks_are_left(folder):
    findings = [one._replace(place=one.place._replace(cell=1, path='a.ipynb'))
                for one in found(TEXT, 'np.int')]
    (one,) = rewritten(['.'], findings)
    assert reasons(one) == ['it is in a notebook'] and one.diff() == ''


def test_a_name_with_two_meanings_is_left(folder):
    text = ('try:\n  import numpy as np\nexcept ImportError:\n'
            '  import tensorflow.experimental.numpy as np\nnp.int\n')
    (folder / 'a.py').write_text(text)
    assert reasons(rewrite('a.py', text)) == ['the name has another meaning too']
    assert (folder / 'a.py').read_text() == text


def test_all_files_are_fixed_each_for_itself(folder):
    (folder / 'a.py').write_text(TEXT)
    (folder / 'b.py').write_text('def f(int): pass\n' + TEXT)
    (folder / 'c').mkdir()
    (folder / 'c' / 'd.py').write_text('from collections import Mapping, deque\n')
    findings = [*found(TEXT, 'np.int', path='a.py'),
                *found('def f(int): pass\n' + TEXT, 'np.int', path='b.py'),
                *found('from collections import Mapping\n', 'Mapping', path='c/d.py')]
    a, b, d = [one.written() for one in rewritten(['.'], findings)]
    assert (len(a.done), len(b.done), len(d.done)) == (1, 0, 1)
    assert (folder / 'a.py').read_text() == NEW
    assert (folder / 'c' / 'd.py').read_text() == (
        'from collections import deque\nfrom collections.abc import Mapping\n')


def test_without_the_package_there_is_one_error_with_the_remedy(monkeypatch):
    monkeypatch.setattr(rewriting.importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(SetupError) as caught:
        rewritten(['.'], [])
    assert caught.value.code == 'E134' and 'pip install ".[doctor]"' in str(caught.value)


def test_a_name_inside_one_that_was_imported_follows_it(folder):
    """What stands behind the new name is looked up behind the new one, and hinders no other fix."""
    text = f'from collections import Mapping\n{TEXT}Mapping.register(dict)\n'
    (folder / 'a.py').write_text(text)
    (one,) = rewritten(['.'], found(text, 'np.int', 'Mapping')[:2])  # The import is at fault.
    one.written()
    assert (len(one.done), one.left) == (2, [])
    assert (folder / 'a.py').read_text() == (
        f'from collections.abc import Mapping\n{NEW}Mapping.register(dict)\n')


def test_a_file_with_two_names_is_left(folder):
    """A new file would take one of them only."""
    (folder / 'a.py').write_text(TEXT)
    (folder / 'b').hardlink_to(folder / 'a.py')
    assert reasons(rewrite('a.py', TEXT)) == ['the file has another name too, by a hard link']
    assert (folder / 'a.py').samefile(folder / 'b') and (folder / 'b').read_text() == TEXT
