"""Filters the log on a terminal: drops start-up facts of TensorFlow, and lines logged twice."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator

from . import environment

_FACT = re.compile(
    rb'I\d{4} \d\d:|\d{4}-\d\d-\d\d .{16,24} I (tensorflow|external)/'
    rb'|WARNING: All log messages before absl::InitializeLog'
    rb'|To enable the following instructions: '
    rb'|.*Unable to register cu(FFT|DNN|BLAS) (factory|plugin)'
    rb'|.*TF-TRT Warning: Could not find TensorRT')
_NO_DRIVER = re.compile(rb'.*failed call to cuInit: ')
_DEVICES = ('/dev/nvidiactl', '/dev/nvidia0', '/dev/dxg')
_DEPRECATION = re.compile(r'From (.+?):\d+: .* is deprecated and will be removed', re.DOTALL)
_SECONDS_FOR_RELAY = 5.


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Drops the start-up facts that TensorFlow writes while the body imports it; shows errors.

    TensorFlow writes these lines before its log can be directed, so no variable silences them.
    A process of its own passes on all other lines as they come, so none is lost if this process
    crashes. If the machine can have no GPU, the message that none was found is a fact, too,
    although TensorFlow calls it an error.
    """
    if not environment.hide_facts_of_tensorflow() or 'tensorflow' in sys.modules or (
            threading.active_count() > 1) or sys.stderr is None:
        yield
        return
    has_gpu = any(map(os.path.exists, _DEVICES))
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        relay = _start_relay(has_gpu)
        try:
            yield
            if not has_gpu:
                import tensorflow as tf
                tf.config.list_physical_devices()
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            _await(relay)
    finally:
        os.close(kept)


def _start_relay(has_gpu: bool) -> int:
    """Starts a process that reads this process's standard error from now on.

    Returns:
      Its process id.
    """
    reader, writer = os.pipe()
    relay = os.fork()
    if relay == 0:
        try:
            os.close(writer)
            # It ends with the other process, and not by keys such as Ctrl-C.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            _pass_on(reader, has_gpu)
        finally:
            os._exit(0)
    os.close(reader)
    os.dup2(writer, 2)
    os.close(writer)
    return relay


def _pass_on(reader: int, has_gpu: bool) -> None:
    """Copies the lines of a pipe, but no facts, to standard error until the pipe is closed."""
    rest, more = b'', b' '
    while more:
        more = os.read(reader, 65536)
        *lines, rest = (rest + more).split(b'\n')
        for line in lines + ([] if more or not rest else [rest]):
            if not _FACT.match(line) and (has_gpu or not _NO_DRIVER.match(line)):
                os.write(2, line + b'\n')


def _await(relay: int) -> None:
    """Waits until all lines are passed on, unless another process holds the pipe open."""
    end = time.monotonic() + _SECONDS_FOR_RELAY
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(relay, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(.005)


def log_each_line_once(is_library: Callable[[str], bool]) -> None:
    """Makes TensorFlow's handler skip records that the root logger writes to the same stream.

    After `app.run`, absl has a handler at the root logger. Records that a function is deprecated
    are skipped, too, if a library calls the function.

    Args:
      is_library: takes the name of a file; whether it belongs to a library, and not to the job.
    """
    import tensorflow as tf
    logger = tf.get_logger()
    logger.addFilter(_NotOfLibraries(is_library))
    for handler in logger.handlers:
        handler.addFilter(_Once(logger, handler))
    # Filters of a script or of PYTHONWARNINGS take precedence.
    warnings.filterwarnings('ignore', '.* is deprecated', UserWarning, r'tensorflow\.python\.',
                            append=True)


class _NotOfLibraries(logging.Filter):
    """A filter that drops deprecations that only a library could act on."""

    def __init__(self, is_library: Callable[[str], bool]):
        super().__init__()
        self._is_library = is_library

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        if record.levelno != logging.WARNING or 'deprecated' not in str(record.msg):
            return True
        found = _DEPRECATION.match(record.getMessage())
        return found is None or not self._is_library(found[1])


class _Once(logging.Filter):
    """A filter that drops records that the root logger writes to the same stream."""

    def __init__(self, logger: logging.Logger, handler: logging.Handler):
        super().__init__()
        self._logger, self._handler = logger, handler

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is handled."""
        stream = _stream_of(self._handler)
        return stream is None or not self._logger.propagate or not any(
            other is not self._handler and record.levelno >= other.level
            and _stream_of(other) is stream for other in logging.getLogger().handlers)


def _stream_of(handler: logging.Handler) -> object:
    """Returns the stream of a handler, or `None`.

    The handler of absl hands its records over to another handler.
    """
    handler = getattr(handler, 'python_handler', handler)
    return getattr(handler, 'stream', None)
