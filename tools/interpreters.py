"""Finds the Python interpreters of a machine by version, for the scripts beside this one."""

import os
import pathlib
import subprocess


def find(version: str) -> str | None:
    """Returns the path of an interpreter that really runs, or `None` if there is none.

    The places, in order: the variable `PYTHON312` (for version 3.12), `python3.12` in each folder
    of `PATH`, and the folder in which pyenv keeps its versions. A shim of pyenv does not run
    unless its version is selected, so each candidate is asked for its version.

    Args:
      version: major and minor, for example `'3.12'`.

    Raises:
      SystemExit: if the variable is set and names no interpreter of that version.
    """
    variable = f'PYTHON{version.replace(".", "")}'
    if named := os.environ.get(variable):
        if not _runs(named, version):
            raise SystemExit(f'{variable}={named} is no Python {version} that runs')
        return named
    folders = filter(None, os.environ.get('PATH', '').split(os.pathsep))
    pyenv = pathlib.Path(os.environ.get('PYENV_ROOT') or '~/.pyenv').expanduser()
    candidates = [*(pathlib.Path(folder, f'python{version}') for folder in folders),
                  *sorted(pyenv.glob(f'versions/{version}.*/bin/python'), reverse=True)]
    return next((str(path) for path in candidates if _runs(path, version)), None)


def _runs(path: str | os.PathLike[str], version: str) -> bool:
    try:
        done = subprocess.run([path, '--version'], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.startswith(f'Python {version}.')
