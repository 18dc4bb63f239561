#!/usr/bin/env python3
"""Times the start and the steps of a job by its columns and cores, beside a plain Estimator.

    python3 tools/bench/startup.py --steps --start --jobs 1000 [--rounds 5] [--json FILE]
    python3 tools/bench/startup.py --columns --large     # many columns
    python3 tools/bench/startup.py --transformer         # a model of many operations
    python3 tools/bench/startup.py --profile             # where the start takes its time

needs the package with its `cpu` extra, and Linux. Without a flag it runs all parts. The model has
26 tables of 100,000 x 16 with one id per sample and Adagrad, and hidden layers of 64 and 1 units.
The global batch is 8,192, from memory. The plain Estimator is that of `job.py`: as shipped, and
tuned. `best plain` is the faster of the two, in each round. Each job has a process of its own, so
only one of them works at a time. They take turns, so that other load disturbs all of them alike.

| part | figures |
|---|---|
| `--steps` | milliseconds per step, in windows of 50 steps; ratios of windows of one round |
| `--start` | seconds from the call of `train` until its first step has ended |
| `--jobs N` | seconds of a whole call of `train` with N steps, with its checkpoints |
| `--columns` | the start by columns and cores, also per column and core |
| `--large` | the start of 200 columns on 4 hosts with 8 cores each, and the highest RSS |
| `--transformer` | seconds of the start and of its graph on one core and on eight |
| `--profile` | the seconds of each part of the start, of one process each; see `start_profile.py` |

The ratio `100 columns over 50` is 2.00 where the start grows in proportion to the columns. The
transformer has twelve layers, one column and a batch of 256. `tower over first` is what each of
seven further cores adds to the seconds of the graph of one.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import evidence
from figures import bar_text
from networks import die_with_parent

HERE = pathlib.Path(__file__).resolve().parent
ONE, EIGHT, HOSTS = '1 core', '8 cores', '4 hosts x 2 cores'
SHIPPED, TUNED = 'plain, as shipped', 'plain, tuned'
PEERS = {ONE: ('ours', 1, 1), EIGHT: ('ours', 1, 8), HOSTS: ('ours', 4, 2),
         SHIPPED: ('shipped', 1, 1), TUNED: ('tuned', 1, 1)}
"""Kind, hosts and cores per host of each job."""

COLUMNS, LARGE = 26, 200
BY_COLUMNS, BY_CORES = (25, 50, 100), (1, 4, 8)
TIMEOUT = 900
"""Seconds after which a job is killed."""


class Jobs:
    """Starts jobs in processes of their own."""

    def __init__(self, shrink):
        self._shrink = shrink

    def process(self, does, peer, columns=COLUMNS):
        """Returns a job that has just been started; see `start_job.py`."""
        columns = -(-columns // self._shrink)
        kind, hosts, cores = peer
        spec = json.dumps({'kind': kind, 'hosts': hosts, 'cores': cores, 'columns': columns,
                           'shrink': self._shrink, 'does': does})
        return subprocess.Popen(
            [sys.executable, HERE / 'start_job.py', spec], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)

    def answer(self, *arguments):
        """Runs a job to its end, and returns its answer."""
        os.sync()  # So that it does not wait for the disk to take what the job before wrote.
        with self.process(*arguments) as process:
            answer = process.communicate(timeout=TIMEOUT)[0]
        if process.returncode:
            raise RuntimeError(f'the job {arguments} failed')
        return json.loads(answer.splitlines()[-1])


class Windows:
    """A job that makes one window of steps at a time."""

    def __init__(self, process):
        self._process = process

    def window(self):
        """Milliseconds per step."""
        self._process.stdin.write('\n')
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self):
        """Ends it."""
        self._process.communicate()


def beside(found, figures, unit, bars):
    """Adds and prints the figures of all jobs, and their ratios.

    Args:
      found: by name of the job a measurement for each round.
      figures: to add them to, as `(prefix, figures)`.
      unit: of the measurements.
      bars: by names of two jobs what is wanted of the ratio of the first to the second.
    """
    prefix, all_figures = figures
    found = {**found, 'best plain': [min(pair) for pair in zip(found[SHIPPED], found[TUNED])]}
    for name, each in found.items():
        print(f'{prefix}, {name:20}{all_figures.add(f"{prefix}, {name}", unit, each):9.2f} {unit}')
    for (one, other), bar in bars.items():
        name = f'{prefix}, {one} over {other}'
        ratio = all_figures.add(name, 'ratio', (
            first / second for first, second in zip(found[one], found[other])), **bar)
        print(f'{name:55}{ratio:6.2f}   {bar_text({"median": ratio, **bar})}', flush=True)


def show_steps(jobs, rounds, figures):
    """Lets all jobs make windows in turn."""
    own = {name: Windows(jobs.process('windows', peer)) for name, peer in PEERS.items()}
    found = {name: [] for name in own}
    for number in range(rounds + 1):
        for name, each in own.items():
            milliseconds = figures.quiet(each.window)
            if number:  # The first window contains the start.
                found[name].append(milliseconds)
    for each in own.values():
        each.close()
    beside(found, ('step', figures), 'ms', {
        (EIGHT, ONE): {'most': 1.15}, (HOSTS, ONE): {}, ('best plain', ONE): {'least': 3},
        ('best plain', EIGHT): {'least': 3}, ('best plain', HOSTS): {}})


def in_turns(jobs, does, rounds, figures):
    """Runs all jobs in turn, and returns the seconds of each by name."""
    found = {name: [] for name in PEERS}
    for _ in range(rounds):
        for name, peer in PEERS.items():
            found[name].append(quiet_seconds(jobs, figures, does, peer))
    return found


def quiet_seconds(jobs, figures, *arguments):
    """The seconds of a job that nobody disturbs."""
    return figures.quiet(lambda: jobs.answer(*arguments))['seconds']


def show_start(jobs, rounds, figures):
    """Starts all jobs in turn."""
    beside(in_turns(jobs, 'start', rounds, figures), ('start', figures), 's', {
        (EIGHT, ONE): {'most': 1.5}, (HOSTS, ONE): {'most': 1.5}, (ONE, 'best plain'): {},
        (EIGHT, 'best plain'): {}})


def show_jobs(jobs, steps, rounds, figures):
    """Runs all jobs to their ends."""
    beside(in_turns(jobs, f'job {steps}', rounds, figures), (f'{steps} steps', figures), 's', {
        ('best plain', ONE): {'least': 2}, ('best plain', EIGHT): {}, ('best plain', HOSTS): {}})


def show_columns(jobs, rounds, figures):
    """Starts jobs with more and more columns and cores."""
    for cores in BY_CORES:
        found = {}
        for columns in BY_COLUMNS:
            found[columns] = [quiet_seconds(jobs, figures, 'start', ('ours', 1, cores), columns)
                              for _ in range(rounds)]
            key = f'{columns} columns x {cores} cores'
            each = figures.add(f'{key}, each', 'ms per column and core', [
                1e3 * seconds / columns / cores for seconds in found[columns]])
            print(f'{key:24}{figures.add(key, "s", found[columns]):7.2f} s{each:9.2f} ms per '
                  'column and core', flush=True)
        name = f'{BY_COLUMNS[-1]} columns over {BY_COLUMNS[-2]}, {cores} cores'
        ratio = figures.add(name, 'ratio', (one / other for one, other in zip(
            found[BY_COLUMNS[-1]], found[BY_COLUMNS[-2]])))
        print(f'{name:35}{ratio:6.2f}', flush=True)


def show_large(jobs, figures):
    """Starts the largest job."""
    answer = figures.quiet(lambda: jobs.answer('start', ('ours', 4, 8), LARGE))
    key = f'{LARGE} columns x 8 cores x 4 hosts'
    seconds = figures.add(key, 's', [answer['seconds']])
    gibibytes = figures.add(f'{key}, highest RSS', 'GiB', [answer['rss'] / 2**30], most=4)
    print(f'{key}: {seconds:.1f} s, {gibibytes:.2f} GiB', flush=True)


def show_transformer(jobs, rounds, figures):
    """Builds the same model for one core and for many."""
    found = {}
    for cores in (1, 8):
        found[cores] = [figures.quiet(lambda: jobs.answer('start', ('transformer', 1, cores), 1))
                        for _ in range(rounds)]
        for key in ('graph', 'seconds'):
            name = f'transformer, {cores} cores, {"graph" if key == "graph" else "start"}'
            seconds = figures.add(name, 's', (one[key] for one in found[cores]))
            print(f'{name:35}{seconds:8.2f} s', flush=True)
    ratio = figures.add('transformer, tower over first', 'ratio', (
        (many['graph'] / one['graph'] - 1) / 7 for one, many in zip(found[1], found[8])), most=.5)
    print(f'{"transformer, tower over first":35}{ratio:8.2f}', flush=True)


def show_profile(jobs, figures):
    """Prints one line per part of the start."""
    names = [name for name, (kind, *_) in PEERS.items() if kind == 'ours'] + [SHIPPED]
    answers = {name: jobs.answer('profile', PEERS[name]) for name in names}
    print(f'{"seconds":35}' + ''.join(f'{name:>19}' for name in names))
    for part in answers[ONE]:
        print(f'{part:35}' + ''.join(
            f'{figures.add(f"{name}, {part}", "s", [answers[name][part]]):19.2f}'
            for name in names), flush=True)


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    for part in ('steps', 'start', 'columns', 'large', 'transformer', 'profile'):
        parser.add_argument(f'--{part}', action='store_true')
    parser.add_argument('--jobs', type=int, metavar='N', help='run whole jobs of N steps')
    parser.add_argument('--rounds', type=int, default=5, help='of each but the largest job')
    parser.add_argument('--shrink', type=int, default=1, help='divides rows, batch and columns')
    evidence.add_argument(parser)
    evidence.add_noisy(parser)
    parsed = parser.parse_args()
    parts = {'steps': lambda: show_steps(jobs, parsed.rounds, figures),
             'start': lambda: show_start(jobs, parsed.rounds, figures),
             'jobs': lambda: show_jobs(jobs, parsed.jobs or 1000, parsed.rounds, figures),
             'columns': lambda: show_columns(jobs, parsed.rounds, figures),
             'large': lambda: show_large(jobs, figures),
             'transformer': lambda: show_transformer(jobs, parsed.rounds, figures),
             'profile': lambda: show_profile(jobs, figures)}
    wanted = [name for name in parts if getattr(parsed, name)] or list(parts)
    jobs = Jobs(parsed.shrink)
    with evidence.recorded(parsed.json, 'startup', parsed.noisy) as figures:
        for name in wanted:
            parts[name]()


if __name__ == '__main__':
    main()
