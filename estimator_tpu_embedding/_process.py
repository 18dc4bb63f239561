"""Refuses work in a child that was forked after TensorFlow had started.

TensorFlow's threads do not survive a fork, so a call in the child would wait for ever.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import sys

from .errors import CallError, Problem

_PR_SET_PDEATHSIG = 1
_TASKS = pathlib.Path('/proc/self/task')


class _State:
    """The facts about this process.

    Attributes:
      parent: the parent of a child that was forked when TensorFlow ran already; otherwise `None`.
      runs: whether TensorFlow ran when the current fork began.
    """

    parent: int | None = None
    runs = False


def end_with_parent() -> None:
    """Makes the kernel kill this process when the thread ends that started it, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def require_threads(call: str) -> None:
    """Makes sure that TensorFlow has its threads here; without them it would wait for ever.

    Args:
      call: the call that is about to begin, for example `'train'`.

    Raises:
      CallError: E537, in a child that was forked after TensorFlow had started.
    """
    if _State.parent is not None:
        raise CallError(Problem(
            'E537', call, 'it must run in the process in which TensorFlow started, since its '
            'threads do not survive a fork', f'a child forked from process {_State.parent}',
            'Start the process with multiprocessing.get_context("spawn") or subprocess, fork '
            f'before anything of TensorFlow runs, or {call} in the parent.'))


def _before_fork() -> None:
    # Importing TensorFlow starts no threads.
    _State.runs = 'tensorflow' in sys.modules and any(map(_is_of_tensorflow, _TASKS.iterdir()))


def _after_fork() -> None:
    if _State.runs:
        _State.parent = os.getppid()


def _is_of_tensorflow(task: pathlib.Path) -> bool:
    try:
        return (task / 'comm').read_text().startswith('tf_')
    except OSError:  # The thread has just ended.
        return False


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
