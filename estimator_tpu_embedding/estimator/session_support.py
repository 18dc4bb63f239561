"""Emulates `tensorflow.python.tpu.session_support` for a system without workers to watch.

The workers of an emulated system are this process. They cannot be lame while it runs, and nobody
is left to shut them down when it ends. So everything here finds no worker, says so as the
original does on such a system, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class CoordinatorResetError(tf.errors.AbortedError):
    """Makes a `MonitoredSession` begin a new session."""

    def __init__(self) -> None:
        super().__init__(None, None, 'Resetting session loop due to worker shutdown.')


CoordinatorShutdownException = CoordinatorResetError  # its name in early versions


class WorkerHeartbeatManager:
    """The heartbeats of workers; there are no workers."""

    def __init__(self, session: Any, devices: Sequence[str], heartbeat_ops: Sequence[Any],
                 request_placeholder: Any):
        """Takes the arguments of the original; asks no device."""

    @staticmethod
    def from_devices(session: Any, devices: Sequence[str]) -> WorkerHeartbeatManager:
        """Returns a manager of no worker, for any `devices`."""
        tf.logging.info('Creating heartbeat manager for %s', devices)
        return WorkerHeartbeatManager(session, devices, [], None)

    def num_workers(self) -> int:
        """The number of workers, 0."""
        return 0

    def configure(self, message: Any) -> None:
        """Sends a `WorkerHeartbeatRequest` to nobody."""
        tf.logging.info('Configuring worker heartbeat: %s', message)

    def ping(self, request: Any = None, timeout_in_ms: int = 60000) -> list[Any]:
        """Returns the answers of all workers: none."""
        return []

    def lame_workers(self) -> WorkerHeartbeatManager | None:
        """Returns a manager of the workers that are not well: `None`."""
        return None

    def shutdown(self, wait_time_in_ms: int = 60000, exit_code: int = 0) -> None:
        """Ends all workers: none. Waits for nothing."""
        tf.logging.info('Shutting down %s.', self)

    def __repr__(self) -> str:
        return 'HeartbeatManager()'


def all_worker_devices(session: tf.Session) -> list[str]:
    """Returns the devices of a session whose workers have heartbeats: none, as none has a TPU."""
    return []


class WatchdogManager:
    """Ends workers that nobody has asked for a while; usable in a `with` statement."""

    def __init__(self, session: Any, devices: Sequence[str] | None = None,
                 ping_interval: float = 60, shutdown_timeout: float = 2 * 3600):
        self.ping_interval, self.shutdown_timeout = ping_interval, shutdown_timeout

    def configure_and_run(self) -> None:
        """Logs that the watch begins."""
        tf.logging.info('Enabling watchdog timer with %d second timeout and %d second ping '
                        'interval.', self.shutdown_timeout, self.ping_interval)
        _warn_of_no_heartbeats()

    def stop(self) -> None:
        """Logs that the watch ends."""
        stop_worker_watchdog()

    def __enter__(self) -> None:
        self.configure_and_run()

    def __exit__(self, *exception: Any) -> None:
        self.stop()


def start_worker_watchdog(session: Any, devices: Sequence[str] | None = None,
                          ping_interval: float = 60, shutdown_timeout: float = 3600) -> None:
    """Logs that a watch of the process begins."""
    WatchdogManager(session, devices, min(shutdown_timeout / 10., ping_interval),
                    shutdown_timeout).configure_and_run()


def stop_worker_watchdog() -> None:
    """Logs that the watch of the process ends."""
    tf.logging.info('Stopping worker watchdog.')


class GracefulShutdownHook(tf.train.SessionRunHook):
    """A hook that would save when a worker is about to go away; here no worker ever is.

    A TPUEstimator saves at SIGTERM without any hook.
    """

    def __init__(self, checkpoint_prefix: str, saver: Any = None,
                 on_shutdown_hooks: Sequence[Callable[..., Any]] | None = None):
        self._saver = saver

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Logs that no worker is watched.

        Raises:
          ValueError: if there is a saver and no global step.
        """
        if self.saver() is not None and tf.train.get_global_step() is None:
            raise ValueError('Saver defined but no global step.  Run '
                             '`get_or_create_global_step()` in your model definition to allow '
                             'checkpointing.')
        tf.logging.info('Installing graceful shutdown hook.')
        _warn_of_no_heartbeats()

    def saver(self) -> Any:
        """The saver that was given, or the only one of the graph, or `None`."""
        savers = [self._saver] if self._saver else tf.get_collection(tf.GraphKeys.SAVERS)
        if len(savers) > 1:
            tf.logging.error('The graph has %d savers. Pass GracefulShutdownHook the one that is '
                             'meant.', len(savers))
        return savers[0] if len(savers) == 1 else None


class ShutdownLameWorkers:
    """Ends the workers that are not well, when it is called."""

    def __call__(self, run_context: Any, all_workers: WorkerHeartbeatManager,
                 lame_workers: WorkerHeartbeatManager) -> None:
        """Ends no worker: all are well."""
        lame_workers.shutdown(exit_code=42)


class ShutdownAllWorkers:
    """Ends all workers, when it is called."""

    def __call__(self, run_context: Any, all_workers: WorkerHeartbeatManager,
                 lame_workers: WorkerHeartbeatManager | None) -> None:
        """Logs that they end."""
        all_workers.shutdown(exit_code=42)


class ResetComputation(ShutdownAllWorkers):
    """Ends all workers, when it is called, and makes the monitored session begin anew."""

    def __call__(self, run_context: Any, all_workers: WorkerHeartbeatManager,
                 lame_workers: WorkerHeartbeatManager | None) -> None:
        """Raises CoordinatorResetError."""
        super().__call__(run_context, all_workers, lame_workers)
        tf.logging.info('Resetting coordinator.')
        raise CoordinatorResetError


def _warn_of_no_heartbeats() -> None:
    tf.logging.warning('No workers support heartbeats. Failure handling will be disabled.')
