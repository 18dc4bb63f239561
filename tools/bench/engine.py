#!/usr/bin/env python3
"""Times a step of look-up and update: the kernels of this package beside other engines.

    python3 tools/bench/engine.py [W1 W2 W3 W4] [--shrink K]            # beside stock TensorFlow
    python3 tools/bench/engine.py --python215 .venv215/bin/python       # also beside TF 2.15
    python3 tools/bench/engine.py --peers [--peers-python PATH]         # also fbgemm, torch, TFRS
    python3 tools/bench/engine.py --optimizers | --hosts | --bandwidth | --scale | --profile

Each takes `--json FILE` too. It runs in an environment with the extra `cpu`. All engines train the
same tables with Adagrad on the same ids (see `workloads.py`). The native engine takes turns with
each other engine, window by window, so that other load disturbs both alike. A ratio is the median
over these pairs of windows. A pair is measured again if others took more than 2 % of the CPU time.
Each engine has a process of its own. That of another one ends before the next begins. The rows of
each engine are compared with those of NumPy after 3 steps of a small workload. There are two kinds
of steps:

* `whole` enqueues ids, looks up and updates, one after the other;
* `ahead` enqueues the ids of the next step in a thread beside the step, as a job does.

The other engines are

* `stock`: the engine of this package without its library;
* `tuned`: `embedding_lookup_sparse` with `AdagradOptimizer`, and grappler's arithmetic optimizer
  off, which would read whole tables;
* `shipped`: the same with that optimizer on, as TensorFlow is shipped;
* the engines of other packages, in `peers.py`, which have no queue and so nothing ahead.

`--shrink 10` divides rows and batch by 10, for a machine with less than 16 GiB. `laws.py` has the
flags of the last line.
"""

import argparse
import functools
import pathlib
import subprocess
import sys
import time

import evidence
import laws
from workloads import WORKLOADS

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ('fbgemm-rowwise', 'fbgemm-exact', 'torch', 'tfrs')
KINDS = ('whole', 'ahead')

CHECKED_SHRINK = 50
"""Of the workloads whose rows NumPy calculates too, since it takes long."""

MOST_ERROR = 1e-4
"""Of the largest change of a row: engines with float32 sum in any order."""

SETTLING = 3
"""Seconds without a measurement after a start, since the system still frees and clears memory."""

WANTED = {'tuned': dict(zip(WORKLOADS, (12, 10, 20, 8))),
          'fbgemm-rowwise': dict.fromkeys(('W1', 'W2', 'W3'), 3),
          'fbgemm-exact': dict.fromkeys(('W1', 'W2', 'W3'), 5)}
"""How many times as long as the native engine a whole step should take at least."""


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
        return self._ask(f'{kind} {steps}')

    def error(self):
        """See `workloads.error_of`."""
        return self._ask('error 0')

    def close(self):
        """Ends it."""
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, line):
        self._process.stdin.write(f'{line}\n')
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def native(name, shrink, kernels):
    """Starts the engine of this package."""
    return Remote(sys.executable, HERE / 'ours.py', name, shrink, kernels)


def others(name, shrink, parsed):
    """Yields the label of each other engine, and a function that starts it."""
    yield 'stock', functools.partial(native, name, shrink, 'stock')
    for label, python in (('', sys.executable), (', 2.15', parsed.python215)):
        for kind in ('tuned', 'shipped') if python else ():
            yield kind + label, functools.partial(
                Remote, python, HERE / 'sessions.py', name, shrink, kind)
    for peer in PEERS if parsed.peers else ():
        yield peer, functools.partial(Remote, parsed.peers_python, HERE / 'peers.py', peer,
                                      name, shrink)


def compare(engines, kinds, parsed, figures):
    """Returns milliseconds per step by kind, a list of windows per engine; the engines take turns.
    """
    found = {}
    for kind in kinds:
        steps = [max(parsed.steps, round(1e3 * parsed.seconds / engine.window(kind, 3)))
                 for engine in engines]
        rows = [figures.quiet(lambda: [engine.window(kind, number)
                                       for engine, number in zip(engines, steps)])
                for _ in range(parsed.windows)]
        found[kind] = list(zip(*rows))
    return found


def add_pair(figures, key, its, own, **bar):
    """Adds windows of an engine and of the native one beside it; returns medians and a ratio."""
    return (figures.add(key, 'ms/step', its), figures.add(f'{key}, native', 'ms/step', own),
            figures.add(f'{key}, ratio', 'times native', (
                one / other for one, other in zip(its, own)), **bar))


def check(name, parsed, figures):
    """Adds the error of the rows of each engine, but of the rowwise one."""
    shrink = parsed.shrink * CHECKED_SHRINK
    own = functools.partial(native, name, shrink, parsed.kernels)
    for label, start in ('native', own), *others(name, shrink, parsed):
        if label == 'fbgemm-rowwise':
            continue
        try:
            engine = start()
        except RuntimeError:
            continue  # The table of times says why.
        error = engine.error()
        engine.close()
        figures.add(f'{name}, {label}, error', 'of the largest change', [error], most=MOST_ERROR)


def beside_others(parsed, figures):
    """Prints what `laws.bandwidth` does, then a line per workload and other engine."""
    laws.bandwidth(parsed, compare, figures)
    print(f'{"":4}{"engine":16}' + ''.join(
        f'{kind:>9}{"native":>9}{"ratio":>8}' for kind in KINDS))
    for name in parsed.workloads or WORKLOADS:
        check(name, parsed, figures)
        own = native(name, parsed.shrink, parsed.kernels)
        for label, start in others(name, parsed.shrink, parsed):
            try:
                other = start()
                other.window('whole', 1)
            except RuntimeError as error:
                print(f'{name:4}{label:16}{error}')
                figures.notes.append(f'{name}, {label}: this engine did not start')
                continue
            time.sleep(SETTLING)
            found = compare([other, own], KINDS[:1] if label in PEERS else KINDS, parsed,
                            figures)
            other.close()
            wanted = WANTED.get(label, {}).get(name)
            added = [add_pair(figures, f'{name}, {label}, {kind}', *pair, **(
                {'least': wanted} if wanted and kind == 'whole' else {}))
                for kind, pair in found.items()]
            print(f'{name:4}{label:16}' + ''.join(
                f'{its:9.2f}{own:9.2f}{ratio:8.2f}' for its, own, ratio in added), flush=True)
        own.close()


def main():
    """Prints what the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('workloads', nargs='*', metavar='W', help='of W1 to W4; all if none')
    parser.add_argument('--windows', type=int, default=7)
    parser.add_argument('--steps', type=int, default=3, help='of a window, at least')
    parser.add_argument('--seconds', type=float, default=.5, help='of a window, about')
    parser.add_argument('--shrink', type=int, default=1)
    parser.add_argument('--kernels', default='native', help='"stock" where no library is')
    parser.add_argument('--python215', metavar='PATH', help='an interpreter with TF 2.15')
    parser.add_argument('--peers', action='store_true')
    parser.add_argument('--peers-python', metavar='PATH', default=sys.executable)
    for law in laws.LAWS:
        parser.add_argument(f'--{law}', action='store_true')
    evidence.add_argument(parser)
    evidence.add_noisy(parser)
    parsed = parser.parse_args()
    asked = [law for law in laws.LAWS if getattr(parsed, law)]
    with evidence.recorded(parsed.json, 'engine', parsed.noisy) as figures:
        for law in asked:
            laws.LAWS[law](parsed, compare, figures)
        if not asked:
            beside_others(parsed, figures)


if __name__ == '__main__':
    main()
