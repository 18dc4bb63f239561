"""Runs jobs of every kind with tables too large for a memory limit that this process sets itself.

`python -m harness.large_tables ROWS [ROWS ...] [--width W] [--only FACE]` makes a table per number
of rows. It prints a line of JSON for each of `FACES`, the kinds of jobs: its name, the class and
text of its error, and the most bytes by which the memory of this process grew.
"""

import argparse
import json
import os
import resource
import tempfile

os.environ['TF_USE_LEGACY_KERAS'] = '1'

import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs, legacy_api  # noqa: E402
from harness.memory import highest_rss_of, vm_size  # noqa: E402

import estimator_tpu_embedding as ete  # noqa: E402
from estimator_tpu_embedding import _legacy  # noqa: E402
from estimator_tpu_embedding.midlevel import TPUEmbedding  # noqa: E402

tf2 = tf.compat.v2.tpu.experimental.embedding

ROOM = 2**31
"""Bytes that this process may take beyond what it has when it begins."""


class Jobs:
    """Trains, reads or makes tables `t0`, `t1` and so on; each has a column `f0`, ..."""

    def __init__(self, directory, rows, width):
        self._directory, self._rows, self._width = directory, rows, width
        self._columns = [jobs.embedding(f'f{number}', count, width)
                         for number, count in enumerate(rows)]

    def _estimator(self, **kwargs):
        return jobs.estimator(
            jobs.linear_model_fn(self._columns), self._columns,
            jobs.run_config(f'{self._directory}/model', hosts=2),
            optimizer=ete.AdamParameters(.1), **kwargs)

    def _input_fn(self, params):
        """Samples of id 0."""
        size = params['batch_size']
        ids = {f'f{number}': tf.zeros([9, size], tf.int64) for number in range(len(self._rows))}
        return tf.data.Dataset.from_tensor_slices((ids, tf.zeros([9, size])))

    def train(self):
        self._estimator().train(self._input_fn, max_steps=2)

    def train_without_tpu(self):
        self._estimator(use_tpu=False).train(self._input_fn, max_steps=2)

    def evaluate(self):
        self._estimator().evaluate(self._input_fn, steps=1)

    def evaluate_on_cpu(self):
        self._estimator(eval_on_tpu=False).evaluate(self._input_fn, steps=1)

    def predict(self):
        next(self._estimator().predict(self._input_fn))

    def export(self):
        """Exports from a checkpoint without tables; the export ends before anybody reads it."""
        with tf.Graph().as_default(), tf.Session() as session:
            session.run(tf.train.create_global_step().initializer)
            path = tf.train.Saver().save(session, f'{self._directory}/model.ckpt')
        ids = {f'f{number}': tf.TensorSpec([None], tf.int64) for number in range(len(self._rows))}

        def receiver():
            features = {name: tf.placeholder(spec.dtype, spec.shape, name)
                        for name, spec in ids.items()}
            return _legacy.load().export.ServingInputReceiver(features, features)

        self._estimator().export_saved_model(self._directory, receiver, checkpoint_path=path)

    def raw(self):
        made = legacy_api.TPUEmbedding(
            {f't{number}': legacy_api.TableConfig(count, self._width)
             for number, count in enumerate(self._rows)},
            {f'f{number}': legacy_api.FeatureConfig(f't{number}')
             for number in range(len(self._rows))}, 8, legacy_api.TRAINING,
            optimization_parameters=legacy_api.AdamParameters(.1), master='')
        made.create_variables_and_ops()

    def midlevel(self):
        with tf.init_scope():
            tables = [tf2.TableConfig(count, self._width, name=f't{number}')
                      for number, count in enumerate(self._rows)]
            TPUEmbedding([tf2.FeatureConfig(table) for table in tables], tf2.Adam(.1)).build()


FACES = ('train', 'train_without_tpu', 'evaluate', 'evaluate_on_cpu', 'predict', 'export', 'raw',
         'midlevel')


def main():
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument('rows', type=int, nargs='+')
    parser.add_argument('--width', type=int, default=128)
    parser.add_argument('--only', choices=FACES)
    parsed = parser.parse_args()
    tf.enable_eager_execution()
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.zeros([]))  # What TensorFlow takes for itself when it first runs.
    limit = vm_size() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for face in [parsed.only] if parsed.only else FACES:
        said = [face, None, '']

        def run():
            with tempfile.TemporaryDirectory() as directory, tf.Graph().as_default():
                try:
                    getattr(Jobs(directory, parsed.rows, parsed.width), face)()
                except Exception as error:
                    said[1:] = type(error).__name__, str(error)

        grown = highest_rss_of(run)
        print(json.dumps([*said, grown]), flush=True)


if __name__ == '__main__':
    main()
