"""`etpe run`: an unedited TPUEstimator script on an emulated TPU system."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..core.specs import ID_POLICIES, Topology
from ..errors import ConfigError, SetupError

_OPTIONS = ('--hosts', '--cores', '--ids')


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.usage = 'etpe run [--hosts H] [--cores C] [--ids POLICY] SCRIPT [ARGS...]'
    parser.description = (
        'Runs a script as "python SCRIPT ARGS..." would, with the names in place '
        'that TensorFlow removed, on an emulated TPU system of H hosts with C cores each. With '
        'neither size given the system has one core, or as many as the script\'s '
        'TPUConfig(num_shards=...) says. What follows SCRIPT is handed to it untouched. The '
        'exit status is that of the script.')
    parser.add_argument('--hosts', type=int, metavar='H', help='emulated TPU hosts')
    parser.add_argument('--cores', type=int, metavar='C', help='cores per host')
    parser.add_argument('--ids', choices=ID_POLICIES, help='what becomes of ids outside of their '
                        'vocabulary, where the script does not say it')
    parser.add_argument('script', metavar='SCRIPT', help='path of the script; its own flags '
                        'go after it')
    parser.set_defaults(command=run)


def split_at_script(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits the arguments of `run` after SCRIPT, since argparse would touch what follows.

    >>> split_at_script(['--hosts', '2', 'job.py', '--', '--hosts', '3'])
    (['--hosts', '2', 'job.py'], ['--', '--hosts', '3'])
    """
    at = 0
    while at < len(arguments) and arguments[at].startswith('-'):
        at += 2 if arguments[at] in _OPTIONS else 1
    return list(arguments[:at + 1]), list(arguments[at + 1:])


def run(parsed: argparse.Namespace) -> int:
    """Runs the script; what the tool itself says goes to standard error."""
    problems = list(Topology(num_hosts=1 if parsed.hosts is None else parsed.hosts,
                             cores_per_host=1 if parsed.cores is None else parsed.cores
                             ).problems())
    if problems:
        return _refuse('\n'.join(map(str, problems)))
    if not os.path.exists(parsed.script):
        return _refuse(f'cannot find the script {parsed.script!r}')
    from ..compat.install import install
    from ..compat.script import frames_of_script, run_script
    try:
        install(parsed.hosts, parsed.cores, parsed.ids)
    except (ConfigError, SetupError) as error:
        return _refuse(str(error))
    from ..runner import progress
    progress.send_announcements_to(_say)
    try:
        run_script(parsed.script, parsed.rest)
    except Exception as error:
        own = frames_of_script(error, parsed.script)
        sys.excepthook(type(error), error.with_traceback(own), own)
        return 1
    finally:
        _say(f'in all: {progress.totals()}')
    return 0


def _say(line: str) -> None:
    _to_stderr(f'[etpe] {line}')


def _refuse(reason: str) -> int:
    _to_stderr(f'etpe run: {reason}')
    return 2


def _to_stderr(line: str) -> None:
    if sys.stderr is not None:  # Else `print` would take standard output, which is the script's.
        print(line, file=sys.stderr, flush=True)
