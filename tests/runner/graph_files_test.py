"""The graph that a training writes before its first step: as by TensorFlow's hook, made once."""

import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.runner.training_hooks import SaverHook


def begin(*hooks):
    """Opens a session of a small graph with hooks, each given as `(class, directory, options)`.

    Returns how often the message of the graph was made.
    """
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step()
        _tf.global_step_read(graph)
        tf.get_variable('w', [2])
        made, make = [], graph._as_graph_def
        graph._as_graph_def = lambda *args, **kwargs: made.append(1) or make(*args, **kwargs)
        saver = tf.train.Saver()
        with tf.train.MonitoredSession(hooks=[
                hook(str(directory), save_steps=5, saver=saver, **options)
                for hook, directory, options in hooks]):
            pass
    tf.summary.FileWriterCache.clear()
    return len(made)


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
