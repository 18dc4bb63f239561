"""The hooks that save the model and the state of its input, and the work that goes on beside."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from .. import _tf
from ..checkpoint.iterator_states import IteratorStates
from ..checkpoint.saver import CommittingSaver, graph_written
from ..hosts.placement import on

_ITERATORS = 'iterators'  # the collection to which tf.data adds every iterator that is made
_POLICIES = ('warn', 'ignore', 'fail')


class AsyncCheckpointSaverHook(tf.train.CheckpointSaverHook):
    """Saves checkpoints between two runs of a session.

    The original saves in a thread, while variables change. It skips a save while another one is
    under way, and an end of the process loses a save that is not complete. None of this happens
    here: TensorFlow writes the files before training goes on. In a TPUEstimator a thread then
    checks the files, makes them durable and publishes them; see `CheckpointOptions.asynchronous`.
    In another loop this hook is a plain `CheckpointSaverHook`.
    """


class Background:
    """Does pieces of work one after another, in a thread; `wait` raises their errors, each once."""

    def __init__(self) -> None:
        self._thread = futures.ThreadPoolExecutor(1, 'commit-checkpoint')
        self._work: futures.Future[None] | None = None

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: Any, error: Any, frames: Any) -> None:
        """Waits for the work; only logs its error if the body has raised another one."""
        with self._thread:
            try:
                self.wait()
            except Exception as own:
                if error is None:
                    raise
                logging.error('Meanwhile in the background: %s', own)

    def submit(self, work: Callable[[], None]) -> None:
        """Begins a piece of work when the one before has ended; raises its error."""
        self.wait()
        self._work = self._thread.submit(work)

    def wait(self) -> None:
        """Waits for the end of the work, and raises its error."""
        if self._work is not None:
            futures.wait([self._work])
            work, self._work = self._work, None
            work.result()


class SaverHook(tf.train.CheckpointSaverHook):
    """Saves checkpoints, and first the graph, for which the disk may have no room."""

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        """Writes the graph, and the first checkpoint."""
        with graph_written(self._checkpoint_dir):
            super().after_create_session(session, coord)


class SavesFinished(tf.train.SessionRunHook):
    """Ends a training only when its last checkpoint is committed."""

    def __init__(self, saver: CommittingSaver):
        self._saver = saver

    def end(self, session: tf.Session) -> None:
        """Waits for the last save; raises its error."""
        self._saver.finish()


class CheckpointInputPipelineHook(tf.train.SessionRunHook):
    """Saves the state of all iterators with the model; a resumed training goes on from there.

    In a TPUEstimator it saves just before the model is saved, in another Estimator after the run
    in which the model was saved. The original has a timer of its own instead. A resumed training
    restores the state of the step at which the model was restored, so both go together.
    With this hook no batch is drawn before its step.
    """

    def __init__(self, estimator: Any, external_state_policy: Any = None):
        """Saves into the model_dir of an estimator.

        Args:
          estimator: whose `train` gets this hook. It is not for `evaluate`.
          external_state_policy: for pipelines with state outside of TensorFlow, such as state of
            Python: `'fail'`, `'warn'`, `'ignore'`, or one of
            `tf.data.experimental.ExternalStatePolicy`. `None` is `'fail'`.

        Raises:
          ValueError: for another policy, or if the estimator saves no checkpoints.
        """
        if isinstance(external_state_policy, str) and external_state_policy not in _POLICIES:
            raise ValueError("Invalid `ExternalStatePolicy.` Supported values include 'warn', "
                             f"'ignore', and 'fail.' Received {external_state_policy}.")
        config = estimator.config
        if not config.save_checkpoints_secs and not config.save_checkpoints_steps:
            raise ValueError('CheckpointInputPipelineHook: save_checkpoints_secs or '
                             'save_checkpoints_steps of the RunConfig must be set.')
        name = 'input'
        if config.num_worker_replicas > 1:
            name += f'_{config.task_type}_{config.task_id}'
        self._states = IteratorStates(estimator.model_dir, name, config.keep_checkpoint_max)
        self._policy = external_state_policy or 'fail'
        self._global_step: Any = None
        self._started: tf.Session | None = None

    def begin(self) -> None:
        """Finds the iterators of the graph; raises ValueError if it has none."""
        iterators = tf.get_collection(_ITERATORS)
        if not iterators:
            raise ValueError('CheckpointInputPipelineHook found no iterator: input_fn must '
                             'return a tf.data.Dataset.')
        with _tf.without_deprecation_warnings():
            self._states.build([self._saveable(each) for each in iterators])
        self._global_step = _tf.global_step_read(tf.get_default_graph())

    def _saveable(self, iterator: tf.Tensor) -> Any:
        """Returns what saves an iterator; its state is read where the iterator is."""
        with on(iterator.device):
            return tf.data.experimental.make_saveable_from_iterator(
                tf.data.Iterator(iterator, None, (), (), ()), self._policy)

    def before_run(self, run_context: tf.train.SessionRunContext) -> None:
        """Restores before the first run of a session, or saves if there is no state yet."""
        session = run_context.session
        if session is not self._started:  # Not earlier: other hooks start the iterators.
            self._started = session
            step = int(session.run(self._global_step))
            if not self._states.restore(session, step):
                self._states.save(session, step)
            self._states.has_new_model()  # The model of this step is not new.
        else:
            self._save_with_model(session)  # If its saver came after this hook.

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Saves if the model was saved."""
        self._save_with_model(run_context.session)

    def end(self, session: tf.Session) -> None:
        """Saves, as the saver of the model does at the end."""
        self._states.save(session, int(session.run(self._global_step)))

    def listener(self) -> tf.train.CheckpointSaverListener:
        """Returns a listener by which the saver of the model saves the input first.

        So whenever the process ends, the state of the input is there for every saved model.
        """
        listener = tf.train.CheckpointSaverListener()
        listener.before_save = self._save_first
        return listener

    def _save_first(self, session: tf.Session, global_step_value: int) -> None:
        """Saves, unless the first run may still have to restore the state."""
        if session is self._started:
            self._states.save(session, int(global_step_value))

    def _save_with_model(self, session: tf.Session) -> None:
        if self._states.has_new_model():
            self._states.save(session, int(session.run(self._global_step)))
