"""Libraries of Estimator's time, from the package index as they are, train under `etpe run`."""

import pathlib

import pytest
from harness.processes import path_with, run_etpe, run_python

JOBS = pathlib.Path(__file__).resolve().parent / 'jobs'
LIBRARIES = {  # job: its last line, flags of `etpe run`, and packages
    'adanet': ('trained 10', (), ('adanet==0.9.0',)),
    'deepctr': ('trained 5', (), ('deepctr==0.9.4',)),
    'opennmt': ('imported SequenceToSequence', ('--tf1', '--contrib'), (
        'OpenNMT-tf==1.25.3', 'PyYAML')),
    'tensorflow_addons': ('trained 4', (), ('tensorflow-addons==0.23.0', 'typeguard==2.13.3')),
    'tensorflow_gan': ('trained 3 3', (), (
        'tensorflow-gan==2.1.0', 'tensorflow-probability==0.25.0', 'tensorflow-hub==0.16.1',
        'cloudpickle', 'decorator', 'dm-tree', 'setuptools==75.8.0')),  # It had pkg_resources.
    'tensorflow_ranking': ('trained 5', (), ('tensorflow-ranking==0.5.5',)),
    'tf_slim': ('trained 5', (), ('tf-slim==1.1.0',))}


@pytest.mark.soak
@pytest.mark.parametrize('name', LIBRARIES)
def test_it_runs_unmodified(name, tmp_path):
    last, flags, packages = LIBRARIES[name]
    got = run_python('-m', 'pip', 'install', '--quiet', '--no-deps', '--target', tmp_path / 'lib',
                     *packages)
    assert got.returncode == 0, f'the package index did not give {name}: {got.stderr[-2000:]}'
    done = run_etpe('run', *flags, JOBS / f'{name}_job.py', PYTHONPATH=path_with(tmp_path / 'lib'))
    assert done.stdout.splitlines()[-1:] == [last]
    assert done.returncode == 0
