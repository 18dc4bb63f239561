"""Keeps servers of TensorFlow, which listen on all interfaces, from whoever may be outside."""

import pytest

from estimator_tpu_embedding.cluster import listening


def require_private_network():
    """Skips a test that opens servers unless this network has no interface but loopback."""
    if listening.interfaces():
        pytest.skip(
            'opens servers on all interfaces: run by tools/check.py, in a network of its own')
