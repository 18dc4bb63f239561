"""Trains, evaluates, predicts and exports: on our kernels of a TPU's operations, or emulated.

    python -m harness.fake_tpu_job MODEL_DIR BACKEND [LOSES [RETURNS [LIMIT]]]

BACKEND is `tpu` or `emulated`. The TPU says that it is lost after so many runs of a session, and
may be there again. LIMIT is one of steps. The last line is JSON.
"""

import json
import sys

from estimator_tpu_embedding import _tf, install
from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import Problem

STEPS, BATCH = 6, 4


def be_a_tpu():
    """Lets this machine be a TPU of one core."""
    from estimator_tpu_embedding.hosts import tpu_system
    from estimator_tpu_embedding.native import tpu_kernels
    tpu_kernels.register()
    tpu_system.problem_of = lambda *_: None
    _tf.tpu_metadata = lambda *_: tpu_system.made_up(Topology(), 'localhost')


def lose_it(after, *, returns):
    """Lets the TPU be lost after so many runs of sessions that have its operations."""
    import tensorflow.compat.v1 as tf

    from estimator_tpu_embedding.hosts import tpu_system
    cls = _tf.session_class()
    original, left = cls.run, [after]

    def run(self, *args, **kwargs):
        if 'TPUReplicateMetadata' in {one.type for one in self.graph.get_operations()}:
            left[0] -= 1
            if left[0] == 0:
                left[0] = after if returns == 'and is lost again' else 0
                print('the TPU is lost', file=sys.stderr)
                if not returns:
                    tpu_system.problem_of = lambda *_: Problem('E939', 'TPU', 'it must answer')
                raise tf.errors.UnavailableError(None, None, 'Socket closed')
        return original(self, *args, **kwargs)

    cls.run = run


def main(model_dir, backend, loses=0, returns=False, limit=None):
    install(1, 1, backend=backend, steps=limit and int(limit))
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    if backend == 'tpu':
        be_a_tpu()
        if int(loses):
            lose_it(int(loses), returns=returns)
    tpu = tf.estimator.tpu
    word = tf.feature_column.categorical_column_with_identity('word', 5)
    columns = [tf.tpu.experimental.embedding_column(
        word, dimension=2, initializer=tf.constant_initializer([[1, 2], [3, 4], [5, 6], [7, 8],
                                                                [9, 10.]]))]

    def model_fn(features, labels, mode, params):
        rows = tf.keras.layers.DenseFeatures(columns)(features)
        logits = tf.layers.dense(rows, 1, kernel_initializer=tf.ones_initializer())
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={'logits': logits})
        loss = tf.losses.mean_squared_error(labels, logits)
        per_sample = tf.tile(tf.reshape(loss, [1, 1]), [params['batch_size'], 1])
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=tf.tpu.CrossShardOptimizer(
                tf.train.GradientDescentOptimizer(.001)).minimize(
                    loss, tf.train.get_global_step()),
            eval_metrics=(lambda loss: {'error': tf.metrics.mean(loss)}, [per_sample]))

    def input_fn(params):
        indices = [[sample, place] for sample in range(BATCH) for place in (0, 1)]
        words = tf.SparseTensor(tf.constant(indices, tf.int64),
                                tf.constant([0, 1, 1, 2, 2, 3, 4, 4], tf.int64), [BATCH, 2])
        return tf.data.Dataset.from_tensors(({'word': words}, tf.ones([BATCH, 1]))).repeat()

    def receiver():
        text = tf.placeholder(tf.string, [None])
        return tf.estimator.export.ServingInputReceiver(
            tf.io.parse_example(text, {'word': tf.io.VarLenFeature(tf.int64)}), text)

    estimator = tpu.TPUEstimator(
        model_fn, model_dir=model_dir, config=tpu.RunConfig(
            save_checkpoints_steps=2, tpu_config=tpu.TPUConfig(
                iterations_per_loop=2,
                per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2)),
        train_batch_size=BATCH, eval_batch_size=BATCH, predict_batch_size=BATCH,
        embedding_config_spec=tpu.experimental.EmbeddingConfigSpec(
            feature_columns=columns,
            optimization_parameters=tf.tpu.experimental.AdagradParameters(.1)))
    estimator.train(input_fn, max_steps=STEPS)
    results = estimator.evaluate(input_fn, steps=1)
    predicted = next(estimator.predict(input_fn))
    exported = estimator.export_saved_model(f'{model_dir}/export', receiver)
    print(json.dumps({
        **{name: float(value) for name, value in results.items()},
        'logits': predicted['logits'].tolist(), 'is_exported': bool(exported),
        **{name: estimator.get_variable_value(name).tolist()
           for name in estimator.get_variable_names()}}))


if __name__ == '__main__':
    main(*sys.argv[1:])
