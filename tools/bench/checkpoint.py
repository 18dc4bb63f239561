#!/usr/bin/env python3
"""Times the commit of a checkpoint beside a plain save by TensorFlow.

    python3 tools/bench/checkpoint.py [--gib 2] [--rounds 5] [--json FILE] [FOLDER]

needs the package with its `cpu` extra, Linux, and room for four checkpoints in FOLDER, which is
the folder of temporary files if left out. A table and its slot have so many GiB together, in two
parts. They are trained a little and saved in turn in three ways:

* plain: `tf.train.Saver`; then its files and their directory are synced;
* commit: `CommittingSaver`, which also looks at every number, hashes every byte and publishes;
* beside: the same in a background thread; training waits for the `stall`, the rest follows beside.

The savers take turns, save by save, in one process, so that other load disturbs all of them alike.
Each keeps one checkpoint. A line shows the median seconds, `ratio` to plain in the same round, and
MB/s, all without the first round. Its last number is the highest growth of RSS during a save, in
any round. The last lines time `recover`, once with files in the page cache and once from the disk.
"""

import argparse
import os
import pathlib
import tempfile
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import evidence  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

from estimator_tpu_embedding.checkpoint import recover  # noqa: E402
from estimator_tpu_embedding.checkpoint.manifest import StoredTable  # noqa: E402
from estimator_tpu_embedding.checkpoint.saver import CommittingSaver  # noqa: E402
from estimator_tpu_embedding.checkpoint.saver_builder import default_saver  # noqa: E402
from estimator_tpu_embedding.runner.checkpoint_hooks import Background  # noqa: E402

WIDTH, PARTS, TOUCHED = 64, 2, 10_000


def kibibytes(field):
    """Returns a number of /proc/self/status."""
    lines = pathlib.Path('/proc/self/status').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


class Measured:
    """Measures seconds and memory of its body.

    Attributes:
      seconds: duration of the body.
      mebibytes: highest RSS of the body above the RSS before it.
    """

    def __enter__(self):
        pathlib.Path('/proc/self/clear_refs').write_text('5')  # VmHWM begins anew.
        self._rss, self._began = kibibytes('VmRSS'), time.perf_counter()
        return self

    def __exit__(self, *error):
        self.seconds = time.perf_counter() - self._began
        self.mebibytes = (kibibytes('VmHWM') - self._rss) / 1024


def build(rows):
    """Makes a table and its slot in parts, and returns an operation that changes some rows of
    both.
    """
    step = tf.train.create_global_step()
    changes = [tf.assign_add(step, 1)]
    for name in ('table', 'table/Adagrad'):
        whole = tf.get_variable(
            name, [rows, WIDTH], use_resource=True, initializer=tf.random_uniform_initializer(),
            partitioner=tf.fixed_size_partitioner(PARTS))
        for part in whole:
            ids = tf.random.uniform([TOUCHED], 0, rows // PARTS, tf.int64)
            read = tf.gather(part, ids)
            changes.append(part.scatter_update(tf.IndexedSlices(.99 * read, ids)))
    return tf.group(changes)


def plain_save(saver, session, prefix, step):
    """Saves as TensorFlow does, and makes it durable."""
    path = saver.save(session, prefix, global_step=step)
    directory = os.path.dirname(path)
    for name in [*os.listdir(directory), '.']:
        if name.startswith(os.path.basename(path)) or name in ('.', 'checkpoint'):
            descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def time_saves(session, train, savers, rounds):
    """Returns {kind: [Measured]} of saves that take turns, and of the stalls of `beside`."""
    found = {kind: [] for kind in (*savers, 'stall')}
    for number in range(rounds + 1):  # The first has buffers to make.
        for kind, (save, wait) in savers.items():
            session.run(train)
            with Measured() as whole:
                with Measured() as stall:
                    save(number + 1)
                wait()
            found[kind].append(whole)
            if kind == 'beside':
                found['stall'].append(stall)
    return found


def show(found, megabytes, figures):
    """Prints a line per kind."""
    print(f'{"":8}{"seconds":>9}{"ratio":>7}{"MB/s":>7}{"MiB more":>10}')
    for kind, measured in found.items():
        seconds = figures.add(kind, 's', (each.seconds for each in measured[1:]))
        ratio = figures.add(f'{kind}, ratio', 'times plain', (
            each.seconds / base.seconds for each, base in zip(measured[1:], found['plain'][1:])))
        more = ''
        if kind != 'stall':
            highest = max(each.mebibytes for each in measured)
            figures.add(f'{kind}, memory', 'MiB', [highest])
            more = f'{highest:10.0f}'
        print(f'{kind:8}{seconds:9.2f}{ratio:7.2f}{megabytes / seconds:7.0f}{more}', flush=True)


def forget(directory):
    """Asks the system to drop the files of a directory from the page cache."""
    for path in pathlib.Path(directory).iterdir():
        with open(path, 'rb') as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def show_recovery(directory, megabytes, figures):
    """Prints the time to find and verify the newest checkpoint."""
    for kind in ('cached', 'disk'):
        if kind == 'disk':
            forget(directory)
        with Measured() as measured:
            recover.recover(directory)
        figures.add(f'recover, {kind}', 's', [measured.seconds])
        print(f'{kind:8}{measured.seconds:9.2f}{"":7}{megabytes / measured.seconds:7.0f}'
              f'{measured.mebibytes:10.0f}')


def run(folder, gib, rounds, figures):
    """Prints all lines."""
    rows = int(gib * 2**30) // (2 * 4 * WIDTH)
    megabytes = 2 * rows * WIDTH * 4 / 1e6
    tables = {'table': StoredTable(rows=rows, width=WIDTH, strategy='div', hosts=PARTS,
                                   slots=('Adagrad',))}
    prefixes = {kind: os.path.join(folder, kind, 'model.ckpt')
                for kind in ('plain', 'commit', 'beside')}
    for prefix in prefixes.values():
        os.makedirs(os.path.dirname(prefix))
    with tf.Graph().as_default(), tf.Session() as session, Background() as background:
        train = build(rows)
        plain = tf.train.Saver(max_to_keep=1)
        own = [default_saver(1, 10_000) for _ in range(2)]
        for saver in own:
            saver.build()
        committing = CommittingSaver(own[0], tables, b'')
        beside = CommittingSaver(own[1], tables, b'', background=background)
        session.run(tf.global_variables_initializer())
        print(f'{megabytes:.0f} MB of table and slot')
        show(time_saves(session, train, {
            'plain': (lambda step: plain_save(plain, session, prefixes['plain'], step),
                      lambda: None),
            'commit': (lambda step: committing.save(session, prefixes['commit'], step),
                       lambda: None),
            'beside': (lambda step: beside.save(session, prefixes['beside'], step),
                       background.wait)}, rounds), megabytes, figures)
    show_recovery(os.path.join(folder, 'commit'), megabytes, figures)


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder', nargs='?', metavar='FOLDER')
    parser.add_argument('--gib', type=float, default=2.)
    parser.add_argument('--rounds', type=int, default=5)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)
    with tempfile.TemporaryDirectory(dir=parsed.folder) as folder, evidence.recorded(
            parsed.json, 'checkpoint') as figures:
        run(folder, parsed.gib, parsed.rounds, figures)


if __name__ == '__main__':
    main()
