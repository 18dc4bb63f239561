"""Distributed datasets without TensorFlow's tuning threads, so that their iterators end at once.

The iterator of a dataset has a thread that tunes its buffers and parallel calls. The iterator of a
distributed dataset has one per host and one per replica. Each sleeps up to a minute between two
looks. An iterator that ends wakes its thread before it says that it ends. On busy cores the thread
looks too early and sleeps again, and the end of the iterator waits for it.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from .._tf import distribute


def without_tuner(dataset: Any, options: Any = None) -> Any:
    """Returns a dataset that no thread tunes.

    `tf.data.AUTOTUNE` then means what TensorFlow has for untuned datasets: a parallel call per
    thread, at most 16, and prefetch buffers that grow when they run empty. TensorFlow makes plain
    calls of `map` parallel only for its tuner, so this is done here, where options allow it.

    Args:
      dataset: a `tf.data.Dataset`; if its options say anything of tuning, it is returned as it is.
      options: its options; a copy of a dataset may not know them. `None` asks the dataset.
    """
    options = options or dataset.options()
    if options.autotune != tf.data.experimental.AutotuneOptions():
        return dataset
    of_maps = options.experimental_optimization.map_parallelization
    if of_maps is None:
        of_maps = options.experimental_optimization.apply_default_optimizations is not False
    if of_maps:
        dataset = distribute.rewritten(dataset, 'map_parallelization')
    return dataset.with_options(_options())


def without_host_tuners(distributed: Any, options: Any) -> Any:
    """Returns a distributed dataset whose hosts have no tuning threads, see `without_tuner`.

    To divide the last batch, TensorFlow must know the size of batches, which it does not find in a
    dataset that was rewritten. So the datasets are rewritten after that.

    Args:
      distributed: a dataset that was distributed, which nobody else has seen; it is changed.
      options: of the dataset before.
    """
    distribute.change_datasets(
        distributed, functools.partial(without_tuner, options=options))
    return distributed


def without_device_tuners(distributed: Any) -> Any:
    """Returns a distributed dataset whose replicas have no tuning threads.

    A replica takes what its host has prepared, and has nothing to tune.

    Args:
      distributed: a distributed dataset, which nobody else has seen; it is changed.
    """
    distributed.__class__ = _class_without_tuners(distributed.__class__)
    return distributed


def _options() -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


@functools.cache
def _class_without_tuners(base: Any) -> Any:
    """Returns a class derived from one of TensorFlow's distributed datasets."""

    class Distributed(base):
        """The class, as it is in this process and as an argument of a `tf.function`."""

        def __iter__(self) -> Any:
            iterator = super().__iter__()
            distribute.set_device_options(iterator, _options())
            return iterator

        @property
        def _type_spec(self) -> Any:
            spec = super()._type_spec
            spec.__class__ = _spec_without_tuners(spec.__class__)
            return spec

    Distributed.__name__ = base.__name__  # As users see it in messages.
    return Distributed


@functools.cache
def _spec_without_tuners(base: Any) -> Any:
    """Returns the class of specs whose values, arguments of a `tf.function`, have no tuners."""

    class Spec(base):
        """The class of specs."""

        __slots__ = ()

        def _from_components(self, components: Any) -> Any:
            return without_device_tuners(super()._from_components(components))

    return Spec
