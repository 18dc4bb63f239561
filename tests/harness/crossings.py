"""Counts what crosses between the tasks of a cluster in one run of a session.

The run is made with `options=OPTIONS` and a `tf.RunMetadata`, which the functions read. Pairs are
(sender, receiver), for example `('tpu_worker 0', 'coordinator 0')`.
"""

import collections

import tensorflow.compat.v1 as tf

OPTIONS = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)


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


def traced(session, fetches):
    """The values of a run, and its metadata."""
    metadata = tf.RunMetadata()
    return session.run(fetches, options=OPTIONS, run_metadata=metadata), metadata
