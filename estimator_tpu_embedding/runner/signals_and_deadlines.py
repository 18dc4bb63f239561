"""Ends a run, or a call of a user, from outside: by signals and by deadlines.

Ctrl-C ends a run at once, SIGTERM after the current step. Python runs its handlers of signals only
between calls of TensorFlow's C++. A step is one long call, so a thread waits for Ctrl-C.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import signal
import socket
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator

import tensorflow.compat.v1 as tf

from ..errors import InputPipelineError, Problem

PROMPT_SECONDS = 2.0
"""The seconds that are left of the deadline of the end once SIGTERM has come."""
WARN_SECONDS = 60.0
"""From one line about an input that does not come to the next."""
_QUIET_SECONDS = 5.0
_SLICE_SECONDS = 0.2
_AGAIN = .2
"""Seconds until a call that SIGTERM is to end is woken again."""


@contextlib.contextmanager
def woken_by_interrupt(wake: Callable[[], None]) -> Iterator[None]:
    """Calls `wake` from another thread as soon as SIGINT arrives.

    `wake` ends the wait of the main thread. Any error that follows there becomes a
    `KeyboardInterrupt`. Nothing happens if the user has another handler for the signal, or outside
    of the main thread, where Python has no signals.
    """
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        yield
        return
    has_come = threading.Event()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while True:
            try:
                number = receiver.recv(1)
            except TimeoutError:  # A call that was just about to wait when it was woken waits yet.
                number = bytes([signal.SIGTERM])
            if not number:
                return
            if number == bytes([signal.SIGINT]):
                has_come.set()
                wake()
            elif number == bytes([signal.SIGTERM]):
                receiver.settimeout(_AGAIN if Termination.wake_calls() else None)

    thread = threading.Thread(target=watch, name='infeed-interrupt', daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if has_come.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.set_wakeup_fd(before)
        sender.close()  # Ends the thread.
        thread.join()
        receiver.close()


class Terminated(BaseException):
    """Ends a call or an evaluation inside of a training that SIGTERM has asked to end.

    The training ends with it. Like `KeyboardInterrupt` it is no `Exception`, which hooks of users
    may catch.
    """


class Termination:
    """Whether the process was asked to end by SIGTERM, as preempted machines are.

    Attributes:
      is_asked: whether SIGTERM has come, so that the run should end after its step.
    """

    _awaited: Termination | None = None
    _calls: list[Callable[[], None]] = []

    def __init__(self) -> None:
        self.is_asked = False

    @staticmethod
    def of_process() -> Termination:
        """Returns the one of the training that is under way, or a new one if there is none."""
        return Termination._awaited or Termination()

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """While the body runs, SIGTERM only asks for its end; then the process ends by it.

        A second signal ends the process at once. An error of the body is raised instead of the
        signal. Nothing happens if the user has a handler for the signal, or outside of the main
        thread.

        Raises:
          Terminated: inside of another such body, to end that one too.
        """
        if self is Termination._awaited:
            yield
            self.proceed()
            return
        if threading.current_thread() is not threading.main_thread():
            _warn_of_thread()
            yield
            return
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def ask(number: int, frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.is_asked = True
            if Termination._calls:
                raise Terminated

        signal.signal(signal.SIGTERM, ask)
        Termination._awaited = self
        try:
            with contextlib.suppress(Terminated):
                yield
        finally:
            Termination._awaited = None
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self.is_asked:
            tf.logging.warning('SIGTERM: the training ended after a step; now the process ends.')
            signal.raise_signal(signal.SIGTERM)

    def proceed(self) -> None:
        """Raises Terminated if SIGTERM has come; called where a run cannot end by itself."""
        if self.is_asked:
            raise Terminated

    @staticmethod
    @contextlib.contextmanager
    def ends_call(wake: Callable[[], None]) -> Iterator[None]:
        """Lets SIGTERM end the body, a call of a user's function, by a `Terminated`.

        That error is raised in the main thread, so a body in another thread is left alone.
        Otherwise it would end a training of the main thread amid a step, unsaved.

        `wake` interrupts a wait of the body. Python looks for signals before a wait. A signal that
        comes just after that, or in another thread, does not end the wait.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        Termination._calls.append(wake)
        try:
            yield
        finally:
            Termination._calls.remove(wake)

    @staticmethod
    def wake_calls() -> bool:
        """Lets the main thread see that SIGTERM has come; returns whether there is a call to end.
        """
        calls = list(Termination._calls)
        for wake in calls:
            wake()
        return bool(calls)


@functools.cache  # Once per process.
def _warn_of_thread() -> None:
    tf.logging.warning('%s', Problem(
        'W531', 'train', 'signals reach only what runs in the main thread',
        f'a training in thread "{threading.current_thread().name}"', 'It works, but SIGTERM does '
        'not save it before the process ends, and Ctrl-C does not end it.'))


