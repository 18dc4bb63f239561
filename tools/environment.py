"""Makes a virtual environment for the scripts beside this one, and installs this checkout there."""

import pathlib
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIRECTORY = '.venv'
"""The environment of most scripts, at the top of the checkout."""


def ensure(*extras: str, directory: str = DIRECTORY) -> pathlib.Path:
    """Makes the environment if it is not there, and installs this checkout into it.

    Args:
      *extras: of setup.cfg, for example `'cpu'`.
      directory: the environment, seen from the top of the checkout.

    Returns:
      The environment's folder `bin`.
    """
    if sys.version_info < (3, 11):
        sys.exit(f'Python 3.11 or newer is needed; this is {sys.version.split()[0]}.')
    binaries = ROOT / directory / 'bin'
    is_new = not (binaries / 'python').exists()
    if is_new:
        print(f'making {directory} ...', flush=True)
        venv.create(ROOT / directory, with_pip=True)
    print('installing ...', flush=True)
    # What an earlier installation built holds modules that are elsewhere, or gone, by now.
    shutil.rmtree(ROOT / 'build', ignore_errors=True)
    pip = [str(binaries / 'python'), '-m', 'pip', '--disable-pip-version-check', 'install', '-q']
    run([*pip, f'{ROOT}[{",".join(extras)}]'])
    if not is_new:
        # The version alone would let pip keep an older state of this checkout.
        run([*pip, '--force-reinstall', '--no-deps', str(ROOT)])
    return binaries


def run(command: list[str], **kwargs: object) -> None:
    """Runs a command; ends this process with its status if it fails."""
    status = subprocess.run(command, **kwargs).returncode  # type: ignore[call-overload]
    if status:
        sys.exit(status)
