"""The `TPUEmbedding` of TF2, which looks up rows and trains tables in functions on a CPU.

On a CPU, TensorFlow's class of that name can only hold tables.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .. import _tf, defaults
from ..core.specs import Topology
from ..errors import CallError, ConfigError, Problem
from ..ops.checks import not_inlined
from . import batch_queues, feature_configs, saved_model, shapes, table_variables
from .replica_inputs import Batches
from .replicas import Replicas, is_rehearsal, require_function, unbuilt
from .runtime import Runtime


def _of_today(feature_config: Any, optimizer: Any,
              pipeline_execution_with_tensor_core: bool = False) -> None:
    """The signature of TensorFlow 2.4 and later."""


def _of_2_3(feature_config: Any, batch_size: int, optimizer: Any,
            pipeline_execution_with_tensor_core: bool = False,
            initialize_tpu_embedding: bool = True) -> None:
    """The signature of TensorFlow 2.3."""


_TODAY = inspect.signature(_of_today)


def _bound(args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments by name, with defaults; an int in the second place is a batch size.

    >>> _bound(({}, 64, 'an optimizer'), {})['batch_size']
    64

    Raises:
      TypeError: as a call would.
    """
    is_of_2_3 = (len(args) > 1 and isinstance(args[1], int)
                 or not kwargs.keys().isdisjoint({'batch_size', 'initialize_tpu_embedding'}))
    found = (inspect.signature(_of_2_3) if is_of_2_3 else _TODAY).bind(*args, **kwargs)
    found.apply_defaults()
    return found.arguments


_AutoTrackable: Any = _tf.auto_trackable()
_as_written = tf.autograph.experimental.do_not_convert


