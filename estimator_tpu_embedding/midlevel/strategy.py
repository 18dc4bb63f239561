"""The emulated `tf.distribute.TPUStrategy`: replicas on logical CPU devices of this process.

TensorFlow has three classes of that name with different arguments, so there are three here too.
`isinstance` with any of the three is true for all of them.

Keras treats every class whose `__name__` begins with `TPUStrategy` as one of a TPU, and these must
be treated so. Each emulated host has an input of its own, as on a TPU. Only for a TPU does Keras
put predictions back into the order of their samples. It also keeps metrics as on a TPU.

A TPU's host hands ids over before the step begins, so a step can enqueue its own arguments only.
For jobs that go back to hardware that is checked, in TensorFlow's words. TensorFlow also refuses
ids that a dataset has fetched to a device; nothing in a graph here tells where ids are.

The iterator of a dataset has a thread that tunes its buffers and parallel calls. The iterator of a
distributed dataset has one per host and one per replica. Each sleeps up to a minute between two
looks. An iterator that ends wakes its thread before it says that it ends. On busy cores the thread
looks too early and sleeps again, and the end of the iterator waits for it. So there are no tuners.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from .. import defaults
from .._tf import distribute
from ..core.specs import Topology
from ..errors import CallError, InputShapeError, Problem, SetupError, UnsupportedError
from ..hosts.untuned_datasets import untuned, without_tuner
from ..native.eager_variable import EagerTableVariable
from .table_variables import create_owned

_PER_REPLICA = tf.distribute.InputReplicationMode.PER_REPLICA


class InputOptions(tf.distribute.InputOptions):
    """`tf.distribute.InputOptions`, which takes the name that TensorFlow 2.3 had for an option."""

    __slots__ = ()

    def __new__(cls, experimental_fetch_to_device: bool | None = None, *args: Any,
                experimental_prefetch_to_device: bool | None = None, **kwargs: Any
                ) -> InputOptions:
        """Makes the options.

        Args:
          experimental_fetch_to_device: `False` leaves the elements of datasets on the host, as
            features for TPUEmbedding need it; `None` is `True`.
          *args: the other arguments of TensorFlow's class.
          experimental_prefetch_to_device: the old name of the first.
          **kwargs: see `args`.

        Raises:
          TypeError: if the two names contradict each other.
        """
        given = {experimental_fetch_to_device, experimental_prefetch_to_device} - {None}
        if len(given) > 1:
            raise TypeError('experimental_prefetch_to_device is the old name of '
                            'experimental_fetch_to_device: give one of them')
        options: InputOptions = super().__new__(cls, next(iter(given), None), *args, **kwargs)
        return options


def configure_devices(count: int) -> None:
    """Makes `count` or more logical CPU devices, unless they exist.

    It may be called when operations have run already. Sessions keep their one CPU.

    Raises:
      SetupError: if somebody has set a smaller number above 1, because that cannot be changed.
    """
    if count == 1:
        return
    found = len(tf.config.list_logical_devices('CPU'))
    if 1 < found < count:
        raise SetupError(Problem(
            'E007', 'tf.config', f'a TPUStrategy of {count} replicas needs {count} logical CPU '
            'devices, and their number can be set once only', f'{found}',
            'Call install(hosts=..., cores=...) for the largest system before the first strategy '
            'is made, and leave the devices to it.'))
    if found < count:
        # For the largest strategy that may follow, because the number can be set only once.
        distribute.add_logical_cpus(max(count, defaults.current().system.topology.num_cores))


class Extended(distribute.mirrored_extended()):  # type: ignore[misc]
    """The `extended` of an emulated strategy: its devices, datasets and session configs.

    Attributes:
      steps_per_run: for Keras, which asks for it.
      resolver: the resolver that the strategy was given, or `None`.
      is_spmd: whether tensors may not be assigned to one of the cores of a replica.
    """

    experimental_between_graph = False
    _input_workers_devices: Any

    def __init__(self, strategy: Any, resolver: Any, assignment: Any, is_spmd: bool = False,
                 steps_per_run: int | None = None):
        """Makes the `extended` of a strategy that is being made.

        Args:
          resolver: says the size of the system; if it is `None`, the system of `install()`.
          assignment: of replicas to cores, or `None` for a replica on each core.
        """
        system = defaults.system_of(resolver).topology
        hosts = _hosts_of_replicas(system, assignment)
        configure_devices(len(hosts))
        devices = [f'/cpu:{replica}' for replica in range(len(hosts))]
        # In one process no collectives are needed; they would start threads that wait for others.
        super().__init__(strategy, devices, tf.distribute.ReductionToOneDevice())
        self.steps_per_run = 1 if steps_per_run is None else steps_per_run
        self.resolver, self.is_spmd = resolver, is_spmd
        # What `strategy.run` calls, while it is traced, by the context of the replica.
        self._steps: weakref.WeakKeyDictionary[Any, _Step] = weakref.WeakKeyDictionary()
        # TensorFlow reads this attribute of classes of this name.
        self._device_assignment = assignment
        self._cores_per_host = system.cores_per_host
        cpu = self._input_workers_devices[0][0]
        self._input_workers_devices = tuple(
            (cpu, tuple(device for device, its in zip(self.worker_devices, hosts) if its == host))
            for host in sorted(set(hosts)))

    @property
    def num_hosts(self) -> int:
        """The number of emulated hosts that feed a replica."""
        return len(self._input_workers_devices)

    @property
    def num_replicas_per_host(self) -> int:
        """The number of replicas of a host."""
        return min(self._cores_per_host, self._num_replicas_in_sync)

    @property
    def tpu_hardware_feature(self) -> Any:
        """A `tf.tpu.experimental.HardwareFeature`: there is an accelerator for tables, V1."""
        return tf.tpu.experimental.HardwareFeature(distribute.hardware_with_accelerator())

    @property
    def _tpu_devices(self) -> Any:
        """Refuses: only TPUEmbeddingV2, for tables on SparseCores, asks a strategy for this."""
        raise UnsupportedError(Problem(
            'E924', 'TPUEmbeddingV2', 'the emulated TPU has no SparseCores, as '
            'strategy.extended.tpu_hardware_feature.embedding_feature says',
            remedy='Use tf.tpu.experimental.embedding.TPUEmbedding.'))

    def check_inputs(self, context: Any, paths: Sequence[str], flat: Sequence[Any]) -> None:
        """Refuses an `enqueue` that a TPU could not make before the step begins.

        Raises:
          CallError: a RuntimeError, in a loop, a condition or a function within the step.
          InputShapeError: a ValueError, for ids that are no arguments of the step.
        """
        graph, step = tf.compat.v1.get_default_graph(), self._steps.get(context)
        if step is not None and graph is not step.graph:
            raise CallError(Problem(
                'E540', 'enqueue', f'Current graph {graph} does not match graph which contains '
                f'TPUReplicateContext {step.graph}. This is most likely due to the fact that '
                'enqueueing embedding data is called inside control flow or a tf.function inside '
                '`strategy.run`. This is not supported because outside compilation fails to '
                'extract the enqueue ops as the head of a computation',
                remedy='Call enqueue in the function that strategy.run calls, or around it.'))
        arguments = frozenset() if step is None else step.arguments
        for path, tensor in _components(paths, flat):
            if tensor.op.type == 'Placeholder' or tensor.ref() in arguments:
                continue
            raise InputShapeError(Problem(
                'E539', 'enqueue', f'Received input tensor {path} which is the output of op '
                f'{tensor.op.name} (type {tensor.op.type}) which does not have the '
                '`_tpu_input_identity` attr. Please ensure that the inputs to this layer are taken '
                'directly from the arguments of the function called by strategy.run', remedy=(
                    'Compute ids in the dataset. With a Keras model, the types of inputs must be '
                    'those of the `tf.keras.Input`s.')))

    @contextlib.contextmanager
    def experimental_logical_device(self, logical_device_id: int) -> Iterator[None]:
        """Returns a context that changes nothing, because a replica has one core.

        Raises:
          ValueError: for another core than 0.
        """
        if logical_device_id >= 1:
            raise ValueError(f'`logical_device_id` not in range (was {logical_device_id}, but '
                             'there are only 1 logical devices per replica).')
        yield

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        _check_options(options)
        _check_fetched(dataset.element_spec, options)
        distributed = super()._experimental_distribute_dataset(dataset, options)
        # To divide the last batch, TensorFlow must know the size of batches, which it does not
        # find in a dataset that was rewritten. So the datasets of hosts are rewritten after that.
        distribute.change_datasets(
            distributed, functools.partial(without_tuner, options=dataset.options()))
        return without_device_tuners(distributed)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any
                                           ) -> Any:
        _check_options(options)

        def checked(context: Any) -> Any:
            dataset = dataset_fn(context)
            _check_fetched(dataset.element_spec, options)
            return without_tuner(dataset)

        return without_device_tuners(
            super()._distribute_datasets_from_function(checked, options))

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        @tf.autograph.experimental.do_not_convert
        def note_and_call(*args: Any, **kwargs: Any) -> Any:
            self._steps[tf.distribute.get_replica_context()] = _Step(
                tf.compat.v1.get_default_graph(), frozenset(
                    tensor.ref() for tensor in tf.nest.flatten((args, kwargs), True)
                    if isinstance(tensor, tf.Tensor)))
            return fn(*args, **kwargs)

        # A tf.function is traced first, and its arguments are placeholders then.
        is_traced_first = isinstance(fn, tf.types.experimental.GenericFunction)
        return super()._call_for_each_replica(fn if is_traced_first else note_and_call, args,
                                              kwargs)

    def _validate_colocate_with_variable(self, colocate_with_variable: Any) -> None:
        """Accepts tables too, whose slots an optimizer of Keras makes; no replica has copies."""
        if not (isinstance(colocate_with_variable, EagerTableVariable)
                and self.variable_created_in_scope(colocate_with_variable)):
            super()._validate_colocate_with_variable(colocate_with_variable)

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Makes the slots of a table like the table, also when a checkpoint has them first."""
        if isinstance(kwargs.get('colocate_with'), EagerTableVariable):
            return create_owned(self._container_strategy(), next_creator, **kwargs)
        return super()._create_variable(next_creator, **kwargs)

    def _update_config_proto(self, config_proto: Any) -> Any:
        """Gives sessions, which have devices of their own, as many CPUs as there are replicas."""
        config = super()._update_config_proto(config_proto)
        config.device_count['CPU'] = max(config.device_count['CPU'], self._num_replicas_in_sync)
        return config


