"""What TensorFlow and logging write to a terminal besides what anybody wants to read."""

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
    rb'|.*Unable to register cu(FFT|DNN|BLAS) (factory|plugin)')
_NO_DRIVER = re.compile(rb'.*failed call to cuInit: ')
_DEVICES = ('/dev/nvidiactl', '/dev/nvidia0', '/dev/dxg')
_DEPRECATION = re.compile(r'From (.+?):\d+: .* is deprecated and will be removed', re.DOTALL)
_SECONDS_FOR_RELAY = 5.


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Leaves out the facts that TensorFlow writes while the body imports it; errors are shown.

    These lines come before its log can be directed, so no variable silences them. A process of
    its own passes on all others as they come, so none is lost if this one crashes. Where there
    can be no GPU, that none was found is such a fact too, though TensorFlow calls it an error.
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
    """Starts what reads standard error of this process from now on; gives its process id."""
    reader, writer = os.pipe()
    relay = os.fork()
    if relay == 0:
        try:
            os.close(writer)
            # It ends with the other process, whatever keys are pressed.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            _pass_on(reader, has_gpu)
        finally:
            os._exit(0)
    os.close(reader)
    os.dup2(writer, 2)
    os.close(writer)
    return relay


def _pass_on(reader: int, has_gpu: bool) -> None:
    """Writes the lines of a pipe that are no facts to standard error, until it is closed."""
    rest, more = b'', b' '
    while more:
        more = os.read(reader, 65536)
        *lines, rest = (rest + more).split(b'\n')
        for line in lines + ([] if more or not rest else [rest]):
            if not _FACT.match(line) and (has_gpu or not _NO_DRIVER.match(line)):
                os.write(2, line + b'\n')


def _await(relay: int) -> None:
    """Waits until all is passed on, unless somebody else holds the pipe open."""
    end = time.monotonic() + _SECONDS_FOR_RELAY
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(relay, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(.005)


def log_each_line_once(is_library: Callable[[str], bool]) -> None:
    """Keeps TensorFlow's handler from what a handler of the root logger writes to the same place.

    absl has one there from `app.run` on. Advice to give up what is deprecated is left out where
    a library is what calls it.

    Args:
      is_library: whether a file is of a library, and not of the job.
    """
    import tensorflow as tf
    logger = tf.get_logger()
    logger.addFilter(_NotOfLibraries(is_library))
    for handler in logger.handlers:
        handler.addFilter(_Once(logger, handler))
    # What a script or PYTHONWARNINGS says comes first.
    warnings.filterwarnings('ignore', '.* is deprecated', UserWarning, r'tensorflow\.python\.',
                            append=True)


class _NotOfLibraries(logging.Filter):
    """Lets no deprecation pass that only a library could heed."""

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
    """Lets pass what no handler of the root logger writes to the stream of a handler."""

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
    """Where a handler writes, also that of absl, which hands over to another; or `None`."""
    handler = getattr(handler, 'python_handler', handler)
    return getattr(handler, 'stream', None)
