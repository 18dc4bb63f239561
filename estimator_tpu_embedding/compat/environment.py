"""The only reader and writer of environment variables."""

from __future__ import annotations

import os
import sys

from ..errors import EnvironmentProblem, Problem

LEGACY_KERAS = 'TF_USE_LEGACY_KERAS'


def use_legacy_keras() -> None:
    """Makes `tf.keras` Keras 2, which estimators and TF1 layers need.

    TensorFlow reads the switch while it is imported, so this must come first.

    Raises:
      EnvironmentProblem: if TensorFlow was imported without the switch.
    """
    if os.environ.get(LEGACY_KERAS) in ('true', 'True', '1'):
        return
    if 'tensorflow' in sys.modules:
        raise EnvironmentProblem(Problem(
            'E001', LEGACY_KERAS, 'it must be set to 1 before TensorFlow is first imported, '
            'since estimators need Keras 2', 'TensorFlow imported without it',
            'Import estimator_tpu_embedding and call install() before "import tensorflow", set '
            f'{LEGACY_KERAS}=1 in the environment, or start the script with "etpe run".'))
    os.environ[LEGACY_KERAS] = '1'
