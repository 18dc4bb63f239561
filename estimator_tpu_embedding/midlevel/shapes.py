"""Finds the shape of each feature's activation on one replica, all but its last dimension.

The shape comes from `FeatureConfig.output_shape`, otherwise from `build`, otherwise from the first
`enqueue`. Later shapes must agree and change nothing. Error texts and oddities are the original's:
`tests/golden/tf2_shapes.json` has its results for some hundred cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..errors import InputShapeError, Problem, shown
from .feature_configs import Declared, feature_label


def batch_size(output_shapes: Sequence[tuple[int, ...]]) -> int:
    """Returns the samples of one replica, the first dimension; 0 if it differs between features.

    >>> batch_size([(8,), (8, 3)]), batch_size([(8,), (4,)])
    (8, 0)
    """
    sizes = {shape[0] for shape in output_shapes}
    return sizes.pop() if len(sizes) == 1 else 0


def of_inputs(declared: Declared, flat_inputs: Sequence[Any]) -> list[tf.TensorShape]:
    """Returns the shapes that the inputs of one replica imply; dimensions may be unknown.

    Raises:
      InputShapeError: with all illegal ranks and all values that are no tensors.
    """
    return _each(declared, flat_inputs, of_input)


def of_input(path: str, feature: Any, value: Any) -> tf.TensorShape:
    """Returns the output shape that one input implies for its FeatureConfig; see `of_inputs`."""
    return _without_last(path, feature, _input_shape(path, feature, value))


def of_build(declared: Declared, per_replica_input_shapes: Any,
             per_replica_batch_size: int | None) -> list[tf.TensorShape] | None:
    """Returns the shapes that the arguments of `build` imply; `None` if they imply none.

    Args:
      per_replica_input_shapes: a structure with one `TensorShape` per feature, of inputs whose
        last dimension is reduced; or samples per replica; or `None`.
      per_replica_batch_size: samples per replica, or `None`; the other argument comes first.

    Raises:
      InputShapeError: for values that are no shapes, or an illegal rank.
    """
    given = per_replica_batch_size or None
    if per_replica_input_shapes is not None:
        given = per_replica_input_shapes
    if given is None:
        return None
    if isinstance(given, int):
        return [tf.TensorShape([given, feature.max_sequence_length] if is_sequence(feature)
                               else [given]) for feature in declared.features]
    flat = tf.nest.flatten(given)
    if len(flat) != len(declared.features) or not all(
            isinstance(shape, tf.TensorShape) for shape in flat):
        raise InputShapeError(Problem(
            'E536', 'per_replica_input_shapes', 'it must have one tf.TensorShape for each of the '
            f'{len(declared.features)} features', shown(given, 200)))
    return _each(declared, flat, _without_last)


def resolve(declared: Declared, incoming: Sequence[tf.TensorShape] | None
            ) -> list[tuple[int, ...]]:
    """Returns the output shape of every feature: its own, otherwise the incoming one.

    Raises:
      InputShapeError: if they contradict each other, or a dimension stays unknown or is 0.
    """
    own = [feature.output_shape for feature in declared.features]
    if incoming is None:
        incoming = [tf.TensorShape(None)] * len(own)
    check(declared, own, incoming)
    shapes = [declared_one if declared_one.rank is not None else other
              for declared_one, other in zip(own, incoming)]
    problems = []
    for path, shape in zip(declared.paths, shapes):
        if not shape.is_fully_defined():
            problems.append(Problem(
                'E533', feature_label(path), f'Input Feature {path} has output shape set as '
                f'{shape} which is not fully defined. Please specify the fully defined shape in '
                'either FeatureConfig or for the build method.'))
        elif 0 in shape:
            problems.append(Problem('E533', feature_label(path), 'no dimension of the output '
                                    'shape may be 0', str(shape)))
    if problems:
        raise InputShapeError(*problems)
    return [tuple(shape) for shape in shapes]


def is_sequence(feature: Any) -> bool:
    """Returns whether ids of rank 2 of this FeatureConfig are sequences."""
    return feature.output_shape.rank is None and feature.max_sequence_length > 0


def check(declared: Declared, shapes: Iterable[tf.TensorShape],
          incoming: Sequence[tf.TensorShape]) -> None:
    """Raises InputShapeError if output shapes contradict what inputs imply, see `of_inputs`."""
    problems = [problem for each in zip(declared.paths, shapes, incoming)
                for problem in disagreement(*each)]
    if problems:
        raise InputShapeError(*problems)


def disagreement(path: str, shape: tf.TensorShape, incoming: tf.TensorShape
                 ) -> Iterator[Problem]:
    """Yields how an output shape contradicts a later one; both may be partly unknown."""
    if shape.rank is not None and incoming.rank is not None and not _agree(shape, incoming):
        yield Problem(
            'E534', feature_label(path), f'Inconsistent shape founded for input feature {path}, '
            f'Output shape is set to be {shape}, But got incoming output shape {incoming}')


def _agree(shape: tf.TensorShape, incoming: tf.TensorShape) -> bool:
    # Rows of one or two dimensions may be reshaped to more.
    if incoming.rank in (1, 2) and shape.rank > incoming.rank:
        return True
    return shape.rank == incoming.rank and not any(
        size and other and size != other for size, other in zip(shape, incoming))


def _each(declared: Declared, values: Iterable[Any],
          shape_of: Callable[[str, Any, Any], tf.TensorShape]) -> list[tf.TensorShape]:
    """Returns the shape of each value, or raises with the problems of all."""
    shapes: list[tf.TensorShape] = []
    problems: list[Problem] = []
    for path, feature, value in zip(declared.paths, declared.features, values):
        try:
            shapes.append(shape_of(path, feature, value))
        except InputShapeError as error:
            problems += error.problems
    if problems:
        raise InputShapeError(*problems)
    return shapes


def _input_shape(path: str, feature: Any, value: Any) -> tf.TensorShape:
    """Returns an input's static shape, with the sequence length before the last dimension."""
    if not isinstance(value, (tf.Tensor, tf.SparseTensor, tf.RaggedTensor)):
        raise InputShapeError(Problem(
            'E510', feature_label(path), f'Input {path} is of unknown type {type(value)}. Please '
            'only pass Tensor, SparseTensor or RaggedTensor as input to enqueue.'))
    for rule in _wrong_ranks(path, value):
        raise InputShapeError(Problem('E532', feature_label(path), rule))
    shape = value.shape.as_list()
    if not isinstance(value, tf.Tensor) and len(shape) == 2 and is_sequence(feature):
        shape.insert(1, feature.max_sequence_length)
    return tf.TensorShape(shape)


