"""Emulates `tf.tpu`: replicas of a computation, sums over them, and `CrossShardOptimizer`.

In a TPUEstimator the replicas are the cores. TensorFlow's own `shard`, `batch_parallel`, `rewrite`
and `replicate` split and join the tensors of replicas. They call `split_compile_and_replicate` to
make the replicas. `install()` puts the function of this module in its place, which makes a replica
per emulated core.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf, defaults
from ..errors import Problem, UnsupportedError
from ..hosts.placement import on
from ..hosts.tpu_system import tpu_topology
from ..runner.gradient_capture import DUMMY_COLLECTION
from ..runner.replica_sums import cross_replica_sums
from ..runner.towers import Towers, current_core
from . import tpu_addresses

_apply_by_tensorflow: Any = tf.tpu.CrossShardOptimizer.apply_gradients  # Before `install()`.
_sum_by_tensorflow: Any = tf.tpu.cross_replica_sum
_replicate_by_tensorflow: Any = _tf.modules_of_contrib()['tpu'].split_compile_and_replicate
_TOWERS = ('estimator_tpu_embedding', 'towers')  # No string, so that no MetaGraph lists it.
_SEPARATE = frozenset({
    tf.train.AdadeltaOptimizer, tf.train.AdagradDAOptimizer, tf.train.AdagradOptimizer,
    tf.train.AdamOptimizer, tf.train.FtrlOptimizer, tf.train.GradientDescentOptimizer,
    tf.train.MomentumOptimizer, tf.train.ProximalAdagradOptimizer,
    tf.train.ProximalGradientDescentOptimizer, tf.train.RMSPropOptimizer})
"""Optimizers that change each variable alike whichever others they get; others may count them."""


def split_compile_and_replicate(
        computation: Callable[..., Any], inputs: Sequence[Sequence[Any]] | None = None,
        infeed_queue: Any = None, device_assignment: Any = None, name: str | None = None,
        use_tpu: bool = True, maximum_shapes: Any = None, padding_spec: Any = None,
        xla_options: Any = None) -> tuple[tf.Operation, list[Any]]:
    """Builds one replica of a computation per entry of `inputs`, in the default graph.

    A fetch from one replica runs all of them, as on the hardware. Only the first replica changes
    variables: `CrossShardOptimizer` gives it the sum of the gradients. Other side effects happen
    in every replica. The computation returns tensors, then operations. The arguments that only
    place or compile it have no effect. In the TPU graph of an export it is TensorFlow's function.

    Returns:
      An operation that does nothing, and the output of `computation` for each replica. An output
      is a list of tensors, or a nested structure of them; without tensors it is an operation.
      Its tensors are computed after all operations of the replica have run.

    Raises:
      UnsupportedError: for an infeed queue, and in eager execution.
      ConfigError: if the replicas differ in their variables or their sums.
    """
    if _tf.is_inference_on_tpu():
        return _replicate_by_tensorflow(
            computation, inputs, infeed_queue, device_assignment, name, use_tpu, maximum_shapes,
            padding_spec, xla_options)
    if infeed_queue is not None:
        raise UnsupportedError(Problem(
            'E920', 'tf.tpu.shard', 'infeed_queue is not supported',
            remedy='Give the tensors as inputs.'))
    if tf.executing_eagerly() or tf.compat.v2.inside_function():
        raise UnsupportedError(Problem(
            'E917', 'tf.tpu.replicate', 'replicas of a computation need a graph',
            'eager execution', 'Call tf.compat.v1.disable_v2_behavior(), or build them in "with '
            'tf.Graph().as_default():".'))
    arguments = [tf.nest.map_structure(tf.convert_to_tensor, list(own), expand_composites=True)
                 for own in (inputs or [[]])]
    made, graph = _towers(len(arguments)), tf.get_default_graph()

    def build(core: int) -> Any:
        with on(tpu_addresses.device_of_replica(graph, core, len(arguments))):
            return computation(*arguments[core])

    try:
        outputs = [_structured(result) for result in made.build(build)]
    except BaseException:  # What they hold is half a computation.
        tf.get_collection_ref(_TOWERS).remove(made)
        raise
    for operations in made.operations():
        _refuse_references(operations)
    every = [part for output in outputs for part in tf.nest.flatten(
        output, expand_composites=True) if part is not None and part not in made.silenced]
    with tf.control_dependencies(every):
        return tf.no_op('compile'), [_after_all(output) for output in outputs]


def _towers(count: int) -> Towers[Any]:
    """Returns the towers of the default graph; an earlier computation's hold its variables."""
    made = tf.get_collection_ref(_TOWERS)
    for each in made:
        if each.count == count:
            return each
    made.append(Towers[Any](count))
    return made[-1]


def _refuse_references(operations: Sequence[tf.Operation]) -> None:
    """Refuses variables of the old kind, as the original does: each replica would change them."""
    for operation in operations:
        if any(each.dtype.name.endswith('_ref') for each in operation.inputs):
            raise NotImplementedError(
                'Non-resource Variables are not supported inside TPU computations (operator name: '
                f'{operation.name})')


