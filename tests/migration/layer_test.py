"""What is migrated is loaded by models with TFRS's layer, and comes back from them."""

import numpy as np
import pytest
from harness import migrated_checkpoints as migrated
from harness import replicas, tf1_tables, tfrs, tfrs_migrated, tfrs_models
from harness.parts import soak_except
from harness.processes import run_harness

LINES = 'table user -> user\ntable video -> video\n'
DENSE = {'subclassed': 're dense/(.*) -> model/dense/\\1',
         'functional': 're dense/(.*) -> model/layer_with_weights-1/\\1',
         'model': 're dense/(.*) -> model/layer_with_weights-1/\\1',
         'weights': 're dense/(.*) -> layer_with_weights-1/\\1'}
PATHS = {'subclassed': ('model/embedding', 'optimizer'),
         'functional': ('model/layer_with_weights-0', 'optimizer'),
         'model': ('model/layer_with_weights-0', 'model/optimizer'),
         'weights': ('layer_with_weights-0', 'optimizer')}


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


def migrate(case, folder):
    """Writes a case as `tfrs_migrated` reads it, and returns its folder."""
    kind, form = case.split(', ')
    path, optimizer_path = PATHS[form]
    source = migrated.write_tf1(folder / 'from' / case, tfrs_migrated.tensors(kind))
    migrated.migrate(
        source, folder / 'cases' / case / 'to', 'tfrs', '--assume', 'mod:2', '--object-path', path,
        '--optimizer-path', optimizer_path, '--slots',
        'midlevel' if kind.startswith('own') else 'keras', lines=LINES + DENSE[form])
    return folder / 'cases' / case


@pytest.mark.parametrize('case', soak_except(
    tfrs_migrated.CASES, tfrs_migrated.CASES.index('adagrad, subclassed')))
def test_an_emulated_tpu_has_all_values_before_and_after_build(case, tmp_path):
    folder = migrate(case, tmp_path)
    for built in False, True:
        with replicas.scope(replicas.make('tpu 2')):
            tfrs_migrated.require_values(folder, built, replicas.make('tpu 2'))


@pytest.fixture(scope='module')
def stock(tmp_path_factory):
    """All cases, which stock TFRS on a CPU has loaded, trained on and saved."""
    folder = tmp_path_factory.mktemp('stock')
    for case in tfrs_migrated.CASES:
        migrate(case, folder)
    ended = run_harness('tfrs_migrated', folder / 'cases', TF_USE_LEGACY_KERAS='1')
    assert ended.returncode == 0
    return folder / 'cases'


@pytest.mark.soak
def test_stock_tfrs_has_all_values_before_and_after_build(stock):
    """The process that compared them has ended well for each case."""
    assert all((stock / case / 'trained' / 'values.npz').exists()
               for case in tfrs_migrated.CASES)


@pytest.mark.soak
@pytest.mark.parametrize('case', tfrs_migrated.CASES)
def test_what_stock_tfrs_has_trained_comes_back_to_tf1(case, stock, tmp_path):
    kind, form = case.split(', ')
    path, optimizer_path = PATHS[form]
    name = {'model': 'model', 'weights': 'weights'}.get(form, 'both')
    found = migrated.bytes_of(migrated.migrate(
        stock / case / 'trained' / name, tmp_path / 'back', 'tf1', '--object-path', path,
        '--optimizer-path', optimizer_path, '--order', 'mod:3', '--step', '8',
        lines=f're {DENSE[form].rpartition(" ")[2][:-3]}/(.*) -> dense/\\1'))
    with np.load(stock / case / 'trained' / 'values.npz') as values:
        of_tables, of_dense = tfrs_migrated.slots_of(kind)
        assert found.keys() == {
            'global_step', *(f'{table}{end}' for table in tfrs_models.ROWS
                             for end in ['', *(f'/{one}' for one in of_tables)]),
            *(f'{dense}{end}' for dense in tfrs_migrated.DENSE
              for end in ['', *(f'/{one}' for one in of_dense)])}
        assert found['global_step'][2] == np.int64(8).tobytes()
        for table, rows in tfrs_models.ROWS.items():
            ids = np.concatenate([tf1_tables.ids_on(host, 3, 'mod', rows) for host in range(3)])
            assert found[table][2] == values[table][ids].tobytes()
            for suffix in of_tables:
                slot = tf1_tables.SLOTS[suffix]
                assert found[f'{table}/{suffix}'][2] == values[f'{table}/{slot}'][ids].tobytes()
        assert found['dense/kernel'][2] == values['dense/kernel'].tobytes()