def _wrong_ranks(path: str, value: Any) -> Iterator[str]:
    """Yields the problems of the rank of an input."""
    rank = value.shape.rank
    if rank is None:
        yield f'the rank of input {path} must be known'
    elif isinstance(value, tf.Tensor):
        if rank < 1:
            yield ('Only rank 1 and above dense tensor is supported, find rank '
                   f'{rank} sparse tensor for input {path}')
        elif rank > 1 and value.shape[-1] != 1:
            yield ('Rank 2 or above dense tensor should have last dimension as 1 as the last '
                   'dimension will always be reduced. Instead got dense tensor as shape '
                   f'{value.shape.as_list()}')
    elif isinstance(value, tf.SparseTensor):
        if rank < 2:
            yield (f'Only rank 2 and above sparse tensor is supported, find rank {rank} sparse '
                   f'tensor for input {path}')
    elif rank != 2:
        yield (f'Only rank 2 ragged tensor is supported, find rank {rank} ragged tensor for '
               f'input {path}')


def _without_last(path: str, feature: Any, shape: tf.TensorShape) -> tf.TensorShape:
    """Returns the output shape of an input shape."""
    if not shape.rank:
        raise InputShapeError(Problem('E532', feature_label(path), 'Received input tensor of '
                                      f'shape {shape}. Rank must be 1 and above'))
    if shape.rank == 2 and shape[-1] != 1 and is_sequence(feature):
        return tf.TensorShape([shape[0], feature.max_sequence_length])
    return shape if shape.rank == 1 else shape[:-1]
