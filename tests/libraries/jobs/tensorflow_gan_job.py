"""A few steps of `GANEstimator` and of `TPUGANEstimator`."""

import tempfile

import tensorflow as tf
import tensorflow_gan as tfgan

tpu = tf.compat.v1.estimator.tpu


def generator(inputs, mode=None):
    return tf.compat.v1.layers.dense(inputs, 3)


def discriminator(inputs, conditioning, mode=None):
    return tf.compat.v1.layers.dense(inputs, 1)


def optimizer():
    return tf.compat.v1.train.AdamOptimizer(1e-3)


def samples():
    return tf.data.Dataset.from_tensor_slices((tf.ones([4, 2]), tf.ones([4, 3]))).repeat()


MODEL = {
    'generator_fn': generator, 'discriminator_fn': discriminator,
    'generator_loss_fn': tfgan.losses.wasserstein_generator_loss,
    'discriminator_loss_fn': tfgan.losses.wasserstein_discriminator_loss,
    'generator_optimizer': optimizer, 'discriminator_optimizer': optimizer}

plain = tfgan.estimator.GANEstimator(model_dir=tempfile.mkdtemp(), **MODEL)
plain.train(lambda: samples().batch(4), steps=3)
emulated = tfgan.estimator.TPUGANEstimator(
    use_tpu=True, train_batch_size=4, config=tpu.RunConfig(
        model_dir=tempfile.mkdtemp(), tpu_config=tpu.TPUConfig(iterations_per_loop=1)), **MODEL)
emulated.train(lambda params: samples().batch(params['batch_size'], drop_remainder=True),
               max_steps=3)
print('trained', *(each.get_variable_value('global_step') for each in (plain, emulated)))
