"""2019, ML Engine: `python -m trainer.task --job-dir ...`, relative imports, a hook."""
import argparse
import sys

import tensorflow as tf

from . import model
from .util import input_fn

if __name__ == '__main__':
    arguments = argparse.ArgumentParser()
    arguments.add_argument('--job-dir', required=True)
    arguments.add_argument('--width', type=int, default=2)
    parsed, _ = arguments.parse_known_args()
    ranker = model.Ranker(
        params={'width': parsed.width, 'rate': .5}, train_batch_size=8, config=(
            tf.compat.v1.estimator.tpu.RunConfig(
                model_dir=parsed.job_dir,
                tpu_config=tf.compat.v1.estimator.tpu.TPUConfig(iterations_per_loop=2))))
    assert isinstance(ranker, tf.compat.v1.estimator.tpu.TPUEstimator)
    assert isinstance(ranker, tf.compat.v1.estimator.Estimator)
    hook = model.CountingHook()
    ranker.train(input_fn, steps=6, hooks=[hook])
    print('package %s, %d loops, loss falls: %s' % (
        __package__, len(hook.losses), hook.losses[0] > hook.losses[-1]))
    sys.exit(3)  # A status of its own.
