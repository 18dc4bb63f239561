#!/usr/bin/env python3
"""Times `etpe migrate checkpoint` beside a copy of the same files.

    python3 tools/bench/migrate.py [--gib 2] [--rounds 5] [--hosts 4] [--json FILE] [FOLDER]

needs the package without extras, Linux, and room for three checkpoints in FOLDER, which is the
folder of temporary files if left out. A table and its slot have so many GiB together. There are
two checkpoints of TF1: one in the order `div`, one in the order `mod` of several hosts.

* copy: `cp --reflink=never` of all files of the checkpoint; then they and their directory are
  synced;
* migrate: the whole command with `--to tf2`, from the start of Python to its end. It verifies the
  SHA-256 of the source, writes, compares every row, looks for numbers that are not finite, hashes
  and syncs.

The two take turns, with the source in the page cache and from the disk. A line shows the median
seconds, MB/s, and `speed`, which is the speed of the migration as a part of that of the copy in the
same round. The last column is the most memory of the process, in MiB. The first round is left out.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import evidence
import numpy as np

from estimator_tpu_embedding.checkpoint import commit
from estimator_tpu_embedding.checkpoint.bundle_writer import BundleWriter
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable
from estimator_tpu_embedding.checkpoint.storage import Storage

WIDTH, CHUNK, FLOAT32, INT64 = 64, 2**22, 1, 9
NAME, STEP = 'table', 7
COMMAND = """
from estimator_tpu_embedding.cli.main import main
assert main() == 0
with open('/proc/self/status') as file:
    print(next(line for line in file if line.startswith('VmHWM')))
"""


def make(directory, rows, strategy, hosts):
    """Commits a checkpoint of TF1 with a table and a slot of random numbers."""
    chance = np.random.default_rng(1)

    def write(prefix):
        with BundleWriter(prefix) as out:
            out.rows('global_step', INT64, ())[0].append(np.int64(STEP).tobytes())
            for name in (NAME, f'{NAME}/Adagrad'):
                part, = out.rows(name, FLOAT32, (rows, WIDTH))
                left = rows * WIDTH
                while left:
                    part.append(chance.random(min(left, CHUNK), np.float32))
                    left -= min(left, CHUNK)
            out.finish()

    table = StoredTable(rows=rows, width=WIDTH, strategy=strategy, hosts=hosts, slots=('Adagrad',))
    directory.mkdir()
    with Storage(str(directory)) as storage:
        commit.publish(storage, commit.stage(storage, STEP, write), lambda files: Manifest(
            step=STEP, tables={NAME: table}, created_by='benchmark', files=files))


def forget(*directories):
    """Asks the system to drop the files of directories from the page cache, after they are synced.
    """
    for path in [path for directory in directories for path in directory.iterdir()]:
        with open(path, 'rb') as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def copy(source, target):
    """Copies the files of a directory into a new one, and makes them durable."""
    target.mkdir()
    subprocess.run(['cp', '--reflink=never', *source.iterdir(), target], check=True)
    for path in (*target.iterdir(), target):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def migrate(source, target, map_file):
    """Runs the command; returns the most KiB of memory that its process had."""
    done = subprocess.run(
        [sys.executable, '-c', COMMAND, 'migrate', 'checkpoint', source, target, '--to', 'tf2',
         '--map', map_file], cwd=evidence.ROOT, check=True, text=True, stdout=subprocess.PIPE)
    return int(done.stdout.split()[-2])


class Turns:
    """Lets copy and migration take turns.

    Attributes:
      seconds: of each, by `(kind, cache)`, a list with one number a round.
      kibibytes: the most memory of migrations.
    """

    def __init__(self, folder, map_file):
        """Takes a folder for the results, and the map."""
        self.seconds, self.kibibytes = {}, 0
        self._target, self._map = folder / 'target', map_file

    def take(self, source, cache):
        """Measures both once; `cache` is `'cached'` or `'disk'`."""
        for kind, run in (('copy', copy), ('migrate', self._migrate)):
            if cache == 'disk':
                forget(source)
            else:
                subprocess.run(['cat', *source.iterdir()], stdout=subprocess.DEVNULL, check=True)
            began = time.perf_counter()
            run(source, self._target)
            self.seconds.setdefault((kind, cache), []).append(time.perf_counter() - began)
            shutil.rmtree(self._target)

    def _migrate(self, source, target):
        self.kibibytes = max(self.kibibytes, migrate(source, target, self._map))


def show(order, turns, megabytes, figures):
    """Prints a line for each kind and cache, without the first round."""
    for (kind, cache), seconds in turns.seconds.items():
        key = f'{order}, {kind}, {cache}'
        median = figures.add(key, 's', seconds[1:])
        line = f'{order:5}{cache:8}{kind:9}{median:8.2f}{megabytes / median:8.0f}'
        if kind == 'migrate':
            speed = figures.add(f'{key}, speed', 'of a copy', (
                base / one for base, one in zip(turns.seconds['copy', cache][1:], seconds[1:])))
            line += f'{speed:8.2f}{turns.kibibytes / 1024:8.0f}'
        print(line, flush=True)
    figures.add(f'{order}, memory', 'MiB', [turns.kibibytes / 1024])


def run(folder, gib, rounds, hosts, figures):
    """Prints all lines."""
    rows = int(gib * 2**30) // (2 * 4 * WIDTH)
    megabytes = 2 * rows * WIDTH * 4 / 1e6
    map_file = folder / 'map'
    map_file.write_text(f'table {NAME} -> table\n')
    print(f'{megabytes:.0f} MB of table and slot\n'
          f'{"order":5}{"source":>7} {"":9}{"seconds":>8}{"MB/s":>8}{"speed":>8}{"MiB":>8}')
    for order, of in (('div', 1), ('mod', hosts)):
        source, turns = folder / order, Turns(folder, map_file)
        make(source, rows, order, of)
        for _ in range(rounds + 1):
            for cache in ('cached', 'disk'):
                turns.take(source, cache)
        show(order, turns, megabytes, figures)
        shutil.rmtree(source)


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder', nargs='?', metavar='FOLDER')
    parser.add_argument('--gib', type=float, default=2.)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--hosts', type=int, default=4)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=parsed.folder) as folder, evidence.recorded(
            parsed.json, 'migrate') as figures:
        run(pathlib.Path(folder), parsed.gib, parsed.rounds, parsed.hosts, figures)


if __name__ == '__main__':
    main()
