"""Writes the figures of one benchmark run to a JSON file, with the circumstances of the run.

The file is one JSON object, which `figures.py` reads and `compare.py` compares:

| field | holds |
|---|---|
| `format` | 1 |
| `benchmark` | the name of the script |
| `figures` | by key: `unit`, `median`, `low`, `high` and `windows`; `most` or `least` if wanted |
| `notes` | why figures are missing; only if some are |
| `circumstances` | commit, date, command, machine, load, `disturbed` and versions |

`load` has load averages, and as `others` the share of the CPU time that went to other processes.
`windows` is the number of measurements of a figure. `low` and `high` bound the middle half of
them. `disturbed` counts measurements that were thrown away, since others took CPU time meanwhile.
With `--noisy` it is `null`: nothing was thrown away. The file holds no path and no host name, so
that it can be committed.
"""

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading

import quiet

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FORMAT = 1
SAMPLE_SECONDS = 5
"""How often the load average is read during a run."""

ATTEMPTS = 50
"""How often a measurement is repeated for quiet."""

_DIGITS = 6


class Disturbed(Exception):
    """This machine is not idle."""


class Figures:
    """The figures of one run, by key.

    Attributes:
      by_key: what the JSON file holds of each figure.
      notes: sentences on figures that could not be measured.
      disturbed: how many measurements were thrown away; `None` if none may be.
    """

    def __init__(self, noisy=False):
        self.by_key, self.notes, self.disturbed = {}, [], None if noisy else 0

    def quiet(self, measure):
        """Returns what `measure()` returns when others take next to no CPU time meanwhile.

        Raises:
          Disturbed: if they take more, again and again.
        """
        for _ in range(ATTEMPTS):
            with quiet.Watch() as watch:
                found = measure()
            if self.disturbed is None or watch.share <= quiet.MOST:
                return found
            self.disturbed += 1
        raise Disturbed(
            f'others take {watch.share:.0%} of the CPU time: end them, or give --noisy')

    def add(self, key, unit, windows, **bar):
        """Adds a figure, and returns its median.

        Args:
          key: names the figure in every run of the benchmark.
          unit: of the numbers, such as `'ms'`.
          windows: the measurements, one or more.
          bar: what is wanted of the median, `most=X` or `least=X`; nothing if nothing is.

        Raises:
          ValueError: if there is no measurement, or the key is already there.
        """
        windows = list(windows)
        if not windows or key in self.by_key:
            raise ValueError(f'figure {key!r} needs a key of its own and a measurement')
        low, median, high = (statistics.quantiles(windows, n=4, method='inclusive')
                             if len(windows) > 1 else windows * 3)
        self.by_key[key] = {'unit': unit, 'median': _rounded(median), 'low': _rounded(low),
                            'high': _rounded(high), 'windows': len(windows), **bar}
        return median


def add_argument(parser):
    """Adds `--json FILE` to the parser of a benchmark."""
    parser.add_argument('--json', metavar='FILE', type=_new_file,
                        help='also write the figures there, with the circumstances of the run')


def add_noisy(parser):
    """Adds `--noisy` to the parser of a benchmark whose measurements are those of `quiet`."""
    parser.add_argument('--noisy', action='store_true',
                        help='keep measurements that other processes disturb')


@contextlib.contextmanager
def recorded(file, benchmark, noisy=False):
    """Yields `Figures` to add to, and writes them when the benchmark has ended without an error.

    Args:
      file: path of the JSON file; if it is `None`, nothing is written.
      benchmark: the name of the script.
      noisy: whether `Figures.quiet` keeps what it is given.
    """
    figures = Figures(noisy)
    if file is None:
        yield figures
        return
    began = datetime.datetime.now(datetime.timezone.utc)
    with _sampled_load() as load, quiet.Watch() as watch:
        yield figures
    content = {'format': FORMAT, 'benchmark': benchmark, 'figures': figures.by_key,
               **({'notes': figures.notes} if figures.notes else {}),
               'circumstances': {
                   **_commit(), 'date': began.isoformat(timespec='seconds'),
                   'command': command_of(benchmark, sys.argv[1:]), 'machine': machine(),
                   'load': {**load, 'others': round(watch.share, 4)},
                   'disturbed': figures.disturbed, 'versions': versions()}}
    file.write_text(json.dumps(content, indent=1) + '\n')


def command_of(benchmark, arguments):
    """The command line of a run, without `--json FILE` and with `PATH` for every other path.

    >>> command_of('engine', ['W1', '--json', 'a.json', '--python215=/opt/bin/python'])
    'tools/bench/engine.py W1 --python215=PATH'
    """
    words = iter(arguments)
    shown = [f'tools/bench/{benchmark}.py']
    for word in words:
        if word == '--json':
            next(words)
        elif not word.startswith('--json='):
            option, equals, value = word.rpartition('=')
            shown.append(option + equals + ('PATH' if os.sep in value else value))
    return ' '.join(shown)


def machine():
    """The CPU, its cores, the memory and the kernel of this machine."""
    models = _values('/proc/cpuinfo', 'model name')
    memory = _values('/proc/meminfo', 'MemTotal')
    return {'cpu': models[0] if models else platform.machine(),
            'cores': len(os.sched_getaffinity(0)),
            'memory_gib': round(int(memory[0].split()[0]) / 2**20, 1) if memory else None,
            'kernel': f'{platform.system()} {platform.release()}'}


def versions():
    """Versions of Python and of the packages that are measured; `None` for a missing package."""
    return {'python': platform.python_version(), 'tensorflow': _version('tensorflow'),
            'numpy': _version('numpy'),
            'estimator_tpu_embedding': _version('estimator_tpu_embedding')}


@contextlib.contextmanager
def _sampled_load():
    """Yields a dict that holds, at the end, the load averages before, during and after."""
    load, samples, ended = {'before': _load()}, [], threading.Event()

    def sample():
        while not ended.wait(SAMPLE_SECONDS):
            samples.append(os.getloadavg()[0])

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield load
    finally:
        ended.set()
        thread.join()
    load['during'] = {'median': round(statistics.median(samples), 2), 'highest': round(
        max(samples), 2), 'samples': len(samples)} if samples else None
    load['after'] = _load()


def _load():
    return [round(one, 2) for one in os.getloadavg()]


def _commit():
    """The commit that is measured, and whether the tree differs from it.

    Files of figures do not count as a difference: several runs may write some.
    """
    try:
        commit = _git('rev-parse', 'HEAD').strip()
        changed = _git('status', '--porcelain', '--', '.', ':!tools/bench/results')
    except (OSError, subprocess.CalledProcessError):
        return {'commit': None, 'dirty': None}
    return {'commit': commit, 'dirty': bool(changed.strip())}


def _git(*arguments):
    return subprocess.run(['git', *arguments], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def _version(package):
    if package == 'estimator_tpu_embedding':  # A checkout comes before what is installed.
        with contextlib.suppress(ImportError):
            from estimator_tpu_embedding.version import VERSION
            return VERSION
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _values(path, field):
    """The values of the lines `field: value` of a file of /proc."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return []
    return [line.partition(':')[2].strip() for line in lines
            if line.partition(':')[0].strip() == field]


def _new_file(text):
    file = pathlib.Path(text).absolute()
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f'there is no directory for {text!r}')
    return file


def _rounded(number):
    return float(f'{number:.{_DIGITS}g}')
