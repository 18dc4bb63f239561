"""Defines a `Job` and the output of its model_fn."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..checkpoint.options import CheckpointOptions
from ..checkpoint.recover import Known
from ..cluster.cluster import Cluster
from ..core.deployment import Deployment, Invocation
from ..core.plan import Plan
from ..core.specs import Kernels
from ..core.vocabulary_digests import Words
from ..hosts.placement import Placement, on
from ..ops.ids import IdBatch, IdCounts
from .host_calls import HostCall

FeedHookMaker = Callable[[tf.train.SessionRunHook, Mapping[str, Any]], tf.train.SessionRunHook]


class ModelOutput(NamedTuple):
    """The output of model_fn on one core.

    Attributes:
      loss: float scalar; `None` in prediction.
      train_op: runs one step of the dense optimizer; `None` except in training.
      metrics: `(function, tensors)`. The function gets the tensors of all cores, concatenated,
        and returns `{name: (value, update)}`. `None` if there are no metrics.
      scaffold_fn: makes the `tf.train.Scaffold` after the model is built, or `None`.
      hooks: of this mode.
      predictions: in prediction a tensor, or tensors by name.
      host_call: `(function, tensors)`, as `metrics`; `None` if there are no tensors.
      signals: `(name, tensors)` for `Job.feed_hook`, or `None`.
    """

    loss: tf.Tensor | None
    train_op: Any
    metrics: tuple[Callable[..., Any], Any] | None
    scaffold_fn: Callable[[], tf.train.Scaffold] | None
    hooks: tuple[tf.train.SessionRunHook, ...]
    predictions: Any = None
    host_call: HostCall | None = None
    signals: tuple[str, Any] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """The look-ups of a run.

    Attributes:
      plan: for the engine; empty if all tables are variables of the model.
      featurize: (features of one core, core) -> the features that are not looked up, the ids of
        every feature of the plan, and how many of them were seen, missing, truncated or out of
        range. See `columns.featurizer.Featurized`.
      variable_names: graph in which the model was built -> the variable name of each table.
      gradient_multiplier: global step -> factor of all gradients of tables, or `None`.
      words: the vocabulary of each feature that has words instead of ids.
    """

    plan: Plan
    featurize: Callable[[Any, int], tuple[Any, dict[str, IdBatch], dict[str, IdCounts]]]
    variable_names: Callable[[tf.Graph], dict[str, str]]
    gradient_multiplier: Callable[[tf.Tensor], Any] | None = None
    words: Sequence[Words] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything about a run that is known before its graph is built.

    Attributes:
      verb: `'train'`, `'evaluate'` or `'predict'`.
      deployment: hosts, cores, and how input reaches them.
      source: an invocation -> the value of input_fn, made in the default graph.
      input_fn: its name, file and line, for messages; empty if they are not known.
      batch_axes: see `core_batches.open_input`.
      call_model: (core, features, labels) -> output.
      lookups: `None` for a model without embedding tables.
      skips_nonfinite: whether gradients of a table that are not finite make a step leave all
        tables as they are. Otherwise they end the run.
      seed: graph-level random seed, or `None`.
      input_deadline: seconds that a host may produce nothing while a step waits for it.
      shutdown_deadline: seconds that the end of a run waits for the threads of its input and for
        its session to close, together.
      model_dir: the directory of checkpoints.
      warm_start: the `WarmStartSettings` for a run without a checkpoint, or `None`.
      session_config: for every session of the run.
      checkpoint: how checkpoints are written, and which differences to them are intended.
      kernels: which engine executes the tables.
      cluster: the hosts; `None` emulates all of them in this process, with one engine.
      input_on_workers: whether input_fn of a host builds on its worker; see `infeed_operations`.
      feed_hook: (infeed, signals of the model by name) -> the user's hook that takes the place of
        the infeed in training; `None` if the user gave none.
      known: the checkpoints that need not be verified again.
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
    cluster: Cluster | None = None
    input_on_workers: bool = False
    feed_hook: FeedHookMaker | None = None
    known: Known = dataclasses.field(default_factory=Known)

    @property
    def placement(self) -> Placement:
        """The devices of hosts and cores."""
        return Placement(self.deployment.topology,
                         is_remote=self.cluster is not None and self.cluster.is_remote,
                         has_input_on_hosts=self.input_on_workers)

    @contextlib.contextmanager
    def building(self, graph: tf.Graph) -> Iterator[None]:
        """Makes a graph the default graph, in which all is on the client unless it says more."""
        with graph.as_default(), on(self.placement.client):
            yield

    @property
    def plan(self) -> Plan | None:
        """The plan for the engine; `None` if the engine has nothing to do."""
        return self.lookups.plan if self.lookups is not None and self.lookups.plan.tables else None


def concatenate(calls: Sequence[tuple[Any, Any] | None]) -> Any:
    """Joins the tensors of pairs such as `ModelOutput.metrics`, one pair per core, along rows."""
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
