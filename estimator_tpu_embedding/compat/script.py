"""Runs a script as `python SCRIPT ARGS...` would."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from types import TracebackType


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Runs a script as `__main__`; its `sys.exit` and its errors pass through.

    Args:
      path: of the script.
      arguments: what follows it in `sys.argv`, untouched.
    """
    sys.argv[:] = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    runpy.run_path(path, run_name='__main__')


def frames_of_script(error: BaseException, path: str) -> TracebackType | None:
    """The traceback of an error from the first frame of the script on, as Python shows it."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != path:
        traceback = traceback.tb_next
    return traceback
