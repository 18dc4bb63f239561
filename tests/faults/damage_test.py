"""C09 to C14, C28: damaged files are named, never restored, and cost one checkpoint at most."""

import os
import pathlib
import random
import shutil

import pytest
from harness import sweeps

from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import recover, verify
from estimator_tpu_embedding.errors import CorruptCheckpointError

pytestmark = pytest.mark.no_rerun
SUFFIXES = ['.data-00000-of-00002', '.data-00001-of-00002', '.index', '.meta', '.tables.json']


@pytest.fixture
def committed(memory_folder, tiny):
    """A directory with the checkpoints of steps 1 and 2."""
    sweeps.live_in(memory_folder, tiny, [1, 2])
    return memory_folder


@pytest.fixture
def damaged(committed):
    """`damaged(suffix, change)`: the directory after a change of the bytes of a file of step 2.

    A change that returns `None` removes the file. It is another directory each time, so that no
    file is the one that was verified before.
    """
    numbers = iter(range(10_000))

    def damage(suffix, change):
        directory = pathlib.Path(committed, f'copy-{next(numbers)}')
        shutil.copytree(committed, directory, ignore=lambda path, names: [
            name for name in names if name.startswith('copy-')])
        file = directory / f'model.ckpt-2{suffix}'
        content = change(file.read_bytes())
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        return str(directory)

    return damage


def problems_of(directory, tiny):
    """What is said of step 2, which is damaged: step 1 is found, and step 2 refused by name."""
    found = recover(directory)
    assert found.step == 1 and tiny.is_at(found.prefix, 1)
    with pytest.raises(CorruptCheckpointError) as caught:
        verify(f'{directory}/model.ckpt-2')
    assert {problem.code for problem in caught.value.problems} <= {'E611', 'E613', 'E614', 'E618'}
    assert [problem.code for problem in found.skipped] == [
        problem.code for problem in caught.value.problems]
    return str(caught.value)


def flipped(content, place, bit=0):
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1:]


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_c09_c10_a_flipped_bit_is_found_wherever_it_is(damaged, tiny, suffix):
    places = random.Random(suffix)
    for _ in range(50):
        directory = damaged(suffix, lambda content: flipped(
            content, places.randrange(len(content)), places.randrange(8)))
        assert f'model.ckpt-2{suffix}' in problems_of(directory, tiny)


@pytest.mark.parametrize('before, after', [
    (b'"hosts": 2', b'"hosts": 3'), (b'"div"', b'"mod"'), (b'"rows": 7', b'"rows": 6'),
    (b'"Adagrad"', b'"Adagrae"')])
def test_c09_a_manifest_that_says_another_order_of_rows_is_found(damaged, tiny, before, after):
    text = problems_of(damaged('.tables.json', lambda content: content.replace(
        before, after)), tiny)
    assert 'its SHA-256 of itself is another one' in text


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_c10_c11_c12_a_file_that_is_cut_short_or_of_zeros_is_found(damaged, tiny, suffix):
    for change in (lambda content: content[:-10], lambda content: content[:-2],
                   lambda content: b'', lambda content: bytes(len(content))):
        assert f'model.ckpt-2{suffix}' in problems_of(damaged(suffix, change), tiny)


@pytest.mark.parametrize('suffix', SUFFIXES[:-1])
def test_c13_a_file_that_is_missing_is_said_to_be_listed(damaged, tiny, suffix):
    text = problems_of(damaged(suffix, lambda content: None), tiny)
    assert f'model.ckpt-2{suffix}' in text and 'listed in manifest, not found' in text


@pytest.mark.parametrize('older', [SUFFIXES, ['.data-00001-of-00002'], ['.index']])
def test_c09_files_of_an_older_step_are_found(damaged, tiny, older):
    directory = damaged('.meta', bytes)
    for suffix in older:
        shutil.copy(f'{directory}/model.ckpt-1{suffix}', f'{directory}/model.ckpt-2{suffix}')
    text = problems_of(directory, tiny)
    assert older == SUFFIXES or f'model.ckpt-2{older[0]}' in text


def test_c14_where_all_are_damaged_training_does_not_begin_at_step_0(damaged):
    directory = damaged('.index', lambda content: b'')
    os.truncate(f'{directory}/model.ckpt-1.data-00000-of-00002', 3)
    with pytest.raises(CorruptCheckpointError, match='E612 model_dir') as caught:
        recover(directory)
    assert {problem.code for problem in caught.value.problems} == {'E612', 'E618'}


def test_c09_by_size_alone_a_flip_is_not_found_and_a_cut_is(damaged):
    quick = CheckpointOptions(verify='size')
    assert recover(damaged(SUFFIXES[0], lambda content: flipped(content, 3)), quick).step == 2
    assert recover(damaged(SUFFIXES[0], lambda content: content[:-1]), quick).step == 1


@pytest.mark.parametrize('before, after, told', [
    (b'"format": 3', b'"format": 4', ['format 4', 'reads format 3', 'written by test']),
    (b'{\n', b'{\n "rows_are": "shuffled",\n', ['rows_are'])])
def test_c28_a_manifest_of_a_newer_version_or_with_unknown_fields_is_refused(
        damaged, tiny, before, after, told):
    text = problems_of(damaged('.tables.json', lambda content: content.replace(
        before, after, 1)), tiny)
    assert all(one in text for one in told)