class Shutdown:
    """Waits for threads at the end of a run; all waits together have one deadline."""

    def __init__(self, seconds: float, termination: Termination):
        """Allows `seconds` for all waits together, but `PROMPT_SECONDS` once SIGTERM has come."""
        self._seconds, self.termination = seconds, termination
        self.proceed = termination.proceed
        self._end: float | None = None

    def restart(self) -> None:
        """Gives the end of another session, which has begun, a deadline of its own."""
        self._end = None

    def wait_for(self, thread: threading.Thread, what: str,
                 unless: Callable[[], bool] = lambda: False) -> bool:
        """Waits until a thread has ended, the deadline is over, or `unless` returns true.

        Ctrl-C ends all waits. A line that says what the wait is for calls the thread `what`.

        Returns:
          Whether the thread has ended.
        """
        quiet_until: float | None = time.monotonic() + _QUIET_SECONDS
        try:
            thread.join(_SLICE_SECONDS)  # Also when the deadline is over: most end at once.
            while thread.is_alive() and not unless() and (left := self._left()) > 0:
                if quiet_until is not None and time.monotonic() > quiet_until:
                    quiet_until = None
                    tf.logging.warning(
                        'The end of the run waits for %s, %.0f s at most: '
                        'RunConfig(shutdown_deadline_secs=%g). Ctrl-C ends the wait.',
                        what, left, self._seconds)
                thread.join(min(left, _SLICE_SECONDS))  # In slices, to see whether it gets urgent.
        except BaseException:
            self._end = 0.0
            raise
        return not thread.is_alive()

    def _left(self) -> float:
        """Returns the seconds that are left; the first call starts the clock."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        if self.termination.is_asked:
            self._end = min(self._end, now + PROMPT_SECONDS)
        return self._end - now


@contextlib.contextmanager
def called_in_time(name: str, deadline: float) -> Iterator[None]:
    """Warns while the body, the call of input_fn `name`, does not return; ends it at the deadline.

    The body stays in its thread, since it may use objects that belong there. So only a signal can
    end it. SIGURG serves for that, since it does nothing by itself: its handler raises the error.
    In a thread without signals, and if the user handles SIGURG, the body goes on after the
    deadline, with a line per minute in the log.

    Raises:
      InputPipelineError: E522, if the body takes longer.
    """
    caller = threading.get_ident()
    has_ended = threading.Event()
    late: InputPipelineError | None = None
    may_end = (threading.current_thread() is threading.main_thread()
               and signal.getsignal(signal.SIGURG) is signal.SIG_DFL)

    def interrupt(number: int, frame: object) -> None:
        if late is not None:  # Otherwise it is SIGTERM that woke the call, or somebody else.
            raise late

    def wake() -> None:
        if may_end:
            signal.pthread_kill(caller, signal.SIGURG)

    def watch() -> None:
        nonlocal late
        waited = 0.0
        while True:
            pause = min(WARN_SECONDS, deadline - waited) if late is None else WARN_SECONDS
            if has_ended.wait(pause):
                return
            waited += pause
            if late is None and waited >= deadline:
                late = nothing_came(name, waited)
                tf.logging.error('%s', '\n'.join([str(late), *late.__notes__]))
            else:
                tf.logging.warning('input_fn of %s has not returned for %.0f s.', name, waited)
            if late is not None:
                wake()

    watcher = threading.Thread(target=watch, name='infeed-call', daemon=True)
    if may_end:
        signal.signal(signal.SIGURG, interrupt)
    watcher.start()
    try:
        with Termination.ends_call(wake):
            yield
    finally:
        has_ended.set()
        try:
            watcher.join()
        finally:  # The signal may come as late as here.
            if may_end:
                signal.signal(signal.SIGURG, signal.SIG_DFL)


def nothing_came(name: str, waited: float, *, has_stacks: bool = True) -> InputPipelineError:
    """Returns E522 for the input `name`, which takes too long, with stacks of all threads as notes.
    """
    error = InputPipelineError(Problem(
        'E522', f'input of {name}', 'it must produce a batch before the deadline',
        f'nothing for {waited:.0f} s', 'What the threads of this process do is below. Where '
        'input may take longer, set RunConfig(input_deadline_secs=...).'))
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for thread, frame in _frames().items() if has_stacks else ():
        error.add_note(f'thread {names.get(thread, thread)}:\n'
                       + ''.join(traceback.format_stack(frame)))
    return error


def _frames() -> dict[int, types.FrameType]:
    """Returns the topmost frame of every thread of this process."""
    enabled = gc.isenabled()
    # A collection inside that call may free a thread-local, which takes the lock that the call
    # holds: up to Python 3.11 the process then stands still (CPython issue 106883).
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if enabled:
            gc.enable()
