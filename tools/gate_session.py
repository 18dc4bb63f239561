"""What the gate (`check.py`) and the soak (`soak.py`) share.

One folder holds all that a run writes, and is removed when it ends. One wheel is built and
installed there, for every part. A log outside of the checkout keeps what was printed, and the
start of each test. Whatever a command leaves running is ended.
"""

import collections
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import environment
import make_wheel
import private_network

ROOT, TESTS = environment.ROOT, environment.ROOT / 'tests'
CONSTRAINTS = ROOT / '.ci' / 'constraints.txt'
LOGS = pathlib.Path(os.path.expanduser('~'), '.cache', 'etpe-ci')
KEPT_LOGS = 20
PREFIX, LOCK = 'etpe-check-', '.lock'
LEAST_FREE = 8e9
"""Bytes of disk. A run needs at most 6 GB; one that fails for want of room says nothing."""
QUIET_SECONDS, SILENT_SECONDS = 120, 3600
"""In which no test of a call of pytest runs, and none begins; in which none begins or ends."""
FOREIGN = ('PYTEST_', 'PYTHONPATH', 'PYTHONHOME')
"""Variables of whoever calls, which would change what runs, or where it is imported from."""
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
TRIES = 3
"""Of an installation, whose downloads may fail."""


class Ended(Exception):
    """The run must end; the message says why."""


def commit() -> str:
    """The commit of the checkout; with `-changed` where files differ from it, or may."""
    def git(*words: str) -> str:
        return subprocess.run(['git', '-C', ROOT, *words], capture_output=True, text=True,
                              check=True).stdout
    try:
        return git('rev-parse', 'HEAD').strip() + '-changed' * bool(git('status', '--porcelain'))
    except (OSError, subprocess.CalledProcessError):  # No git, or no repository.
        return 'unknown-changed'


