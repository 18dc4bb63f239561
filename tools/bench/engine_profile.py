"""Says where a step of the native engine spends the time of the cores, by samples of `perf`.

`perf` of Linux samples the stacks of this process by a clock, since virtual machines seldom have
counters of cycles. A sample belongs to the first part of `PARTS` that fits.
"""

import os
import re
import resource
import shutil
import subprocess
import tempfile
import time

HERTZ, SECONDS = 997, 4
STACK = 2048
"""Bytes of a stack that are kept per sample."""

PARTS = {
    'look-up, sums of rows': r'\bsum\b.*\bcombine',
    'look-up, all else': r'\bcombine|Lookup',
    'update, rule of the optimizer': r'\bapply',
    'update, sums of gradients': r'\bsum\b.*(for_summed|RangeUpdate|update)',
    'update, order of gradients': r'Contributions|order_rows',
    'update, all else': r'for_summed|RangeUpdate|\bupdate\b|Update|nonfinite',
    'grouping': r'Together|Section|sort_by|write_runs|group|Group',
    'waiting and waking': r'Pool::|futex|sched|cond_',
    'TensorFlow and all else': ''}
"""By name what a line of the functions of a stack holds, the innermost first."""


def add(name, engine, figures):
    """Profiles whole steps of an engine; adds milliseconds of CPU per step for each part.

    Raises:
      RuntimeError: if there is no `perf`, or it may not sample.
    """
    if shutil.which('perf') is None:
        raise RuntimeError('--profile needs perf of Linux, such as the package linux-perf')
    engine.window('whole', 10)
    steps = max(round(1e3 * SECONDS / engine.window('whole', 5)), 1)
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(
                ['perf', 'record', '-q', '-e', 'cpu-clock', '-F', str(HERTZ), '--call-graph',
                 f'dwarf,{STACK}', '-p', str(os.getpid()), '-o', f'{folder}/samples']) as perf:
            time.sleep(1)  # Until it samples.
            before = resource.getrusage(resource.RUSAGE_SELF)
            wall = engine.window('whole', steps)
            after = resource.getrusage(resource.RUSAGE_SELF)
            perf.terminate()
        found = shares(subprocess.run(
            ['perf', 'script', '-i', f'{folder}/samples', '-F', 'ip,sym', '--no-inline'],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    busy = 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / steps
    for part, share in found.items():
        milliseconds = figures.add(f'{name}, {part}', 'ms of CPU/step', [share * busy])
        print(f'{name:4}{part:32}{milliseconds:8.2f} ms of CPU')
    idle = len(os.sched_getaffinity(0)) * wall - busy
    print(f'{name:4}{"idle":32}{figures.add(f"{name}, idle", "ms of CPU/step", [idle]):8.2f} ms '
          f'of CPU; {wall:.2f} ms per step', flush=True)


def shares(stacks):
    """The share of each part in the samples that `perf script` prints.

    >>> found = shares('  1 ete::sum\\n  2 ete::combine(x)\\n\\n  1 ete::apply<A>\\n\\n')
    >>> {part: share for part, share in found.items() if share}
    {'look-up, sums of rows': 0.5, 'update, rule of the optimizer': 0.5}
    """
    samples = [' < '.join(line.strip() for line in stack.splitlines())
               for stack in re.split(r'\n\s*\n', stacks) if stack.strip()]
    if not samples:
        raise RuntimeError('perf has no samples: it may not sample on this machine')
    counts = dict.fromkeys(PARTS, 0)
    for sample in samples:
        counts[next(part for part, fits in PARTS.items() if re.search(fits, sample))] += 1
    return {part: count / len(samples) for part, count in counts.items()}
