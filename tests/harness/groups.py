"""Starts the processes of tests, each as the leader of a group that never outlives its parent.

Nothing else in tests starts one; `harness_test.py` makes sure of that.
"""

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading

DEADLINE = 240
"""Seconds for a process, somewhat fewer than a test has: only what hangs takes so long, however
busy the machine is."""

_GUARD = '''
import os, signal, sys
if os.fork():
    os._exit(0)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == '+' else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
'''
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl  # Found before a fork: its child may load no library.


def die_with_parent(parent=None):
    """Has the system kill this process when the thread ends that started it, however it does.

    Args:
      parent: the process that started it, if it may have ended already.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent not in (None, os.getppid()):
        os.kill(os.getpid(), signal.SIGKILL)


def spawn(command, **kwargs):
    """Starts a command as the leader of a new session, and so of a group of its own.

    The group is killed when this process ends, however it does. The leader is killed even when
    the thread ends that called this.

    Args:
      command: a list of words.
      **kwargs: of `subprocess.Popen`.
    """
    guard = _guard()
    process = subprocess.Popen(
        command, start_new_session=True,
        preexec_fn=functools.partial(die_with_parent, os.getpid()), **kwargs)
    os.write(guard, b'+%d\n' % process.pid)
    return process


def kill(group):
    """Kills all processes of a group that still run, the stopped ones too."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def end(process):
    """Kills what is left of the group that `spawn` started, and waits for its leader."""
    kill(process.pid)
    with process:  # It closes the pipes and waits.
        os.write(_guard(), b'-%d\n' % process.pid)


@contextlib.contextmanager
def running(command, **kwargs):
    """While the body runs, so does the process that `spawn` starts; then its group is killed."""
    process = spawn(command, **kwargs)
    try:
        yield process
    finally:
        end(process)


@contextlib.contextmanager
def guarded(group):
    """While the body runs, a group that another process started is this one's, as `spawn` says."""
    os.write(_guard(), b'+%d\n' % group)
    try:
        yield group
    finally:
        kill(group)
        os.write(_guard(), b'-%d\n' % group)


@contextlib.contextmanager
def killed_after(seconds, group):
    """Kills a group if the body takes longer; yields an event that is set then."""
    late = threading.Event()
    watch = threading.Timer(seconds, lambda: (late.set(), kill(group)))
    watch.start()
    try:
        yield late
    finally:
        watch.cancel()
        watch.join()


def run(command, *, input=None, deadline=DEADLINE, check=False, **kwargs):
    """Runs a command, shows the end of what it printed, and returns it completed.

    Args:
      command: a list of words.
      input: what it reads; `None` lets it read what this process reads.
      deadline: seconds after which its group is killed.
      check: whether a status other than 0 is an error.
      **kwargs: of `subprocess.Popen`. Unless they say more, output is text and is kept.

    Raises:
      subprocess.TimeoutExpired: at the deadline.
      subprocess.CalledProcessError: see `check`.
    """
    kwargs = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True, **kwargs}
    if input is not None:
        kwargs['stdin'] = subprocess.PIPE
    with running(command, **kwargs) as process:
        try:
            output = process.communicate(input, timeout=deadline)
        except subprocess.TimeoutExpired as error:
            kill(process.pid)
            # A process that left the group may have the pipes: it is not waited for any longer.
            with contextlib.suppress(subprocess.TimeoutExpired):
                error.stdout, error.stderr = process.communicate(timeout=10)
            show(error.stdout, error.stderr)
            raise
    show(*output)
    done = subprocess.CompletedProcess(command, process.returncode, *output)
    if check:
        done.check_returncode()
    return done


def show(stdout, stderr):
    """Prints the end of what a process printed; pytest shows it if the test fails."""
    print(*(text[-4000:] for text in (stdout or '', stderr or '')), sep='\n--- stderr ---\n')


@functools.cache
def _guard():
    """Starts what kills the groups of this process after its end; returns the pipe to it.

    That is no child of this process, which tests see in full.
    """
    reader, writer = os.pipe()
    subprocess.run([sys.executable, '-I', '-S', '-c', _GUARD], stdin=reader, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    os.close(reader)
    # The guard waits for the end of its pipe, which a fork would have, too.
    os.register_at_fork(after_in_child=lambda: (os.close(writer), _guard.cache_clear()))
    return writer
