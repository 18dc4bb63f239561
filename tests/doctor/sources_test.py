"""Which files are found, and how they are read; what strangers wrote costs a line."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.doctor import diagnose, sources


def problems(path):
    return [(one.code, one.message) for one in sources.read(str(path)).problems]


def cells(*texts):
    return json.dumps({'cells': [{'cell_type': 'code', 'source': text} for text in texts]})


def test_folders_that_are_left_out_are_named_with_a_reason(tmp_path):
    left_out = ['.git', '.hidden', '__pycache__', 'build', 'env', 'node_modules', 'x.egg-info']
    for name in (*left_out, 'kept', '.named'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'a.py').write_text('x = 1')
    (tmp_path / 'env' / 'pyvenv.cfg').write_text('')
    found = sources.find([str(tmp_path), str(tmp_path / '.named')])
    assert found.files == tuple(str(tmp_path / name / 'a.py') for name in ('kept', '.named'))
    assert sorted(path for path, reason in found.left_out if reason) == [
        str(tmp_path / name) for name in sorted((*left_out, '.named'))]
    assert not found.problems and found.roots == (str(tmp_path), str(tmp_path / '.named'))


def test_each_file_is_scanned_once_and_a_named_one_whatever_its_name_is(tmp_path):
    for name in ('a.py', 'b.ipynb', 'script', 'c.txt'):
        (tmp_path / name).write_text('')
    found = sources.find([str(tmp_path / 'script'), str(tmp_path), str(tmp_path / 'a.py')])
    assert [os.path.basename(path) for path in found.files] == ['script', 'a.py', 'b.ipynb']


def test_links_are_not_followed_and_said(tmp_path):
    root, outside = tmp_path / 'root', tmp_path / 'outside'
    for folder in (root / 'a', outside):
        folder.mkdir(parents=True)
        (folder / 'x.py').write_text('x = 1')
    links = {'loop': root, 'out.py': outside / 'x.py', 'same.py': root / 'a' / 'x.py',
             'gone.py': root / 'nowhere'}
    for name, target in links.items():
        (root / name).symlink_to(target)
    found = sources.find([str(root)])
    assert [os.path.relpath(path, root) for path in found.files] == ['a/x.py']
    assert {os.path.relpath(path, root) for path, _ in found.left_out} == links.keys()
    assert sources.find([str(root / 'out.py')]).files  # What the user names is read.


def test_what_cannot_be_read_is_one_line(tmp_path):
    os.mkfifo(tmp_path / 'pipe.py')
    (tmp_path / 'large.py').write_bytes(b'#' * (sources.MAX_BYTES + 1))
    (tmp_path / 'bad.py').write_bytes(b'x = "\xff"')
    (tmp_path / 'codec.py').write_text('# coding: klingon\n')
    (tmp_path / 'hex.py').write_text('# coding: hex\n')
    (tmp_path / 'slow.py').write_text('# coding: punycode\n')
    (tmp_path / 'list.ipynb').write_text('[]')
    (tmp_path / 'deep.ipynb').write_text('[' * 100000)
    (tmp_path / 'large.ipynb').write_text(cells('#' * 2**19, '#' * 2**19, '#'))
    files = diagnose.scan(sources.find([str(tmp_path)]))
    assert len(files) == 9
    assert [[one.code for one in file.problems] for file in files] == [['E132']] * 9
    (missing,) = sources.find([str(tmp_path / 'gone')]).problems
    assert (missing.code, missing.place.path) == ('E132', str(tmp_path / 'gone'))


@pytest.mark.parametrize('content, wanted', [
    (b'\xef\xbb\xbfx = "\xc3\xa4"\r\ny = 1\r', 'x = "ä"\ny = 1\n'),
    (b'# -*- coding: latin-1 -*-\nx = "\xe4"', '# -*- coding: latin-1 -*-\nx = "ä"'),
    (b'#!/bin/python\n# vim: set fileencoding=cp1252 :\n"\x80"',
     '#!/bin/python\n# vim: set fileencoding=cp1252 :\n"€"'), (b'', '')])
def test_files_are_decoded_as_python_does(tmp_path, content, wanted):
    path = tmp_path / 'a.py'
    path.write_bytes(content)
    assert sources.read(str(path)) == sources.Source(str(path), (wanted,))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='a\n\r\x0b\x0c\x1c\x85\u2028é𝒳 ='))
def test_lines_end_where_python_lets_them_end(text):
    read = sources.decoded(text.encode())
    assert read.count('\n') == len(text.replace('\r\n', '\n').replace('\r', '\n').split('\n')) - 1


def test_cells_of_a_notebook_keep_their_lines_and_lose_what_only_ipython_knows(tmp_path):
    path = tmp_path / 'a.ipynb'
    path.write_text(cells('%matplotlib inline\nimport tensorflow as tf', '%%bash\nls', 'tf.a\ntf.b',
                          ['print "no"\n', 'tf.c'], '!pip install x\nfor i in x:\n  tf.d'))
    (file,) = diagnose.scan(sources.find([str(path)]))
    assert [(use.place.cell, use.place.line, use.written) for use in file.uses] == [
        (1, 2, 'tensorflow'), (3, 1, 'tf.a'), (3, 2, 'tf.b'), (5, 3, 'tf.d')]
    assert [(one.code, one.place.cell, one.place.line) for one in file.problems] == [('E131', 4, 1)]
    assert file.is_program


@pytest.mark.parametrize('line, is_said', [
    ('%timeit tf.x', True), ('%time a = tf.x', True), ('%run job.py', True),
    ('%%python\ntf.x', True), ('!python -c "import tensorflow"', True),
    ('%matplotlib inline', False), ('%%time\na = 1', False), ('!pip install x', False),
    ('%%bash\nls', False)])
def test_python_that_ipython_runs_is_said(tmp_path, line, is_said):
    (tmp_path / 'a.ipynb').write_text(cells('a = 1', line))
    (file,) = diagnose.scan(sources.find([str(tmp_path / 'a.ipynb')]))
    assert [(one.code, one.place.cell) for one in file.problems] == [('W202', 2)] * is_said
