"""`tf.contrib.cluster_resolver`: resolvers; TPUClusterResolver finds the emulated system."""

from __future__ import annotations

from typing import Any

from ..resolver import TPUClusterResolver
from . import same

NAMES: dict[str, Any] = {**same.names_of('cluster_resolver'),
                         'TPUClusterResolver': TPUClusterResolver}
