"""What a run is made of, what model_fn gives back, and the scratch call that finds names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint.options import CheckpointOptions
from ..core.deployment import Deployment, Invocation
from ..core.kernels import Kernels
from ..core.plan import Plan
from ..core.vocabulary import Words
from ..core.specs import Topology
from ..ops.ids import IdBatch, IdCounts
from .gradients import GradientCapture
from .host_calls import HostCall
from .input import Batch, map_tensors
from .randomness import random_states_kept

FeedHookMaker = Callable[[tf.train.SessionRunHook, Mapping[str, Any]], tf.train.SessionRunHook]


class ModelOutput(NamedTuple):
    """What model_fn returned on one core.

    Attributes:
      loss: float scalar; `None` in prediction.
      train_op: runs one step of the dense optimizer; `None` but in training.
      metrics: `(function, tensors)`: the function gets the tensors of all cores, concatenated,
        and returns `{name: (value, update)}`; `None` if there are none.
      scaffold_fn: makes the `tf.train.Scaffold` after the model is built, or `None`.
      hooks: of this mode.
      predictions: in prediction a tensor, or tensors by name.
      host_call: `(function, tensors)`, as `metrics`; `None` if there are no tensors.
      signals: for `Job.feed_hook`, `(name, tensors)`, or `None`.
    """

    loss: tf.Tensor | None
    train_op: Any
    metrics: tuple[Callable[..., Any], Any] | None
    scaffold_fn: Callable[[], tf.train.Scaffold] | None
    hooks: tuple[tf.train.SessionRunHook, ...]
    predictions: Any = None
    host_call: HostCall | None = None
    signals: tuple[str, Any] | None = None


class Featurized(Protocol):
    """One core's features, taken apart: see `columns.adapt.Featurized`."""

    @property
    def rest(self) -> Any:
        """The features that are not looked up."""

    @property
    def batches(self) -> dict[str, IdBatch]:
        """The ids of every feature of the plan."""

    @property
    def counts(self) -> dict[str, IdCounts]:
        """What became of them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """What a run looks up.

    Attributes:
      plan: what the engine executes; empty if all tables are variables of the model.
      featurize: (features of one core, core) -> ids and the rest.
      variable_names: traced graph -> the variable name of each table.
      gradient_multiplier: global step -> factor of all gradients of tables, or `None`.
      words: those of each feature that a vocabulary maps to ids.
    """

    plan: Plan
    featurize: Callable[[Any, int], Featurized]
    variable_names: Callable[[tf.Graph], dict[str, str]]
    gradient_multiplier: Callable[[tf.Tensor], Any] | None = None
    words: Sequence[Words] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything about a run that is known before its graph is.

    Attributes:
      verb: `'train'`, `'evaluate'` or `'predict'`.
      deployment: hosts, cores, and how input reaches them.
      source: an invocation of input_fn -> what that returned, made in the default graph.
      input_fn: how messages call input_fn: its name, file and line; empty where nobody knows.
      batch_axes: see `input.open_input`.
      call_model: (core, features, labels) -> output.
      lookups: `None` for a model without embedding tables.
      skips_nonfinite: a step in which gradients of a table are not finite leaves all tables as
        they are, instead of ending the run.
      seed: graph-level random seed, or `None`.
      input_deadline: seconds after which a host that produces nothing while a step waits for
        it is a failure.
      shutdown_deadline: seconds that the end of a run waits, for the threads of its input and for
        its session to close together.
      model_dir: where checkpoints are.
      warm_start: the `WarmStartSettings` for a run without a checkpoint, or `None`.
      session_config: for every session of the run.
      checkpoint: how checkpoints are written, and which differences to them are meant.
      kernels: what executes the tables.
      feed_hook: the hook that feeds a training and the signals of the model, by their name ->
        the hook of the user that stands in its place; `None` where nobody gave one.
    """

    verb: str
    deployment: Deployment
    source: Callable[[Invocation], Any]
    batch_axes: Sequence[int | None] | None
    call_model: Callable[[int, Any, Any], ModelOutput]
    lookups: Lookups | None
    skips_nonfinite: bool
    seed: int | None
    input_deadline: float
    shutdown_deadline: float
    model_dir: str
    warm_start: Any
    session_config: tf.ConfigProto
    checkpoint: CheckpointOptions = CheckpointOptions()
    kernels: Kernels = Kernels()
    input_fn: str = ''
    feed_hook: FeedHookMaker | None = None

    @property
    def topology(self) -> Topology:
        """Hosts and cores."""
        return self.deployment.topology

    @property
    def batch_size(self) -> int:
        """Samples of all cores per step."""
        return self.deployment.batch_size

    @property
    def plan(self) -> Plan | None:
        """What the engine executes; `None` where it has nothing to do."""
        return self.lookups.plan if self.lookups is not None and self.lookups.plan.tables else None


def trace_variable_names(job: Job, lookups: Lookups, example: Batch) -> dict[str, str]:
    """Calls the model once in a graph of its own, to learn what its columns call the tables.

    Look-ups come before the model in the graph of a step, and they need the variables under
    their final names, which only model_fn determines.

    Args:
      job: whose model.
      lookups: what it looks up.
      example: what a core will get, activations apart.

    Returns:
      By table name.
    """
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step(graph)
        batch = map_tensors(lambda tensor: tf.placeholder(tensor.dtype, tensor.shape), example)
        activations = {
            feature.name: tf.placeholder(tf.float32, lookups.plan.output_shape(feature))
            for feature in lookups.plan.features}
        if job.verb == 'train':  # A model of tables alone has no other trainable variables.
            capture = GradientCapture(lookups.plan)
            activations = capture.hook(0, activations)
        with _tf.tpu_shard_context(job.topology.num_cores), random_states_kept(job.seed):
            job.call_model(0, {**batch.features, **activations}, batch.labels)
        return lookups.variable_names(graph)


def concatenate(calls: Sequence[tuple[Any, Any] | None]) -> Any:
    """The tensors of pairs such as `ModelOutput.metrics`, one per core, joined by their rows.

    Raises:
      RuntimeError: for a scalar, which has no such dimension.
    """
    tensors = [call[1] for call in calls if call is not None]
    return tf.nest.map_structure(_join, *[_as_tensors(core) for core in tensors])


def _as_tensors(structure: Any) -> Any:
    if isinstance(structure, Mapping):
        return {key: tf.convert_to_tensor(value) for key, value in structure.items()}
    return [tf.convert_to_tensor(value) for value in structure]


def _join(*tensors: tf.Tensor) -> tf.Tensor:
    if tensors[0].shape.rank == 0:
        raise RuntimeError('All tensors outfed from TPU should preserve batch size dimension, '
                           f'but got scalar {tensors[0]}.  Pass the tensor before it is '
                           'reduced, with the batch as its first dimension.')
    return tf.concat(tensors, 0)
