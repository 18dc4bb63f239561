"""Checkpoints of TFRS's layer pass between emulated TPUs and stock TFRS, bit for bit."""

import pytest
import tensorflow as tf
from harness import replicas
from harness import tfrs_models as models
from harness.processes import run_harness

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures('tfrs_names')]

CASES = [*((kind, 'subclassed', 'tpu 2') for kind in models.KINDS),
         ('adam', 'subclassed', 'tpu 8'), ('own adagrad', 'subclassed', 'tpu 1'),
         ('adagrad', 'functional', 'tpu 2'), ('ftrl', 'functional', 'tpu 8'),
         ('own adam', 'functional', 'tpu 1')]
SLOTS = {'sgd': [], 'adagrad': ['accumulator'], 'adam': ['m', 'v'],
         'ftrl': ['accumulator', 'linear'], 'own adagrad': ['accumulators'],
         'own adam': ['momenta', 'velocities'], 'own ftrl': ['accumulators', 'linears']}


def make(kind, shape, strategy, **kwargs):
    """(strategy, model, optimizer), new."""
    made = replicas.make(strategy)
    with replicas.scope(made):
        return made, *models.make(kind, shape == 'functional', **kwargs)


def trained(kind, shape, strategy, steps=2, **kwargs):
    made, model, optimizer = make(kind, shape, strategy, **kwargs)
    step = models.trainer(model, optimizer, made)
    for number in range(steps):
        step(number)
    return made, model, optimizer


def keys(path):
    return [key.replace('/.ATTRIBUTES/VARIABLE_VALUE', '')
            for key, _ in tf.train.list_variables(str(path))]


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """A folder for each case: our checkpoints, and those of stock TFRS, which restored ours."""
    folder = tmp_path_factory.mktemp('cases')
    for case in CASES:
        own = folder / ', '.join(case)
        own.mkdir()
        models.save(own, *trained(*case)[1:])
    ended = run_harness('tfrs_models', 'restore', folder, TF_USE_LEGACY_KERAS='1')
    assert ended.returncode == 0
    return folder


def test_stock_tfrs_takes_what_is_saved_under_an_emulated_tpu(saved):
    """The process that restored and compared has ended well for each case."""
    assert all((saved / ', '.join(case) / 'stock' / 'values.npz').exists() for case in CASES)


@pytest.mark.parametrize('kind', models.KINDS)
def test_every_table_and_slot_has_the_one_key_of_stock_tfrs(kind, saved):
    case = saved / f'{kind}, subclassed, tpu 2'
    found, table = keys(case / 'both'), 'model/embedding/_tpu_embedding/'
    assert found == keys(case / 'stock' / 'both')
    joint = '.S' if kind.startswith('own') else '/.OPTIMIZER_SLOT/optimizer/'
    assert {key for key in found if key.startswith(table)} == {
        f'{table}{name}{end}' for name in models.ROWS
        for end in ['', *(f'{joint}{slot}' for slot in SLOTS[kind])]}


@pytest.mark.parametrize('form', ['both', 'model', 'weights'])
@pytest.mark.parametrize('case', [case for case in CASES if case[1] == 'functional'])
def test_compiled_models_have_the_keys_of_stock_tfrs(case, form, saved):
    folder = saved / ', '.join(case)
    assert keys(folder / form) == keys(folder / 'stock' / form)


@pytest.mark.parametrize('case', CASES)
def test_an_emulated_tpu_takes_what_stock_tfrs_saves(case, saved):
    folder = saved / ', '.join(case) / 'stock'
    for index in sorted(folder.glob('*.index')):
        made, model, optimizer = make(*case)
        status = models.restore(str(index.with_suffix('')), model, optimizer)
        models.build(model, optimizer, made)  # Restored before there are tables and slots.
        models.require_restored(folder, status, model)


def test_a_job_with_a_layer_that_is_killed_comes_to_the_same_end(tmp_path):
    done = run_harness('tf2_kill_job', tmp_path)
    assert done.returncode == 0 and done.stdout.endswith('equal bit for bit\n')
