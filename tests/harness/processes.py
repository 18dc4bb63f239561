"""Runs real programs for tests; always reaps them, always shows their output."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

from . import groups
from . import loaded as loaded_python
from .groups import DEADLINE
from .network import require_private_network
from .waiting import until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / 'tools' / 'examples' / 'census_tpu_job.py'
HANDWRITTEN = ROOT / 'tools' / 'examples' / 'census_handwritten_loop.py'


def run_python(*arguments, deadline=DEADLINE, cwd=None, before=(), loaded=False, **environment):
    """Runs this Python without our switches set; returns the completed process.

    Args:
      *arguments: of the command line.
      cwd: the folder to run it in, instead of this one.
      before: a command that runs the command line which follows it.
      deadline: seconds after which the process is killed and the test fails.
      loaded: whether `harness.loaded` runs it, with TensorFlow imported already. That saves two
        seconds of CPU. It suits tests that ask what a job does, not how it imports TensorFlow.
      **environment: variables to set; `None` removes one.
    """
    variables = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2', 'TF_USE_LEGACY_KERAS': None,
                 **environment}
    variables = {name: value for name, value in variables.items() if value is not None}
    arguments = [str(one) for one in arguments]
    if not loaded:
        return groups.run([*before, sys.executable, *arguments], cwd=cwd, deadline=deadline,
                          env=variables)
    try:
        ended = loaded_python.run(arguments, cwd, variables, deadline)
    except subprocess.TimeoutExpired as error:
        groups.show(error.stdout, error.stderr)
        raise
    groups.show(ended.stdout, ended.stderr)
    return ended


def path_with(folder):
    """Returns the PYTHONPATH of processes that import modules of a folder, too."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get('PYTHONPATH')]))


def path_with_harness():
    """Returns the PYTHONPATH of processes that import the harness."""
    return path_with(ROOT / 'tests')


def run_harness(module, *arguments, **kwargs):
    """Runs a module of the harness as a script, perhaps as the end of another command line."""
    return run_python('-m', f'harness.{module}', *arguments, PYTHONPATH=path_with_harness(),
                      **kwargs)


@contextlib.contextmanager
def started(*arguments, deadline=DEADLINE):
    """While the body runs, this Python runs beside it, with the harness on its path.

    It ends when its input does. What it printed is shown in the end, errors with it.

    Args:
      *arguments: of the command line.
      deadline: seconds after which it is killed.

    Yields:
      (the process, its lines of output as they come).
    """
    printed = []
    with tempfile.TemporaryFile('w+') as errors, groups.running(
            [sys.executable, *map(str, arguments)], stdin=subprocess.PIPE, stderr=errors,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, 'PYTHONPATH': path_with_harness()}) as process:
        try:
            with groups.killed_after(deadline, process.pid):
                yield process, (printed.append(line) or line.rstrip() for line in process.stdout)
        finally:
            errors.seek(0)
            print(*printed, '--- stderr ---', errors.read()[-4000:], sep='\n')


def run_etpe(*arguments, **kwargs):
    """Runs `python -m estimator_tpu_embedding`."""
    return run_python('-m', 'estimator_tpu_embedding', *arguments, **kwargs)


def free_addresses(count):
    """Returns addresses of this machine on which nobody listens.

    Outgoing connections get higher ports than these, so only a test that runs at the
    same time could take them before a server does, by the same draw.
    """
    sockets = []
    while len(sockets) < count:
        one = socket.socket()
        try:
            one.bind(('127.0.0.1', random.SystemRandom().randrange(12_000, 32_000)))
        except OSError:
            one.close()
        else:
            sockets.append(one)
    addresses = [f'127.0.0.1:{one.getsockname()[1]}' for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def run_cluster(tasks, *arguments, deadline=DEADLINE):
    """Runs a script by `etpe run` in one process for each task of a cluster.

    Args:
      tasks: how many there are of each kind, for example `{'chief': 1, 'ps': 1}`. Parameter
        servers never end by themselves: they are killed when all others have ended.
      *arguments: the script and its arguments.
      deadline: seconds for all; a task that fails ends all others at once.

    Returns:
      The output of each task but the parameter servers, by `'worker 0'` and so on.
    """
    require_private_network()
    addresses = iter(free_addresses(sum(tasks.values())))
    cluster = {kind: [next(addresses) for _ in range(count)] for kind, count in tasks.items()}
    with tempfile.TemporaryDirectory() as logs, contextlib.ExitStack() as stack:
        running = {}
        for kind, index in [(kind, i) for kind, count in tasks.items() for i in range(count)]:
            name = f'{kind} {index}'
            log = stack.enter_context(open(f'{logs}/{name}', 'w'))
            running[name] = stack.enter_context(groups.running(
                [sys.executable, '-m', 'estimator_tpu_embedding', 'run', *map(str, arguments)],
                stdout=log, stderr=subprocess.STDOUT, env={
                    **os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2', 'TF_CONFIG': json.dumps(
                        {'cluster': cluster, 'task': {'type': kind, 'index': index}})}))
        ends = [name for name in running if not name.startswith('ps')]

        def codes():
            return [running[name].poll() for name in ends]

        try:
            until(lambda: any(codes()) or None not in codes(), 'the end of the tasks', deadline)
        finally:
            outputs = {name: pathlib.Path(logs, name).read_text() for name in running}
            for name, output in outputs.items():  # pytest shows it if the test fails.
                print(f'--- {name} ---', output[-4000:], sep='\n')
        assert not any(codes()), dict(zip(ends, codes()))
    return {name: outputs[name] for name in ends}


def is_gone(pid):
    """Whether a process has ended; one that nobody has reaped yet has."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return True


def until_gone(pids):
    """Waits until processes have ended."""
    pids = list(pids)
    until(lambda: all(map(is_gone, pids)), f'the end of processes {pids}')
