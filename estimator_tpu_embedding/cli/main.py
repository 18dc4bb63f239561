"""The `etpe` command line: finds the command and runs it.

The module of a command has its name: `etpe checkpoint ls` is in `etpe_checkpoint_ls.py`. It is
imported when the command is used, and its head is the text of `--help`.
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
    'report': 'make a page about runs from their model_dirs',
    'checkpoint': 'list, show, compare and verify checkpoints, without TensorFlow',
    'checkpoint ls': 'list the checkpoints in a directory',
    'checkpoint show': 'show the tables and variables of a checkpoint',
    'checkpoint diff': 'compare two checkpoints, row by row in the order of ids',
    'checkpoint verify': 'read all of a checkpoint, or of all in a directory, and say what is '
                         'damaged',
    'checkpoint export': 'write the rows of tables into npy, safetensors or parquet files',
    'checkpoint import': 'make a checkpoint of rows in npy, safetensors or parquet files',
    'migrate': 'take checkpoints to TF2 or TFRS and back, and declarations there',
    'migrate checkpoint': 'take a checkpoint to TF2 or TFRS, or back, and compare every row',
    'migrate config': 'write the declaration of a job as source for TF2 or TFRS, or as a config',
    'migrate check': 'train the old job and the new one from the same rows, and compare what they '
                     'save',
    'explain': 'say what a code such as E412 means and what to do, or list all codes',
    'docs': 'print the documentation, topic by topic'}
"""Name of each command and a line of help."""

GROUPS = {
    'checkpoint': 'Reads checkpoints of this package and of TensorFlow. PATH is a model_dir or a '
                  'checkpoint such as model_dir/model.ckpt-7. A model_dir means the one that a '
                  'job would restore.',
    'migrate': 'Takes a TPUEstimator job to TF2 or to the layer of TFRS, and back.'}
"""Descriptions of the commands that only have others below them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, by these words or else by those of the process; returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((argument for argument in given if argument in COMMANDS), None)
    if arguments is None and chosen == 'doctor':
        _import_nothing_from([one for one in given if os.path.exists(one)])
    parser = parser_of(chosen)
    rest: list[str] = []
    if given[:1] == ['run']:
        from .etpe_run import split_at_script
        head, rest = split_at_script(given[1:])
        given = ['run', *head]
    parsed, unknown = parser.parse_known_args(given, argparse.Namespace(rest=rest))
    if unknown:  # The parser of the command knows its usage; argparse would ask the first one.
        parsed.refuse(f'unrecognized arguments: {" ".join(unknown)}')
    return int(parsed.command(parsed))


def parser_of(chosen: str | None) -> argparse.ArgumentParser:
    """Returns the parser of all commands, in which only the chosen one has arguments."""
    parser = argparse.ArgumentParser(
        prog='etpe', description='TF1 TPU-embedding jobs on plain CPU hosts.',
        epilog='Exit status of all commands but run: 0 clean, 1 findings or differences, 2 usage '
        'or unreadable input.', allow_abbrev=False)
    parser.add_argument('--version', action='version', version=f'etpe {VERSION}')
    below = {'': parser.add_subparsers(title='commands', required=True, metavar='COMMAND')}
    for name, line in COMMANDS.items():
        group, _, word = name.rpartition(' ')
        command = below[group].add_parser(word, help=line, allow_abbrev=False)
        if name in GROUPS:
            command.description = GROUPS[name]
            below[name] = command.add_subparsers(title='commands', required=True, metavar='COMMAND')
        elif chosen in (name, group):
            module = importlib.import_module(f'.etpe_{name.replace(" ", "_")}', __package__)
            command.description = module.__doc__
            module.configure(command)
    return parser


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
