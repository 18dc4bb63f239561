"""Loads the compiled library once per process, or says why it cannot be used."""

from __future__ import annotations

import contextlib
import functools
import pathlib
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

PATH = pathlib.Path(__file__).with_name('libete_kernels.so')
"""The file that the build of this package makes."""

_INSTALL_AGAIN = (
    # The first two options, because this package is installed already. The third, because pip
    # keeps the wheel of the last build. The last, against the wheel of an index.
    '`pip install --force-reinstall --no-deps --no-cache-dir --no-binary estimator_tpu_embedding '
    'SOURCE`, where SOURCE is what was installed, such as a folder or estimator_tpu_embedding')


class _Loaded(NamedTuple):
    operations: Any  # The module that TensorFlow generates, or `None`.
    why_not: str
    remedy: str = ''


def load() -> Any:
    """Returns the module with a function per operation, such as `ete_lookup`, or `None`.

    `why_not` says why it is `None`.
    """
    return _load().operations


def why_not() -> str:
    """Returns why this process cannot use the library; empty if it can."""
    return _load().why_not


def remedy() -> str:
    """Returns how to repair the cause in `why_not`; empty if the library can be used."""
    return _load().remedy


@functools.cache
def _load() -> _Loaded:
    if not PATH.exists():
        return _Loaded(
            None, f'{PATH.name} was not compiled when this package was installed; its build says '
            'why (pip shows that with -v)', 'Install a C++17 compiler (g++ or clang), then this '
            f'package again by {_INSTALL_AGAIN}; or install the wheel that holds the library.')
    try:
        operations = tf.load_op_library(str(PATH))
    except (tf.errors.OpError, RuntimeError, OSError) as error:
        return _Loaded(None, f'TensorFlow {tf.__version__} cannot load {PATH}: {error}',
                       'Install this package again on this machine, so that the library is '
                       f'compiled for it, by {_INSTALL_AGAIN}.')
    if not hasattr(operations, 'ete_engine'):
        return _Loaded(None, f'this process has loaded another copy of {PATH.name}',
                       'Let a process import one installation of this package only.')
    with contextlib.suppress(KeyError):  # Both are registered if this module was reloaded.
        tf.RegisterGradient('EteRead')(_gradient_of_read)
        tf.RegisterGradient('EteReadRows')(_gradient_of_rows)
    return _Loaded(operations, '')


def _gradient_of_read(operation: tf.Operation, gradient: tf.Tensor) -> list[tf.Tensor | None]:
    del operation
    return [None, None, gradient]


def _gradient_of_rows(operation: tf.Operation, gradient: tf.Tensor
                      ) -> list[tf.Tensor | tf.IndexedSlices | None]:
    _, value, rows = operation.inputs
    shape = tf.shape(value, out_type=tf.int64)
    return [None, tf.IndexedSlices(tf.reshape(gradient, [-1, value.shape[1]]),
                                   tf.reshape(rows, [-1]), shape), None]