def is_tpu_strategy(strategy: Any) -> bool:
    """Returns whether a strategy is an emulated TPUStrategy."""
    return isinstance(strategy, _Emulated)


class _AnyOfThree(type):
    """The metaclass of the three classes: an instance of one is an instance of each."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls in _NAMES_OF_TENSORFLOW and is_tpu_strategy(instance))


class _Emulated:
    """The common part of the three classes."""

    extended: Any

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (),
            kwargs: dict[str, Any] | None = None, options: Any = None) -> Any:
        """Calls a function on every replica.

        Args:
          fn: a `tf.function`, or any function where one is being traced.
          args: the arguments of each call; a `tf.distribute.DistributedValues` is replaced by the
            replica's part.
          kwargs: like `args`.
          options: a `tf.distribute.RunOptions`, which changes nothing here.

        Returns:
          The results of the calls, as `tf.distribute.DistributedValues`.

        Raises:
          UnsupportedError: if the function would run eagerly; a TPU cannot do that either.
        """
        if tf.executing_eagerly() and not any(isinstance(one, (
                tf.types.experimental.GenericFunction, tf.types.experimental.ConcreteFunction))
                for one in (fn, getattr(fn, '__call__', None))):
            raise UnsupportedError(Problem(
                'E921', 'TPUStrategy.run', 'TPUStrategy.run(fn, ...) does not support pure eager '
                'execution. please make sure the function passed into `strategy.run` is a '
                '`tf.function` or `strategy.run` is called inside a `tf.function` if eager '
                'behavior is enabled'))
        return super().run(fn, args, kwargs, options)  # type: ignore[misc]

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that the strategy was given, otherwise one that finds the same system."""
        if self.extended.resolver is None:
            # By its name in TensorFlow, where install() has put the emulated one.
            self.extended.resolver = tf.distribute.cluster_resolver.TPUClusterResolver('local')
        return self.extended.resolver

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Returns the tensor, because a replica has one core.

        Raises:
          ValueError: for another core than 0, or if the strategy was told to split by itself.
        """
        if self.extended.is_spmd:
            raise ValueError(
                'Cannot assign a tensor to a logical device in SPMD mode. To disable SPMD, Please '
                'construct the TPUStrategy with `experimental_spmd_xla_partitioning=False`')
        if logical_device_id != 0:
            raise ValueError(
                '`logical_core_id` to assign must be lower then total number of logical devices '
                f'per replica. Received logical device id {logical_device_id} but there are only '
                'total of 1 logical devices in replica.')
        return tensor

    def experimental_split_to_logical_devices(self, tensor: Any,
                                              partition_dimensions: Sequence[int]) -> Any:
        """Returns the tensor, because a replica has one core.

        Args:
          tensor: of known rank.
          partition_dimensions: the number of parts of each dimension; all must be 1.

        Raises:
          ValueError: for other numbers.
        """
        rank = tensor.shape.rank
        if rank != len(partition_dimensions):
            raise ValueError('Length of `partition_dimensions` must equal to the rank of '
                             f'`tensor.shape` ({rank}). Received '
                             f'len(partition_dimensions)={len(partition_dimensions)}.')
        if any(parts != 1 for parts in partition_dimensions):
            raise ValueError('The product of `partition_dimensions` should be the same as the '
                             'number of logical devices (=1). Received `partition_dimensions`='
                             f'{partition_dimensions}.')
        return tensor

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Returns the tensor, because a replica has one core."""
        return tensor


