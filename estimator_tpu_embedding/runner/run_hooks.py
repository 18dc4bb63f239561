"""Puts all hooks of a run into the order of the original; the last hook runs the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .batch_supply import BatchSupply
from .host_calls import SummaryWriters
from .input_state import CheckpointInputPipelineHook
from .measures import clock_of
from .run import Run
from .schedule import Schedule
from .step_caller import FeedsKept, StepCaller
from .step_ops import StepOps
from .steps_per_run import StepsPerRun
from .summaries import SummariesSurvive

Hooks = list[tf.train.SessionRunHook]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HookPlaces:
    """The hooks of one kind of run, by their place in the order.

    Attributes:
      first: come before all others.
      given: the hooks given to the call of the estimator; the start of the session follows them.
      feed: stands in the place of the infeed and passes calls on to it; `None` for the infeed.
      middle: come between the infeed and the hooks of the model.
      last: come after all others, except for the hook that makes the steps.
    """

    first: Sequence[tf.train.SessionRunHook] = ()
    given: Sequence[tf.train.SessionRunHook]
    feed: tf.train.SessionRunHook | None = None
    middle: Sequence[tf.train.SessionRunHook] = ()
    last: Sequence[tf.train.SessionRunHook] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """The steps of one kind of run.

    Attributes:
      ops: one step.
      schedule: says how many steps there are.
      results: operations and tensors that a step computes besides; its time includes them.
      host_call_every: steps from one host_call to the next, counted from the first of a loop.
    """

    ops: StepOps
    schedule: Schedule
    results: Sequence[Any] = ()
    host_call_every: int = 1


def hooks_of(run: Run, places: HookPlaces, steps: RunSteps) -> Hooks:
    """Returns all hooks of a run, in order; the last one makes the steps."""
    of_model = run.graph.outputs[0].hooks
    keeps_input = any(isinstance(hook, CheckpointInputPipelineHook)
                      for hook in [*places.given, *of_model])
    if keeps_input and steps.ops.lookahead is not None:
        tf.logging.warning('Look-ups run a step ahead: a resumed run skips one batch.')
    given = [FeedsKept(hook) for hook in places.given]
    own = [FeedsKept(hook) for hook in of_model]
    of_feed = [FeedsKept(places.feed)] if places.feed is not None else []
    measured = run.graph.measured
    clock = clock_of(measured.looked_up, tf.group(measured.trained, *steps.results),
                     steps.ops.operation)
    makes_steps = StepsPerRun(
        steps.schedule,
        BatchSupply(run.infeed, run.report, ahead=run.graph.input.ahead,
                    draws_ahead=not keeps_input, gives_up=run.gives_up),
        StepCaller(steps.ops, clock, [*given, *of_feed, *own], steps.host_call_every),
        run.report, run.failures, is_over=run.is_over)
    profiler = [run.profiler] if run.profiler else []
    return [*places.first, *given, run.start, SummaryWriters(), *profiler,
            *(of_feed or [run.infeed]), *places.middle, *own, *places.last, SummariesSurvive(),
            makes_steps]