# --- Processes

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PRCTL = ctypes.CDLL(None).prctl
UNKILLABLE_SECONDS = 60
"""After which a process is left that does not end: the system waits for a disk in it."""


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends."""
    PRCTL(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Has the system end this process when the one that started it is killed."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants() -> dict[int, str]:
    """The processes below this one that run, with their command lines."""
    children = collections.defaultdict(list)
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(')')[2].split()[:2]
            if state != 'Z':
                children[int(parent)].append(int(stat.parent.name))
    found, waiting = {}, [os.getpid()]
    while waiting:
        for pid in children[waiting.pop()]:
            waiting.append(pid)
            with contextlib.suppress(OSError):
                words = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
                found[pid] = b' '.join(words).decode(errors='replace').strip()[:200]
    return found


def end_descendants(patience: float) -> dict[int, str]:
    """Ends all processes below this one, and returns those that did not end by themselves.

    Args:
      patience: seconds that they have for that.
    """
    end = time.monotonic() + patience
    while (left := descendants()) and time.monotonic() < end:
        time.sleep(.05)
    killed, end = dict(left), time.monotonic() + UNKILLABLE_SECONDS
    # One that is just being started is found the next time.
    while (left := descendants()) and time.monotonic() < end:
        killed |= left
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(.05)
    return killed


# --- Results

CRASH = '???'
"""How pytest-xdist calls the phase in which a test ended its worker."""


class Results:
    """What one call of pytest did.

    Attributes:
      collected, passed, skipped: node ids.
      failed: by node id, why. A test that began and did not end failed. So did what is no test: a
        file that cannot be imported, or a worker that ended while it ran none.
      not_run: node ids of tests that were collected and never began.
      seconds: by node id.
      running: node ids of tests that have begun and not ended.
    """

    def __init__(self, record: pathlib.Path, is_over: bool = True) -> None:
        """Reads a record of `tests/harness/recorder.py`.

        Args:
          record: the file.
          is_over: whether nothing more is written to it.
        """
        collected, began, outcomes = dict[str, None](), [], collections.defaultdict(set)
        down, crashed, files = list[str](), 0, list[str]()
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = collections.defaultdict(float)
        for fact in facts_of(record):
            collected |= dict.fromkeys(fact.get('collected', ()))
            down += [fact['down']] if 'down' in fact else []
            files += [fact['skipped']] if 'skipped' in fact else []
            if 'started' in fact:
                began.append(fact['started'])
            if 'broken' in fact:
                self.failed[fact['broken']] = fact['why']
            if 'ended' in fact:
                test = fact['ended']
                outcomes[test].add(fact['outcome'])
                crashed += (is_crash := fact['phase'] == CRASH)
                outcomes[test] |= {'over'} if is_crash or fact['phase'] == 'teardown' else set()
                self.seconds[test] += fact['seconds']
                if fact['outcome'] == 'failed':
                    self.failed.setdefault(test, fact['why'])
        if len(down) > crashed:
            self.failed[f'worker {down[-1]}'] = 'it ended while it ran no test'
        self.running = [test for test in began if 'over' not in outcomes[test]]
        self.collected, known = list(collected), {*began, *self.failed}
        self.not_run = [test for test in self.collected if test not in known]
        for test in self.running if is_over else ():
            self.failed.setdefault(test, 'its process ended while it ran')
        over = [test for test, found in outcomes.items() if 'over' in found]
        self.passed, self.skipped = [
            [test for test in over if test not in self.failed
             and ('skipped' in outcomes[test]) == is_skipped] for is_skipped in (False, True)]
        self.skipped += files


def facts_of(record: pathlib.Path) -> Iterator[dict]:
    """Yields what a record holds. A line that is being written, or that no disk took, is left."""
    for line in record.read_text(errors='replace').splitlines() if record.exists() else ():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


# --- A run

class Session:
    """A run of the gate or of the soak.

    Attributes:
      folder: all that it writes but the log.
      log: the file that keeps what it printed.
      binaries: of the environment, once `install` has made it.
      network: what comes before a command, so that only it reaches its network; empty where the
        machine does not allow that, and before `install`.
    """

    def __init__(self, folder: pathlib.Path, log: pathlib.Path) -> None:
        self.folder, self.log, self.binaries = folder, log, folder / 'venv' / 'bin'
        self._began, self._late, self._record = time.monotonic(), '', folder / 'no record yet'
        self._read: tuple[float, Results] | None = None
        self.network: list[object] = []

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        """Prints a text, also into the log. A disk that is full, or a reader gone, ends nothing."""
        text = text.encode(errors='replace').decode()
        with contextlib.suppress(OSError), open(self.log, 'a') as file:
            file.write(f'{text}\n')
        with contextlib.suppress(OSError):
            print(text, flush=True)

    def end_after(self, minutes: float) -> threading.Timer:
        """Starts the watchdog, which ends everything and says what was running."""
        watchdog = threading.Timer(60 * minutes, self._end, [minutes])
        watchdog.daemon = True
        watchdog.start()
        return watchdog

    @property
    def latest(self) -> Results:
        """The results until now of the newest call of pytest."""
        changed = self._record.stat().st_mtime if self._record.exists() else 0.
        if self._read is None or self._read[0] != changed:
            self._read = changed, Results(self._record, is_over=False)
        return self._read[1]

    def _end(self, minutes: float) -> None:
        running = list[str]()
        with contextlib.suppress(Exception):  # Whatever is wrong here, everything ends.
            running += [f'pid {pid}: {command}' for pid, command in descendants().items()]
            running += self.latest.running
        self._late = '\n  '.join([
            f'the watchdog ended the run after {minutes:g} minutes. Running were:', *running])
        end_descendants(0)  # So the main thread goes on, and says why.
        time.sleep(UNKILLABLE_SECONDS)
        # It hangs, perhaps as it says something to a reader that does not read.
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(1)

    def call(self, command: Sequence[object], *, is_quiet: bool = False,
             is_over: Callable[[], str] = str, cwd: pathlib.Path | None = None,
             **variables: str) -> int:
        """Runs a command to its end, and ends what it leaves running.

        Args:
          command: its words.
          is_quiet: whether its output goes into the log only, unless it fails.
          is_over: says why the command must end before it does by itself, or nothing.
          cwd: where it runs, instead of in the folder of this run.
          **variables: of its environment, besides those of this process.

        Returns:
          Its exit status.

        Raises:
          Ended: if the watchdog ended it.
        """
        if self._late:
            raise Ended(self._late)
        (self.folder / 'tmp').mkdir(exist_ok=True)
        own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd or self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_parent,
            env={**own, 'TMPDIR': str(self.folder / 'tmp'), 'TF_CPP_MIN_LOG_LEVEL': '2',
                 'ETPE_LOG': str(self.log), **variables})
        last = collections.deque[bytes](maxlen=40)
        reader = threading.Thread(target=self._copy, args=(process, is_quiet, last), daemon=True)
        reader.start()
        while process.poll() is None:
            if reason := self._late or is_over():
                self.say(reason)
                break
            time.sleep(.2)
        left = end_descendants(10 if process.returncode == 0 else 0)
        status = process.wait()
        reader.join()  # Nothing that could hold the other end of the pipe is left.
        if self._late:
            raise Ended(self._late)
        for pid, name in left.items() if process.returncode == 0 else ():
            self.say(f'left running, and ended: {name} (pid {pid})')
        if status and is_quiet:
            sys.stdout.buffer.writelines(last)
            sys.stdout.flush()
        return status

    def _copy(self, process: 'subprocess.Popen[bytes]', is_quiet: bool,
              last: 'collections.deque[bytes]') -> None:
        assert process.stdout is not None
        with open(self.log, 'ab') as log:
            # What is there, and not whole lines: a line of dots should be seen to grow.
            for piece in iter(lambda: os.read(process.stdout.fileno(), 1 << 16), b''):
                with contextlib.suppress(OSError):
                    log.write(piece)
                    log.flush()
                if is_quiet:
                    last.extend(piece.splitlines(keepends=True))
                    continue
                with contextlib.suppress(OSError):
                    sys.stdout.buffer.write(piece)
                    sys.stdout.flush()

    def install(self, *extras: str) -> None:
        """Builds the wheel, and installs it with what its tests need.

        Args:
          *extras: of setup.cfg, besides those of the tests.

        Raises:
          Ended: if that fails three times.
        """
        wheels, pins = self.folder / 'wheel', str(CONSTRAINTS)
        self._try('building the wheel', lambda: self.call(
            [sys.executable, make_wheel.__file__, wheels], is_quiet=True, PIP_CONSTRAINT=pins))
        wheel, = wheels.glob('*.whl')
        self._try('making an environment', lambda: self.call(
            [sys.executable, '-m', 'venv', '--clear', self.folder / 'venv'], is_quiet=True))
        self.network = private_network.before(self.binaries / 'python')
        self._try('installing it', lambda: self.call(
            [self.binaries / 'python', '-m', 'pip', '--disable-pip-version-check', 'install', '-q',
             '-c', CONSTRAINTS, f'{wheel}[{",".join(["cpu", "test", *extras])}]'], is_quiet=True))

    def _try(self, what: str, act: Callable[[], int]) -> None:
        for number in range(1, TRIES + 1):
            if not act():
                return
            self.say(f'{what} failed, {number} of {TRIES} times')
        raise Ended(f'{what} failed {TRIES} times')

    def pytest(self, *arguments: object, mark: str, seconds: float | None = None) -> Results:
        """Runs tests against the installed package, in a network that only they reach.

        Args:
          *arguments: for pytest: files, node ids, options.
          mark: which markers they must have, as for `-m`.
          seconds: they have at most.

        Returns:
          Their results.
        """
        self._record = self.folder / f'record-{time.monotonic_ns()}'
        end = None if seconds is None else time.monotonic() + seconds
        reasons = list[str]()

        def is_over() -> str:
            reasons.extend(filter(None, [self._why_over(end)]))
            return ''.join(reasons[:1])

        status = self.call(
            [*self.network, self.binaries / 'pytest', '-q',
             '-c', ROOT / 'setup.cfg', f'--rootdir={ROOT}', '-p', 'no:cacheprovider',
             '-m', mark, *arguments], is_over=is_over,
            ETPE_RECORD=str(self._record))
        results = Results(self._record)
        # 5: no test has these markers. 1 and 2: tests failed, or too many. It may also have ended
        # with a test, or here after a failure, which tells of both.
        if status not in (0, 5) and not results.running and not (
                results.failed and (reasons or status in (1, 2))):
            results.failed['pytest itself'] = f'it ended with status {status}'
        return results

    def pytest_to_the_end(self, *paths: object, mark: str,
                          options: Sequence[object] = ()) -> Iterator[Results]:
        """Yields the results of several calls of `pytest`: each runs what the one before left.

        A test that ends its process takes along those that wait behind it. A worker of
        pytest-xdist that dies is not replaced: the plugin would run the test again that ended it,
        or wait for ever.

        Args:
          *paths: files, folders or node ids.
          mark: which markers the tests must have.
          options: of pytest, in every call.

        Raises:
          Ended: if no test can run.
        """
        while paths:
            results = self.pytest(*options, '--max-worker-restart=0', *paths, mark=mark)
            yield results
            if results.not_run and len(results.not_run) == len(results.collected):
                raise Ended(f'{len(results.not_run)} tests do not run')
            rest = self.folder / 'rest'
            rest.write_text(''.join(f'{ROOT}/{test}\n' for test in results.not_run))
            paths = (f'@{rest}',) if results.not_run else ()

    def _why_over(self, end: float | None) -> str:
        if end is not None and time.monotonic() > end:
            return 'its time is over'
        since = time.time() - self._record.stat().st_mtime if self._record.exists() else 0
        # pytest-xdist may wait for ever when one of its workers died and the last files are short.
        if since > QUIET_SECONDS and not self.latest.running and self.latest.seconds:
            return f'no test has run for {QUIET_SECONDS} s'
        return f'no test has begun or ended for {since:.0f} s' if since > SILENT_SECONDS else ''


@contextlib.contextmanager
def session(name: str) -> Iterator[Session]:
    """A folder, a log and a watch over all processes; all but the log is gone afterwards.

    Args:
      name: of the log, without `.log`.

    Raises:
      Ended: if the disk has too little room.
    """
    adopt_orphans()
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, leave)
    log = log_named(name)
    remove_abandoned()
    lock, folder = locked_folder()
    try:
        run = Session(folder, log)
        run.say(f'== {time.strftime("%Y-%m-%d %H:%M:%S")} {name}; {room(folder)}')
        if shutil.disk_usage(folder).free < LEAST_FREE:
            raise Ended(f'{folder.parent} has {room(folder)}; {LEAST_FREE / 1e9:g} GB of disk '
                        'are needed: remove old clones, environments and temporary folders')
        yield run
    finally:
        ignore_signals()
        end_descendants(0)
        shutil.rmtree(folder, ignore_errors=True)
        os.unlink(lock.name)
        lock.close()


def leave(number: int, frame: object) -> None:
    """Ends this process after a signal."""
    ignore_signals()
    sys.exit(128 + number)


def ignore_signals() -> None:
    """Lets no second signal end what has to be done before the process ends."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def log_named(name: str) -> pathlib.Path:
    """Returns the log of a run, and removes the oldest ones."""
    folder = LOGS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f'{name}.log').touch()
    except OSError:  # There is no home, or it cannot be written.
        folder = pathlib.Path(tempfile.gettempdir(), 'etpe-ci')
        folder.mkdir(exist_ok=True)
    logs = {}
    for log in folder.glob('*.log'):
        with contextlib.suppress(FileNotFoundError):  # Another run removes it.
            logs[log] = log.stat().st_mtime
    for log in sorted(logs, key=logs.__getitem__)[:-KEPT_LOGS]:
        log.unlink(missing_ok=True)
    return folder / f'{name}.log'


