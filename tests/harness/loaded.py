"""Runs Python programs in forks of one process that has imported TensorFlow and not started it.

Importing TensorFlow takes two seconds of CPU, which is most of a small job's time. A fork finds
it imported already, with the switch for Keras 2 set. Otherwise a program finds what a fresh
interpreter gives it: `__main__`, `sys.argv`, `sys.path`, environment, folder, files, exit status.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from . import fork_server, groups

ALWAYS = {'TF_USE_LEGACY_KERAS': '1', 'TF_CPP_MIN_LOG_LEVEL': '2'}
"""Variables that TensorFlow reads when it is imported."""


def run(arguments, cwd, environment, deadline):
    """Runs a command line of Python in a fork.

    Args:
      arguments: of the command line: `-c` and code, `-m` and a module, or a path; then those of
        the program. Options of Python itself have no effect any more.
      cwd: the folder to run it in, or `None` for this one.
      environment: all its variables; those in `ALWAYS` are set besides.
      deadline: seconds after which the fork is killed.

    Returns:
      The completed process, as `subprocess.run` returns it.

    Raises:
      subprocess.TimeoutExpired: at the deadline.
    """
    assert arguments[0] in ('-c', '-m') or not arguments[0].startswith('-')
    assert not environment.keys() & {'PYTHONWARNINGS', 'PYTHONHASHSEED'}  # Read only at the start.
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        files = [f'{folder}/{name}' for name in ('stdout', 'stderr')]
        print(json.dumps([arguments, str(cwd or os.getcwd()), {**environment, **ALWAYS}, files]),
              file=server.stdin, flush=True)
        with groups.guarded(_answer(server)) as fork, groups.killed_after(deadline, fork) as late:
            status = _answer(server)
        output = [pathlib.Path(path).read_text() for path in files]
    if late.is_set():
        raise subprocess.TimeoutExpired(arguments, deadline, *output)
    return subprocess.CompletedProcess(arguments, status, *output)


def _answer(server):
    line = server.stdout.readline()
    assert line, f'the process that forks has ended with status {server.wait()}'
    return int(line)


def _server():
    """The process that forks; another one if the last has ended."""
    if _started().poll() is not None:
        _started.cache_clear()
    return _started()


@functools.cache
def _started():
    return groups.spawn(
        [sys.executable, fork_server.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env={**{name: value for name, value in os.environ.items()
                           if name != 'PYTHONPATH'}, **ALWAYS})
