"""The hooks and the logger of the module `tpu_estimator`."""

import logging

import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.estimator.hooks import (
    ExamplesPerSecondHook,
    InstallSignalHandlerHook,
    PeriodicLogger,
)


def test_steps_and_examples_per_second_are_logged_and_written(tmp_path, caplog):
    with tf.Graph().as_default(), caplog.at_level(logging.INFO, 'tensorflow'):
        train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        hook = ExamplesPerSecondHook(8, every_n_steps=2, output_dir=str(tmp_path))
        with tf.train.MonitoredSession(hooks=[hook, InstallSignalHandlerHook()]) as session:
            for _ in range(4):
                session.run(train)
        tf.summary.FileWriterCache.get(str(tmp_path)).flush()
    assert isinstance(hook, tf.train.StepCounterHook)
    file, = tmp_path.iterdir()
    written = [{value.tag: value.simple_value for value in event.summary.value}
               for event in tf.train.summary_iterator(str(file)) if event.HasField('summary')]
    assert written and all(rates['examples/sec'] == pytest.approx(8 * rates['global_step/sec'])
                           for rates in written)
    assert caplog.text.count('examples/sec: ') == len(written)


def test_a_periodic_logger_leaves_out_what_comes_too_soon(caplog):
    with caplog.at_level(logging.INFO, 'tensorflow'):
        rare, always = PeriodicLogger(3600), PeriodicLogger(0)
        for number in range(3):
            rare.log('rare %d', number)
            always.log('always %d', number)
    assert caplog.messages == ['rare 0', 'always 0', 'always 1', 'always 2']
