"""Trains, then forks, and prints the error or success of each child.

    python -m harness.fork_job DIRECTORY [CALL ...]

A child that is forked before the first training trains too: TensorFlow has not started by then.
"""

import multiprocessing
import os
import sys

os.environ['TF_USE_LEGACY_KERAS'] = '1'
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from harness import blocking_job, jobs  # noqa: E402

import estimator_tpu_embedding as ete  # noqa: E402
from estimator_tpu_embedding import _legacy  # noqa: E402
from estimator_tpu_embedding.midlevel import TPUEmbedding  # noqa: E402

nightly = _legacy.load()


def double(number):
    return np.int64(number * 2 % 10)


def forking_input_fn(params):
    """Loads with a pool of processes."""
    with multiprocessing.get_context('fork').Pool(2) as pool:
        ids = np.array(pool.map(double, range(8)))
    return tf.data.Dataset.from_tensor_slices(({'f': ids}, np.ones(8, np.float32))).batch(
        params['batch_size'], drop_remainder=True).repeat()


def main(directory, *calls):
    config = jobs.run_config(directory, iterations=1)
    columns = blocking_job.COLUMNS

    def estimator(name, use_tpu=True):
        return jobs.estimator(jobs.linear_model_fn(columns), columns, config.replace(
            model_dir=os.path.join(directory, name)), batch_size=4, use_tpu=use_tpu)

    def serving():
        return tf.estimator.export.ServingInputReceiver({}, {})

    def train_plain_estimator():
        ete.install()
        step = tf.train.get_global_step
        nightly.Estimator(lambda features, labels, mode: nightly.EstimatorSpec(
            mode, loss=tf.constant(0.), train_op=step().assign_add(1)),
            os.path.join(directory, 'estimator')).train(lambda: {'f': tf.ones([1])}, steps=1)

    does = {
        'train': lambda: estimator('child').train(forking_input_fn, steps=1),
        'plain train': lambda: estimator('plain', use_tpu=False).train(forking_input_fn, steps=1),
        'plain Estimator': train_plain_estimator,
        'evaluate': lambda: estimator('parent').evaluate(forking_input_fn, steps=1),
        'predict': lambda: next(estimator('parent').predict(forking_input_fn)),
        'export': lambda: estimator('parent').export_saved_model(directory, serving),
        'midlevel': lambda: TPUEmbedding(None, None)}

    def in_child(call):
        pid = os.fork()
        if not pid:
            try:
                does[call]()
                print(call, 'works', flush=True)
            except Exception as error:
                print(call, type(error).__name__, error, flush=True)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    in_child('train')
    estimator('parent').train(forking_input_fn, steps=2)
    estimator('parent').train(forking_input_fn, steps=2)
    for call in calls:
        in_child(call)
    print('parent', estimator('parent').evaluate(forking_input_fn, steps=1)['global_step'])


if __name__ == '__main__':
    main(*sys.argv[1:])
