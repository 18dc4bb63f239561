"""`etpe migrate config`."""

from __future__ import annotations

import argparse

from ..report import Report

HELP = 'config'


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""


def report(parsed: argparse.Namespace) -> Report:
    """Returns the report."""
    raise NotImplementedError
