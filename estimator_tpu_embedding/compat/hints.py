"""Finds the flag of `etpe run`, name or package that would have helped a failed script."""

from __future__ import annotations

import re
import types

from . import environment, old_names, tf1

_FOR_CONTRIB = ('tf.contrib was removed in TensorFlow 2: "etpe run --contrib" restores the part of '
                'it that jobs for TPUs use; a script of TensorFlow 1.x needs --tf1 too')
_FOR_TF1 = ('{} is a name of TensorFlow 1: "etpe run --tf1" makes "import tensorflow" give '
            'what it gave then')
_FOR_GRAPHS = ('Scripts of TensorFlow 1.x build graphs: "etpe run --tf1" switches eager '
               'execution off')

_FOR_OLD_PROTOC = (
    'the installed protobuf refuses code that a protoc before 3.19 made: make it again, "protoc '
    '--python_out=. FILE.proto" with a protoc of today, or set '
    f'{environment.PROTOBUF}=python, which is slower')
_FOR_TFRS = ('TensorFlow Recommenders is not installed: pip install ".[tfrs]" in the checkout of '
             'this package, or pip install tensorflow-recommenders')


def flag_that_helps(error: BaseException) -> str | None:
    """Returns a line for the user of `etpe run` whose script this error ended, if any may help."""
    if isinstance(error, RuntimeError) and 'eager execution' in str(error):
        return _FOR_GRAPHS
    if isinstance(error, AttributeError) and isinstance(error.obj, tf1.TensorFlow1):
        return None  # It has its own message.
    if is_of_old_protoc(error):
        return _FOR_OLD_PROTOC
    sought = missing_name(error)
    if sought == 'tensorflow_recommenders':
        return _FOR_TFRS
    if today := old_names.advice(sought):
        return today
    module, _, name = sought.rpartition('.')
    if not re.match(r'tensorflow(\.|$)', module):
        return None
    path = re.sub(r'^tensorflow(\._api\.v2|\.compat\.v1)*\.?', '', f'{module}.{name}')
    if path == 'contrib':
        return _FOR_CONTRIB
    return _FOR_TF1.format(f'tf.{path}') if _was_in_tensorflow_1(path) else None


def is_of_old_protoc(error: BaseException) -> bool:
    """Whether the installed protobuf has refused code that an old `protoc` made."""
    return isinstance(error, TypeError) and 'Descriptors cannot be created directly' in str(error)


def missing_name(error: BaseException) -> str:
    """Returns the full name that a module lacks, or of a module that is missing; or `''`."""
    if isinstance(error, ImportError):
        asked = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", error.msg)
        unnamed = re.fullmatch(r"No module named '([\w.]+)'", error.msg)
        return f'{asked[2]}.{asked[1]}' if asked else error.name or (unnamed[1] if unnamed else '')
    if isinstance(error, AttributeError) and isinstance(error.obj, types.ModuleType):
        return f'{_path_of(error.obj)}.{error.name}'
    return ''


def _path_of(module: types.ModuleType) -> str:
    """Returns the name of a module; modules of Keras get the name that scripts write."""
    of_keras = re.fullmatch(r'(?:tf_)?keras\..*\b(initializers|losses|metrics|optimizers)',
                            module.__name__)
    return f'tensorflow.{of_keras[1]}' if of_keras else module.__name__


def _was_in_tensorflow_1(path: str) -> bool:
    found = tf1.real().compat.v1
    for part in path.split('.'):
        found = getattr(found, part, None)
    return found is not None
