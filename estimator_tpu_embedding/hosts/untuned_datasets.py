"""Datasets that no thread of TensorFlow tunes, so that their iterators end at once.

The thread that tunes one sleeps up to a minute between two looks. It is woken before it is told to
end, so it may sleep again, and whoever ends the iterator waits for it: the end of a session, too.
"""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf

from .. import _tf


def without_tuner(dataset: Any, options: Any = None, *, keeps_maps: bool = False) -> Any:
    """Returns a dataset that no thread tunes; one whose options speak of tuning as it is.

    `tf.data.AUTOTUNE` then means what TensorFlow has for untuned datasets: a parallel call per
    thread, at most 16, and prefetch buffers that grow when they run empty. TensorFlow makes plain
    calls of `map` parallel only for its tuner, so this is done here, where options allow it.

    Args:
      options: those of the dataset, for a copy that does not know them; `None` asks the dataset.
      keeps_maps: leaves plain calls of `map` as they are.
    """
    if options is None:
        with warnings.catch_warnings():  # In a graph, `options` warns that it sees only Python's.
            warnings.simplefilter('ignore', UserWarning)
            options = dataset.options()
    if options.autotune != tf.data.experimental.AutotuneOptions():
        return dataset
    of_maps = options.experimental_optimization.map_parallelization
    if of_maps is None:
        of_maps = options.experimental_optimization.apply_default_optimizations is not False
    if of_maps and not keeps_maps:
        dataset = _tf.rewritten(dataset, 'map_parallelization')
    return dataset.with_options(untuned())


def untuned() -> Any:
    """Returns options of a dataset that no thread tunes."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return options
