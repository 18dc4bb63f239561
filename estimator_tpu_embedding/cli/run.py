"""`etpe run`: an unedited TPUEstimator script on an emulated TPU system."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..errors import ConfigError, EnvironmentProblem


def add_parser(commands: Any) -> None:
    """Adds the command to the parser of `etpe`."""
    parser = commands.add_parser(
        'run', help='run a TF1 TPUEstimator script, unedited',
        description='Runs a script as "python SCRIPT ARGS..." would, with the names in place '
        'that TensorFlow removed, on an emulated TPU system of H hosts with C cores each. With '
        'neither flag given the system has one core, or as many as the script\'s '
        'TPUConfig(num_shards=...) says. The exit status is that of the script.')
    parser.add_argument('--hosts', type=int, metavar='H', help='emulated TPU hosts')
    parser.add_argument('--cores', type=int, metavar='C', help='cores per host')
    parser.add_argument('script', metavar='SCRIPT')
    parser.add_argument('arguments', nargs=argparse.REMAINDER, metavar='ARGS',
                        help='handed to the script untouched')
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> int:
    """Runs the script; what the tool itself says goes to standard error."""
    if not os.path.isfile(parsed.script):
        return _refuse(f'cannot find the script {parsed.script!r}')
    from ..compat.install import install
    from ..compat.script import run_script
    try:
        install(parsed.hosts, parsed.cores)
    except (ConfigError, EnvironmentProblem) as error:
        return _refuse(str(error))
    from ..runner import progress
    progress.send_announcements_to(_say)
    try:
        run_script(parsed.script, parsed.arguments)
    finally:
        for report in progress.reports():
            _say(report.last_line())
    return 0


def _say(line: str) -> None:
    print(f'[etpe] {line}', file=sys.stderr, flush=True)


def _refuse(reason: str) -> int:
    print(f'etpe run: {reason}', file=sys.stderr)
    return 2
