"""Which graphs the sessions of a job rewrite by Grappler."""

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

from estimator_tpu_embedding.runner import sessions
from estimator_tpu_embedding.runner.sessions import rewriting_less_if_large


@pytest.fixture
def few_nodes(monkeypatch):
    """3 nodes are a graph of middle size, and 4 a large one."""
    monkeypatch.setattr(sessions, 'MOST_NODES_REWRITTEN_WHOLLY', 2)
    monkeypatch.setattr(sessions, 'MOST_NODES_REWRITTEN', 3)


def rewrites_of(config, nodes):
    """The options with which a session rewrites a graph of so many nodes."""
    with tf.Graph().as_default() as graph:
        for _ in range(nodes):
            tf.no_op()
        return rewriting_less_if_large(config, graph).graph_options.rewrite_options


@pytest.mark.parametrize('nodes, is_off', [(3, False), (4, True)])
def test_a_graph_with_more_nodes_than_the_limit_is_left_as_it_is(nodes, is_off, few_nodes):
    config = tf.ConfigProto(inter_op_parallelism_threads=2)
    assert rewrites_of(config, nodes).disable_meta_optimizer is is_off
    assert config == tf.ConfigProto(inter_op_parallelism_threads=2)


def test_a_job_trains_the_same_tables_whatever_grappler_does_and_says_that_it_is_off(
        tmp_path, monkeypatch, caplog):
    columns = [jobs.embedding('f')]
    batch = {'f': np.arange(8), 'label': np.ones(8, np.float32)}
    tables, configs = [], []

    class Config(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            options = session._config.graph_options.rewrite_options
            configs.append((options.disable_meta_optimizer, options.function_optimization))

    for name, wholly, limit in (('all', 4_000, 20_000), ('less', 100, 20_000), ('no', 10, 100)):
        monkeypatch.setattr(sessions, 'MOST_NODES_REWRITTEN_WHOLLY', wholly)
        monkeypatch.setattr(sessions, 'MOST_NODES_REWRITTEN', limit)
        caplog.clear()
        with caplog.at_level(logging.INFO, 'tensorflow'):
            jobs.estimator(jobs.linear_model_fn(columns), columns,
                           jobs.run_config(tmp_path / name, cores=2)).train(
                jobs.input_fn_of([batch, batch]), steps=2, hooks=[Config()])
        assert ('Grappler is off' in caplog.text) is (limit == 100)
        tables.append(jobs.stored(tmp_path / name, 'dense_features/f_embedding/embedding_weights'))
    assert configs == [(False, 0), (False, 2), (True, 0)]
    np.testing.assert_array_equal(tables[0], tables[1])
    np.testing.assert_array_equal(tables[0], tables[2])
