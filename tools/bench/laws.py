"""Times a step for other optimizers, numbers of hosts, sizes of tables and numbers of ids."""

import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import engine_profile
import ours
from workloads import WORKLOADS, Feature, Workload, equal

from estimator_tpu_embedding.core.optimizers import OPTIMIZERS

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import native_build  # noqa: E402

DISTINCT = 50_000

WANTED = {'W1': 1.3, 'W2': 2.5, 'W3': 1.6, 'W4': 2.5}
"""How many times the bound of `bandwidth` a step should take at most."""

SMALL_RATE = 1e-6
"""Rows are in thousands of samples, so the sums of their gradients let larger rates diverge."""


def optimizers(parsed, compare, figures):
    """Prints the time of every optimizer relative to Adagrad, on W2."""
    workload = WORKLOADS['W2'].shrunk(parsed.shrink)
    base = ours.engine(workload, parsed.kernels)
    for name, optimizer in OPTIMIZERS.items():
        if name != 'adagrad':
            needed = {field.name: .5 for field in dataclasses.fields(optimizer)
                      if field.default is dataclasses.MISSING
                      and field.default_factory is dataclasses.MISSING}
            _beside(base, name, workload, parsed, compare, figures,
                    optimizer=optimizer(**{**needed, 'learning_rate': SMALL_RATE}))
    base.close()


def hosts(parsed, compare, figures):
    """Prints the time of `mod` and of 4 emulated hosts relative to `div` on one, per workload."""
    for name in parsed.workloads or WORKLOADS:
        workload = WORKLOADS[name].shrunk(parsed.shrink)
        base = ours.engine(workload, parsed.kernels)
        for number, strategy in ((1, 'mod'), (4, 'div'), (4, 'mod')):
            _beside(base, f'{name}, {number} hosts, {strategy}', workload, parsed, compare,
                    figures, hosts=number, strategy=strategy)
        base.close()


def bandwidth(parsed, compare, figures):
    """Prints the least time of a step on this machine's memory, and the step's time over it.

    The memory is beyond any cache. So a step may be faster that finds many of its rows in a cache.
    """
    with tempfile.TemporaryDirectory() as folder:
        probe = pathlib.Path(folder) / 'random_access'
        native_build.call([*native_build.compiler(), '-O3', '-march=native', '-pthread',
                           str(HERE / 'random_access.cc'), '-o', str(probe)])
        for name in parsed.workloads or WORKLOADS:
            workload = WORKLOADS[name].shrunk(parsed.shrink)
            engine = ours.engine(workload, parsed.kernels)
            bounds, windows = compare([_Bound(probe, workload), engine], ['whole'], parsed,
                                      figures)['whole']
            engine.close()
            bound = figures.add(f'{name}, bound', 'ms/step', bounds)
            milliseconds = figures.add(f'{name}, whole', 'ms/step', windows)
            over = figures.add(f'{name}, whole over bound', 'times', (
                one / least for one, least in zip(windows, bounds)), most=WANTED[name])
            print(f'{name}: bound {bound:.2f} ms, measured {milliseconds:.2f} ms: '
                  f'{over:.2f} times', flush=True)


class _Bound:
    """The least time of a step, measured in turn with an engine."""

    def __init__(self, probe, workload):
        self._probe, self._workload, self._feeds = probe, workload, workload.feeds()

    def window(self, kind, steps):
        """Milliseconds per step, from what the program `probe` reaches just now."""
        del kind, steps
        widths = sorted({width for _, width in self._workload.tables})
        done = subprocess.run([self._probe, *map(str, widths)], check=True, text=True,
                              stdout=subprocess.PIPE)
        *rows, (_, copied, _) = [list(map(float, line.split()))
                                 for line in done.stdout.splitlines()]
        return 1e3 * self._workload.least_seconds(
            self._feeds, {int(width): read for width, read, _ in rows},
            {int(width): changed for width, _, changed in rows}, copied)


def profile(parsed, compare, figures):
    """Prints where the time of a step goes."""
    del compare
    for name in parsed.workloads or WORKLOADS:
        engine = ours.engine(WORKLOADS[name].shrunk(parsed.shrink), parsed.kernels)
        engine_profile.add(name, engine, figures)
        engine.close()


def scale(parsed, compare, figures):
    """Prints the time as tables grow with the same distinct ids, and as ids grow."""
    tables = [_of_few_ids(rows // parsed.shrink) for rows in (10**5, 10**6, 10**7)]
    ids = [equal(f'{number} ids per sample', 26, 10**5 // parsed.shrink, 16,
                 4096 // parsed.shrink, number, 'sum') for number in (1, 2, 4, 8, 16)]
    for workloads in (tables, ids):
        base = ours.engine(workloads[0], parsed.kernels)
        for workload in workloads[1:]:
            _beside(base, workload.name, workload, parsed, compare, figures)
        base.close()


class _FewIds(Workload):
    """One table of many rows. Only a fixed number of them is looked up."""

    def feeds(self):
        """See `Workload.feeds`."""
        rows = self.tables[0][0]
        return [[(ids * (rows // min(DISTINCT, rows)))] for batch in equal(
            '', 1, min(DISTINCT, rows), 1, self.batch, self.features[0].per_sample, ''
            ).feeds() for ids in batch]


def _of_few_ids(rows):
    return _FewIds(f'{rows:,} rows', ((rows, 32),), (Feature(0, 10),), 8192, 'sum')


def _beside(base, label, workload, parsed, compare, figures, **options):
    """Prints the time of another engine beside the first one."""
    other = ours.engine(workload, parsed.kernels, **options)
    its, base_windows = compare([other, base], ['ahead'], parsed, figures)['ahead']
    other.close()
    milliseconds = figures.add(label, 'ms/step', its)
    ratio = figures.add(f'{label}, ratio', 'times the first', (
        one / of_base for one, of_base in zip(its, base_windows)))
    print(f'{label:28}{milliseconds:9.2f} ms{ratio:8.2f} times as long', flush=True)


LAWS = {'optimizers': optimizers, 'hosts': hosts, 'bandwidth': bandwidth, 'scale': scale,
        'profile': profile}
