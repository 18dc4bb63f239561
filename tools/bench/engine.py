#!/usr/bin/env python3
"""Times a step of look-up and update: the kernels of this package beside other engines.

    python3 tools/bench/engine.py [W1 W2 W3 W4] [--shrink K]            # beside stock TensorFlow
    python3 tools/bench/engine.py --python215 .venv215/bin/python       # also beside TF 2.15
    python3 tools/bench/engine.py --peers [--peers-python PATH]         # also fbgemm, torch, TFRS
    python3 tools/bench/engine.py --optimizers | --hosts | --bandwidth | --scale

Each takes `--json FILE` too. It runs in an environment with the extra `cpu`. All engines train the
same tables with Adagrad on the same ids (see `workloads.py`). The native engine takes turns with
each other engine, window by window, so that other load disturbs both alike. A ratio is the median
over these pairs of windows. There are two kinds of steps:

* `whole` enqueues ids, looks up and updates, one after the other;
* `ahead` enqueues the ids of the next step in a thread beside the step, as a job does.

The other engines are

* `stock`: the engine of this package without its library;
* `tuned`: `embedding_lookup_sparse` with `AdagradOptimizer`, and grappler's arithmetic optimizer
  off, which would read whole tables;
* `shipped`: the same with that optimizer on, as TensorFlow is shipped;
* the engines of other packages, in `peers.py`.

`--shrink 10` divides rows and batch by 10, for a machine with less than 16 GiB. `laws.py` has the
flags of the last line.
"""

import argparse
import functools
import os
import pathlib
import subprocess
import sys

import evidence
import laws
import ours
import sessions
from workloads import WORKLOADS

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ('fbgemm-rowwise', 'fbgemm-exact', 'torch', 'tfrs')
KINDS = ('whole', 'ahead')


class Remote:
    """An engine in another process, which answers requests for windows."""

    def __init__(self, *command):
        """Starts it; RuntimeError if it cannot be there."""
        self._process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._process.stdout.readline() != 'ready\n':
            self.close()
            raise RuntimeError(f'{command} did not start')

    def window(self, kind, steps):
        """See `sessions.Engine.window`."""
        self._process.stdin.write(f'{kind} {steps}\n')
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self):
        """Ends it."""
        self._process.stdin.close()
        self._process.wait()


def others(workload, parsed):
    """Yields the name of each other engine, and a function that makes it."""
    shrink = str(parsed.shrink)
    yield 'stock', lambda: ours.engine(workload, 'stock')
    for kind in ('tuned', 'shipped'):
        yield kind, lambda kind=kind: sessions.Engine(
            sessions.stock, workload, sessions.config_of(kind))
    if parsed.python215:
        for kind in ('tuned', 'shipped'):
            yield f'{kind}, 2.15', functools.partial(
                Remote, parsed.python215, HERE / 'sessions.py', workload.name, shrink, kind)
    for peer in PEERS if parsed.peers else ():
        yield peer, functools.partial(Remote, parsed.peers_python, HERE / 'peers.py', peer,
                                      workload.name, shrink)


def compare(engines, kinds, windows, steps):
    """Returns milliseconds per step by kind, a list of windows per engine; the engines take turns.
    """
    for kind in kinds:
        for engine in engines:
            engine.window(kind, 3)
    found = {}
    for kind in kinds:
        rows = [[engine.window(kind, steps) for engine in engines] for _ in range(windows)]
        found[kind] = list(zip(*rows))
    return found


def add_pair(figures, key, its, own):
    """Adds windows of an engine and of the native one beside it; returns medians and a ratio."""
    return (figures.add(key, 'ms/step', its), figures.add(f'{key}, native', 'ms/step', own),
            figures.add(f'{key}, ratio', 'times native', (
                one / other for one, other in zip(its, own))))


def beside_others(parsed, figures):
    """Prints a line per workload and other engine."""
    print(f'load {os.getloadavg()[0]:.1f}; kernels: {parsed.kernels}')
    print(f'{"":4}{"engine":16}' + ''.join(
        f'{kind:>9}{"native":>9}{"ratio":>8}' for kind in KINDS))
    for name in parsed.workloads or WORKLOADS:
        workload = WORKLOADS[name].shrunk(parsed.shrink)
        native = ours.engine(workload, parsed.kernels)
        for label, make in others(workload, parsed):
            try:
                other = make()
            except RuntimeError as error:
                print(f'{name:4}{label:16}{error}')
                continue
            found = compare([other, native], KINDS, parsed.windows, parsed.steps)
            other.close()
            added = [add_pair(figures, f'{name}, {label}, {kind}', *pair)
                     for kind, pair in found.items()]
            print(f'{name:4}{label:16}' + ''.join(
                f'{its:9.2f}{own:9.2f}{ratio:8.2f}' for its, own, ratio in added), flush=True)
        native.close()


def main():
    """Prints what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('workloads', nargs='*', metavar='W', help='of W1 to W4; all if none')
    parser.add_argument('--windows', type=int, default=7)
    parser.add_argument('--steps', type=int, default=10, help='of a window')
    parser.add_argument('--shrink', type=int, default=1)
    parser.add_argument('--kernels', default='native', help='"stock" where no library is')
    parser.add_argument('--python215', metavar='PATH', help='an interpreter with TF 2.15')
    parser.add_argument('--peers', action='store_true')
    parser.add_argument('--peers-python', metavar='PATH', default=sys.executable)
    for law in laws.LAWS:
        parser.add_argument(f'--{law}', action='store_true')
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    asked = [law for law in laws.LAWS if getattr(parsed, law)]
    with evidence.recorded(parsed.json, 'engine') as figures:
        for law in asked:
            laws.LAWS[law](parsed, compare, figures)
        if not asked:
            beside_others(parsed, figures)


if __name__ == '__main__':
    main()