class TPUStrategyV2(_Emulated, tf.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.distribute.TPUStrategy`."""

    def __init__(self, tpu_cluster_resolver: Any = None,
                 experimental_device_assignment: Any = None,
                 experimental_spmd_xla_partitioning: bool = False):
        """Makes replicas on logical CPU devices.

        Args:
          tpu_cluster_resolver: a `TPUClusterResolver` of this package; each core of its system gets
            a replica. `None` is the system that `install()` was given.
          experimental_device_assignment: a `tf.tpu.experimental.DeviceAssignment` of fewer
            replicas, each on one core.
          experimental_spmd_xla_partitioning: changes nothing for replicas of one core.

        Raises:
          SetupError: if there are too few logical CPU devices, and it is too late for more.
          UnsupportedError: for replicas of several cores.
        """
        # Skips the constructor of MirroredStrategy, which makes its own `extended`.
        super(tf.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, experimental_device_assignment,
            experimental_spmd_xla_partitioning))


class TPUStrategy(_Emulated, tf.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.distribute.experimental.TPUStrategy`."""

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None):
        """Makes replicas as `TPUStrategyV2` does, with the same arguments and errors."""
        super(tf.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, device_assignment))


class TPUStrategyV1(_Emulated, tf.compat.v1.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.compat.v1.distribute.experimental.TPUStrategy`."""

    def __init__(self, tpu_cluster_resolver: Any = None, steps_per_run: int | None = None,
                 device_assignment: Any = None):
        """Makes replicas as `TPUStrategyV2` does; `steps_per_run` changes nothing."""
        super(tf.compat.v1.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, device_assignment, steps_per_run=steps_per_run))

    @property
    def steps_per_run(self) -> int:
        """The number that the strategy was given, or 1."""
        return int(self.extended.steps_per_run)


