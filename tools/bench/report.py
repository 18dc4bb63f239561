#!/usr/bin/env python3
"""Times `etpe report` over a large run that never was, and tells the memory of the command.

    python3 tools/bench/report.py [--steps 10000] [--tables 500] [--checkpoints 20] [--gib 1]
                                  [--rounds 3] [--json FILE] [FOLDER]

needs the package with the extra `report`, and Linux. The run has an event at every step, with the
summaries that a job writes of its tables every 100 steps; profiles of all tables; and checkpoints
of so many GiB each. Their files are sparse, so all rows are zero, but they are read like others.
"""

import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import evidence
import google_crc32c

from estimator_tpu_embedding.checkpoint import profile_files, sstable
from estimator_tpu_embedding.checkpoint.bundle_writer import BundleWriter
from estimator_tpu_embedding.checkpoint.file_names import MANIFEST, name_of
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredFile, StoredTable
from estimator_tpu_embedding.core.table_profile import Subject, TableProfile
from estimator_tpu_embedding.proto.codec import Config
from estimator_tpu_embedding.proto.event_file_pb2 import Event

WIDTH, FLOAT32, EVERY = 16, 1, 100
COMMAND = """
import resource
from estimator_tpu_embedding.cli.main import main
assert main() == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def record(content):
    """A record of an event file."""
    head = struct.pack('<Q', len(content))
    return (head + struct.pack('<I', sstable.masked(google_crc32c.value(head))) + content
            + struct.pack('<I', sstable.masked(google_crc32c.value(content))))


def write_events(directory, steps, tables):
    """Writes the event file of the run."""
    with open(directory / 'events.out.tfevents.1.host', 'xb') as file:
        for step in range(steps):
            event = Event(step=step, wall_time=1e9 + step)
            numbers = {'loss': 1 / (1 + step), 'global_step/sec': 10, 'examples/sec': 5120, **{
                f'tpu_embedding/secs_per_step/{name}': .02
                for name in ('input', 'lookup', 'dense', 'update')}}
            if step % EVERY == 0:
                numbers.update({f'tpu_embedding/{table}/{name}': step % 97 for table in tables
                                for name in ('rows_touched', 'activation_norm', 'gradient_norm')})
            for tag, number in numbers.items():
                event.summary.value.add(tag=tag, simple_value=number)
            file.write(record(event.SerializeToString()))


def write_checkpoint(directory, step, tables, rows):
    """Writes a checkpoint with holes in the places of the rows; nobody verifies it."""
    prefix = name_of(str(directory / 'model.ckpt'), step)
    with BundleWriter(prefix) as out:
        for table in tables:
            size = rows * WIDTH * 4
            out.copied(table, FLOAT32, (rows, WIDTH), size, 0).written = size
        out.finish()
    files = sorted(directory.glob(f'{os.path.basename(prefix)}.*'))
    os.truncate(files[0], len(tables) * rows * WIDTH * 4)
    config = Config(mode=Config.TRAINING, num_hosts=4, num_tensor_cores=8,
                    profile_data_directory=str(directory / 'profile'))
    for number, table in enumerate(tables):
        descriptor = config.table_descriptor.add(name=table, vocabulary_size=rows, dimension=WIDTH)
        descriptor.optimization_parameters.stochastic_gradient_descent.SetInParent()
        config.feature_descriptor.add(table_id=number, input_shape=[64])
    pathlib.Path(prefix + MANIFEST).write_bytes(Manifest(
        step=step, created=1e9 + step, created_by='benchmark',
        config=config.SerializeToString(), tables={table: StoredTable(
            rows=rows, width=WIDTH, strategy='div', hosts=4, slots=()) for table in tables},
        files={path.name: StoredFile(size=path.stat().st_size, sha256='0' * 64)
               for path in files}).to_json())


def write_profile(directory, table, rows):
    """Writes a profile in which each range of ids was looked up once."""
    empty = TableProfile.empty(Subject(table, rows, WIDTH, (('', 0),), 4, 2, 512, 'div'))
    count = len(empty.ranges)
    profile_files.write(directory, TableProfile(
        subject=empty.subject, last_step=1000, steps=1000, sampled_steps=31, features=(count,),
        ranges=(1,) * count, remainders=(count, *empty.remainders[1:]),
        loads={name: (count, 0, 0, 0) for name in empty.loads}))


def made(folder, page):
    """Makes the page, and returns the seconds of the command and its memory in MB."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, '-c', COMMAND, 'report', folder, '-o', page], check=True,
                          cwd=evidence.ROOT, text=True, stdout=subprocess.PIPE)
    return time.perf_counter() - begin, int(done.stdout.split()[-1]) * 1024 / 1e6


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder', nargs='?', metavar='FOLDER')
    parser.add_argument('--steps', type=int, default=10_000)
    parser.add_argument('--tables', type=int, default=500)
    parser.add_argument('--checkpoints', type=int, default=20)
    parser.add_argument('--gib', type=float, default=1.)
    parser.add_argument('--rounds', type=int, default=3)
    evidence.add_argument(parser)
    evidence.add_noisy(parser)
    parsed = parser.parse_args()
    tables = [f'table_{number}' for number in range(parsed.tables)]
    rows = int(parsed.gib * 2**30) // (len(tables) * WIDTH * 4)
    with tempfile.TemporaryDirectory(dir=parsed.folder) as name, evidence.recorded(
            parsed.json, 'report', parsed.noisy) as figures:
        folder, page = pathlib.Path(name), pathlib.Path(name) / 'report.html'
        (folder / 'profile').mkdir()
        write_events(folder, parsed.steps, tables)
        for number in range(parsed.checkpoints):
            write_checkpoint(folder, number * parsed.steps // parsed.checkpoints, tables, rows)
        for table in tables:
            write_profile(str(folder / 'profile'), table, rows)
        found = [figures.quiet(lambda: made(folder, page)) for _ in range(parsed.rounds)]
        seconds, megabytes = zip(*found)
        for title, unit, values, bar in (
                ('report', 's', seconds, {'most': 60}), ('memory', 'MB', megabytes, {'most': 500}),
                ('page', 'MB', [page.stat().st_size / 1e6], {})):
            print(f'{title:8}{figures.add(title, unit, values, **bar):8.2f} {unit}', flush=True)
        if parsed.folder:
            shutil.copy(page, parsed.folder)


if __name__ == '__main__':
    main()
