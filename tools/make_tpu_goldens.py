#!/usr/bin/env python3
"""Writes `tests/golden/tpu_graphs.json` and `tpu_exports.json`: TPU graphs of TensorFlow 2.15.

Run it in the virtual environment that `make_goldens.py` describes. The original TPUEstimator and
TPUEmbedding build the graphs; a system of the size that a job asks for is made up, and the first
session of a graph, which would need it, is not opened.
"""

import contextlib
import json
import pathlib
import sys
import tempfile
import types
from unittest import mock

import tensorflow.compat.v1 as tf
from tensorflow.python.client import session as session_lib
from tensorflow.python.tpu import tpu_system_metadata
from tensorflow_estimator.python.estimator.tpu import tpu_config, tpu_estimator

TESTS = pathlib.Path(__file__).resolve().parent.parent / 'tests'
sys.path.insert(0, str(TESTS))
from harness import tpu_exports, tpu_graphs, tpu_jobs  # noqa: E402

NAMES = types.SimpleNamespace(
    TPUEstimator=tpu_estimator.TPUEstimator, TPUEstimatorSpec=tpu_estimator.TPUEstimatorSpec,
    TPUConfig=tpu_config.TPUConfig, RunConfig=tpu_config.RunConfig,
    InputPipelineConfig=tpu_config.InputPipelineConfig,
    experimental=types.SimpleNamespace(EmbeddingConfigSpec=tpu_estimator.EmbeddingConfigSpec))


class Built(Exception):
    """Ends a run whose graph is complete."""


def until_built(verb):
    """A method of the original that ends when the graph of its run is complete."""
    method = getattr(tpu_estimator.TPUEstimator, verb)

    def run(self, *args, **kwargs):
        with contextlib.suppress(Built):
            method(self, *args, **kwargs)

    return run


def system(hosts, cores):
    """The description of a system of this size."""
    task = f'/job:{tpu_jobs.JOB}/replica:0/task:'
    devices = [types.SimpleNamespace(name=f'{task}{host}/device:{kind}') for host in range(hosts)
               for kind in ['CPU:0', *(f'TPU:{core}' for core in range(cores))]]
    return tpu_system_metadata.TPUSystemMetadata(
        num_cores=hosts * cores, num_hosts=hosts, num_of_cores_per_host=cores, topology=None,
        devices=devices)


def graphs_of(name):
    """The graph of the training and that of the evaluation."""
    graphs = []

    def end_of_run(self, target='', graph=None, config=None):
        self._session = None  # `__del__` asks for it.
        graphs.append((graph or tf.get_default_graph()).as_graph_def())
        raise Built

    hosts, cores, _ = tpu_jobs.ESTIMATOR_JOBS[name]
    with mock.patch.object(tpu_system_metadata, '_query_tpu_system_metadata',
                           lambda *_, **__: system(hosts, cores)), \
            mock.patch.object(session_lib.Session, '__init__', end_of_run), \
            mock.patch.object(tf.estimator, 'tpu', NAMES), \
            mock.patch.object(tpu_estimator.TPUEstimator, 'train', until_built('train')), \
            mock.patch.object(tpu_estimator.TPUEstimator, 'evaluate', until_built('evaluate')), \
            tempfile.TemporaryDirectory() as model_dir:
        tpu_jobs.train_and_evaluate(name, model_dir)
    return dict(zip(['train', 'evaluate'], graphs, strict=True))


def main():
    tf.disable_v2_behavior()
    tf.enable_resource_variables()  # A loop that is written by hand needs them.
    goldens = {f'{name}: {verb}': tpu_graphs.of_graph(graph)
               for name in tpu_jobs.ESTIMATOR_JOBS for verb, graph in graphs_of(name).items()}
    for name in tpu_jobs.RAW_JOBS:
        with tf.Graph().as_default() as graph:
            tpu_jobs.build_raw(name)
            goldens[name] = tpu_graphs.of_graph(graph.as_graph_def())
    write('tpu_graphs', goldens)
    tf.disable_resource_variables()  # A TPU graph makes some of its own accord.
    write('tpu_exports', {name: exported(name) for name in tpu_exports.JOBS})


def exported(name):
    """The summary of the TPU graph of an export."""
    with mock.patch.object(tf.estimator, 'tpu', NAMES), \
            tempfile.TemporaryDirectory() as directory:
        return tpu_exports.summary_of(name, directory)


def write(name, goldens):
    """Writes summaries into a file."""
    text = json.dumps(tpu_graphs.packed(goldens), indent=0)
    (TESTS / 'golden' / f'{name}.json').write_text(text + '\n')
    print(f'{name}: {len(goldens)} graphs, '
          f'{sum(sum(one.values()) for one in goldens.values())} nodes')


if __name__ == '__main__':
    main()