_NAMES_OF_TENSORFLOW = TPUStrategyV2, TPUStrategy, TPUStrategyV1


def _hosts_of_replicas(system: Topology, assignment: Any) -> list[int]:
    """Returns the host of each replica; refuses replicas of several cores."""
    if assignment is None:
        return [host for host in range(system.num_hosts) for _ in system.cores_of(host)]
    if assignment.num_cores_per_replica != 1:
        raise UnsupportedError(Problem(
            'E922', 'TPUStrategy', 'a replica has one core: the model is not split',
            f'a device assignment of {assignment.num_cores_per_replica} cores per replica',
            'Build it with num_replicas alone, or leave it out.'))
    return [tf.DeviceSpec.from_string(assignment.host_device(replica)).task
            for replica in range(assignment.num_replicas)]


def _check_options(options: Any) -> None:
    """Refuses options that a TPUStrategy refuses: a dataset per replica."""
    if options is not None and options.experimental_replication_mode == _PER_REPLICA:
        raise UnsupportedError(Problem(
            'E923', 'InputOptions', 'InputReplicationMode.PER_REPLICA is only supported in '
            '`experimental_distribute_datasets_from_function` of tf.distribute.MirroredStrategy',
            remedy='Leave it out: there is a dataset per host.'))


def _check_fetched(element_spec: Any, options: Any) -> None:
    """Refuses sparse and ragged elements that cannot be fetched to a TPU, as a TPU does."""
    if options is not None and not options.experimental_fetch_to_device:
        return
    for spec in tf.nest.flatten(element_spec):
        if isinstance(spec, (tf.SparseTensorSpec, tf.RaggedTensorSpec)):
            raise InputShapeError(Problem(
                'E525', 'distributed dataset', 'TPUStrategy does not support distributed datasets '
                'with device prefetch when using sparse or ragged tensors', str(spec),
                'If you intend to use sparse or ragged tensors, please pass a '
                'tf.distribute.InputOptions object with experimental_fetch_to_device set to False '
                'to your dataset distribution function.'))


