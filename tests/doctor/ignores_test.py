import pytest

from estimator_tpu_embedding.cli.selection import prefixes
from estimator_tpu_embedding.doctor.facts import Finding, Place, ScannedFile
from estimator_tpu_embedding.doctor.ignores import (
    Settings,
    comments,
    is_ignored,
    selected,
    settings_of,
)
from estimator_tpu_embedding.errors import ConfigError

ALL = frozenset()


def codes(*names):
    return frozenset(names)


@pytest.mark.parametrize('text, found', [
    ('x = 1  # etpe: ignore[E101]', {1: codes('E101')}),
    ('x = 1  # etpe: ignore[e101, W211]', {1: codes('E101', 'W211')}),
    ('x = 1  # etpe: ignore', {1: ALL}),
    ('x = 1  # ETPE:ignore  (no successor yet)', {1: ALL}),
    ('x = 1  # noqa  # etpe: ignore[W2]', {1: codes('W2')}),
    ('\n\nx = 1  # etpe: ignore', {3: ALL}),
    ('x = (1,\n  2)  # etpe: ignore[E1]', {1: codes('E1'), 2: codes('E1')}),
    ('x = (1,  # etpe: ignore[E1]\n  2)', {1: codes('E1')}),
    ('x = (1,  # etpe: ignore[E1]\n  2)  # etpe: ignore[E2]',
     {1: codes('E1', 'E2'), 2: codes('E2')}),
    ('x = (1,  # etpe: ignore[E1]\n  2)  # etpe: ignore', {1: ALL, 2: ALL}),
    ('def f(a,\n      b):  # etpe: ignore\n  return a', {1: ALL, 2: ALL}),
    ('x = 1\n# etpe: ignore\ny = 2', {2: ALL}),
    ('x = """a\n# etpe: ignore\n"""', {}),
    ("x = '# etpe: ignore'", {}),
    ('x = 1  # etpe: ignored', {}),
    ('x = 1  # etpe: ignore[E101', {}),
    ('# etpe: fine', {})])
def test_a_comment_counts_for_its_line_or_for_the_statement_that_it_ends(text, found):
    assert comments(text) == found
    assert comments(text.replace('\n', '\r\n')) == found


def test_lines_of_a_file_that_is_no_python_count_one_by_one():
    assert comments('print "a"  # etpe: ignore[E131]\nx = (\n') == {1: codes('E131')}
    assert comments('if x:\n\t\ty\n        z  # etpe: ignore\n  w') == {3: ALL}


def finding(code='E101', line=1, end_line=1, cell=0):
    return Finding(code, Place('a.py', line, 1, end_line, 5, cell), 'tf.x', 'tf.x', 'is gone')


@pytest.mark.parametrize('ignores, what, is_ignored_there', [
    ({(0, 1): codes('E101')}, finding(), True), ({(0, 1): codes('E1')}, finding(), True),
    ({(0, 1): codes('E102', 'W2')}, finding(), False), ({(0, 1): ALL}, finding(), True),
    ({(0, 2): ALL}, finding(), False), ({(0, 3): ALL}, finding(line=2, end_line=3), True),
    ({(2, 1): ALL}, finding(cell=2), True), ({(1, 1): ALL}, finding(cell=2), False)])
def test_a_finding_is_ignored_by_the_first_or_the_last_of_its_lines(
        ignores, what, is_ignored_there):
    assert is_ignored(what, ScannedFile('a.py', 'a', ignores=ignores)) == is_ignored_there
    assert not is_ignored(what._replace(place=None), None)


def test_the_longest_list_of_codes_selects_and_ignores_by_beginnings():
    assert selected('E101', ('',), ()) and selected('E101', ('W', 'E1'), ('E2',))
    assert not selected('E101', ('W',), ()) and not selected('E101', ('E',), ('E10',))


def written(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'setup.cfg').write_text(text)
    return folder


def test_the_nearest_settings_above_a_path_count(tmp_path):
    written(tmp_path, '[etpe]\nignore = E1\n')
    inner = written(tmp_path / 'a', '[flake8]\nmax-line-length = 100\n') / 'b'
    inner.mkdir()
    (inner / 'job.py').touch()
    assert settings_of(str(inner / 'job.py'), prefixes).ignore == ('E1',)
    own = written(inner, '[etpe]\nignore = e101 W2,i\nselect = E\nexclude = gen/* x.py\n')
    assert settings_of(str(inner / 'job.py'), prefixes) == Settings(
        ('E',), ('E101', 'W2', 'I'), ('gen/*', 'x.py'), str(own))


def test_without_settings_all_codes_count_and_nothing_is_excluded(tmp_path):
    # There is none above the temporary folder either, as it belongs to no project.
    assert settings_of(str(tmp_path), prefixes) == Settings()
    assert not Settings().excludes('x.py')


@pytest.mark.parametrize('text, said', [
    ('ignore = E101 K9', "no code begins with 'K9'; did you mean"),
    ('ignroe = E1', 'got ignroe.  Did you mean "ignore"?'),
    ('select =', 'select: nothing is written there'),
    ('ignore = E1\nignore = E2', "option 'ignore' in section 'etpe' already exists"),
    ('\x1b[31m = 1', 'got \\x1b[31m')])
def test_a_bad_setting_names_the_file_the_key_and_the_value(tmp_path, text, said):
    written(tmp_path, f'[etpe]\n{text}\n')
    with pytest.raises(ConfigError) as caught:
        settings_of(str(tmp_path), prefixes)
    assert said in str(caught.value) and caught.value.code == 'E135'
    assert str(tmp_path / 'setup.cfg') in str(caught.value)


def test_all_bad_settings_are_named_at_once(tmp_path):
    written(tmp_path, '[etpe]\na = 1\nselect = K\n')
    with pytest.raises(ConfigError) as caught:
        settings_of(str(tmp_path), prefixes)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize('content', [b'[metadata\nname = x\n', b'\xff\xfe', b'key = 1\n'])
def test_a_broken_file_without_settings_is_none_of_ours(tmp_path, content):
    (tmp_path / 'setup.cfg').write_bytes(content)
    assert settings_of(str(tmp_path), prefixes).folder != str(tmp_path)


def test_a_broken_file_with_settings_is_an_error(tmp_path):
    (tmp_path / 'setup.cfg').write_bytes(b'[etpe]\nignore = \xff\n')
    with pytest.raises(ConfigError, match='E135'):
        settings_of(str(tmp_path), prefixes)


@pytest.mark.parametrize('path, is_excluded', [
    ('gen/a.py', True), ('gen/deep/a.py', True), ('src/gen/a.py', False), ('gen.py', False),
    ('src/vendor/x/a.py', True), ('src/a_pb2.py', True), ('./gen/a.py', True), ('x/y.py', False)])
def test_patterns_exclude_files_and_whole_folders(tmp_path, monkeypatch, path, is_excluded):
    settings = Settings(exclude=('gen/', 'src/vendor', '*_pb2.py'), folder=str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert settings.excludes(path) == is_excluded
    assert settings.excludes(str(tmp_path / path)) == is_excluded
