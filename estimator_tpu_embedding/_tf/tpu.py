"""Modules and contexts of `tensorflow.python.tpu`, and the modules that `tf.contrib` had."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any


def tpu_shard_context(number_of_shards: int) -> Any:
    """Returns the context in which TPU columns and `CrossShardOptimizer` see replicas.

    It is thread-local, so every tower enters its own. It has no public name.
    """
    from tensorflow.python.tpu import tpu_function
    return tpu_function.tpu_shard_context(number_of_shards)


@contextlib.contextmanager
def inference_on_tpu() -> Iterator[None]:
    """Builds operations of an exported graph that runs on a TPU; there is no public name."""
    from tensorflow.python.tpu import tpu
    context = tpu._TPUInferenceContext('tpu_inference', check_ops=False)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()


def is_inference_on_tpu() -> bool:
    """Whether the default graph, or the graph around its function, is in `inference_on_tpu`."""
    from tensorflow.python.tpu import tpu
    return bool(tpu.under_tpu_inference_context())


@contextlib.contextmanager
def as_on_cpu() -> Iterator[None]:
    """Lets columns for TPUs make their variables, in a computation that a TPU is to do.

    Layers ask each column to. It does so only where no replicas are counted, so a TPU graph of an
    export would lack them. No public name stops the count. It is that of this thread.
    """
    from tensorflow.python.tpu import tpu_function
    context = tpu_function.get_tpu_context()
    before = context.number_of_shards
    context.set_number_of_shards(None)
    try:
        yield
    finally:
        context.set_number_of_shards(before)


def with_attribute(name: str, number: int) -> Any:
    """Returns a context in which the operations of the default graph get an integer attribute."""
    import tensorflow.compat.v1 as tf
    return tf.get_default_graph()._attr_scope({name: tf.AttrValue(i=number)})


def tpu_ops_modules() -> tuple[Any, Any]:
    """Returns the handwritten and the generated module of operations of a TPU.

    `compat.install` replaces functions whose operations have no CPU kernel: those that feed a TPU
    in both, and in the first `cross_replica_sum`, which `CrossShardOptimizer` calls there.
    """
    from tensorflow.python.ops import gen_tpu_ops
    from tensorflow.python.tpu.ops import tpu_ops
    return tpu_ops, gen_tpu_ops


def has_kernel(operation: str) -> bool:
    """Whether this TensorFlow has a kernel of an operation."""
    from tensorflow.python.framework import kernels
    return bool(kernels.get_registered_kernels_for_op(operation).kernel)


def tpu_cluster_resolver_module() -> Any:
    """Returns the module of `TPUClusterResolver`, for `compat.install`."""
    from tensorflow.python.distribute.cluster_resolver.tpu import tpu_cluster_resolver
    return tpu_cluster_resolver


def modules_of_contrib() -> dict[str, Any]:
    """Returns, by name, modules that are left of `tf.contrib`.

    They were in `tensorflow.contrib.tpu.python.tpu`, or are the source of `contrib.summary` and
    `contrib.framework.nest`. Public names write other summaries and have fewer functions. In `tpu`,
    `replicate` and its kin call `split_compile_and_replicate`, which `compat.install` replaces.
    """
    from tensorflow.python.framework import smart_cond
    from tensorflow.python.ops import summary_ops_v2
    from tensorflow.python.tpu import (
        bfloat16,
        device_assignment,
        feature_column,
        topology,
        tpu,
        tpu_function,
        tpu_optimizer,
        training_loop,
    )
    from tensorflow.python.util import nest
    return {module.__name__.rpartition('.')[2]: module for module in (
        bfloat16, device_assignment, feature_column, nest, smart_cond, summary_ops_v2, topology,
        tpu, tpu_function, tpu_optimizer, training_loop)}


def keep_arg_scopes_by_thread(module: Any) -> None:
    """Gives each thread arg scopes of its own in `tf_slim.ops.arg_scope`, which has one stack.

    Replicas are built by a thread each, which begins with a copy of the scopes around it, and they
    take turns. Checked: tf-slim 1.1.0.
    """
    stacks: contextvars.ContextVar[tuple[list[Any], int]] = contextvars.ContextVar('arg_scopes')

    def stack() -> list[Any]:
        found, thread = stacks.get(([{}], 0))
        if thread != threading.get_ident():
            found, thread = list(found), threading.get_ident()
            stacks.set((found, thread))
        if not found:  # A scope that could not begin ends all the same.
            found.append({})
        return found

    module._get_arg_stack = stack


def create_slots(optimizer: Any, table: Any, create: Callable[..., Any]) -> dict[str, Any]:
    """Makes the slots of a table, by name, for an optimizer of `tf.tpu.experimental.embedding`.

    Its `slot_variable_creation_fn` makes them, otherwise `create(name, initializer)`. There is no
    public name.
    """
    return dict(optimizer._create_slots(table, create))


def job_of_tpu(master: str | None, cluster_def: Any) -> str | None:
    """Returns the job of the workers of a TPU at `master`, or `None` for this machine.

    Raises:
      ValueError: if the cluster does not tell.
    """
    from tensorflow.python.tpu import tpu_system_metadata
    found: str | None = tpu_system_metadata.master_job(master, cluster_def)
    return found


def tpu_metadata(master: str, cluster_def: Any, query_topology: bool) -> Any:
    """Returns the `TPUSystemMetadata` of the TPU at `master`, which must answer."""
    from tensorflow.python.tpu import tpu_system_metadata
    return tpu_system_metadata._query_tpu_system_metadata(master, cluster_def, query_topology)


def device_attributes(name: str) -> Any:
    """Returns a device as `session.list_devices` does."""
    from tensorflow.python.client import session
    return session._DeviceAttributes(name, name.rpartition(':')[0].rpartition(':')[2], 0, 0)
