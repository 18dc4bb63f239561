"""Reads and sets environment variables, and checks that the packages of the extra `cpu` are there.

Only `cluster/` reads environment variables too, for the processes that it starts.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping

from ..errors import Problem, SetupError

LEGACY_KERAS = 'TF_USE_LEGACY_KERAS'
LOG_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
PROTOBUF = 'PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION'
COLAB, COLAB_ADDRESS = 'COLAB_TPU_ADDR', 'emulated:8470'
PACKAGES = {  # module: what to install
    'tensorflow': 'tensorflow', 'tf_keras': 'tf-keras',
    'tensorflow_estimator': 'tf-estimator-nightly==2.16.0.dev2024012409', 'psutil': 'psutil>=6'}
FOR_CONTRIB = {'tf_slim': 'tf-slim==1.1.0'}
_OF_WORKERS = ('TF_TPU_GRACEFUL_SHUTDOWN_MODE', 'TF_TPU_WATCHDOG_TIMEOUT',
               'TPU_SPLIT_COMPILE_AND_EXECUTE')


def variables_without_effect() -> list[Problem]:
    """Returns a warning for each variable that is set and directs workers of a real TPU."""
    return [Problem('W462', name, 'it has no effect: there are no workers to direct here',
                    os.environ[name]) for name in _OF_WORKERS if name in os.environ]


def set_colab_address() -> bool:
    """Tells notebooks of Colab that there is a TPU; returns whether nobody had told them."""
    is_new = COLAB not in os.environ
    os.environ.setdefault(COLAB, COLAB_ADDRESS)
    return is_new


def prepare() -> None:
    """Checks the packages and selects Keras 2, before TensorFlow is imported.

    Raises:
      SetupError: if a package is missing, or TensorFlow was imported without the switch.
    """
    check_packages()
    use_legacy_keras()


def choose_protobuf_in_python() -> bool:
    """Lets processes to come take code of an old `protoc`, unless a protobuf was chosen before."""
    is_free = PROTOBUF not in os.environ
    os.environ.setdefault(PROTOBUF, 'python')
    return is_free


def of_plain_child(search: Callable[[list[str]], list[str]]) -> dict[str, str]:
    """Returns the variables of a process that has the Keras which TensorFlow selects by itself.

    `search` takes the entries of PYTHONPATH, and returns the entries for the process.
    """
    kept = {name: value for name, value in os.environ.items() if name != LEGACY_KERAS}
    if path := kept.pop('PYTHONPATH', ''):
        if entries := search(path.split(os.pathsep)):
            kept['PYTHONPATH'] = os.pathsep.join(entries)
    return kept


def wants_colours() -> bool:
    """Whether a terminal shows colours, and its user wants them (https://no-color.org)."""
    return os.environ.get('TERM', 'dumb') != 'dumb' and not os.environ.get('NO_COLOR')


def hide_facts_of_tensorflow() -> bool:
    """Hides the facts in the log of TensorFlow's C++, unless asked; returns whether it did."""
    os.environ.setdefault(LOG_LEVEL, '1')
    return os.environ[LOG_LEVEL] != '0'


def hide_warnings_of_tensorflow() -> None:
    """Limits the log of TensorFlow's C++ to errors, unless the user asked for more.

    For processes of a cluster: each warns again and again when a run of a session ends well, "Local
    rendezvous is aborting with status: ABORTED: Cleanup".
    """
    os.environ.setdefault(LOG_LEVEL, '2')


def check_packages(packages: Mapping[str, str] = PACKAGES) -> None:
    """Requires packages, by module what to install, without importing them.

    Raises:
      SetupError: with all missing packages.
    """
    missing = [package for module, package in packages.items()
               if importlib.util.find_spec(module) is None]
    if missing:
        raise SetupError(Problem(
            'E002', 'environment', f'{", ".join(packages)} must be importable',
            f'no {", ".join(missing)}', f'pip install {" ".join(missing)}'))


def use_legacy_keras() -> None:
    """Makes `tf.keras` lead to Keras 2, which estimators and TF1 layers need.

    TensorFlow reads the switch while it is imported, so the switch must be set before.

    Raises:
      SetupError: if TensorFlow was imported without the switch.
    """
    if os.environ.get(LEGACY_KERAS) in ('true', 'True', '1'):
        return
    if 'tensorflow' in sys.modules:
        raise SetupError(Problem(
            'E001', LEGACY_KERAS, 'it must be set to 1 before TensorFlow is first imported, '
            'since estimators need Keras 2', 'TensorFlow imported without it',
            'Import estimator_tpu_embedding and call install() before "import tensorflow", set '
            f'{LEGACY_KERAS}=1 in the environment, or start the script with "etpe run".'))
    os.environ[LEGACY_KERAS] = '1'
