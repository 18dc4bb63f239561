"""`tf.contrib.cluster_resolver`: resolvers; TPUClusterResolver finds the emulated system."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ..resolver import TPUClusterResolver

_TODAY = tf.distribute.cluster_resolver
NAMES: dict[str, Any] = {
    'ClusterResolver': _TODAY.ClusterResolver,
    'GceClusterResolver': _TODAY.GCEClusterResolver,
    'KubernetesClusterResolver': _TODAY.KubernetesClusterResolver,
    'SimpleClusterResolver': _TODAY.SimpleClusterResolver,
    'SlurmClusterResolver': _TODAY.SlurmClusterResolver,
    'TFConfigClusterResolver': _TODAY.TFConfigClusterResolver,
    'TPUClusterResolver': TPUClusterResolver,
    'UnionClusterResolver': _TODAY.UnionResolver}
