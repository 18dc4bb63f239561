"""Counts the ids that a training looks up, and writes profiles to its `profile_data_directory`.

In a sampled step the infeed threads fetch the ids in addition to handing them over. No result of a
step depends on that, and all other steps run the same operations as without profiles.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from ..checkpoint import profile_files
from ..core.plan import Plan
from ..core.table_profile import Subject, TableProfile, Tally, is_sampled, subject_of
from .infeed_threads import Draw, HostFeed
from .progress import RunReport

SAVE_SECONDS = 60.0

HostIds = dict[str, list[tuple[np.ndarray, np.ndarray]]]
"""By feature the `(samples, ids)` of every core of one feed."""


class Profiler(tf.train.SessionRunHook):
    """Counts ids over a run, and writes the counts at ends of loops and at the end of the run.

    This hook comes before the infeed, so that it sees a new session first.
    """

    def __init__(self, plan: Plan, report: RunReport, num_feeds: int):
        """Goes on with profiles of earlier runs; CheckpointError if the directory takes none."""
        self._directory = plan.profile_directory
        self._report = report
        self._num_feeds = num_feeds
        self._lock = threading.Lock()
        self._saved_at = time.monotonic()
        self._steps_saved = self._steps_before = 0
        self._first_step: int | None = None
        self._session_step = 0
        self._first_sampled: int | None = None
        self._pending: dict[int, dict[int, HostIds]] = {}
        profile_files.open_directory(self._directory)
        self._tallies = [self._begun(subject_of(plan, table.name)) for table in plan.tables]
        steps = [tally.sampled_steps for tally in self._tallies]
        tf.logging.info(
            'The ids of 3 %% of the steps are counted into %s; %d of %d tables were read there, '
            'steps counted so far: %d.', self._directory, len(steps) - steps.count(0), len(steps),
            max(steps, default=0))

    def _begun(self, subject: Subject) -> Tally:
        earlier, problem = profile_files.read_previous(self._directory, subject)
        if problem is not None:
            tf.logging.warning('%s', problem)
        return Tally(earlier or TableProfile.empty(subject))

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Notes where the session begins; forgets steps that an earlier one left half counted."""
        step = int(session.run(tf.train.get_global_step(session.graph)))
        with self._lock:
            self._first_step = step if self._first_step is None else self._first_step
            self._session_step, self._steps_before = step, self._report.steps
            self._pending = {}  # Threads of an earlier session keep theirs.
            is_new = any(not tally.sampled_steps for tally in self._tallies)
            self._first_sampled = step if is_new else None  # So that short runs count something.

    def before_run(self, run_context: tf.train.SessionRunContext) -> None:
        """Writes the counts of all loops so far, if the last time was long ago."""
        if time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self.save()

    def drawing(self, session: tf.Session, number: int, feed: HostFeed) -> Draw:
        """Returns what `infeed_threads.drawing` does, but it counts the ids of sampled steps."""
        run = session.make_callable(feed.fetches)
        run_and_look = session.make_callable([*feed.fetches, feed.ids])
        pending, step = self._pending, self._session_step - 1

        def draw() -> Sequence[Any]:
            nonlocal step
            step += 1
            if not is_sampled(step) and step != self._first_sampled:
                return run()
            *results, ids = run_and_look()
            self._add(pending, step, number, ids)
            return results

        return draw

    def save(self) -> None:
        """Writes the profile of every table, if there were new steps; only warns of failures."""
        self._saved_at = time.monotonic()
        with self._lock:
            if self._report.steps == self._steps_saved:
                return
            steps = self._steps_saved = self._report.steps
            assert self._first_step is not None
            last = self._session_step + steps - self._steps_before
            found = [tally.profile(first_step=self._first_step, last_step=last, steps=steps)
                     for tally in self._tallies]
        for profile in found:
            problem = profile_files.write(self._directory, profile)
            if problem is not None:
                tf.logging.warning('%s', problem)

    def _add(self, pending: dict[int, dict[int, HostIds]], step: int, number: int,
             ids: HostIds) -> None:
        """Counts a step once its ids have come from all feeds; until then they are `pending`."""
        with self._lock:
            parts = pending.setdefault(step, {})
            parts[number] = ids
            if len(parts) < self._num_feeds:
                return
            del pending[step]
            for tally in self._tallies:
                tally.add({name: [core for part in parts.values() for core in part[name]]
                           for name, _ in tally.subject.features})
