"""`etpe checkpoint`: shows, compares, verifies, exports and imports checkpoints without TensorFlow.

Its commands, and what their reports hold in JSON, are in `stored/`.
"""

from __future__ import annotations

import argparse

from .report import as_group
from .stored import diff, directory, export, import_rows, show, verify


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the commands to the parser."""
    parser.description = (
        'Reads checkpoints of this package and of TensorFlow. PATH is a model_dir or a checkpoint '
        'such as model_dir/model.ckpt-7. A model_dir means the one that a job would restore.')
    as_group(parser, {'ls': directory, 'show': show, 'diff': diff, 'verify': verify,
                      'export': export, 'import': import_rows},
             export='--report')  # Its --format is of the files.
