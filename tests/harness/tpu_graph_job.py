"""Builds the jobs of `tpu_jobs` by `install(backend='tpu')` and prints their summaries as JSON."""

import json
import os
import tempfile

from estimator_tpu_embedding import install

if __name__ == '__main__':
    install(backend='tpu', graph_only=tempfile.gettempdir())
    import tensorflow.compat.v1 as tf

    from . import tpu_graphs, tpu_jobs
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    found = {}
    for name, (hosts, cores, _) in tpu_jobs.ESTIMATOR_JOBS.items():
        with tempfile.TemporaryDirectory() as directory:
            install(hosts, cores, backend='tpu', graph_only=directory)
            tpu_jobs.train_and_evaluate(name, os.path.join(directory, 'model'))
            for verb in ('train', 'evaluate'):
                with open(os.path.join(directory, f'{verb}.graph.pb'), 'rb') as file:
                    found[f'{name}: {verb}'] = tpu_graphs.of_graph(
                        tf.GraphDef.FromString(file.read()))
    for name in tpu_jobs.RAW_JOBS:
        with tf.Graph().as_default() as graph:
            tpu_jobs.build_raw(name)
            found[name] = tpu_graphs.of_graph(graph.as_graph_def())
    print(json.dumps(found))
