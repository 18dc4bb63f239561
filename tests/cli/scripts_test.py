"""Scripts in the styles of their time run as they are: `tests/scripts` under `etpe run`."""

import functools
import re

import pytest
from harness.parts import soak_except
from harness.processes import ROOT, path_with, run_etpe

SCRIPTS = ROOT / 'tests' / 'scripts'
STATUS = {'package': 3}
SHORT = 'absl flags', 'package', 'address of a TPU', 'notebook'
COMMANDS = {  # name: (arguments of `etpe run`, what is printed)
    'absl flags': (['--hosts', 2, '--cores', 2, SCRIPTS / 'absl_flags.py', '--model_dir=DIR'],
                   r"step 6, metrics \['accuracy', 'global_step', 'loss'\], 16 rows"),
    'absl flags, without a TPU': (
        ['--steps', 3, SCRIPTS / 'absl_flags.py', '--model_dir=DIR', '--use_tpu=false'],
        r"step 3, metrics \['accuracy', 'global_step', 'loss'\], 32 rows"),
    'argparse, files beside': ([SCRIPTS / 'beside' / 'job.py', '--steps', 5],
                               r"step 5, metrics \['global_step', 'loss', 'mae'\]"),
    'private modules': ([SCRIPTS / 'private_modules.py'],
                        r'trained rows \[0, 1, 7, 8, 9\]'),
    'package': (['-m', 'trainer.task', '--job-dir', 'DIR', '--width=3'],
                'package trainer, 3 loops, loss falls: True'),
    'canned': ([SCRIPTS / 'canned.py'],
               r'linear 1\.0\nnetwork stopped early: True, exported: True'),
    'address of a TPU': (
        ['--cores', 8, '--steps', 7, SCRIPTS / 'tpu_address.py', '--model_dir=DIR'],
        r'mesh \[8, 1, 1, 1\], host summaries: 1'),
    'queues and Keras': ([SCRIPTS / 'queues_and_keras.py'],
                         r'slope 2\.0 after 50 batches\nkeras step 5'),
    'notebook': ([SCRIPTS / 'colab.ipynb'],
                 r'!not a magic, part of a string 3\.25\n__main__ 3')}


@pytest.fixture(scope='module')
def done(tmp_path_factory):
    """`done(name)` is the completed process of a script, which runs once."""
    @functools.cache
    def run(name):
        directory = tmp_path_factory.mktemp('model')
        arguments = [str(one).replace('DIR', str(directory)) for one in COMMANDS[name][0]]
        return run_etpe('run', *arguments, PYTHONPATH=path_with(SCRIPTS), loaded=True)

    return run


@pytest.mark.parametrize('name', soak_except(COMMANDS, *map(list(COMMANDS).index, SHORT)))
def test_a_script_runs_as_it_is(done, name):
    assert done(name).returncode == STATUS.get(name, 0), done(name).stderr[-4000:]
    assert re.fullmatch(COMMANDS[name][1] + '\n', done(name).stdout), done(name).stdout


def test_an_address_of_a_tpu_finds_the_emulated_system(done):
    said = [line for line in done('address of a TPU').stderr.splitlines()
            if line.startswith('[etpe] ')]
    assert said[0] == ("[etpe] TPUClusterResolver('grpc://10.240.1.2:8470') finds the emulated "
                       'system: no TPU is asked')
    assert said[2].startswith('[etpe] train: 7 steps, ')  # of the 1000 that it asks for
