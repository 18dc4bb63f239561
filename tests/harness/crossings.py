"""Counts what crosses between the tasks of a cluster in one run of a session: messages and bytes.

    python -m harness.crossings

is no program; import it. A run is traced with `OPTIONS`; `messages` and `bytes_sent` read the
`tf.RunMetadata` of it. Both give a Counter by (sender, receiver), for example
`{('tpu_worker 0', 'coordinator 0'): 3}`.
"""

import collections
import re

import tensorflow.compat.v1 as tf

OPTIONS = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
_SIZE = re.compile(r'\[([\d.]+)([KMG]?B)\]')
_UNITS = {'B': 1, 'KB': 2**10, 'MB': 2**20, 'GB': 2**30}


def task_of(device):
    """The task of a device: 'tpu_worker 1'."""
    spec = tf.DeviceSpec.from_string(device)
    return f'{spec.job} {spec.task}'


def sends_of(metadata):
    """The nodes that send to another task: (sender, receiver, node)."""
    for graph in metadata.partition_graphs:
        for node in graph.node:
            if node.op in ('_Send', '_HostSend') and not node.attr['client_terminated'].b:
                pair = tuple(task_of(node.attr[end].s.decode())
                             for end in ('send_device', 'recv_device'))
                if pair[0] != pair[1]:
                    yield *pair, node


def messages(metadata):
    """How many tensors and control edges cross from one task to another."""
    return collections.Counter((sender, receiver) for sender, receiver, _ in sends_of(metadata))
