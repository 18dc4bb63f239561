"""Prepares the graph of a job for the tasks of a cluster, once all that is fetched is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..hosts.packed import pack_crossings
from ..hosts.placed_graph import put_python_on_client, require_engines
from .graph import StepGraph
from .model import Job


def prepare_for_tasks(job: Job, graph: StepGraph, fetches: Any) -> None:
    """Moves Python to the client and packs what crosses; a job without tasks stays as it is.

    Args:
      job: the job.
      graph: of the job. No session has run it.
      fetches: nested tensors and operations that every step is fetched with.

    Raises:
      ConfigError: E731, E732 for what cannot work where it is.
    """
    if job.placement.is_remote:
        whole, placement = graph.global_step.graph, job.placement
        put_python_on_client(whole, placement)
        require_engines(whole, placement)
        pack_crossings(whole, _results_of(graph, fetches), placement.client)


def _results_of(graph: StepGraph, fetches: Any) -> list[Sequence[tf.Tensor | tf.Operation]]:
    """Returns the results of each kind of run that is made again and again."""
    step = graph.step
    runs = [[step.operation, step.loss, *(step.refused or ()), *tf.nest.flatten(fetches)]]
    if step.host_call is not None:
        runs.append([step.host_call])
    if step.lookahead is not None:
        runs.append([step.lookahead.begin])
    return [*runs, *[[feed.step, feed.counts, feed.has_data] for feed in graph.input.feeds]]
