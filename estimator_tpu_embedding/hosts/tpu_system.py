"""Finds a TPU, makes up that of graphs that nobody runs, and describes the emulated system as one.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.specs import Topology
from ..errors import Problem, shown

JOB = 'tpu_worker'
MADE_UP = 'grpc://graph-only.invalid:8470'
"""The address of a system that is made up; as it is an address, TensorFlow takes `JOB`."""

PATIENCE = 5.0
"""Seconds in which a TPU must answer."""


def problem_of(address: str, cluster_def: Any = None) -> Problem | None:
    """Returns why there is no TPU at the address of a session, or `None`; `''` is this machine."""
    config = tf.ConfigProto(operation_timeout_in_ms=int(PATIENCE * 1000), cluster_def=cluster_def)
    try:
        with tf.Session(address, tf.Graph(), config) as session:
            found = [device.name for device in session.list_devices()]
        if any('/device:TPU:' in name for name in found):
            return None
        got = f'{len(found)} devices: {shown(", ".join(found), 200)}'
    except tf.errors.OpError as error:
        got = f'{type(error).__name__}: {shown(error, 200)}'
    where = shown(repr(address)) if address else 'this machine'
    return Problem(
        'E939', f'TPU at {where}', f'a device of the type TPU must answer within {PATIENCE:.0f} '
        'seconds', got, ('Look whether it is ready and the address is right' if address else
                         'State the address as RunConfig(master=...)')
        + ', or leave out backend="tpu" (etpe run --backend) for an emulated system.')


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
