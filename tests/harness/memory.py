"""Measures the memory of this process; such a test is `serial`, or runs in a process of its own."""

import pathlib

import pytest

STATUS = pathlib.Path('/proc/self/status')


def highest_rss_of(function):
    """Returns the most bytes by which the RSS of this process grows while a function runs.

    The test is skipped where a process may not ask for that.
    """
    try:  # VmHWM begins anew at what there is.
        pathlib.Path('/proc/self/clear_refs').write_text('5')
    except OSError as error:
        pytest.skip(f'the height of memory cannot be measured: {error}')
    before = _in_bytes('VmRSS')
    function()
    return _in_bytes('VmHWM') - before


def most_rss():
    """Returns the most bytes of this process that have been in memory at once."""
    return _in_bytes('VmHWM')


def rss():
    """Returns how many bytes of this process are in memory, without those of its files."""
    return _in_bytes('RssAnon')


def vm_size(status=STATUS):
    """Returns how many bytes of addresses a process has taken; RLIMIT_AS bounds them."""
    return _in_bytes('VmSize', status)


def _in_bytes(field, status=STATUS):
    return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines()
                       if line.startswith(field))
