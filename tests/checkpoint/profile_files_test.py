"""The directory of profiles: names, what is in the way, and files that are whole or not there."""

import json
import os

import pytest
from harness.profiles import profile_of, subject

from estimator_tpu_embedding.checkpoint import profile_files
from estimator_tpu_embedding.errors import UnreadableConfigError

ABOUT = subject()
OLD, NEW = profile_of(ABOUT, [[1]]), profile_of(ABOUT, [[1], [2, 2]])


def test_every_table_and_every_kind_of_run_has_a_file_of_its_own():
    others = [
        {'table': 'T'}, {'table': 'a/b'}, {'table': 'a_b'}, {'table': '.t'}, {'table': 'ü' * 1000},
        {'table': 'ü' * 999}, {'vocabulary_size': 11}, {'dimension': 3}, {'batch_size': 8},
        {'strategy': 'mod'}, {'features': (('g', 0),)}, {'features': (('f', 1),)},
        {'hosts': 1, 'cores_per_host': 2}]
    names = [profile_files.file_name(ABOUT._replace(**other))
             for other in [{}, *others]]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.isascii() and len(name) < 150 and os.path.basename(name) == name
        assert name.endswith('.profile') and not name.startswith('.')
    # Files of earlier versions are found again.
    assert names[0] == 't-28f90bf0b81f0567-5ca0274bd63e5be3.profile'


def test_what_was_written_is_read_again(tmp_path):
    assert profile_files.read_previous(str(tmp_path), ABOUT) == (None, None)
    assert profile_files.write(str(tmp_path), OLD) is None
    assert profile_files.write(str(tmp_path), NEW) is None
    assert profile_files.read_previous(str(tmp_path), ABOUT) == (NEW, None)
    assert list(profile_files.read_all(str(tmp_path))) == [NEW]
    assert os.listdir(tmp_path) == [profile_files.file_name(ABOUT)]


def in_the_way(path, kind):
    """Puts something that is no profile of ABOUT at `path`."""
    if kind == 'another':
        profile_files.write(str(path.parent), profile_of(subject(11), [[1]]))
        os.rename(path.parent / profile_files.file_name(subject(11)), path)
    elif kind == 'link':
        os.symlink('/dev/zero', path)
    elif kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'directory':
        path.mkdir()
    else:
        path.write_bytes(b'precious')


@pytest.mark.parametrize('kind', ['damaged', 'another', 'link', 'pipe', 'directory'])
def test_what_is_no_profile_is_kept_under_another_name_and_said(tmp_path, kind):
    path = tmp_path / profile_files.file_name(ABOUT)
    for number in (1, 2):
        in_the_way(path, kind)
        profile, problem = profile_files.read_previous(str(tmp_path), ABOUT)
        assert profile is None and problem.code == 'W616'
        assert f'{path.name}.unreadable-{number}' in str(problem)
        assert not os.path.lexists(path)
    assert len(os.listdir(tmp_path)) == 2
    assert list(profile_files.read_all(str(tmp_path))) == []


def test_a_profile_that_cannot_be_written_is_a_warning_and_the_old_one_stays(
        tmp_path, monkeypatch):
    profile_files.write(str(tmp_path), OLD)

    def full_disk(descriptor):
        raise OSError(28, 'No space left on device')

    with monkeypatch.context() as patched:
        patched.setattr(os, 'fsync', full_disk)
        problem = profile_files.write(str(tmp_path), NEW)
    assert problem.code == 'W617' and 'No space left on device' in str(problem)
    assert list(profile_files.read_all(str(tmp_path))) == [OLD]


def test_a_link_in_the_place_of_the_staged_file_is_not_followed(tmp_path):
    victim = tmp_path / 'victim'
    victim.write_bytes(b'precious')
    staged = f'{profile_files.file_name(ABOUT)}.{os.getpid()}.tmp'
    (tmp_path / staged).symlink_to(victim)
    assert profile_files.write(str(tmp_path), NEW).code == 'W617'
    assert victim.read_bytes() == b'precious' and sorted(os.listdir(tmp_path)) == [
        staged, 'victim']


def test_damaged_files_and_too_many_are_refused(tmp_path, monkeypatch):
    profile_files.write(str(tmp_path), OLD)
    (tmp_path / 'notes.txt').write_text('passed over')
    assert len(list(profile_files.read_all(str(tmp_path)))) == 1
    for limit in ('MAX_FILES', 'MAX_BYTES'):
        with monkeypatch.context() as patched:
            patched.setattr(profile_files, limit, 0)
            with pytest.raises(UnreadableConfigError, match='E493 .*must be at most'):
                list(profile_files.read_all(str(tmp_path)))
    os.mkfifo(tmp_path / 'x.profile')
    with pytest.raises(UnreadableConfigError, match=r'E493 .*x\.profile: .*a pipe'):
        list(profile_files.read_all(str(tmp_path)))
    for path in (tmp_path / 'none', tmp_path / 'notes.txt'):
        with pytest.raises(UnreadableConfigError, match='E493'):
            list(profile_files.read_all(str(path)))


def test_a_profile_has_a_bounded_size(tmp_path):
    ids = [number * 400_000 for number in range(5_000)]
    big = profile_of(subject(2**31 - 1, hosts=64), [ids, ids])
    assert profile_files.write(str(tmp_path), big) is None
    assert list(profile_files.read_all(str(tmp_path))) == [big]
    path, = tmp_path.iterdir()
    assert path.stat().st_size < profile_files.MAX_BYTES_OF_ONE // 10


@pytest.fixture
def content(tmp_path):
    profile_files.write(str(tmp_path), NEW)
    return (tmp_path / profile_files.file_name(ABOUT)).read_bytes()


@pytest.mark.parametrize('change, said', [
    ({'format': 2}, 'reads format 3'), ({'steps': -1}, 'out of range'),
    ({'steps': 1.5}, 'out of range'), ({'sampled_steps': 'x'}, 'not the profile'),
    ({'features': 5}, 'not the profile'), ({'more': 5}, 'not the profile'),
    ({'subject': {}}, 'not the profile'),
    ({'ranges': [1] * 2**19}, 'values'), ({'loads': {'div': [1]}}, 'contradict')])
def test_what_is_no_profile_is_refused_with_a_reason(content, change, said):
    with pytest.raises(ValueError) as caught:
        profile_files.decoded(bytearray(json.dumps({**json.loads(content), **change}).encode()))
    assert said in str(caught.value) and len(str(caught.value)) < 400
