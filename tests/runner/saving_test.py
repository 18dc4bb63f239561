"""What whole jobs do with a model_dir: where they begin, what they write, whose files they keep."""

import os

import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from harness import jobs
from harness.checkpoints import steps_on_disk

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.runner.checkpoint_hooks import Background, SaverHook


def input_fn(params):
    return tf.data.Dataset.from_tensors(({'f': [1, 2, 3, 1]}, tf.ones([4]))).repeat()


def make(directory, use_tpu=True, **kwargs):
    columns = [jobs.embedding('f', initializer=tf.ones_initializer())]
    return jobs.estimator(
        # Only the optimizer sums over cores, which a plain Estimator has none of.
        jobs.linear_model_fn(columns, None if use_tpu else (
            lambda: tf.train.GradientDescentOptimizer(.1))), columns,
        jobs.run_config(directory, **{'save_checkpoints_steps': 2, **kwargs}),
        batch_size=4, use_tpu=use_tpu)


def train(estimator, **kwargs):
    return estimator.train(input_fn, **kwargs)


def damage(directory, step):
    for path in directory.glob(f'model.ckpt-{step}.data*'):
        os.truncate(path, 1)


def test_a_directory_is_the_same_with_a_slash_at_its_end(tmp_path):
    train(make(tmp_path, keep_checkpoint_max=1), steps=4)
    train(make(tmp_path), steps=2)
    damage(tmp_path, 6)
    train(make(f'{tmp_path}/', keep_checkpoint_max=1), steps=1)
    assert recover(str(tmp_path)).step == 5


def test_without_a_tpu_saves_are_commits_too(tmp_path):
    train(make(tmp_path, use_tpu=False), steps=3)
    assert read_manifest(recover(str(tmp_path)).prefix).step == 3
    inode = os.stat(tmp_path / 'model.ckpt-3.index').st_ino
    train(make(tmp_path, use_tpu=False), steps=3)
    assert os.stat(tmp_path / 'model.ckpt-3.index').st_ino == inode
    assert recover(str(tmp_path)).step == 6 and steps_on_disk(tmp_path)[:3] == [0, 2, 3]


class Told(tf.train.CheckpointSaverListener):
    def __init__(self, directory):
        self._directory, self.found = directory, []

    def after_save(self, session, global_step_value):
        self.found.append((int(global_step_value), recover(str(self._directory)).step))


@pytest.mark.parametrize('is_told', [False, True])
def test_saves_go_on_beside_the_training_unless_somebody_is_told_of_them(
        tmp_path, monkeypatch, is_told):
    submitted = []

    class Counting(Background):
        def submit(self, work):
            submitted.append(work)
            super().submit(work)

    monkeypatch.setattr('estimator_tpu_embedding.runner.training.Background', Counting)
    told = Told(tmp_path)
    train(make(tmp_path, checkpoint=ete.CheckpointOptions(asynchronous=True)), steps=6,
          saving_listeners=[told] if is_told else None)
    assert len(submitted) == (0 if is_told else 4)
    assert told.found == ([(step, step) for step in (0, 2, 4, 6)] if is_told else [])
    assert recover(str(tmp_path)).step == 6


def test_a_user_is_told_which_checkpoint_is_restored_instead_of_another(tmp_path, caplog):
    caplog.set_level('INFO', 'tensorflow')
    train(make(tmp_path), steps=4)
    (tmp_path / 'checkpoint').write_text('model_checkpoint_path: "model.ckpt-2"\n')
    train(make(tmp_path), steps=2)
    damage(tmp_path, 6)
    train(make(tmp_path), steps=2)
    said = caplog.text
    assert 'train: the file "checkpoint" names model.ckpt-2, but model.ckpt-4 is restored' in said
    assert 'train: E618 checkpoint model.ckpt-6' in said and 'model.ckpt-4 is restored' in said


def begin(*hooks):
    """Opens a session of a small graph with hooks, each given as `(class, directory, options)`."""
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step()
        _tf.global_step_read(graph)
        tf.get_variable('w', [2])
        saver = tf.train.Saver()
        with tf.train.MonitoredSession(hooks=[
                hook(str(directory), save_steps=5, saver=saver, **options)
                for hook, directory, options in hooks]):
            pass
    tf.summary.FileWriterCache.clear()


def written(directory):
    """The files' names, `graph.pbtxt`, and all graphs and checkpoints in the events."""
    names = {path.name for path in directory.iterdir() if 'events' not in path.name}
    file = directory / 'graph.pbtxt'
    text = text_format.Parse(file.read_text(), tf.GraphDef()) if file.exists() else None
    [events] = directory.glob('events*')
    return names, text, [(tf.GraphDef.FromString(event.graph_def),
                          tf.MetaGraphDef.FromString(event.meta_graph_def),
                          event.session_log.checkpoint_path.replace(str(directory), ''))
                         for event in tf.train.summary_iterator(str(events))]


@pytest.mark.parametrize('options', [{}, {'save_graph_def': False}])
def test_the_files_are_those_of_tensorflows_hook(options, tmp_path):
    stock, own = tmp_path / 'stock', tmp_path / 'own'
    for directory in (stock, own):
        directory.mkdir()
    begin((tf.train.CheckpointSaverHook, stock, options), (SaverHook, own, options))
    assert written(own) == written(stock)
    assert ('graph.pbtxt' in written(own)[0]) is (not options)
