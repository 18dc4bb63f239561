"""Opens the input of every host in the graph of a step, and takes the features of each core apart.

It then builds the operations with which each infeed thread hands over ids and other features. With
`input_on_workers` all of that is on the worker of the host. A worker executes operations of
TensorFlow and has no Python of the job. A resource, such as a lookup table or an iterator, is used
on the device that holds it: only tensors travel.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.deployment import Invocation
from ..errors import ConfigError, Problem
from ..hosts.backend import Backend
from ..hosts.operation_devices import python_in
from ..hosts.pipelined import PipelinedBackend
from ..hosts.placement import Placement, on
from ..hosts.untuned_datasets import without_tuner
from ..ops.ids import IdBatch, IdCounts
from .core_batches import DATASETS, Batch, CoreQueue, Input, filled, open_input
from .infeed_threads import HostFeed
from .job import Job
from .signals_and_deadlines import called_in_time


@dataclasses.dataclass(frozen=True, slots=True)
class DrawnInput:
    """The input of a step before it is handed over.

    Attributes:
      sources: the input of each invocation of input_fn.
      rests: per core the batch without the features that are looked up.
      ids: per core those of every feature; empty if nothing is looked up.
      counts: per core what became of its ids.
    """

    sources: list[Input]
    rests: list[Batch]
    ids: list[dict[str, IdBatch]]
    counts: list[dict[str, IdCounts]]


def draw_input(job: Job) -> DrawnInput:
    """Opens the input of every invocation; takes features and ids of every core apart."""
    inputs = DrawnInput([], [], [], [])
    for invocation in job.deployment.invocations:
        with built_on_host(job.placement, invocation):
            with called_in_time(invocation.name, job.input_deadline):
                source = job.source(invocation)
            _take_apart(job, invocation, source, inputs)
    return inputs


def _take_apart(job: Job, invocation: Invocation, source: Any, inputs: DrawnInput) -> None:
    """Draws batches from the value of an invocation, and adds those of its cores to `inputs`."""
    if job.placement.is_remote and isinstance(source, DATASETS):
        # Also where states of iterators are saved: on a cluster they never were those of tuning.
        source = without_tuner(source, keeps_maps=True)
    drawn = open_input(source, job.deployment, invocation, axes=job.batch_axes,
                       padded=job.verb == 'predict')
    inputs.sources.append(drawn)
    size = job.deployment.batch_size_per_core
    for core, batch in zip(invocation.cores, drawn.batches):
        if job.lookups is not None:
            rest, ids, counts = job.lookups.featurize(batch.features, core)
            inputs.ids.append(ids)
            inputs.counts.append(counts)
            batch = batch._replace(features=rest)
        if batch.rows is not None:
            batch = Batch(filled(batch.features, size),
                          filled(batch.labels, size), batch.rows)
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
    cores = invocation.cores
    enqueues = [queues[core].enqueue(inputs.rests[core]) for core in cores]
    counted: tuple[str, ...] = ()
    counts = [tf.zeros([0, 4], tf.int64)]
    ids: dict[str, Any] = {}
    if backend is not None:
        enqueues += [backend.enqueue(inputs.ids[core], core=core) for core in cores]
        for feature in backend.plan.features:
            own = [inputs.ids[core][feature.name] for core in cores]
            ids[feature.name] = [(batch.samples, batch.ids) for batch in own]
    if inputs.counts:
        counted = tuple(inputs.counts[cores[0]])
        counts = [tf.reshape(tf.convert_to_tensor(
            [number for name in counted for number in inputs.counts[core][name]],
            tf.int64), [-1, 4]) for core in cores]
    ends = ([backend.end(core=core) for core in cores]
            if isinstance(backend, PipelinedBackend) else [])
    return HostFeed(invocation.name, inputs.sources[invocation.index], tf.group(*enqueues),
                    counted, tf.add_n(counts), tf.group(*ends), ids)


_REMEDY = 'Leave input_on_workers off: the client then has the input, with all of its Python.'


@contextlib.contextmanager
def built_on_host(placement: Placement, invocation: Invocation) -> Iterator[None]:
    """Places the operations of the body where a call of input_fn builds; E736, E737 if some cannot.
    """
    device = placement.input(invocation.host)
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    with on(device):
        yield
    if device != placement.client:
        made = graph.get_operations()[before:]
        if problems := [*_of_python(made, invocation), *_of_resources(made, invocation)]:
            raise ConfigError(*problems)


def _of_python(operations: Sequence[tf.Operation], invocation: Invocation
               ) -> Iterator[Problem]:
    """Yields a problem for each operation that calls Python, itself or by its functions."""
    for operation in operations:
        kind = python_in(operation)
        if kind is not None:
            within = '' if kind == operation.type else f', in a function of {operation.type}'
            yield Problem(
                'E736', f'input_fn of {invocation.name}', 'with input_on_workers all of it must '
                'be operations of TensorFlow, since a worker has no Python of the job',
                f'{kind}{within} "{operation.name}"', _REMEDY)


def _of_resources(operations: Sequence[tf.Operation], invocation: Invocation
                  ) -> Iterator[Problem]:
    """Yields a problem for each resource of another device."""
    told = set()
    for operation in operations:
        for tensor in operation.inputs:
            maker = tensor.op
            if (tensor.dtype in (tf.resource, tf.variant) and maker not in told
                    and maker.device != operation.device):
                told.add(maker)
                yield Problem(
                    'E737', f'input_fn of {invocation.name}', 'with input_on_workers it must '
                    'make the tables, variables and datasets that it uses, since they stay where '
                    'they are made', f'{maker.type} "{maker.name}" for {operation.type} '
                    f'"{operation.name}"', f'Make it within each call of input_fn. {_REMEDY}')
