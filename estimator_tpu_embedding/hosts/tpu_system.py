"""Finds the TPU of a job, or makes up a system for graphs that nobody runs.

TensorFlow itself asks an address for a day. Here a system that is not there is an error at once.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.specs import Topology
from ..errors import Problem, UnsupportedError, shown

JOB = 'tpu_worker'
MADE_UP = 'grpc://graph-only.invalid:8470'
"""The address of a system that is made up; as it is an address, TensorFlow takes `JOB`."""

_DEADLINE = 5000  # milliseconds
_REMEDY = ('Run the job on a TPU VM with tensorflow-tpu, or give RunConfig the grpc:// address of '
           'one. "etpe run --backend tpu --graph-only DIR" writes the graphs without a TPU, and '
           'without --backend the job runs on an emulated system.')


def made_up(size: Topology) -> Any:
    """Returns the `TPUSystemMetadata` of a system that does not exist."""
    return tf.tpu.experimental.TPUSystemMetadata(
        num_cores=size.num_cores, num_hosts=size.num_hosts,
        num_of_cores_per_host=size.cores_per_host, topology=_of_chips(size),
        devices=[_tf.device_attributes(f'/job:{JOB}/replica:0/task:{host}/device:{device}')
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


def found_at(master: str | None, cluster_def: Any, query_topology: bool) -> Any:
    """Returns the `TPUSystemMetadata` of the system at an address; `''` is this machine.

    Raises:
      UnsupportedError: if there is none, after five seconds at most.
    """
    wanted = ('a TPU of this machine' if master in (None, '', 'local')
              else f'a TPU at {shown(repr(master))}')
    try:
        with tf.Graph().as_default(), tf.Session(master or '', config=tf.ConfigProto(
                operation_timeout_in_ms=_DEADLINE, cluster_def=cluster_def)) as session:
            devices = session.list_devices()
    except tf.errors.OpError as error:
        raise _not_found(wanted, f'{type(error).__name__}: {shown(error.message, 160)}') from error
    if not any(device.device_type == 'TPU' for device in devices):
        raise _not_found(wanted, f'{len(devices)} devices, none of them a TPU')
    return _tf.query_tpu_system(master or '', cluster_def, query_topology)


def _not_found(wanted: str, got: str) -> UnsupportedError:
    return UnsupportedError(Problem('E939', 'backend "tpu"', f'there must be {wanted}', got,
                                    _REMEDY))
