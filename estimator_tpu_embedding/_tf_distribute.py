"""What `_distribution.py` borrows from `tensorflow.python.*`, in the manner of `_tf.py`.

A file of its own, since nothing else runs strategies over processes.
"""

from __future__ import annotations

from typing import Any


def coordinator() -> Any:
    """The module that configures a strategy for a process of a cluster and starts its server.

    Its `run_distribute_coordinator` has no public name; Keras has copies of its own, which know
    no evaluators. Checked: 2.16-2.21.
    """
    from tensorflow.python.distribute import distribute_coordinator
    return distribute_coordinator


def task() -> Any:
    """What the coordinator says of the process or thread in which it calls: type, id, address.

    Checked: 2.16-2.21.
    """
    from tensorflow.python.distribute import distribute_coordinator_context
    return distribute_coordinator_context.get_current_worker_context()
