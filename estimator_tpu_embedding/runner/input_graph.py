"""Opens the input of every host in the graph of a step, and takes the features of each core apart.

It then builds the operations with which each infeed thread hands over ids and other features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.deployment import Invocation
from ..hosts.backend import Backend
from ..hosts.pipelined import PipelinedBackend
from ..hosts.placement import on
from . import padding
from .blocked import called_in_time
from .host_feeds import HostFeed
from .input import Batch, CoreQueue, Input, open_input
from .input_placement import built_on_host, without_tuner
from .model import Featurized, Job


@dataclasses.dataclass(frozen=True, slots=True)
class DrawnInput:
    """The input of a step before it is handed over.

    Attributes:
      sources: the input of each invocation of input_fn.
      rests: per core the batch without the features that are looked up.
      featurized: per core the features taken apart; empty if nothing is looked up.
    """

    sources: list[Input]
    rests: list[Batch]
    featurized: list[Featurized]


def draw_input(job: Job) -> DrawnInput:
    """Opens the input of every invocation; takes features and ids of every core apart.

    Raises:
      InputError: if the input does not fit the declaration.
      ConfigError: E736 if it is to be built on workers and cannot be.
    """
    inputs = DrawnInput([], [], [])
    for invocation in job.deployment.invocations:
        with built_on_host(job.placement, invocation):
            with called_in_time(invocation.name, job.input_deadline):
                source = job.source(invocation)
            _take_apart(job, invocation, source, inputs)
    return inputs


def _take_apart(job: Job, invocation: Invocation, source: Any, inputs: DrawnInput) -> None:
    """Draws batches from the value of an invocation, and adds those of its cores to `inputs`."""
    if job.placement.is_remote:
        source = without_tuner(source)
    drawn = open_input(source, job.deployment, invocation, axes=job.batch_axes,
                       padded=job.verb == 'predict')
    inputs.sources.append(drawn)
    size = job.deployment.batch_size_per_core
    for core, batch in zip(invocation.cores, drawn.batches):
        if job.lookups is not None:
            featurized = job.lookups.featurize(batch.features, core)
            inputs.featurized.append(featurized)
            batch = batch._replace(features=featurized.rest)
        if batch.rows is not None:
            batch = Batch(padding.filled(batch.features, size),
                          padding.filled(batch.labels, size), batch.rows)
        inputs.rests.append(batch)


def feeds_of(job: Job, inputs: DrawnInput, queues: Sequence[CoreQueue], backend: Backend | None
             ) -> list[HostFeed]:
    """Returns the operations of the infeed thread of each invocation."""
    feeds = []
    for invocation in job.deployment.invocations:
        with on(job.placement.input(invocation.host)):
            feeds.append(_feed_of(invocation, inputs, queues, backend))
    return feeds


def _feed_of(invocation: Invocation, inputs: DrawnInput, queues: Sequence[CoreQueue],
             backend: Backend | None) -> HostFeed:
    """Returns the operations of the infeed thread of an invocation."""
    cores = invocation.cores
    enqueues = [queues[core].enqueue(inputs.rests[core]) for core in cores]
    counted: tuple[str, ...] = ()
    counts = [tf.zeros([0, 4], tf.int64)]
    ids: dict[str, Any] = {}
    if backend is not None:
        for core in cores:
            featurized = inputs.featurized[core]
            enqueues.append(backend.enqueue(featurized.batches, core=core))
    if inputs.featurized:
        counted = tuple(inputs.featurized[cores[0]].counts)
        counts = [tf.reshape(tf.convert_to_tensor(
            [number for name in counted for number in inputs.featurized[core].counts[name]],
            tf.int64), [-1, 4]) for core in cores]
        for feature in backend.plan.features if backend is not None else ():
            own = [inputs.featurized[core].batches[feature.name] for core in cores]
            ids[feature.name] = [(batch.samples, batch.ids) for batch in own]
    ends = ([backend.end(core=core) for core in cores]
            if isinstance(backend, PipelinedBackend) else [])
    drawn = inputs.sources[invocation.index]
    return HostFeed(invocation.name, drawn.initializer, tf.group(*enqueues), counted,
                    tf.add_n(counts), drawn.has_data, tf.group(*ends), drawn.is_dataset, ids)
