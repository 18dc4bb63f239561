import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.checkpoints import commit, describe, flip, writer

from estimator_tpu_embedding.checkpoint import pointer, recover
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.errors import CorruptCheckpointError

pytestmark = pytest.mark.no_rerun


def committed(path, *steps):
    saved = []
    with Storage(str(path)) as storage:
        for step in steps:
            saved = commit(storage, step, writer(float(step)), describe(step), saved=saved)
    return path


def legacy(path, name):
    writer()(str(path / name))
    return path


def test_an_empty_or_absent_directory_has_no_newest_checkpoint(tmp_path):
    assert recover.recover(str(tmp_path)) is None
    assert recover.recover(str(tmp_path / 'absent')) is None


def test_one_without_a_manifest_is_taken_if_its_checksums_hold(tmp_path):
    found = recover.recover(str(legacy(committed(tmp_path, 3), 'model.ckpt-4')))
    assert found.step == 4 and found.manifest is None
    flip(tmp_path / 'model.ckpt-4.data-00000-of-00001', 0)
    found = recover.recover(str(tmp_path))
    assert found.step == 3 and [problem.code for problem in found.skipped] == ['E613']


@pytest.mark.parametrize('name', ['model.ckpt-best', 'model.ckpt-best-3', 'model.ckpt--1'])
def test_a_name_that_begins_as_those_of_a_job_counts_only_where_nothing_else_is(tmp_path, name):
    legacy(tmp_path, name)
    (tmp_path / 'checkpoint').write_text(f'model_checkpoint_path: "{name}"\n')
    assert recover.recover(str(tmp_path)).prefix == str(tmp_path / name)
    legacy(tmp_path, 'model.ckpt-4')
    assert recover.recover(str(tmp_path)).step == 4


def test_data_without_an_index_is_passed_over_beside_a_checkpoint_and_refused_alone(tmp_path):
    writer(without=['.index'])(str(tmp_path / 'model.ckpt-5'))
    with pytest.raises(CorruptCheckpointError, match='E612 .*none of model.ckpt-5'):
        recover.recover(str(tmp_path))
    committed(tmp_path, 4)
    assert recover.recover(str(tmp_path)).step == 4


def test_a_manifest_of_another_step_is_not_believed(tmp_path):
    committed(tmp_path, 4)
    with Storage(str(tmp_path)) as storage:
        commit(storage, 5, writer(), describe(6))
    with pytest.raises(CorruptCheckpointError, match='E614 .*step 6'):
        recover.verify(str(tmp_path / 'model.ckpt-5'))
    assert recover.recover(str(tmp_path)).step == 4


def test_files_are_read_once_by_a_job_unless_they_change(tmp_path, monkeypatch):
    committed(tmp_path, 4)
    read, known = [], recover.Known()
    check = recover.integrity.check_files
    monkeypatch.setattr(recover.integrity, 'check_files',
                        lambda *arguments: read.append(1) or check(*arguments))
    for _ in range(2):
        recover.recover(str(tmp_path), known=known)
    assert len(read) == 1
    data = tmp_path / 'model.ckpt-4.data-00000-of-00001'
    flip(data, 0)
    with pytest.raises(CorruptCheckpointError, match='E618'):
        recover.recover(str(tmp_path), known=known)
    flip(data, 0)
    assert recover.recover(str(tmp_path), known=known).step == 4


@pytest.mark.parametrize('use_tpu', [True, False])
def test_an_estimator_reads_what_it_restores_once_and_what_it_has_saved_never(
        tmp_path, monkeypatch, use_tpu):
    read, check = [], recover.integrity.check_files
    monkeypatch.setattr(recover.integrity, 'check_files', lambda prefix, *arguments: read.append(
        prefix.rpartition('-')[2]) or check(prefix, *arguments))
    columns = [jobs.embedding('f')]

    def batches(params):
        return tf.data.Dataset.from_tensors(({'f': np.int64(1)}, np.float32(1))).repeat(16).batch(
            params['batch_size'], drop_remainder=True)

    for steps in (1, 2):
        made = jobs.estimator(
            jobs.linear_model_fn(columns, None if use_tpu else (
                lambda: tf.train.GradientDescentOptimizer(.1))), columns,
            jobs.run_config(tmp_path), batch_size=2, use_tpu=use_tpu)
        made.train(batches, max_steps=steps)
        made.evaluate(batches, steps=1)
    assert read == ['1']


@pytest.mark.parametrize('text, newest, names', [
    ('model_checkpoint_path: "a-1"\nall_model_checkpoint_paths: "a-0"\n'
     'all_model_checkpoint_paths: "a-1"\nlast_preserved_timestamp: 1.5\n', 'a-1', ('a-0', 'a-1')),
    (r'model_checkpoint_path: "\303\244\"\\x-1"', 'ä"\\x-1', ())])
def test_the_pointer_of_tensorflow_is_read(tmp_path, text, newest, names):
    (tmp_path / 'checkpoint').write_text(text)
    assert pointer.read(str(tmp_path)) == (newest, names)


def test_tensorflow_reads_the_pointer_that_is_written(tmp_path):
    committed(tmp_path, 3, 20)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == str(tmp_path / 'model.ckpt-20')
    assert list(state.all_model_checkpoint_paths) == [
        str(tmp_path / f'model.ckpt-{step}') for step in (3, 20)]
