#!/usr/bin/env python3
"""Times tables on a disk: their steps and their checkpoint, beside what the disk can do.

    python3 tools/bench/table_memory.py [--rows 10000000] [--gib 2] [--json FILE] [FOLDER]
    python3 tools/bench/table_memory.py --whole-machine [--json FILE] [FOLDER]

needs the package with its `cpu` extra, Linux, and a local disk with room for three copies of the
tables in FOLDER, which is the folder of temporary files if left out. Each engine trains a table of
width 128 with Adagrad on Zipf(1.05) ids, in a process of its own. The ids of a step are enqueued
beside the step before, as in a job. The engines take turns, window by window.

* `limited` has its table on the disk, and a control group leaves its process so many GiB. The
  `bound` of its step is the larger of two times: that of the same step in `memory`, and that of its
  transfers, which the disk counts, at the rate that `fio` (Debian: fio) reaches: 4 KiB at random
  places, past the page cache, 64 requests at a time, with the same share of reads.
* `save` is the commit of a checkpoint by `limited` after some steps, beside one from memory. It
  reads the table, writes a file, and reads that again for its hash. Its bound is the time in which
  `fio` moves as many bytes as the disk has counted, in order, 1 MiB at a time.
* `given` has a tenth of the rows, and `table_memory` with room for all of them, so they are in
  memory. `mapped` has them on the disk, and all their pages in memory too. Their steps are beside
  those of an engine without `table_memory`, `without`.

With `--whole-machine` a table of 1.2 times the memory of the machine is trained, saved, and
restored by another process. What cannot be measured on a machine is told, and noted in FILE.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import evidence
from disk_engine import WIDTH
from engine import HERE, SETTLING, Remote, compare

BATCHES, FEW_BATCHES = 300, 4
"""Of ids: so many that pages must come from the disk again, or few for tables in memory."""

ROWS, LARGER = 10_000_000, 1.2
"""Of the table; how many times the memory of the machine that of `--whole-machine` has."""

FIO_BYTES, FIO_SECONDS, SPARE = 2**32, 20, 2**32
MOST_STEP, MOST_SAVE, MOST_GIVEN = 1.5, 1.3, 1.05
"""How many times its bound, or that of an engine without `table_memory`, each may take."""


class Unavailable(Exception):
    """This machine cannot measure that."""


class Transfers:
    """A context that counts bytes between a disk and memory, those of all processes.

    Attributes:
      read, written: bytes, when the context has ended.
    """

    def __init__(self, folder):
        """Takes the disk of a folder; Unavailable if it has no counters."""
        device = os.stat(folder).st_dev
        self._file = pathlib.Path(f'/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat')
        if not self._file.exists():
            raise Unavailable('the disk has no counters')

    def __enter__(self):
        self._before = self._counted()
        return self

    def __exit__(self, *of_exception):
        self.read, self.written = (
            after - before for after, before in zip(self._counted(), self._before))

    def _counted(self):
        fields = self._file.read_text().split()
        return 512 * int(fields[2]), 512 * int(fields[6])  # In sectors.


@contextlib.contextmanager
def group_of(limit):
    """Yields a control group below our own for so many bytes; Unavailable if none can be made."""
    root, name = pathlib.Path('/sys/fs/cgroup'), 'memory.max'
    for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines():
        _, controllers, path = line.split(':', 2)
        own = root / path.lstrip('/')  # The line of version 2 is the last one.
        if 'memory' in controllers.split(','):
            own, name = root / 'memory' / path.lstrip('/'), 'memory.limit_in_bytes'
            break
    group = own / f'etpe-bench-{os.getpid()}'
    try:
        group.mkdir()
        (group / name).write_text(str(limit))
    except OSError as error:
        raise Unavailable(f'no control group can be made: {error.strerror}') from None
    else:
        yield group
    finally:
        if group.exists():
            group.rmdir()


def fio(folder, *options):
    """Returns bytes per second that fio reads and writes in a file of a folder."""
    done = subprocess.run(
        ['fio', '--name=disk', f'--filename={folder}/fio', f'--size={FIO_BYTES}', '--direct=1',
         '--ioengine=libaio', '--iodepth=64', '--output-format=json', *options],
        check=True, stdout=subprocess.PIPE, text=True)
    job, = json.loads(done.stdout)['jobs']
    return job['read']['bw_bytes'] + job['write']['bw_bytes']


def rate_of_disk(folder, mode, block, read, written):
    """Returns bytes per second of the disk, at the mix of what was read and written."""
    if not shutil.which('fio'):
        raise Unavailable('fio is not installed')
    reads = round(100 * sum(read) / (sum(read + written) or 1))
    try:
        fio(folder, '--rw=write', '--bs=1M')  # All of the file must be there.
        return fio(folder, f'--rw={mode}', f'--bs={block}', f'--rwmixread={reads}', '--time_based',
                   f'--runtime={FIO_SECONDS}', '--norandommap')
    finally:
        pathlib.Path(folder, 'fio').unlink(missing_ok=True)


def start(folder, kind, rows, batches, group=None):
    """Starts an engine in a process, which is in the control group from its beginning."""
    joined = [] if group is None else [
        'sh', '-c', 'echo $$ > "$0" && exec "$@"', group / 'cgroup.procs']
    return contextlib.closing(Remote(
        *joined, sys.executable, HERE / 'disk_engine.py', kind, rows, batches, folder))


def bytes_of(rows):
    """Bytes of the table and its slot."""
    return 2 * 4 * WIDTH * rows


def require_room(folder, size):
    """Makes sure that the disk has room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if free < size + SPARE:
        raise Unavailable(f'the disk has {free / 2**30:.0f} GiB free, and '
                          f'{(size + SPARE) / 2**30:.0f} GiB are needed')


