"""Which graphs the sessions of a job rewrite by Grappler."""

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import json_format
from harness import jobs

from estimator_tpu_embedding.estimator.settings import without_arithmetic_optimizer
from estimator_tpu_embedding.runner import session_creators
from estimator_tpu_embedding.runner.session_creators import without_grappler_if_large


def rewrites_of(config, nodes):
    """The options with which a session rewrites a graph of so many nodes."""
    with tf.Graph().as_default() as graph:
        for _ in range(nodes):
            tf.no_op()
        return without_grappler_if_large(config, graph).graph_options.rewrite_options


@pytest.mark.parametrize('nodes, is_off', [(3, False), (4, True)])
def test_a_graph_with_more_nodes_than_the_limit_is_left_as_it_is(nodes, is_off, monkeypatch):
    monkeypatch.setattr(session_creators, 'MOST_NODES_REWRITTEN', 3)
    config = tf.ConfigProto(inter_op_parallelism_threads=2)
    assert rewrites_of(config, nodes).disable_meta_optimizer is is_off
    assert config == tf.ConfigProto(inter_op_parallelism_threads=2)


@pytest.mark.parametrize('options', [
    {'dependency_optimization': 'ON'}, {'remapping': 'AGGRESSIVE'}, {'remapping': 'OFF'},
    {'memory_optimization': 'HEURISTICS'}, {'min_graph_nodes': -1}, {'optimizers': ['pruning']}])
def test_a_config_with_options_of_its_own_stays_as_it_is(options, monkeypatch):
    monkeypatch.setattr(session_creators, 'MOST_NODES_REWRITTEN', 3)
    config = tf.ConfigProto()
    json_format.ParseDict(options, config.graph_options.rewrite_options)
    assert not rewrites_of(without_arithmetic_optimizer(config), 4).disable_meta_optimizer
    assert rewrites_of(without_arithmetic_optimizer(tf.ConfigProto()), 4).disable_meta_optimizer


def test_options_of_the_process_keep_it(monkeypatch):
    monkeypatch.setattr(session_creators, 'MOST_NODES_REWRITTEN', 3)
    tf.config.optimizer.set_experimental_options({'auto_mixed_precision': True})
    try:
        assert not rewrites_of(tf.ConfigProto(), 4).disable_meta_optimizer
    finally:
        tf.config.optimizer.set_experimental_options({'auto_mixed_precision': False})


def test_a_job_trains_the_same_tables_with_and_without_and_says_that_it_is_off(
        tmp_path, monkeypatch, caplog):
    columns = [jobs.embedding('f')]
    batch = {'f': np.arange(8), 'label': np.ones(8, np.float32)}
    tables, configs = [], []

    class Config(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            configs.append(session._config.graph_options.rewrite_options.disable_meta_optimizer)

    for name, limit in (('with', 20_000), ('without', 100)):
        monkeypatch.setattr(session_creators, 'MOST_NODES_REWRITTEN', limit)
        caplog.clear()
        with caplog.at_level(logging.INFO, 'tensorflow'):
            jobs.estimator(jobs.linear_model_fn(columns), columns,
                           jobs.run_config(tmp_path / name, cores=2)).train(
                jobs.input_fn_of([batch, batch]), steps=2, hooks=[Config()])
        assert ('Grappler is off' in caplog.text) is (limit == 100)
        tables.append(jobs.stored(tmp_path / name, 'dense_features/f_embedding/embedding_weights'))
    assert configs == [False, True]
    np.testing.assert_array_equal(*tables)
