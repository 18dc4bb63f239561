"""Makes up the TPU of graphs that nobody runs, and describes the emulated system as a TPU."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.specs import Topology

JOB = 'tpu_worker'
MADE_UP = 'grpc://graph-only.invalid:8470'
"""The address of a system that is made up; as it is an address, TensorFlow takes `JOB`."""


def made_up(size: Topology, job: str | None = None) -> Any:
    """Returns the `TPUSystemMetadata` of a system that does not exist; its job is `JOB` if `None`.
    """
    return tf.tpu.experimental.TPUSystemMetadata(
        num_cores=size.num_cores, num_hosts=size.num_hosts,
        num_of_cores_per_host=size.cores_per_host, topology=_of_chips(size),
        devices=[_tf.device_attributes(f'/job:{job or JOB}/replica:0/task:{host}/device:{device}')
                 for host in range(size.num_hosts)
                 for device in ('CPU:0', *map('TPU:{}'.format, range(size.cores_per_host)))])


def _of_chips(size: Topology) -> Any:
    """Returns a topology of chips with two cores, as replicas of several cores need it.

    The eight cores of a host are 2 x 2 chips, as in the systems v2 and v3.
    """
    cores = 2 - size.cores_per_host % 2
    chips = size.cores_per_host // cores
    width = 2 if chips % 4 == 0 else 1
    height = chips // width
    return tf.tpu.experimental.Topology(
        mesh_shape=[width, height * size.num_hosts, 1, cores],
        device_coordinates=[[[chip % width, host * height + chip // width, 0, core]
                             for chip in range(chips) for core in range(cores)]
                            for host in range(size.num_hosts)])


def tpu_topology(system: Topology) -> Any:
    """Returns the `tf.tpu.experimental.Topology`: core `c` of host `h` is at `(c, h, 0, 0)`."""
    return tf.tpu.experimental.Topology(
        mesh_shape=[system.cores_per_host, system.num_hosts, 1, 1],
        device_coordinates=[[[core, host, 0, 0] for core in range(system.cores_per_host)]
                            for host in range(system.num_hosts)])
