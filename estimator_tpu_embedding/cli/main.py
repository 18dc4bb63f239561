"""The `etpe` command line: finds the command and runs it.

The module of a command is imported when the command is used.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from ..version import VERSION

COMMANDS = {
    'run': 'run a TF1 TPUEstimator script, unedited',
    'doctor': 'say what a folder of TF1 code needs to run, without running it',
    'worker': 'be a host of jobs of other machines, or show which workers answer',
    'inspect': 'show the tables and features of a config or checkpoint',
    'validate': 'find errors and doubtful choices in a config',
    'diff': 'compare two configs: can checkpoints of the first be restored with the second?',
    'size': 'bytes of each table and its slots',
    'plan': 'rows and bytes of each host, also for a topology that is not there yet',
    'checkpoint': 'list, show, compare and verify checkpoints, without TensorFlow',
    'migrate': 'take checkpoints to TF2 or TFRS and back, and declarations there',
    'explain': 'say what a code such as E412 means and what to do',
    'rules': 'list all codes',
    'docs': 'print the documentation, topic by topic'}
"""Name of each command and of its module, and a line of help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command, and returns its exit status.

    Args:
      arguments: words after the program's name; if it is `None`, the words of this process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((argument for argument in given if argument in COMMANDS), None)
    if arguments is None and chosen == 'doctor':
        _import_nothing_from([one for one in given if os.path.exists(one)])
    parser = argparse.ArgumentParser(
        prog='etpe', description='TF1 TPU-embedding jobs on plain CPU hosts.',
        epilog='Exit status of all commands but run: 0 clean, 1 findings or differences, 2 usage '
        'or unreadable input.', allow_abbrev=False)
    parser.add_argument('--version', action='version', version=f'etpe {VERSION}')
    commands = parser.add_subparsers(title='commands', required=True, metavar='COMMAND')
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line, allow_abbrev=False)
        if name == chosen:
            importlib.import_module(f'.{name}', __package__).configure(command)
    rest: list[str] = []
    if given[:1] == ['run']:
        from .run import split_at_script
        head, rest = split_at_script(given[1:])
        given = ['run', *head]
    elif given[:1] == ['--format'] and given[2:3] and given[2] == chosen:
        given = [*given[2:], *given[:2]]  # As people write it who know other tools.
    parsed, unknown = parser.parse_known_args(given, argparse.Namespace(rest=rest))
    if unknown:  # The parser of the command knows its usage; argparse would ask the first one.
        parsed.refuse(f'unrecognized arguments: {" ".join(unknown)}')
    return int(parsed.command(parsed))


def _import_nothing_from(scanned: Sequence[str]) -> None:
    """Keeps this process from running code that it is to read, which PYTHONPATH may name.

    The working directory is not searched either: `python -m` puts it first.
    """
    python = os.path.dirname(os.__file__)
    own = python, os.path.join(python, 'lib-dynload')
    sys.path.sort(key=lambda entry: entry not in own)  # Before anything else is imported.
    from ..doctor import libraries
    here = os.path.realpath('.')
    sys.path[:] = [entry for entry in libraries.outside(sys.path, scanned or ['.'])
                   if os.path.realpath(entry) != here]
