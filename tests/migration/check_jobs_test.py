"""The census job is the same job after its migration, in each of its new forms."""

import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from harness.processes import EXAMPLE, run_etpe

EXAMPLES = EXAMPLE.parent
VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'
OPTIONS = {
    'tf2': ('--to', 'tf2', '--map', EXAMPLES / 'census_migrated_tf2.map'),
    'tfrs': ('--to', 'tfrs', '--map', EXAMPLES / 'census_migrated_tfrs.map',
             '--object-path', 'model/layer_with_weights-0', '--slots', 'midlevel',
             '--optimizer-path', 'model/optimizer')}
NEW = {'tf2': 'new', 'tfrs': 'new_keras'}
FIRST_LAYER = {'tf2': 0, 'tfrs': 1}
OPTIMIZER = {'tf2': 'optimizer', 'tfrs': 'model/optimizer'}

pytestmark = pytest.mark.soak


def run(script, model_dir, *arguments):
    """What a script prints."""
    done = run_etpe('run', *arguments[:-1], EXAMPLES / script, f'--model_dir={model_dir}',
                    '--eval_batch_size=512', *arguments[-1:], loaded=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def accuracy_at_600(printed):
    return float(re.search(r'^step 600: accuracy ([\d.]+)', printed, re.MULTILINE)[1])


@pytest.fixture(scope='module')
def at_300(tmp_path_factory):
    """The model_dir of the old job after 300 steps."""
    model_dir = tmp_path_factory.mktemp('old')
    run(EXAMPLE.name, model_dir, '--steps', 300, '--train_steps=300')
    for path in model_dir.glob('model.ckpt-450*'):  # Of the second training in the script.
        path.unlink()
    return model_dir


@pytest.fixture(scope='module')
def old(at_300, tmp_path_factory):
    """The accuracy of the old job at step 600, and its checkpoint of step 320."""
    model_dirs = [tmp_path_factory.mktemp('old') / 'on' for _ in range(2)]
    for model_dir in model_dirs:
        shutil.copytree(at_300, model_dir)
    run(EXAMPLE.name, model_dirs[0], '--steps', 20, '--train_steps=600')
    printed = run(EXAMPLE.name, model_dirs[1], '--steps', 300, '--train_steps=600')
    return accuracy_at_600(printed), tf.train.load_checkpoint(str(model_dirs[0] / 'model.ckpt-320'))


@pytest.fixture
def migrated(at_300, tmp_path):
    """Migrates the checkpoint of step 300 and returns its directory."""
    def migrated(form, name):
        done = run_etpe('migrate', 'checkpoint', at_300 / 'model.ckpt-300', tmp_path / name,
                        *OPTIONS[form], loaded=True)
        assert done.returncode == 0, done.stderr
        return tmp_path / name
    return migrated


@pytest.mark.parametrize('form, system', [('tf2', ()), ('tfrs', ('--hosts', 2, '--cores', 2))])
def test_the_check_of_20_steps_finds_the_same_job(at_300, migrated, form, system):
    done = run_etpe(
        'migrate', 'check', 'py:census_sides:old', f'py:census_sides:{NEW[form]}',
        '--checkpoint', at_300 / 'model.ckpt-300', '--checkpoint-b', migrated(form, 'b'),
        '--map', EXAMPLES / f'census_migrated_{form}.map', '--steps', 20, *system, cwd=EXAMPLES)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.endswith('the same job: 20 steps equal up to 1e-05\n')
    assert 'not compared' not in done.stdout, done.stdout


@pytest.mark.parametrize('form', OPTIONS)
def test_a_migrated_job_goes_on_as_the_old_job_does(old, migrated, form):
    accuracy, before = old
    script = f'census_migrated_{form}.py'
    folder = migrated(form, 'short')
    run(script, folder, '--train_steps=320')
    after = tf.train.load_checkpoint(str(folder / 'ckpt-320'))
    for layer, name in enumerate(('dense', 'dense_1', 'dense_2')):
        for part in ('kernel', 'bias'):
            key = f'model/layer_with_weights-{FIRST_LAYER[form] + layer}/{part}'
            for slot, own in (('', ''), ('/Adam', 'm'), ('/Adam_1', 'v')):
                own = own and f'/.OPTIMIZER_SLOT/{OPTIMIZER[form]}/{own}'
                np.testing.assert_allclose(
                    after.get_tensor(f'{key}{own}{VALUE}'),
                    before.get_tensor(f'{name}/{part}{slot}'), atol=1e-5)
    assert after.get_tensor(f'{OPTIMIZER[form]}/iter{VALUE}') == 320
    printed = run(script, migrated(form, 'long'), '--train_steps=600')
    assert abs(accuracy_at_600(printed) - accuracy) <= .002
    assert accuracy > .84  # .76 is no skill.
