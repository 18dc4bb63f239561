"""`tf.contrib.data`: names of `tf.data.experimental`, and three functions of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

Transformation = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """For `Dataset.apply`: full batches only, whose first dimension is known."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any,
                                    padding_values: Any = None) -> Transformation:
    """For `Dataset.apply`: full padded batches only, whose first dimension is known."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values,
                                                drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1
                      ) -> Transformation:
    """For `Dataset.apply`: `parallel_interleave`, with elements in the order of arrival."""
    transformation: Transformation = tf.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True)
    return transformation


NAMES: dict[str, Any] = {name: getattr(tf.data.experimental, name) for name in (
    'AUTOTUNE Counter CsvDataset Optional RandomDataset Reducer SqlDataset TFRecordWriter '
    'bucket_by_sequence_length choose_from_datasets copy_to_device dense_to_sparse_batch '
    'enumerate_dataset get_next_as_optional get_single_element group_by_reducer '
    'group_by_window ignore_errors make_batched_features_dataset make_csv_dataset '
    'make_saveable_from_iterator map_and_batch map_and_batch_with_legacy_function '
    'parallel_interleave parse_example_dataset prefetch_to_device rejection_resample '
    'sample_from_datasets scan shuffle_and_repeat unbatch unique').split()}
NAMES |= {one.__name__: one for one in (
    batch_and_drop_remainder, padded_batch_and_drop_remainder, sloppy_interleave)}
