"""2018: a canned estimator of a garden, with absl flags and a helper that is not there."""
# stops: official.utils.logs
from absl import app as absl_app
from absl import flags
import tensorflow as tf

from official.utils import core as flags_core
from official.utils.logs import hooks_helper  # expect: E112 official.utils.logs

FLAGS = flags.FLAGS


def build_estimator(model_dir):
    wide = [tf.feature_column.categorical_column_with_hash_bucket('job', 100)]
    config = tf.estimator.RunConfig().replace(session_config=tf.ConfigProto())  # expect: I301 tensorflow.estimator.RunConfig; I302 tensorflow.ConfigProto
    return tf.estimator.LinearClassifier(wide, model_dir=model_dir, config=config)  # expect: I301 tensorflow.estimator.LinearClassifier


def main(_):
    flags_core.log('begin')
    hooks = hooks_helper.get_train_hooks(['LoggingTensorHook'], batch_size=FLAGS.batch_size)
    build_estimator(FLAGS.model_dir).train(lambda: None, hooks=hooks)


if __name__ == '__main__':
    flags_core.define_base()
    absl_app.run(main)
