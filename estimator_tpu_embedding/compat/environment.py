"""The only reader and writer of environment variables."""

from __future__ import annotations

import importlib.util
import os
import sys

from ..errors import SetupError, Problem

LEGACY_KERAS = 'TF_USE_LEGACY_KERAS'
PACKAGES = {  # module: what to install
    'tensorflow': 'tensorflow', 'tf_keras': 'tf-keras',
    'tensorflow_estimator': 'tf-estimator-nightly==2.16.0.dev2024012409'}


def check_packages() -> None:
    """Makes sure that what the extra `cpu` installs is there; imports nothing.

    Raises:
      SetupError: with all that is not.
    """
    missing = [package for module, package in PACKAGES.items()
               if importlib.util.find_spec(module) is None]
    if missing:
        raise SetupError(Problem(
            'E002', 'environment', f'{", ".join(PACKAGES)} must be importable',
            f'no {", ".join(missing)}', f'pip install {" ".join(missing)}'))


def use_legacy_keras() -> None:
    """Makes `tf.keras` Keras 2, which estimators and TF1 layers need.

    TensorFlow reads the switch while it is imported, so this must come first.

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
