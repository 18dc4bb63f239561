#!/usr/bin/env python3
"""Times `etpe doctor` over generated files, beside `ast.parse` of the same files.

    python3 tools/bench/doctor.py [--files 1000] [--lines 300] [--rounds 3] [--json FILE] [FOLDER]

needs the package with the extra `cpu`, and Linux. The files are made in FOLDER, which is a
temporary folder if left out. They are scripts of several styles in a tree of packages that import
each other, always the same for the same numbers. The aim is 1,000 files of 300 lines in less than
20 s on two cores.

* doctor: the whole command with `--format json`, as a process, from the start of Python to its end;
* parse: a process that only reads and parses the same files, the yardstick of the same round.

A line shows the median seconds, the seconds of CPU with those of the child processes, files and
lines per second, and the most memory of one process, in MiB.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import evidence

PARSE = """
import ast, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob('*.py'):
    ast.parse(path.read_bytes())
"""
COMMANDS = {'parse': ['-c', PARSE], 'doctor': [
    '-m', 'estimator_tpu_embedding', 'doctor', '--format', 'json']}
HEADS = {  # style: how its files import TensorFlow
    'queues': 'import tensorflow as tf',
    'contrib': 'import tensorflow as tf\nfrom tensorflow.contrib import layers as contrib_layers',
    'tpu': 'import tensorflow as tf\nfrom tensorflow.contrib.tpu.python.tpu import tpu_estimator',
    'v1': 'import tensorflow.compat.v1 as tf\n\ntf.disable_v2_behavior()',
    'v2': 'import tensorflow as tf\nfrom tensorflow import keras'}
STATEMENTS = {  # style: statements over x, which is a tensor, and n, which is a number
    'queues': (
        'queue = tf.train.string_input_producer([str(n)])', 'x = tf.mul(x, {k}.0)',
        "tf.scalar_summary('loss_{k}', x)", 'x = tf.reduce_sum(tf.log(x), [{k}])',
        'with tf.variable_scope("scope_{k}"):\n        x = tf.nn.relu(x)'),
    'contrib': (
        'x = contrib_layers.fully_connected(x, {k})', 'x = tf.contrib.layers.layer_norm(x)',
        'x = tf.contrib.slim.conv2d(x, {k}, [3, 3])', 'x = tf.layers.dropout(x, 0.{k})',
        'cell = tf.contrib.rnn.LSTMCell({k})'),
    'tpu': (
        'config = tf.contrib.tpu.TPUConfig(iterations_per_loop=n, num_shards=8)',
        'optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.{k}))',
        'spec = tpu_estimator.TPUEstimatorSpec(mode=n, loss=x)',
        'step = tf.train.get_or_create_global_step()', 'tf.logging.info("%d of %d", n, {k})'),
    'v1': (
        'spec = tf.estimator.tpu.TPUEstimatorSpec(mode=n, loss=x)',
        'column = tf.tpu.experimental.embedding_column(n, {k}, combiner="mean")',
        'x = tf.feature_column.input_layer(x, [n])', 'x = tf.layers.dense(x, {k})[:, 0]',
        'loss = tf.losses.mean_squared_error(x, x, weights=[w + {k} for w in range(n)])'),
    'v2': (
        'x = keras.layers.Dense({k}, activation=tf.nn.relu)(x)',
        'rows = tf.data.Dataset.range({k}).map(lambda row: row + n).prefetch(tf.data.AUTOTUNE)',
        'with tf.GradientTape() as tape:\n        x = tf.reduce_mean(x) + {k}',
        'model = tf.keras.Sequential([tf.keras.layers.DenseFeatures([n])])',
        'x = tf.math.log(x) if n > {k} else tf.zeros_like(x)')}
COMMON = (
    'values = np.asarray([n, {k}], dtype=np.float32)', 'table = {{name: n for name in "abc"}}',
    'ids = np.zeros([{k}], dtype=np.int)', 'print("%d rows of %s" % (n, sorted(table)))',
    'x = helper_{j}(x, n)', 'try:\n        x = x[{k}]\n    except IndexError:\n        x = x[0]')


def text_of(style, number, lines, others, chance):
    """The text of one file.

    Args:
      style: a key of `HEADS`.
      number: of the file.
      lines: how many it has, more or less.
      others: modules of the tree that it imports helpers from.
      chance: random numbers.
    """
    head = [f'"""File {number}, in the style {style}."""', 'import os', 'import numpy as np',
            *HEADS[style].splitlines()]
    head += [f'from {other} import function_0 as helper_{j}' for j, other in enumerate(others)]
    parts, written, count = ['\n'.join(head)], len(head), 0
    while written < lines - 5:
        body = []
        for _ in range(chance.randint(5, 15)):
            line = chance.choice(STATEMENTS[style] if chance.random() < .6 else COMMON)
            body.append('    ' + line.format(k=chance.randint(1, 99), j=chance.randrange(
                max(1, len(others)))))
        parts.append(f'\n\ndef function_{count}(x, n=os.sep):\n    """Function {count}."""\n'
                     + '\n'.join(body) + '\n    return x')
        written += parts[-1].count('\n') + 1
        count += 1
    if number % 5 == 4:
        parts.append('\n\nif __name__ == "__main__":\n    function_0(None)')
    return '\n'.join(parts) + '\n'


def make(folder, files, lines):
    """Writes the files, ten to a package; returns their number of lines."""
    chance, modules, total = random.Random(1), [], 0
    for number in range(files):
        package = folder / f'package_{number // 10}'
        package.mkdir(parents=True, exist_ok=True)
        (package / '__init__.py').touch()
        near = modules[:5]  # Helpers of all, and then the files of its own package.
        near += modules[max(5, number // 10 * 10):]
        others = chance.sample(near, min(len(near), 2))
        text = text_of(chance.choice(sorted(HEADS)), number, lines, others, chance)
        (package / f'module_{number}.py').write_text(text)
        modules.append(f'{package.name}.module_{number}')
        total += text.count('\n')
    return total


def measured(arguments, folder):
    """Runs a process; returns seconds, seconds of CPU, and the most MiB of one process."""
    before = os.times()
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments, str(folder)], cwd=evidence.ROOT,
                          stdout=subprocess.PIPE) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, after = time.perf_counter() - began, os.times()
    if process.returncode not in (0, 1):
        raise RuntimeError(f'{arguments} ended with {process.returncode}')
    cpu = (after.children_user + after.children_system
           - before.children_user - before.children_system)
    return seconds, cpu, usage.ru_maxrss / 1024, printed


def check(printed, files):
    """Raises RuntimeError unless the doctor read all files and found what is in all of them."""
    said = json.loads(printed)
    found = {one['code'] for one in said['findings']}
    if said['files'] < files or not {'E121', 'I302'} & found:
        raise RuntimeError(f'the doctor read {said["files"]} of {files} files, found {found}')


def compare(folder, files, lines, rounds, figures):
    """Runs both in turns and prints them side by side."""
    total = make(folder, files, lines)
    runs = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            *numbers, printed = measured(arguments, folder)
            runs[name].append(numbers)
            if name == 'doctor':
                check(printed, files)
    print(f'{files} files, {total} lines\n{"":8}{"seconds":>9}{"CPU":>9}{"files/s":>9}'
          f'{"lines/s":>9}{"MiB":>7}')
    for name, own in runs.items():
        seconds, cpu, memory = zip(*own)
        median = figures.add(name, 's', seconds)
        used = figures.add(f'{name}, CPU', 's', cpu)
        most = figures.add(f'{name}, memory', 'MiB', memory)
        figures.add(f'{name}, files', '/s', (files / one for one in seconds))
        figures.add(f'{name}, lines', '/s', (total / one for one in seconds))
        print(f'{name:8}{median:9.2f}{used:9.2f}{files / median:9.0f}{total / median:9.0f}'
              f'{most:7.0f}')
    ratio = figures.add('doctor over parse', 'times', (
        one[0] / base[0] for one, base in zip(runs['doctor'], runs['parse'])))
    print(f'the doctor takes {ratio:.1f} times as long as parsing alone')


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('folder', nargs='?', metavar='FOLDER')
    parser.add_argument('--files', type=int, default=1000)
    parser.add_argument('--lines', type=int, default=300)
    parser.add_argument('--rounds', type=int, default=3)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=parsed.folder) as folder, evidence.recorded(
            parsed.json, 'doctor') as figures:
        compare(pathlib.Path(folder), parsed.files, parsed.lines, parsed.rounds, figures)


if __name__ == '__main__':
    main()
