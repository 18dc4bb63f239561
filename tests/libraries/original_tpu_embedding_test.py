"""The `tpu_embedding` of TensorFlow 2.15 trains on our kernels of its operations."""

import pathlib
import venv

import numpy as np
import pytest
from harness import groups
from harness.processes import run_etpe

from estimator_tpu_embedding.native import library

JOB = pathlib.Path(__file__).resolve().parent / 'jobs' / 'tpu_embedding_job.py'


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_original_gives_the_bits_of_ours(tmp_path):
    """Ten optimizers; each with ids, weighted ids and a sequence; two processes, two TensorFlows.
    """
    library.load()
    venv.create(tmp_path / 'venv', with_pip=True)
    python = tmp_path / 'venv' / 'bin' / 'python'
    for command in (['-m', 'pip', 'install', '--quiet', 'tensorflow-cpu==2.15.1'],
                    [JOB, tmp_path / 'original.npz', library.PATH]):
        assert groups.run([str(one) for one in (python, *command)], deadline=900).returncode == 0
    run_etpe('run', JOB, tmp_path / 'ours.npz')
    original, ours = np.load(tmp_path / 'original.npz'), np.load(tmp_path / 'ours.npz')
    assert set(original) == set(ours) and len(ours) == 25  # The loss, ten tables and 14 slots.
    for name, values in original.items():
        np.testing.assert_array_equal(values, ours[name], name)
