"""Times a step for other optimizers, numbers of hosts, sizes of tables and numbers of ids."""

import concurrent.futures
import dataclasses
import time

import numpy as np
import ours
from workloads import WORKLOADS, Feature, Workload, equal

from estimator_tpu_embedding.core.optimizers import OPTIMIZERS

DISTINCT = 50_000
PROBE_BYTES = 2**28

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
    """Prints the bytes that a step must move, and the share of this machine's memory bandwidth."""
    measured = copy_bandwidth()
    figures.add('copies', 'GB/s', [measured / 1e9])
    print(f'copies move {measured / 1e9:.1f} GB/s')
    for name in parsed.workloads or WORKLOADS:
        workload = WORKLOADS[name].shrunk(parsed.shrink)
        engine = ours.engine(workload, parsed.kernels)
        windows, = compare([engine], ['whole'], parsed.windows, parsed.steps)['whole']
        engine.close()
        milliseconds = figures.add(f'{name}, whole', 'ms/step', windows)
        moved = workload.bytes_per_step(workload.feeds())
        bound = 1e3 * moved / measured
        figures.add(f'{name}, share of bandwidth', '%', (100 * bound / one for one in windows))
        print(f'{name}: {moved / 1e6:.0f} MB, bound {bound:.2f} ms, measured '
              f'{milliseconds:.2f} ms: {100 * bound / milliseconds:.0f} %', flush=True)


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


def copy_bandwidth():
    """Returns bytes per second, read and written, of copies by two threads; the best of some."""
    parts = [(np.ones(PROBE_BYTES // 4, np.float32), np.ones(PROBE_BYTES // 4, np.float32))
             for _ in range(2)]
    best = 0.0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(7):
            began = time.perf_counter()
            list(pool.map(lambda part: np.copyto(*part), parts))
            best = max(best, 2 * 2 * PROBE_BYTES / (time.perf_counter() - began))
    return best


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
    its, base_windows = compare([other, base], ['ahead'], parsed.windows, parsed.steps)['ahead']
    other.close()
    milliseconds = figures.add(label, 'ms/step', its)
    ratio = figures.add(f'{label}, ratio', 'times the first', (
        one / of_base for one, of_base in zip(its, base_windows)))
    print(f'{label:28}{milliseconds:9.2f} ms{ratio:8.2f} times as long', flush=True)


LAWS = {'optimizers': optimizers, 'hosts': hosts, 'bandwidth': bandwidth, 'scale': scale}
