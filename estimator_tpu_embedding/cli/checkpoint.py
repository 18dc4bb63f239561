"""`etpe checkpoint`: shows, compares, verifies, exports and imports checkpoints without TensorFlow.

Its commands, and what their reports hold in JSON, are in `stored/`.
"""

from __future__ import annotations

import argparse

from .report import as_command
from .stored import diff, export, import_rows, ls, show, verify

_COMMANDS = {'ls': ls, 'show': show, 'diff': diff, 'verify': verify, 'export': export,
             'import': import_rows}
_REPORT_FLAGS = {'export': '--report'}
"""How a command calls the form of its report, where `--format` is that of the files."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the commands to the parser."""
    parser.description = (
        'Reads checkpoints of this package and of TensorFlow. PATH is a model_dir or a checkpoint '
        'such as model_dir/model.ckpt-7. A model_dir means the one that a job would restore.')
    commands = parser.add_subparsers(title='commands', required=True, metavar='COMMAND')
    for name, module in _COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, allow_abbrev=False)
        module.configure(command)
        as_command(command, module.report, flag=_REPORT_FLAGS.get(name, '--format'))
