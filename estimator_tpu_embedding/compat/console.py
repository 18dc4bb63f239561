"""Filters the log on a terminal: drops start-up facts of TensorFlow, and lines logged twice."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator

from . import environment

_FACTS = (  # For grep.
    '^(I[0-9]{4} [0-9]{2}:|[0-9]{4}-[0-9]{2}-[0-9]{2} .{16,24} I (tensorflow|external)/'
    '|WARNING: All log messages before absl::InitializeLog'
    '|To enable the following instructions: '
    '|.*Unable to register cu(FFT|DNN|BLAS) (factory|plugin)'
    '|.*TF-TRT Warning: Could not find TensorRT)')
_NO_DRIVER = '|^.*failed call to cuInit: '
_DEVICES = ('/dev/nvidiactl', '/dev/nvidia0', '/dev/dxg')
_DEPRECATION = re.compile(r'From (.+?):\d+: .* is deprecated and will be removed', re.DOTALL)


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Drops the start-up facts that TensorFlow writes while the body imports it; shows errors.

    TensorFlow writes these lines before its log can be directed, so no variable silences them.
    A process of its own passes on all other lines as they come, so none is lost if this process
    crashes. If the machine can have no GPU, the message that none was found is a fact, too,
    although TensorFlow calls it an error.
    """
    has_gpu = any(map(os.path.exists, _DEVICES))
    relay = _relay(has_gpu)
    if relay is None or relay.stdin is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(relay.stdin.fileno(), 2)
        relay.stdin.close()
        yield
        if not has_gpu:
            import tensorflow as tf
            tf.config.list_physical_devices()
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        with contextlib.suppress(subprocess.TimeoutExpired):  # Another process has the pipe open.
            relay.wait(5.)


def _relay(has_gpu: bool) -> subprocess.Popen[bytes] | None:
    """Starts a process that copies what is no fact to standard error, if there will be facts."""
    if not environment.hide_facts_of_tensorflow() or 'tensorflow' in sys.modules or (
            sys.stderr is None):
        return None
    with contextlib.suppress(FileNotFoundError):
        return subprocess.Popen(  # Keys such as Ctrl-C do not end it.
            ['grep', '-avE', '--line-buffered', _FACTS + ('' if has_gpu else _NO_DRIVER)],
            stdin=subprocess.PIPE, stdout=2, process_group=0)
    return None


def log_each_line_once(is_library: Callable[[str], bool]) -> None:
    """Makes TensorFlow's handler skip records that the root logger writes to the same stream.

    After `app.run`, absl has a handler at the root logger. Records that a function is deprecated
    are skipped, too, if the file that calls it is of a library, and not of the job.
    """
    import tensorflow as tf
    logger = tf.get_logger()

    def concerns_the_job(record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING or 'deprecated' not in str(record.msg):
            return True
        found = _DEPRECATION.match(record.getMessage())
        return found is None or not is_library(found[1])

    def is_new(handler: logging.Handler, record: logging.LogRecord) -> bool:
        stream = _stream_of(handler)
        return stream is None or not logger.propagate or not any(
            other is not handler and record.levelno >= other.level and _stream_of(other) is stream
            for other in logging.getLogger().handlers)

    logger.addFilter(concerns_the_job)
    for handler in logger.handlers:
        handler.addFilter(functools.partial(is_new, handler))
    # Filters of a script or of PYTHONWARNINGS take precedence.
    warnings.filterwarnings('ignore', '.* is deprecated', UserWarning, r'tensorflow\.python\.',
                            append=True)


def _stream_of(handler: logging.Handler) -> object:
    handler = getattr(handler, 'python_handler', handler)  # That of absl has another one.
    return getattr(handler, 'stream', None)