class _Step(NamedTuple):
    graph: tf.Graph
    arguments: frozenset[Any]


def _components(paths: Sequence[str], flat: Sequence[Any]) -> list[tuple[str, tf.Tensor]]:
    return [(path, tensor) for path, value in zip(paths, flat)
            for tensor in tf.nest.flatten(value, True)
            if isinstance(tensor, tf.Tensor) and hasattr(tensor, 'graph')]


def without_device_tuners(distributed: Any) -> Any:
    """Changes a new distributed dataset so that its replicas have no tuning threads.

    A replica takes what its host has prepared, and has nothing to tune.
    """
    distributed.__class__ = _class_without_tuners(distributed.__class__)
    return distributed


@functools.cache
def _class_without_tuners(base: Any) -> Any:
    """Returns a class derived from one of TensorFlow's distributed datasets."""

    class Distributed(base):
        """The class, as it is in this process and as an argument of a `tf.function`."""

        def __iter__(self) -> Any:
            iterator = super().__iter__()
            distribute.set_device_options(iterator, untuned())
            return iterator

        @property
        def _type_spec(self) -> Any:
            spec = super()._type_spec
            spec.__class__ = _spec_without_tuners(spec.__class__)
            return spec

    Distributed.__name__ = base.__name__  # As users see it in messages.
    return Distributed


@functools.cache
def _spec_without_tuners(base: Any) -> Any:
    """Returns the class of specs whose values, arguments of a `tf.function`, have no tuners."""

    class Spec(base):
        """The class of specs."""

        __slots__ = ()

        def _from_components(self, components: Any) -> Any:
            return without_device_tuners(super()._from_components(components))

    return Spec
