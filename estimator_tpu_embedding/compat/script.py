"""Runs a script as `python SCRIPT ARGS...` would."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Runs a script as `__main__`; its `sys.exit` and its errors pass through.

    Args:
      path: of the script.
      arguments: what follows it in `sys.argv`, untouched.
    """
    sys.argv[:] = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    runpy.run_path(path, run_name='__main__')
