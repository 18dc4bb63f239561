"""Holds the ids of one feature as scripts enqueue them: `EnqueueData`, `RaggedEnqueueData`."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


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
