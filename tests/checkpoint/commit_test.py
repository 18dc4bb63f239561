import pytest
import tensorflow.compat.v1 as tf
from harness.checkpoints import commit, describe, writer
from harness.processes import run_python

from estimator_tpu_embedding.checkpoint.commit import Retention, Saved
from estimator_tpu_embedding.checkpoint.recover import candidates, recover
from estimator_tpu_embedding.checkpoint.saver import CommittingSaver
from estimator_tpu_embedding.checkpoint.saver_builder import default_saver
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.errors import CorruptCheckpointError

pytestmark = pytest.mark.no_rerun


@pytest.mark.parametrize('kept', [1, 2])
def test_what_has_just_been_committed_outlives_whatever_has_a_higher_step(tmp_path, kept):
    with Storage(str(tmp_path)) as storage:
        for step in (3, 9):
            commit(storage, step, writer(), describe(step))
        left = commit(storage, 5, writer(), describe(5), saved=[Saved(3), Saved(9)],
                      retention=Retention(kept))
    assert [one.step for one in left] == [3, 5][-kept:]
    assert candidates(str(tmp_path)) == [f'model.ckpt-{step}' for step in (3, 5, 9)[2 - kept:]]


@pytest.mark.parametrize('files', [[], ['model.ckpt-9', 'model.ckpt-9.meta']])
def test_a_pointer_to_nothing_or_to_an_older_format_is_no_reason_to_begin_anew(tmp_path, files):
    (tmp_path / 'checkpoint').write_text('model_checkpoint_path: "model.ckpt-9"\n')
    for name in files:
        (tmp_path / name).write_bytes(b'of another format')
    with pytest.raises(CorruptCheckpointError, match='E612 .*none of model.ckpt-9'):
        recover(str(tmp_path))


def test_a_step_of_another_training_is_replaced_and_one_of_its_own_is_not(tmp_path):
    here, there = tmp_path / 'here', tmp_path / 'there'
    here.mkdir()
    there.mkdir()
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.get_variable('v', [], initializer=tf.zeros_initializer())
        saver = default_saver(5, 0.)
        saver.build()
        session.run(value.initializer)
        shared = set()
        # A training may save in two directories, and has saved step 7 in one of them only.
        for number, lineage, folder in ((1, set(), here), (1, set(), there), (2, shared, here),
                                        (3, shared, here), (4, shared, there)):
            value.load(number, session)
            CommittingSaver(saver, {}, b'', lineage=lineage).save(
                session, str(folder / 'model.ckpt'), 7)
    assert tf.train.load_variable(str(here), 'v') == 2
    assert tf.train.load_variable(str(there), 'v') == 4


def test_a_child_of_a_fork_does_not_keep_the_lock_of_a_job_that_has_ended(tmp_path):
    done = run_python('-c', f'''
import os, signal
from estimator_tpu_embedding.checkpoint.model_dir import claimed
trainer = os.fork()
if not trainer:
    with claimed({str(tmp_path)!r}):
        reader, writer = os.pipe()
        if not os.fork():
            os.write(writer, b'x')
            signal.pause()
        os.read(reader, 1)
        os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(trainer, 0)
with claimed({str(tmp_path)!r}):
    print('taken over', flush=True)
os.killpg(0, signal.SIGTERM)
''')
    assert done.stdout == 'taken over\n'


def after_all(retention, saved):
    """The steps that are left, and those kept forever, if each is committed in turn."""
    managed, deleted = [], []
    for one in saved:
        managed, released = retention.split([*managed, one])
        deleted += [each.step for each in released]
    return [one.step for one in managed], [
        one.step for one in saved if one.step not in deleted and one not in managed]


@pytest.mark.parametrize('retention, left, forever', [
    ({}, [1, 2, 3, 4, 5, 6], []), ({'newest': 1}, [6], []), ({'newest': 2}, [5, 6], []),
    ({'newest': 2, 'every_steps': 2}, [5, 6], [2, 4]),
    ({'newest': 9, 'every_steps': 2}, [1, 2, 3, 4, 5, 6], []),
    # One is saved each half an hour: 2 and 4 are the first after 0.9 and 1.8 hours.
    ({'newest': 1, 'every_hours': .9}, [6], [2, 4]),
    ({'newest': 1, 'every_hours': .9, 'after': 1e6}, [6], []),
    ({'newest': 1, 'every_hours': .9, 'every_steps': 3}, [6], [2, 3, 4])])
def test_what_is_left_of_six(retention, left, forever):
    saved = [Saved(step, at=step * 1800.) for step in range(1, 7)]
    assert after_all(Retention(**retention), saved) == (left, forever)
