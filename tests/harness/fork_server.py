"""Forks itself for each program that `harness.loaded` asks it to run.

Run as a script, it reads a request per line as JSON, and answers with two lines for each: the
process id of the fork, which leads a group of its own, and its status when it has ended.
"""

import contextlib
import gc
import json
import os
import runpy
import sys
import types


def _serve():
    """Answers requests; returns in each fork, with the request that the fork was made for."""
    import tensorflow  # noqa: F401
    from groups import die_with_parent  # type: ignore[import-not-found]  # Beside it.
    gc.freeze()
    server = os.getpid()
    for line in sys.stdin:
        fork = os.fork()
        with contextlib.suppress(ProcessLookupError):  # The fork has ended already.
            os.setpgid(fork, fork)  # Whichever of both does it first.
        if not fork:
            die_with_parent(server)
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
