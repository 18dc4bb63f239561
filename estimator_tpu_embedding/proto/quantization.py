"""Encodes and decodes the quantization of a table, as `SimulatedQuantization`."""

from __future__ import annotations

from ..core.specs import Quantization
from .optimization_parameters_pb2 import SimulatedQuantization


def encode(quantization: Quantization, message: SimulatedQuantization) -> None:
    """Fills an empty message as TensorFlow's `QuantizationConfig` does."""
    message.enabled = True
    message.num_buckets = quantization.num_buckets
    message.clipping_limits.lower.value = quantization.lower
    message.clipping_limits.upper.value = quantization.upper


def decode(message: SimulatedQuantization) -> Quantization | None:
    """Returns the quantization in a message, unchecked; `None` if it is not enabled."""
    if not message.enabled:
        return None
    limits = message.clipping_limits
    return Quantization(num_buckets=message.num_buckets, lower=limits.lower.value,
                        upper=limits.upper.value)