def add(figures, key, unit, windows, **bar):
    """Adds a figure and prints it."""
    print(f'{key:40}{figures.add(key, unit, windows, **bar):10.2f} {unit}', flush=True)


def limited(parsed, folder, figures):
    """Adds the steps and the checkpoint of a table that is larger than memory."""
    number = parsed.rows or ROWS
    require_room(folder, 3 * bytes_of(number))
    with group_of(int(parsed.gib * 2**30)) as group, start(
            folder, 'without', number, BATCHES) as memory, start(
            folder, 'mapped', number, BATCHES, group) as own:
        for engine in memory, own:
            engine.window('ahead', parsed.warm_up)
        rows = [figures.quiet(lambda: (
            memory.window('ahead', parsed.steps), *counted(own, 'ahead', parsed.steps, folder)))
            for _ in range(parsed.windows)]
        in_memory, steps, read, written = zip(*rows)
        add(figures, 'step, memory', 'ms/step', in_memory)
        add(figures, 'step, limited', 'ms/step', steps)
        for key, moved in ('read', read), ('written', written):
            add(figures, f'step, {key}', 'MiB/step', (one / 2**20 for one in moved))
        with noted(figures):
            rate = rate_of_disk(folder, 'randrw', '4k', read, written)
            add(figures, 'disk, random', 'MB/s', [rate / 1e6])
            add(figures, 'step, ratio', 'times its bound', (
                step / max(least, 1e3 * (one + other) / rate)
                for least, step, one, other in rows), most=MOST_STEP)
        saves = [(own.window('ahead', parsed.steps), memory.window('save', 1),
                  *counted(own, 'save', 1, folder)) for _ in range(parsed.saves)]
        _, in_memory, seconds, read, written = zip(*saves)
        add(figures, 'save, memory', 's', (one / 1e3 for one in in_memory))
        add(figures, 'save, limited', 's', (one / 1e3 for one in seconds))
        for key, moved in ('read', read), ('written', written):
            add(figures, f'save, {key}', 'times tables', (one / bytes_of(number) for one in moved))
        for key, engine in ('memory', memory), ('limited', own):
            add(figures, f'highest RSS, {key}', 'GiB', [engine.window('rss', 1)])
        with noted(figures):
            rate = rate_of_disk(folder, 'rw', '1M', read, written)
            add(figures, 'disk, in order', 'MB/s', [rate / 1e6])
            add(figures, 'save, ratio', 'times its bound', (
                took * rate / 1e3 / (one + other) for *_, took, one, other in saves),
                most=MOST_SAVE)