def locked_folder() -> tuple[IO[str], pathlib.Path]:
    """Makes the folder of a run. The lock beside it is held as long as the run lives."""
    while True:
        folder = pathlib.Path(tempfile.gettempdir(), f'{PREFIX}{os.getpid()}-{time.time_ns()}')
        lock = open(f'{folder}{LOCK}', 'x')
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(lock.name):  # Otherwise another run has just removed it.
            folder.mkdir(0o700)
            return lock, folder
        lock.close()


def remove_abandoned() -> None:
    """Removes the folders of runs that were killed before they could."""
    for path in pathlib.Path(tempfile.gettempdir()).glob(f'{PREFIX}*{LOCK}'):
        with contextlib.suppress(OSError), open(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Nobody holds it any more.
            shutil.rmtree(path.with_suffix(''), ignore_errors=True)
            path.unlink()


def room(folder: pathlib.Path) -> str:
    """The disk and the memory that are free, for a person."""
    lines = pathlib.Path('/proc/meminfo').read_text().splitlines()
    memory = 1024 * next(int(line.split()[1]) for line in lines if line.startswith('MemAvailable'))
    return (f'{shutil.disk_usage(folder).free / 1e9:.1f} GB of disk and {memory / 1e9:.1f} GB of '
            'memory free')
