"""`etpe migrate`: takes checkpoints from TF1 to TF2, to TFRS, and back, and declarations there.

Its commands, and what their reports hold in JSON, are in `migrating/`.
"""

from __future__ import annotations

import argparse

from .migrating import check, checkpoint, config
from .report import as_group


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the commands to the parser."""
    parser.description = 'Takes a TPUEstimator job to TF2 or to the layer of TFRS, and back.'
    as_group(parser, {'checkpoint': checkpoint, 'config': config, 'check': check})