class TPUEmbedding(_AutoTrackable):
    """Looks up rows of tables for features, and trains the tables by the rules of the TPU.

    It has the names, arguments and errors of `tf.tpu.experimental.embedding.TPUEmbedding` of
    TensorFlow 2.15 to 2.21, and takes the arguments of 2.3 too. The original needs a TPU; this
    class works in any `tf.function`. The strategy may be none, `OneDeviceStrategy`,
    `MirroredStrategy` over logical CPU devices, or the emulated `tf.distribute.TPUStrategy` of
    `install(hosts=, cores=)`. Except under a `TPUStrategy`, `embedding_tables` are trainable
    variables, as in the original. Functions in a SavedModel look up without this package.

    >>> api = tf.tpu.experimental.embedding
    >>> table = api.TableConfig(4, 2, tf.ones_initializer(), combiner='sum', name='video')
    >>> embedding = TPUEmbedding({'watched': api.FeatureConfig(table)}, api.SGD(.5))
    >>> @tf.function
    ... def step(ids):
    ...     embedding.enqueue({'watched': ids}, training=True)
    ...     activations = embedding.dequeue()
    ...     embedding.apply_gradients({'watched': tf.ones([2, 2])})
    ...     return activations['watched']
    >>> step(tf.constant([3, 3])).numpy().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    >>> embedding.embedding_tables[table].numpy()[3].tolist()  # 1 - .5 * (1 + 1)
    [0.0, 0.0]
    """

    __signature__ = _TODAY  # For `help` and editors.

    def __init__(self, *args: Any, **kwargs: Any):
        """Declares tables and features.

        Args:
          feature_config: a FeatureConfig or a nested structure of them. A TableConfig without an
            optimizer or a name is given one.
          optimizer: of `tf.tpu.experimental.embedding`, for tables without their own; `None`
            if tables are not trained.
          pipeline_execution_with_tensor_core: whether a step looks up before the step before it
            has updated. The update that waits at the end is made before tables are saved or read
            outside of functions, and before a batch with training=False is looked up.
          batch_size: in 2.3 the second argument, samples of all replicas per step.
          initialize_tpu_embedding: in 2.3, `False` lets one more object exist under one
            `TPUStrategy`.

        Raises:
          ConfigError: a ValueError, with all problems; or if workers were chosen.
        """
        feature_configs.require_this_process()
        given = _bound(args, kwargs)
        self._replicas = Replicas(tf.distribute.get_strategy())
        self._declared = feature_configs.declare(
            given['feature_config'], given['optimizer'], needs_optimizer=self._replicas.are_tpu)
        self._pipelined = bool(given['pipeline_execution_with_tensor_core'])
        self._joins = not given.get('initialize_tpu_embedding', True)
        self._id_policy = defaults.current().id_policy
        self._kernels = defaults.current().kernels
        self._runtime: Runtime | None = None
        self._batches: Batches | None = None
        self._built = False
        self._saved = saved_model.SavedLookups(self._declared)
        if 'batch_size' in given:
            problem = Topology(num_hosts=1, cores_per_host=self._replicas.number).batch_problem(
                'batch size', given['batch_size'])
            if problem is not None:
                raise ConfigError(problem)
            self.build(per_replica_batch_size=given['batch_size'] // self._replicas.number)

    def build(self, per_replica_input_shapes: Any = None,
              per_replica_batch_size: int | None = None) -> None:
        """Creates the variables, and fixes the shapes of features if they are known; once.

        `enqueue` and `embedding_tables` do it too.

        Args:
          per_replica_input_shapes: a structure like `feature_config` of the shapes of inputs on
            one replica; or an int, which is a batch size.
          per_replica_batch_size: samples per replica, instead.

        Raises:
          InputShapeError: a ValueError, for shapes that contradict the FeatureConfigs, or that
            stay unknown under a TPUStrategy.
          CallError: a RuntimeError, if another object exists under the same TPUStrategy.
        """
        if self._built:
            return
        incoming = shapes.of_build(self._declared, per_replica_input_shapes,
                                   per_replica_batch_size)
        output_shapes = None
        if incoming is not None or self._replicas.are_tpu or all(
                feature.output_shape.is_fully_defined() for feature in self._declared.features):
            output_shapes = shapes.resolve(self._declared, incoming)
        self._build(output_shapes)

    @_as_written
    def enqueue(self, features: Any, weights: Any = None, training: Any = True,
                name: str | None = None, device: str | None = None) -> None:
        """Hands over the ids of one step.

        Outside of `strategy.run` it serves all replicas, inside only its own. If something is
        wrong, an error ends the function, and no replica has the batch.

        Args:
          features: a structure like `feature_config` of ids, integers of any type. Tensors have
            the shape of samples, perhaps with a last dimension of 1. SparseTensors have rank 2 or
            more, RaggedTensors rank 2. They may be per-replica values of a distributed dataset.
          weights: `None`, or such a structure of weights. A weight has the type of its ids and
            values at the same places, or it is `None`.
          training: whether the batch gets gradients: a bool, or a bool scalar tensor.
          name: links the calls of one lookup, which are paired among themselves. With a name
            `training` is ignored: a batch gets gradients if an `apply_gradients` of that name
            follows `dequeue` in the same function.
          device: `'/TPU:2'` hands over for replica 2 only.

        Raises:
          InputShapeError: a ValueError, for an unexpected structure, type or shape.
          StructureTypeError: a TypeError, for an unexpected type of sequence in the structure.
          NotInFunctionError: if it is called eagerly.
        """
        require_function('enqueue')
        if _tf.is_saving_model():
            self._saved.enqueue(features, weights, name)
            return
        if is_rehearsal():
            return
        replicas = self._replicas.fed(device)
        flat, flat_weights = self._declared.flatten_inputs(features, weights)
        by_replica = [([self._replicas.value(one, replica) for one in flat],
                       [self._replicas.value(one, replica) for one in flat_weights])
                      for replica in replicas]
        self._replicas.check_inputs(self._declared.paths, flat)
        incoming = shapes.of_inputs(self._declared, by_replica[0][0])
        if self._runtime is None:
            self._build(shapes.resolve(self._declared, incoming))
        assert self._batches is not None and self._runtime is not None
        shapes.check(self._declared, map(tf.TensorShape, self._batches.output_shapes), incoming)
        with tf.name_scope(name or 'enqueue'), tf.device(table_variables.HOST):
            self._runtime.enqueue([self._read(*one) for one in by_replica], replicas,
                                  batch_queues.use_of(training, name), name)

    @_as_written
    def dequeue(self, name: str | None = None) -> Any:
        """Looks up the oldest enqueued batch of this replica, and returns its activations.

        Args:
          name: see `enqueue`.

        Returns:
          A structure like `feature_config`, of the same types, of float32 tensors
          `[*output shape, dim]`. Samples without ids are zeros.

        Raises:
          CallError: a RuntimeError, if nothing was ever enqueued or built. With several replicas
            a call outside of `strategy.run` fails when it is executed, since Keras traces some.
        """
        if _tf.is_saving_model():
            return self._saved.dequeue(name, self.embedding_tables)
        runtime, replica = self._ready('dequeue')
        assert self._batches is not None
        with tf.name_scope(name or 'dequeue'):
            found = (runtime.lookup(replica, name)
                     if replica is not None and not is_rehearsal()
                     else self._batches.none(self._replicas.outside('dequeue')))
        return self._declared.pack(
            found[feature] for feature in feature_configs.feature_names(self._declared))

    @_as_written
    def apply_gradients(self, gradients: Any, name: str | None = None) -> None:
        """Trains the tables with the gradients of the activations that were dequeued last.

        Gradients are summed over samples and replicas, not averaged; then each row that was
        looked up is updated once. Without accumulation they are summed over the samples of each
        replica, and a row is updated once for each replica that looked it up. Replica
        `id % replicas` comes first, the others follow in ascending order, replica 0 after the last.

        Args:
          gradients: a structure like `feature_config` of float32 tensors of the shapes of the
            activations. `None` means zeros: the rows still count as updated, so Adam moves them.
          name: see `enqueue`.

        Raises:
          InputShapeError: a ValueError, for a value that is no tensor or has another shape.
          CallError: a RuntimeError, as `dequeue`; also if a table has no optimizer.
        """
        if _tf.is_saving_model():
            saved_model.refuse_training()
            return
        runtime, replica = self._ready('apply_gradients')
        if replica is None:
            raise CallError(self._replicas.outside('apply_gradients'))
        batches = self._batches
        assert batches is not None
        own = batches.gradients(self._declared.flatten(gradients, 'gradients'))

        def apply_all(by_replica: Sequence[Sequence[tf.Tensor]]) -> None:
            with tf.name_scope(name or 'apply_gradients'):
                runtime.update([own for _, *own in by_replica], by_replica[0][0], name)

        # Rates are computed in each replica, because the values that they read may differ there.
        self._replicas.together([runtime.rates(), *own], apply_all)

    @property
    def embedding_tables(self) -> dict[Any, tf.Variable]:
        """The variables of the tables, `[vocabulary_size, dim]`, by the user's TableConfigs.

        Raises:
          CallError: a RuntimeError, under a TPUStrategy, except while a SavedModel is made.
        """
        if self._replicas.are_tpu and not _tf.is_saving_model():
            raise CallError(Problem(
                'E552', 'embedding_tables', 'Unable to retrieve embedding tables when using a TPU '
                'strategy. If you need access, save your model, create this object under a CPU '
                'strategy and restore'))
        self.build()
        return {table: self._variables[table.name][table_variables.PARAMETERS]
                for table in self._declared.tables}

    @property
    def config_proto(self) -> Any:
        """The `TPUEmbeddingConfiguration` that the original gives to the TPU.

        Raises:
          CallError: a RuntimeError, before the shapes of features are known.
        """
        if self._batches is None:
            raise unbuilt('config_proto')
        return feature_configs.config_of(
            self._declared, self._batches.output_shapes, num_hosts=self._replicas.num_hosts,
            num_cores=self._replicas.number, pipelined=self._pipelined)

    def id_counts(self) -> dict[str, dict[str, int]]:
        """Returns how many ids were dropped or changed since the object exists.

        Returns:
          Two counts by the path of the feature, such as `'a/b'`. `truncated` counts the ids beyond
          their sequences. `out_of_range` counts ids that the policy of `install(ids=)` met.
        """
        return {} if self._batches is None else self._batches.counts()

    def _build(self, output_shapes: Sequence[tuple[int, ...]] | None) -> None:
        """Creates what does not exist yet."""
        if not self._built:
            self._replicas.initialize(self, joins=self._joins)
            self._variables = table_variables.create(
                self, self._declared.tables, trainable=not self._replicas.are_tpu,
                strategy=self._replicas.strategy)
            self._built = True
        if output_shapes is None:
            return
        self._batches = Batches(self._declared, output_shapes, self._id_policy)
        plan = feature_configs.plan_of(
            self._declared, output_shapes, replicas=self._replicas.number,
            pipelined=self._pipelined, id_policy=self._id_policy,
            training=all(table.optimizer is not None for table in self._declared.tables))
        batches, runtime = self._batches, Runtime(
            plan, self._variables, self._kernels,
            shapes.batch_size(output_shapes) * self._replicas.number,
            feature_configs.feature_names(self._declared))
        self._runtime = runtime
        # Traced, and made ready to run, once for all replicas. The partial hides that it is a
        # tf.function: a SavedModel would save every tf.function among the attributes.
        self._read = functools.partial(not_inlined(
            lambda ids, weights: batches.pack(ids, weights, runtime.pack, runtime.kinds)))

    def _ready(self, method: str) -> tuple[Runtime, int | None]:
        """Returns the runtime, and the number of this replica; `None` outside of several."""
        require_function(method)
        if self._runtime is None:
            raise unbuilt(method)
        return self._runtime, self._replicas.own(method)
