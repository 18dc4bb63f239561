"""Tells how much of the machine's CPU time others take while a benchmark measures."""

import os
import pathlib
import time

MOST = .02
"""The share of the CPU time that others may take of a window."""

_TICK = 1 / os.sysconf('SC_CLK_TCK')
_OF_KERNEL = 0x00200000
"""The flag of a thread of the kernel, which Linux calls PF_KTHREAD."""


def seconds_of_others(own=os.getpid(), proc=pathlib.Path('/proc')):
    """CPU time so far of processes that this one has not started, and what the host has taken.

    Threads of the kernel are not among them: what they write and free is most often ours. A process
    that ends hands its time to its parent. Where no parent waits for it, it is lost.
    """
    parents, ticks = {}, {}
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            try:  # The name of a program may hold spaces and brackets.
                fields = (entry / 'stat').read_text().rpartition(')')[2].split()
            except OSError:
                continue  # It has ended.
            if int(fields[6]) & _OF_KERNEL:
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    stolen = int((proc / 'stat').read_text().split(maxsplit=9)[8])
    return _TICK * (stolen + sum(took for process, took in ticks.items()
                                 if not _descends(process, own, parents)))


class Watch:
    """A context that watches others while a benchmark measures.

    Attributes:
      share: of the time of all cores, what others took; there is one when the context has ended.
    """

    def __enter__(self):
        self._before, self._began = seconds_of_others(), time.perf_counter()
        return self

    def __exit__(self, *of_exception):
        seconds = time.perf_counter() - self._began
        self.share = (seconds_of_others() - self._before) / (
            seconds * len(os.sched_getaffinity(0)))


def _descends(process, ancestor, parents):
    while process in parents and process != ancestor:
        process = parents[process]
    return process == ancestor
