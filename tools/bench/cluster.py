#!/usr/bin/env python3
"""Times a step whose hosts are processes beside the same step in one process.

    python3 tools/bench/cluster.py [--workload W1] [--tasks 1,2,3] [--gbit 10] [--json FILE]
    python3 tools/bench/cluster.py --starts 0 --models '' ...     # only steps

runs in an environment with the extra `cpu`, on Linux. Each engine takes turns, window by window,
with the engine of one process (*block*), so that other load disturbs both alike; a ratio is the
median over these pairs. Ids are enqueued in a thread beside the steps, as in a job. All processes
run in a network of their own, where the system lets users make one. The engines:

* `owners`: an owner per host, all in this process;
* `N tasks`: an owner per worker, on this machine; ids come from datasets on the workers;
* `N tasks, input at client`: the same, but the ids come from this process, as in jobs;
* `N tasks, G Gbit/s`: each worker in a network namespace behind a link of that bandwidth. The
  links count bytes with all headers. `calculated` are the bytes of ids, sums and gradients alone.

Then it shows what the model of `exchange_model.py` says about 2 to 64 hosts, and the seconds from
the start of a census job with 2 workers until its first step.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import evidence  # noqa: E402
import exchange_model  # noqa: E402
import networks  # noqa: E402
import numpy as np  # noqa: E402
from cluster_engines import STRATEGY, HostsEngine, link_of, workload_of  # noqa: E402
from engine import compare  # noqa: E402

from estimator_tpu_embedding.cluster.cluster import Cluster  # noqa: E402
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice  # noqa: E402

JOB = HERE.parent / 'examples' / 'census_tpu_job.py'
HOSTS_OF_BLOCK = 2
FIRST_STEP = re.compile(r'loss = .*, step = \d')
WANTED = {'W1, 2 tasks': {'most': 2}}
"""Of the ratio of a step by its label; see `evidence.Figures.add`."""

TIMEOUT = 120
"""Seconds after which a job that does not begin is killed."""


class Behind:
    """An engine whose workers are behind links; see `cluster_engines.serve`.

    Attributes:
      link: what messages cost.
      gbit: what a plain socket carries, per second.
      moved: for each window the bytes per step that each worker sent and received.
    """

    def __init__(self, name, shrink, hosts, gbit):
        words = [sys.executable, HERE / 'cluster_engines.py', name, shrink, hosts, gbit]
        self._process = subprocess.Popen(
            list(map(str, [*networks.command(), *words])), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=networks.die_with_parent)
        link, self.gbit = json.loads(self._process.stdout.readline())
        self.link, self.moved = exchange_model.Link(*link), []

    def window(self, kind, steps):
        """See `sessions.Engine.window`; the kind is `'ahead'`."""
        self._process.stdin.write(f'{steps}\n')
        self._process.stdin.flush()
        milliseconds, moved = json.loads(self._process.stdout.readline())
        self.moved.append(moved)
        return milliseconds

    def close(self):
        """Ends it."""
        self._process.stdin.close()
        self._process.wait()


class Bench:
    """Lets engines take turns with the engine of one process.

    Attributes:
      link: what messages cost between the last two workers that were measured.
    """

    def __init__(self, parsed, figures):
        self._parsed, self._figures = parsed, figures
        self._name = parsed.workload
        self.link = None
        self._block = HostsEngine(self.workload(HOSTS_OF_BLOCK), HOSTS_OF_BLOCK, has_owners=False)

    def workload(self, hosts):
        """The workload for so many hosts."""
        return workload_of(exchange_model.ALL[self._name], self._parsed.shrink, hosts)

    def beside(self, label, engine):
        """Adds windows of an engine and of the block beside it, and prints a line."""
        key = f'{self._name}, {label}'
        its, own = compare([engine, self._block], ['ahead'], self._parsed, self._figures)['ahead']
        engine.close()
        add, ratios = self._figures.add, [one / other for one, other in zip(its, own)]
        print(f'{key:40}{add(key, "ms/step", its):9.2f} ms'
              f'{add(f"{key}, block", "ms/step", own):9.2f} ms in one process'
              f'{add(f"{key}, ratio", "times block", ratios, **WANTED.get(key, {})):8.2f} times',
              flush=True)

    def owners(self):
        """Times owners in this process."""
        self.beside('owners', HostsEngine(self.workload(2), 2, has_owners=True))

    def tasks(self, hosts):
        """Times owners in workers on this machine."""
        for at_client in (False, True):
            cluster = Cluster(ClusterChoice(processes=hosts), say=lambda line: None)
            with contextlib.closing(cluster):
                cluster.prepare()
                engine = HostsEngine(self.workload(hosts), hosts, has_owners=True,
                                     cluster=cluster, input_at_client=at_client)
                self.beside(f'{hosts} tasks' + ', input at client' * at_client, engine)
                if hosts > 1 and not at_client:
                    self._add_link(f'{hosts} tasks', link_of(cluster))

    def behind_links(self, hosts, gbit):
        """Times owners in workers behind links, and counts bytes."""
        label = f'{hosts} tasks, {gbit:g} Gbit/s'
        engine = Behind(self._name, self._parsed.shrink, hosts, gbit)
        self.beside(label, engine)
        self._add_link(label, engine.link)
        self._figures.add(f'{label}, socket', 'Gbit/s', [engine.gbit])
        self._show_bytes(label, hosts, np.array(engine.moved[1:]))  # The first one warms up.

    def _show_bytes(self, label, hosts, moved):
        """Adds the bytes of links beside calculated ones.

        Args:
          label: of the engine.
          hosts: its workers.
          moved: `[windows, hosts, 2]`, bytes per step sent and received.
        """
        workload = self.workload(hosts)
        calculated = exchange_model.exact_bytes(workload, hosts, STRATEGY)
        for host in range(hosts):
            for way, number in (('sent', 0), ('received', 1)):
                key = f'{self._name}, {label}, host {host}, {way}'
                least = calculated[number][host]
                measured = self._figures.add(key, 'MB/step', moved[:, host, number] / 1e6)
                self._figures.add(f'{key}, calculated', 'MB/step', [least / 1e6])
                ratio = self._figures.add(f'{key}, ratio', 'times calculated',
                                          moved[:, host, number] / least)
                print(f'  host {host} {way:9}{measured:9.3f} MB/step, {ratio:.3f} times what is '
                      'calculated', flush=True)

    def _add_link(self, label, link):
        self._figures.add(f'{label}, message', 'us', [1e6 * link.seconds_per_message])
        self._figures.add(f'{label}, long messages', 'Gbit/s', [8e-9 * link.bytes_per_second])
        print(f'  a message takes {1e6 * link.seconds_per_message:.0f} us; long ones '
              f'{8e-9 * link.bytes_per_second:.1f} Gbit/s', flush=True)
        self.link = link

    def close(self):
        """Frees the memory of the block."""
        self._block.close()


def seconds_to_first_step(*flags):
    """Returns the seconds from the start of a census job until it says that it has made a step.

    Args:
      *flags: of `etpe run`.

    Raises:
      RuntimeError: if the job ends before.
    """
    with tempfile.TemporaryDirectory() as model_dir:
        command = [sys.executable, '-m', 'estimator_tpu_embedding', 'run', *flags, JOB,
                   f'--model_dir={model_dir}', '--iterations=1']
        began = time.perf_counter()
        with subprocess.Popen(
                list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True, preexec_fn=networks.die_with_parent) as process:
            watch = threading.Timer(TIMEOUT, process.kill)
            watch.start()
            try:
                lines = []
                for line in process.stderr:
                    lines.append(line)
                    if FIRST_STEP.search(line):
                        return time.perf_counter() - began
                raise RuntimeError(f'the job ended with {process.wait()}: {"".join(lines[-20:])}')
            finally:
                watch.cancel()
                process.kill()


def show_start(figures, rounds):
    """Prints how long jobs take to begin, in one process and with two workers."""
    for label, flags in (('one process', ['--hosts', 2]), ('2 tasks', ['--processes', 2])):
        seconds = figures.add(f'census job, {label}, start to first step', 's', [
            seconds_to_first_step(*flags, '--cores', 2) for _ in range(rounds)])
        print(f'census job, {label}: {seconds:.1f} s from start to first step', flush=True)


def show_steps(parsed, figures):
    """Prints a line per engine; returns the `Link` between workers, if there was one."""
    bench = Bench(parsed, figures)
    bench.owners()
    for hosts in parsed.tasks:
        bench.tasks(hosts)
    reason = networks.why_not()
    if reason:
        figures.notes.append(f'no figures of links: {reason}')
        print(figures.notes[-1], flush=True)
    else:
        bench.behind_links(2, parsed.gbit)
    bench.close()
    return bench.link


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--workload', choices=exchange_model.ALL, default='W1')
    parser.add_argument('--tasks', type=lambda text: [int(one) for one in text.split(',')],
                        default=[1, 2, 3], metavar='N,N', help='workers')
    parser.add_argument('--gbit', type=float, default=10, help='per second and link')
    parser.add_argument('--windows', type=int, default=7)
    parser.add_argument('--steps', type=int, default=10, help='of a window, at least')
    parser.add_argument('--seconds', type=float, default=.5, help='of a window, about')
    parser.add_argument('--shrink', type=int, default=1)
    parser.add_argument('--starts', type=int, default=3, help='of the census job; 0 is none')
    parser.add_argument('--models', default=','.join(exchange_model.ALL), metavar='W,W',
                        help='workloads of the model')
    evidence.add_argument(parser)
    evidence.add_noisy(parser)
    parsed = parser.parse_args()
    networks.keep_private()
    with evidence.recorded(parsed.json, 'cluster', parsed.noisy) as figures:
        link = show_steps(parsed, figures)
        if parsed.starts:
            show_start(figures, parsed.starts)
        exchange_model.add_to(figures, [
            exchange_model.ALL[name].shrunk(parsed.shrink)
            for name in parsed.models.split(',') if name], link)
    sys.stdout.flush()
    os._exit(0)  # A server of TensorFlow never ends.


if __name__ == '__main__':
    main()
