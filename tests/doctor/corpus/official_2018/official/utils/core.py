"""Flags that all models of a garden share, by absl."""
import functools

from absl import flags
import tensorflow as tf

help_wrap = functools.partial(flags.text_wrap, length=80, indent='')


def define_base():
    flags.DEFINE_string('model_dir', None, help_wrap('Where checkpoints go.'))
    flags.DEFINE_integer('batch_size', 8, help_wrap('Of a step.'))
    flags.DEFINE_enum('model_type', 'wide', ['wide', 'deep'], 'Which columns.')


def log(text):
    tf.compat.v1.logging.info(text)
