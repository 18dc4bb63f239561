"""Holds the ids of one step as scripts enqueue them, and turns them into batches of the engine."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..core.specs import FeatureSpec
from ..errors import InputShapeError, Problem
from ..ops.checks import first_values, require
from ..ops.ids import CoreIds, IdBatch, IdCounts, IdReader


class EnqueueData(NamedTuple):
    """The parts of a SparseTensor of ids; weights are paired with ids by position."""

    embedding_indices: Any
    sample_indices: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_sparse_tensor(sp_tensor: Any, weights: Any = None) -> EnqueueData:
        """Takes `sp_tensor` apart; `weights` is a SparseTensor of the same shape, or `None`."""
        return EnqueueData(sp_tensor.values, sp_tensor.indices, _values(weights))


class RaggedEnqueueData(NamedTuple):
    """The parts of a RaggedTensor of ids; weights are paired with ids by position."""

    embedding_indices: Any
    row_splits: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_ragged_tensor(rg_tensor: Any, weights: Any = None) -> RaggedEnqueueData:
        """Takes `rg_tensor` apart; `weights` is a RaggedTensor of the same shape, or `None`."""
        return RaggedEnqueueData(rg_tensor.values, rg_tensor.row_splits, _values(weights))


def _values(weights: Any) -> Any:
    return weights.values if weights is not None else None


def get_enqueue_datas_list_from_sparse_tensors_list(
        sp_tensors_list: Sequence[Mapping[str, Any]]) -> list[dict[str, EnqueueData]]:
    """Returns `EnqueueData` by feature for the SparseTensors of every core."""
    return [collections.OrderedDict(
        (name, EnqueueData.from_sparse_tensor(tensor)) for name, tensor in tensors.items())
        for tensors in sp_tensors_list]


def get_enqueue_datas_list_from_ragged_tensors_list(
        rg_tensors_list: Sequence[Mapping[str, Any]]) -> list[dict[str, RaggedEnqueueData]]:
    """Returns `RaggedEnqueueData` by feature for the RaggedTensors of every core."""
    return [collections.OrderedDict(
        (name, RaggedEnqueueData.from_ragged_tensor(tensor)) for name, tensor in tensors.items())
        for tensors in rg_tensors_list]


Datas = Mapping[str, EnqueueData | RaggedEnqueueData]


def check_datas(datas_list: Sequence[Datas], feature_names: Sequence[str],
                cores_per_host: int) -> list[str]:
    """Checks the arguments of `generate_enqueue_ops` as the original does, in its order.

    Returns:
      The device of the ids of each core.

    Raises:
      ValueError: for a feature too few or too many, another type, or devices that disagree.
    """
    devices: list[str] = []
    for index, datas in enumerate(datas_list):
        here = f'`enqueue_datas_list[{index}]`'
        if missing := set(feature_names) - set(datas):
            raise ValueError(f'{here} misses a feature that is in `feature_to_config_dict`: '
                             f'{missing}.')
        if extra := set(datas) - set(feature_names):
            raise ValueError(f'{here} has a feature that is not in `feature_to_config_dict`: '
                             f'{extra}.')
        devices.append(_device_of(here, datas))
        first = devices[index - index % cores_per_host]
        if devices[index] != first:
            raise ValueError(
                'We expect the `enqueue_datas` which are on the same host to be contiguous in '
                f'`enqueue_datas_list`, {here} is on device {devices[index]}, but is expected to '
                f'be on device {first}.')
    return devices


def _device_of(here: str, datas: Datas) -> str:
    """Returns the device of all ids of one core."""
    first: tuple[str, str] | None = None
    for feature, data in datas.items():
        if not isinstance(data, (EnqueueData, RaggedEnqueueData)):
            raise ValueError(f'{here} has a feature that is not mapped to `EnqueueData` or '
                             f'`RaggedEnqueueData`. `feature`: {feature}')
        device = _device(data.embedding_indices)
        for name in ('sample_indices', 'row_splits', 'aggregation_weights'):
            part = getattr(data, name, None)
            if part is not None and _device(part) != device:
                raise ValueError(f'Device of {name} does not agree with that of'
                                 f'embedding_indices for feature {feature}.')
        if first is None:
            first = (feature, device)
        elif device != first[1]:
            raise ValueError(f'Devices are different between features in {here}; devices: '
                             f'{first[1]}, {device}; features: {feature}, {first[0]}.')
    return first[1] if first is not None else ''


def _device(tensor: Any) -> str:
    return str(getattr(tensor, 'device', ''))


def core_ids_of(plan: Plan) -> CoreIds:
    """Returns what reads the ids of one core after another, each by `to_batches`."""
    return CoreIds([IdReader(
        name=feature.name, num_samples=plan.batch_size_per_core,
        combiner=plan.table(feature.table).combiner,
        sequence_length=feature.max_sequence_length,
        vocabulary_size=plan.table(feature.table).vocabulary_size, policy=feature.id_policy)
        for feature in plan.features])


def to_batches(plan: Plan, core_ids: CoreIds, datas: Datas, *, core: int, ragged: bool
               ) -> dict[str, IdBatch]:
    """Returns the ids of every feature of one core, checked.

    If ids out of range are no error, every batch that has some is reported on standard error.

    Args:
      plan: declares the features.
      core_ids: of this plan.
      datas: the ids by feature. Sample indices are `[n, 1]`, `[n, 2]` for sample and place, or
        `[n, 3]` for a place of several ids. If they are `None`, the k-th id belongs to sample k.
        Row splits are `[samples + 1]`. Weights are `[n]`; `None` is 1 for each.
      core: the core, for messages.
      ragged: whether row splits say which sample an id belongs to.

    Raises:
      InputError: for types and shapes that are known to be wrong.
      AttributeError: as the original does, if `ragged` does not fit the data.
    """
    given = {}
    for feature in plan.features:
        data: Any = _as_tensors(datas[feature.name])
        given[feature.name] = (_from_splits if ragged else _from_indices)(
            _where(feature, core), plan.batch_size_per_core, feature, data,
            data.row_splits if ragged else data.sample_indices)
    found = core_ids.read(given, core)
    return {feature.name: found[feature.name].batch if feature.id_policy == 'error'
            else _reported(_where(feature, core), feature, *found[feature.name][:2])
            for feature in plan.features}


def _where(feature: FeatureSpec, core: int) -> str:
    return f'feature "{feature.name}" on core {core}'


def _as_tensors(data: Any) -> Any:
    """Returns the same with all parts as tensors."""
    return type(data)(*[None if part is None else tf.convert_to_tensor(part) for part in data])


def _from_splits(where: str, samples: int, feature: FeatureSpec, data: Any, splits: Any
                 ) -> tuple[Any, Any]:
    if splits is None:
        return _from_indices(where, samples, feature, data, None)
    ids, weights = _vectors(where, data)
    splits = tf.cast(splits, tf.int64)
    ends = tf.concat([[0], splits, [tf.size(ids, out_type=tf.int64)]], 0)
    with tf.control_dependencies([require(
            (ends[1:] >= ends[:-1]) & tf.equal(splits[:1], 0) & tf.equal(splits[-1:], ends[-1]),
            Problem('E511', where, 'row splits must begin with 0, never fall, and end with the '
                    'number of ids'), got=first_values(splits, 8))]):
        splits = tf.identity(splits)
    return (tf.RaggedTensor.from_row_splits(ids, splits, validate=False),
            tf.RaggedTensor.from_row_splits(weights, splits, validate=False))


def _from_indices(where: str, samples: int, feature: FeatureSpec, data: Any, indices: Any
                  ) -> tuple[Any, Any]:
    ids, weights = _vectors(where, data)
    numbers = tf.range(tf.size(ids, out_type=tf.int64))
    places = 1 + bool(feature.max_sequence_length)
    if indices is None or _width(where, indices) == 1:
        if feature.max_sequence_length:
            raise InputShapeError(Problem(
                'E516', where, 'the sample indices of a sequence must have a column for the '
                'place', 'none', 'Pass the indices of a SparseTensor [samples, places].'))
        shape = tf.stack([tf.size(ids, out_type=tf.int64), 1])
        columns = [numbers, tf.zeros_like(numbers)]
    else:
        indices = tf.cast(indices, tf.int64)
        # The last column only tells ids of one place apart, and keeps them in their order.
        columns = [*tf.unstack(indices[:, :places], num=places, axis=1), numbers]
        ends = tf.reduce_max(tf.pad(tf.stack(columns[1:], 1), [[1, 0], [0, 0]]), 0) + 1
        shape = tf.concat([[samples], ends], 0)
    at = tf.stack(columns, 1)
    return tf.SparseTensor(at, ids, shape), tf.SparseTensor(at, weights, shape)


def _width(where: str, indices: Any) -> int | None:
    """Returns the number of columns of sample indices; `None` if it is not known."""
    shape = indices.shape
    if shape.rank not in (None, 2):
        raise InputShapeError(Problem(
            'E511', where, 'sample indices must be of shape [ids, 1], [ids, 2] or [ids, 3]',
            f'shape {shape}', 'Pass the indices of a SparseTensor, or row splits with '
            'ragged=True.'))
    return shape.dims[1].value if shape.rank else None


def _vectors(where: str, data: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns ids and weights, flat and of the same length."""
    ids = tf.reshape(data.embedding_indices, [-1])
    if data.aggregation_weights is None:
        return ids, tf.ones_like(ids, tf.float32)
    weights = tf.reshape(data.aggregation_weights, [-1])
    problem = Problem('E518', where, 'there must be one weight per id')
    if not weights.shape.is_compatible_with(ids.shape):
        raise InputShapeError(dataclasses.replace(
            problem, got=f'weights {weights.shape} for ids {ids.shape}'))
    sizes = [tf.size(weights), tf.size(ids)]
    got = tf.strings.join([tf.strings.as_string(size) for size in sizes], separator=' for ')
    with tf.control_dependencies([require(tf.equal(*sizes), problem, got=got)]):
        return ids, tf.identity(weights)


def _reported(where: str, feature: FeatureSpec, batch: IdBatch, counts: IdCounts) -> IdBatch:
    """Returns the same batch, which reports how many of its ids are out of range, if any."""
    report = tf.cond(
        tf.equal(counts.out_of_range, 0), tf.no_op,
        lambda: tf.print(f'[etpe] {where}:', counts.out_of_range, 'ids out of range; policy '
                         f'"{feature.id_policy}"'))
    with tf.control_dependencies([report]):
        return batch._replace(ids=tf.identity(batch.ids))
