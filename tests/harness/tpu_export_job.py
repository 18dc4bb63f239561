"""Exports the jobs of `tpu_exports` and prints the summaries of their TPU graphs as JSON."""

import json
import tempfile

from estimator_tpu_embedding import install

if __name__ == '__main__':
    install()
    import tensorflow.compat.v1 as tf

    from . import tpu_exports
    tf.disable_v2_behavior()
    found = {}
    for name in tpu_exports.JOBS:
        with tempfile.TemporaryDirectory() as directory:
            found[name] = tpu_exports.summary_of(name, directory)
    print(json.dumps(found))
