"""Runs Python programs in forks of one process that has imported TensorFlow and not started it.

Importing TensorFlow takes two seconds of CPU, which is most of a small job's time. A fork finds
it imported already, with the switch for Keras 2 set. Otherwise a program finds what a fresh
interpreter gives it: `__main__`, `sys.argv`, `sys.path`, environment, folder, files, exit status.

Run as a script, this module is that process. It reads a request per line as JSON, and answers
with two lines for each: the process id of the fork, and its status when it has ended.
"""

import atexit
import functools
import gc
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import types

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
    late = threading.Event()

    def kill(process):
        late.set()
        os.kill(process, signal.SIGKILL)

    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        files = [f'{folder}/{name}' for name in ('stdout', 'stderr')]
        print(json.dumps([arguments, str(cwd or os.getcwd()), {**environment, **ALWAYS}, files]),
              file=server.stdin, flush=True)
        watch = threading.Timer(deadline, kill, [int(server.stdout.readline())])
        watch.start()
        status = int(server.stdout.readline())
        watch.cancel()
        watch.join()
        stdout, stderr = (pathlib.Path(path).read_text() for path in files)
    if late.is_set():
        raise subprocess.TimeoutExpired(arguments, deadline, stdout, stderr)
    return subprocess.CompletedProcess(arguments, status, stdout, stderr)


@functools.cache
def _server():
    """The process that forks; it ends when this one closes the pipe to it, in whatever way."""
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**{name: value for name, value in os.environ.items() if name != 'PYTHONPATH'},
             **ALWAYS})
    atexit.register(process.communicate)
    return process


def _serve():
    """Answers requests; returns in each fork, with the request that the fork was made for."""
    import tensorflow  # noqa: F401
    gc.freeze()
    for line in sys.stdin:
        fork = os.fork()
        if not fork:
            return json.loads(line)
        print(fork, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)
    sys.exit()


def _become(arguments, cwd, environment, files):
    """Turns this fork into the process that a command line asks for, and runs its program."""
    for number, path in enumerate([os.devnull, *files]):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    kind = arguments[0] if arguments[0] in ('-c', '-m') else 'path'
    program, *rest = arguments[kind != 'path':]
    sys.argv = ['-c' if kind == '-c' else program, *rest]
    sys.path[:1] = [{'-c': '', '-m': cwd, 'path': os.path.dirname(os.path.abspath(program))}[kind],
                    *filter(None, environment.get('PYTHONPATH', '').split(os.pathsep))]
    if kind == '-m':
        runpy.run_module(program, run_name='__main__', alter_sys=True)
    elif kind == 'path':
        runpy.run_path(program, run_name='__main__')
    else:
        sys.modules['__main__'] = types.ModuleType('__main__')
        exec(compile(program, '<string>', 'exec'), vars(sys.modules['__main__']))


if __name__ == '__main__':
    _become(*_serve())
