"""The log of a model on several cores reads as that of one core, and lacks nothing else."""

import logging

import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.runner.towers import Towers


def logged(caplog, level=logging.INFO):
    """What a model of three cores logs: the same on all, and a line of its own on each."""
    def model(core):
        tf.logging.info('layer %s', 'a')
        logging.getLogger('of.user').warning('layer a')
        tf.logging.info('core %d', core)

    with caplog.at_level(level, 'tensorflow'), tf.Graph().as_default():
        Towers(3).build(model)
        tf.logging.info('layer a')
    return caplog.messages


def test_what_every_core_logs_is_told_once_and_what_one_logs_stays(caplog):
    assert logged(caplog) == ['layer a', 'layer a', 'core 0', 'core 1', 'core 2', 'layer a']


def test_the_debug_level_keeps_all(caplog):
    assert logged(caplog, logging.DEBUG).count('layer a') == 7
