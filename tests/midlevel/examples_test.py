"""The examples with the Keras layer of TFRS run unedited, and their results are right."""

import re

import numpy as np
import pytest
import tensorflow as tf
from harness.processes import EXAMPLE, run_etpe, run_python

pytestmark = pytest.mark.soak

EXAMPLES = EXAMPLE.parent
VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'
TABLES = {  # name in the job of TensorFlow 1: key in the checkpoint of the Keras model
    f'dense_features{suffix}/sparse_feature_{word}_embedding/embedding_weights':
        f'model/layer_with_weights-0/_tpu_embedding/sparse_feature_{word}_table'
    for word, suffix in (('a', ''), ('b', '_1'))}
DENSE = {f'dense{suffix}/{name}': f'model/layer_with_weights-{place}/{name}'
         for place, suffix in ((1, ''), (2, '_1')) for name in ('kernel', 'bias')}


def run(script, model_dir, *arguments):
    """What a script prints on 2 hosts of 2 cores."""
    done = run_etpe('run', '--hosts', 2, '--cores', 2, EXAMPLES / script,
                    f'--model_dir={model_dir}', *arguments, loaded=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope='module')
def halves(tmp_path_factory):
    """What both halves of the migration print, and their checkpoints, after two epochs."""
    found = []
    for script in ('migrate_from_embedding_columns.py', 'migrate_to_embedding_layer.py'):
        folder = tmp_path_factory.mktemp('model')
        printed = run(script, folder, '--epochs=2')
        found.append((printed, tf.train.load_checkpoint(str(folder))))
    return found


def evaluations(printed):
    """The step, loss and accuracy of each evaluation."""
    return [tuple(map(float, numbers)) for numbers in re.findall(
        r'^step (\d+): loss ([\d.]+), accuracy ([\d.]+)$', printed, re.MULTILINE)]


def test_both_halves_of_a_migration_evaluate_alike_while_they_learn(halves):
    before, after = [evaluations(printed) for printed, _ in halves]
    assert [step for step, _, _ in before] == [100, 200]
    np.testing.assert_allclose(after, before, atol=1e-3)  # One row of 1600 is 6e-4.
    np.testing.assert_allclose([loss for _, loss, _ in after], [loss for _, loss, _ in before],
                               atol=5e-5)
    (_, first, _), (_, last, accuracy) = after
    assert last < .3 < .4 < first < .69  # .69 is no skill.
    assert accuracy > .88


@pytest.mark.parametrize('name, key', [*TABLES.items(), *DENSE.items()])
def test_both_halves_of_a_migration_train_each_variable_alike(halves, name, key):
    before, after = [checkpoint for _, checkpoint in halves]
    value = before.get_tensor(name)
    assert np.ptp(value, axis=0).max() > .1 or value.size == 1  # It was trained.
    np.testing.assert_allclose(after.get_tensor(key + VALUE), value, atol=2e-5)
    slot = f'{key}/.OPTIMIZER_SLOT/model/optimizer/accumulator{VALUE}'
    accumulators = before.get_tensor(f'{name}/Adagrad')
    assert accumulators.max() > .01
    np.testing.assert_allclose(after.get_tensor(slot), accumulators, atol=2e-5)


def test_a_ranking_model_learns_the_census_and_plain_tensorflow_serves_it(tmp_path):
    printed = run('census_dlrm_tfrs.py', tmp_path)
    accuracy, auc = map(float, re.search(
        r'step 600: accuracy ([\d.]+), auc ([\d.]+)', printed).groups())
    assert accuracy > .84 and auc > .9  # .76 and .5 are no skill.
    assert '6144 of 6144 as predicted before; a single row: True' in printed
    served = re.search(r'served 6513 rows, accuracy ([\d.]+)', printed)[1]
    assert float(served) == pytest.approx(accuracy, abs=.005)  # 369 rows more
    plain = run_python(EXAMPLES / 'serve_census.py', tmp_path / 'export')
    assert re.fullmatch(rf'served 6513 rows, mean probability 0\.2\d+, accuracy {served}\n',
                        plain.stdout), plain.stdout