def counted(engine, kind, steps, folder):
    """Returns milliseconds, and bytes that are read and written, per step of a window."""
    with Transfers(folder) as moved:
        milliseconds = engine.window(kind, steps)
    return milliseconds, moved.read / steps, moved.written / steps


def fitting(parsed, folder, figures):
    """Adds the steps of tables that fit into memory."""
    rows = (parsed.rows or ROWS) // 10
    require_room(folder, bytes_of(rows))
    with start(folder, 'without', rows, FEW_BATCHES) as base:
        for kind, bar in ('given', {'most': MOST_GIVEN}), ('mapped', {}):
            with start(folder, kind, rows, FEW_BATCHES) as own:
                time.sleep(SETTLING)
                times, alone = compare([own, base], ['ahead'], parsed, figures)['ahead']
            add(figures, f'fitting, {kind}', 'ms/step', times)
            add(figures, f'fitting, {kind}, without', 'ms/step', alone)
            add(figures, f'fitting, {kind}, ratio', 'times without', (
                one / other for one, other in zip(times, alone)), **bar)


def whole_machine(parsed, folder, figures):
    """Adds a run of a table that is larger than the memory of the machine."""
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    rows = parsed.rows or int(LARGER * memory) // bytes_of(1)
    require_room(folder, 2 * bytes_of(rows))
    add(figures, 'whole, tables', 'times memory', [bytes_of(rows) / memory])
    with start(folder, 'mapped', rows, BATCHES) as first:
        add(figures, 'whole, first values', 's', [first.window('start', 1) / 1e3])
        add(figures, 'whole, step', 'ms/step', [
            first.window('ahead', parsed.steps) for _ in range(parsed.windows)])
        add(figures, 'whole, save', 's', [first.window('save', 1) / 1e3])
        saved = first.window('digest', 1)
        add(figures, 'whole, highest RSS', 'GiB', [first.window('rss', 1)])
    with start(folder, 'mapped', rows, BATCHES) as second:
        add(figures, 'whole, restore', 's', [second.window('start', 1) / 1e3])
        add(figures, 'whole, difference of rows', 'in sum', [
            abs(second.window('digest', 1) - saved)], most=0)


@contextlib.contextmanager
def noted(figures):
    """Tells and notes what its body could not measure."""
    try:
        yield
    except Unavailable as error:
        print(error)
        figures.notes.append(str(error))


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder', nargs='?', metavar='FOLDER')
    parser.add_argument('--rows', type=int, help='of the table')
    parser.add_argument('--gib', type=float, default=2., help='of memory for the limited process')
    parser.add_argument('--whole-machine', action='store_true')
    parser.add_argument('--windows', type=int, default=9)
    parser.add_argument('--steps', type=int, default=20, help='of a window')
    parser.add_argument('--seconds', type=float, default=1., help='of one in memory, about')
    parser.add_argument('--saves', type=int, default=3)
    parser.add_argument('--warm-up', type=int, default=100, help='steps before windows')
    evidence.add_argument(parser)
    evidence.add_noisy(parser)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=parsed.folder) as folder, evidence.recorded(
            parsed.json, 'table_memory', parsed.noisy) as figures:
        for part in [whole_machine] if parsed.whole_machine else [fitting, limited]:
            with noted(figures):
                part(parsed, folder, figures)


if __name__ == '__main__':
    main()
