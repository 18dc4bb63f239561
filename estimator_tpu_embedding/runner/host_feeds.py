"""Defines the operations that one infeed thread runs: start the input, hand over a batch, end it.

`input_graph` builds them, and `session_feed` runs the threads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf


class HostFeed(NamedTuple):
    """The operations that the infeed thread of one invocation of input_fn runs.

    Attributes:
      name: of the invocation, as messages show it: `'host 0'`.
      initializer: starts the input; run once per session, before the first batch.
      step: hands one batch to each core of the host; blocks while a queue is full.
      counted: the features whose ids are counted, the same for every invocation.
      counts: int64 `[len(counted), 4]`, the `IdCounts` of that step, evaluated with it. They are
        one tensor, since fetching each number by itself took longer than counting.
      has_data: false if that step handed over padding only, since the data has ended; evaluated
        with it.
      end: run once no batch follows.
      is_dataset: whether the input is a dataset. Otherwise an `OutOfRangeError` is its end.
      ids: per feature, for each core of the host, the `(samples, ids)` of that step; evaluated
        with it if they are wanted.
    """

    name: str
    initializer: tf.Operation
    step: tf.Operation
    counted: tuple[str, ...]
    counts: tf.Tensor
    has_data: tf.Tensor
    end: tf.Operation
    is_dataset: bool
    ids: dict[str, list[tuple[tf.Tensor, tf.Tensor]]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeedGraph:
    """The operations of a graph that carry its input.

    Attributes:
      feeds: one per invocation of input_fn.
      close: ends every wait of the threads, and of a step for its batches.
      ahead: batches beyond its own that a step waits for, 0 or 1.
    """

    feeds: Sequence[HostFeed]
    close: tf.Operation
    ahead: int


Drawing = Callable[[tf.Session, int, HostFeed], Callable[[], tuple[np.ndarray, bool]]]
"""Takes a session, the number of a feed, and the feed; returns a function for its thread.

That function hands over one batch per call. It returns the counts of the batch, and whether the
batch has data.
"""


def drawing(session: tf.Session, number: int, feed: HostFeed
            ) -> Callable[[], tuple[np.ndarray, bool]]:
    """Returns the function of a feed's thread; a `Drawing` that does nothing else."""
    del number
    run = session.make_callable([feed.counts, feed.has_data, feed.step])
    return lambda: tuple(run()[:2])
