"""Shows the progress of a run in one line at the bottom of a terminal."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TextIO

_SECONDS_UNTIL_SHOWN, _SECONDS_BETWEEN, _SECONDS_OF_RATE = 2., .2, 10.
_ERASE = '\r\x1b[K'


class StatusLine:
    """One line on a terminal about the newest run, beside all other output.

    The thread that makes the steps writes the line between two steps. So nothing moves while
    nothing runs, as in a debugger. Python's own output to the terminal erases the line first. The
    cursor waits at the start of the line, so other output covers it. The line stays away while
    another line is unfinished, such as a progress bar of the script.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        """Writes to `stream`, a terminal; tells time by `clock`."""
        self._stream, self._clock, self._process = stream, clock, os.getpid()
        self._write = stream.write
        self._run: Any = None
        self._samples: deque[tuple[float, int]] = deque()
        self._began = self._shown_at = 0.0
        self._is_shown, self._is_line_begun = False, False

    def tell(self, run: Any) -> None:
        """Takes notice of a step, or of the end, of a `runner.progress.RunReport`."""
        now = self._clock()
        if run.is_over:
            if run is self._run:
                self.erase()
                self._run = None
            return
        if run is not self._run:
            self._run, self._began = run, now
            self._samples = deque([(now, run.steps)])
        if now - self._began < _SECONDS_UNTIL_SHOWN or now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        self._samples.append((now, run.steps))
        while len(self._samples) > 2 and self._samples[0][0] < now - _SECONDS_OF_RATE:
            self._samples.popleft()
        if not self._is_line_begun and self._may_write():
            line = fitting(parts_of(run, self._rate()), self._columns() - 1)
            self._put(f'{_ERASE}{line}\r')
            self._is_shown = True

    def erase(self) -> None:
        """Erases the line, as if it had never been there."""
        if self._is_shown and os.getpid() == self._process:
            self._is_shown = False
            self._put(_ERASE)

    @contextlib.contextmanager
    def beside(self, *streams: TextIO | None) -> Iterator[None]:
        """Erases the line before other output to these streams, while the body runs."""
        shared = [stream for stream in streams if stream is not None and is_terminal(stream)]
        for stream in shared:
            stream.write = functools.partial(  # type: ignore[method-assign]
                self._write_beside, stream.write)
        try:
            yield
        finally:
            self.erase()
            for stream in shared:
                with contextlib.suppress(AttributeError):
                    del stream.write  # Removes the one of this object; its class keeps its own.

    def _write_beside(self, write: Callable[[str], int], text: str) -> int:
        self.erase()
        if text:
            self._is_line_begun = not text.endswith('\n')
        return write(text)

    def _rate(self) -> float:
        (begin, first), (end, last) = self._samples[0], self._samples[-1]
        return (last - first) / max(end - begin, 1e-9)

    def _may_write(self) -> bool:
        """Whether this process is the one in front; a job in the background would be stopped."""
        try:
            return (os.getpid() == self._process
                    and os.tcgetpgrp(self._stream.fileno()) == os.getpgrp())
        except (OSError, ValueError):
            return False

    def _columns(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        return 80

    def _put(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # The script may have closed it.
            self._write(text)
            self._stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Returns whether a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def parts_of(run: Any, rate: float) -> list[str]:
    """Returns the texts about a run, the most important first.

    Args:
      run: a `runner.progress.RunReport`.
      rate: recent steps per second.
    """
    step = run.first_step + run.steps
    parts = [f'{run.verb}: step {step}' + (f' of {run.last_step}' if run.last_step else '')]
    parts.append(f'{rate:,.1f} steps/s')
    if run.batch_size:
        parts.append(f'{rate * run.batch_size:,.0f} examples/s')
    if run.verb == 'train' and run.loss is not None:
        with contextlib.suppress(TypeError, ValueError):
            parts.append(f'loss {float(run.loss):.4g}')
    if run.last_step and rate > 0:
        seconds = int(max(0, run.last_step - step) / rate)
        parts.append(f'{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left')
    return parts


def fitting(parts: list[str], columns: int) -> str:
    """Returns as many of the parts, from the first on, as a line has room for.

    >>> fitting(['train: step 3', '1.0 steps/s', 'loss 2'], 26)
    'train: step 3, 1.0 steps/s'
    >>> fitting(['train: step 3'], 6)
    'train:'
    """
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > columns:
            break
        line += f', {part}'
    return line[:max(0, columns)]


@contextlib.contextmanager
def shown(send_steps_to: Callable[[Callable[[Any], None] | None], None]) -> Iterator[None]:
    """Shows the line while the body runs, if standard error is a terminal.

    Args:
      send_steps_to: takes the function that is called with each report of a step.
    """
    from ..compat import environment
    if not is_terminal(sys.stderr) or not environment.can_move_cursor():
        yield
        return
    line = StatusLine(sys.stderr)
    with line.beside(sys.stdout, sys.stderr):
        send_steps_to(line.tell)
        try:
            yield
        finally:
            send_steps_to(None)
