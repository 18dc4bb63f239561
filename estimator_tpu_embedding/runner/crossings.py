"""Prepares the graph of a run for the tasks of a cluster, once the runs of its session are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..hosts.packed import pack_crossings
from .graph import StepGraph
from .model import Job


def prepare_for_tasks(job: Job, graph: StepGraph, fetches: Any) -> None:
    """Packs what crosses between the tasks of a job; changes nothing of a job without tasks.

    Args:
      job: the job.
      graph: of the job. No session has run it.
      fetches: what is fetched besides of every step, nested.
    """
    if job.placement.is_remote:
        pack_crossings(graph.global_step.graph, _results_of(graph, fetches), job.placement.client)


def _results_of(graph: StepGraph, fetches: Any) -> list[Sequence[tf.Tensor | tf.Operation]]:
    """Returns the results of each kind of run that is made again and again."""
    step = graph.step
    runs = [[step.operation, step.loss, *(step.refused or ()), *tf.nest.flatten(fetches)]]
    if step.host_call is not None:
        runs.append([step.host_call])
    if step.lookahead is not None:
        runs.append([step.lookahead.begin])
    return [*runs, *[[feed.step, feed.counts, feed.has_data] for feed in graph.input.feeds]]