def _structured(result: Any) -> Any:
    """Returns the output of a computation with all values as tensors; a list if it is flat."""
    result = () if result is None else result
    is_nested = isinstance(result, dict) or isinstance(result, (list, tuple)) and any(
        isinstance(part, (list, tuple, dict)) for part in result)
    if not is_nested:
        result = tf.nest.flatten(result)
    return tf.nest.map_structure(
        lambda part: part if part is None or isinstance(
            part, (tf.Operation, tf.SparseTensor, tf.RaggedTensor))
        else tf.convert_to_tensor(part), result)


def _after_all(output: Any) -> Any:
    """Returns the tensors of an output, to be computed after its operations have run."""
    if isinstance(output, list):
        tensors = [part for part in output if not isinstance(part, tf.Operation)]
        if output != tensors + output[len(tensors):]:
            raise ValueError('TPU functions must return zero-or more Tensor values followed by '
                             'zero or more Operations.')
        output = tensors
    if not tf.nest.flatten(output):
        return tf.no_op('replica')
    return tf.nest.map_structure(
        lambda part: None if part is None else tf.identity(part), output, expand_composites=True)


def initialize_system(embedding_config: Any = None, job: str | None = None,
                      compilation_failure_closes_chips: bool = True,
                      tpu_cancellation_closes_chips: bool | None = None) -> tf.Tensor:
    """Returns the topology of the emulated system, which needs no initialisation.

    It is a serialized `TopologyProto`, a scalar string. The arguments are not used; a
    `TPUEmbedding` knows its own config.
    """
    return tf.constant(tpu_topology(defaults.current().system.topology).serialized())


def shutdown_system(job: str | None = None) -> tf.Operation:
    """Returns an operation that does nothing: the emulated system ends with the process."""
    return tf.no_op('shutdown_system')


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> tf.Tensor:
    """Sums a tensor over the replicas of the model.

    Args:
      x: a tensor of the same shape and dtype on every core.
      group_assignment: lists of cores that sum among themselves; `None` sums over all cores.
      name: of the operation of a real TPU.

    Returns:
      The sum, of the shape and dtype of `x`; `x` itself outside of replicas.

    Two cores that hold 1 and 10 both get 11. `install()` makes this function of TensorFlow's
    `tf.tpu.replicate`:

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     _, sums = split_compile_and_replicate(cross_replica_sum, [[1.0], [10.0]])
    ...     print([float(total) for total, in session.run(sums)])
    [11.0, 11.0]
    """
    if _tf.is_compiled_by_xla(tf.get_default_graph()):  # In a replica of a real TPU.
        return _sum_by_tensorflow(x, group_assignment, name)
    return cross_replica_sums({'a value': x}, group_assignment)['a value']


class CrossShardOptimizer(tf.tpu.CrossShardOptimizer):
    """TensorFlow's CrossShardOptimizer, which sums gradients over emulated cores.

    After `install()` TensorFlow's own class does the same. With one core it is the optimizer that
    it wraps: the gradient of `w * w` is 2, so `w` becomes `1 - 0.25 * 2`.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.get_variable('w', initializer=1.0)
    ...     optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.25))
    ...     train_op = optimizer.minimize(w * w)
    ...     session.run(tf.global_variables_initializer())
    ...     _ = session.run(train_op)
    ...     print(session.run(w))
    0.5
    """

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None,
                        name: str | None = None) -> tf.Operation:
        """Sums the gradients over all cores by variable, then applies the wrapped optimizer."""
        if _tf.is_compiled_by_xla(tf.get_default_graph()):  # In a replica of a real TPU.
            return _apply_by_tensorflow(self, grads_and_vars, global_step, name)
        pairs = list(grads_and_vars)
        counts: collections.Counter[str] = collections.Counter()
        keys = []
        for _, variable in pairs:
            number = counts[variable.name] = counts[variable.name] + 1
            keys.append(f'a gradient of "{variable.name}"' + f' ({number})' * (number > 1))
        sums = cross_replica_sums(
            {key: gradient for key, (gradient, _) in zip(keys, pairs) if gradient is not None},
            self._group_assignment, may_copy=True)
        summed = [(sums.get(key), variable) for key, (_, variable) in zip(keys, pairs)]
        if current_core() and type(self._opt) in _SEPARATE:
            summed = _without_dummies(summed)
        return self._opt.apply_gradients(summed, global_step, name)


def _without_dummies(pairs: list[Any]) -> list[Any]:
    """Leaves out the dummy variables of tables, unless there is nothing else to train.

    Only the first tower changes variables, so the others need not have operations for it.
    """
    dummies = {id(each) for each in tf.get_collection(DUMMY_COLLECTION)}
    others = [(gradient, each) for gradient, each in pairs if id(each) not in dummies]
    return others if any(gradient is not None for gradient, _ in others) else pairs
