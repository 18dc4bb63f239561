import numpy as np
import pytest
from harness.migrations import DENSE, KERNEL, OBJECTS, ROWS, USER, VALUE, config, map_of, tf1, tf2

MAP = 'dense/kernel -> net/w\n'
BACK = f'net/w -> dense/kernel\nuser -> {USER}\n'
M, V = (f'net/w/.OPTIMIZER_SLOT/optimizer/{slot}' for slot in 'mv')


@pytest.fixture
def both(tmp_path):
    """A checkpoint of TF1, `mod` on 3 hosts, and one of TF2 with the same values."""
    others = {name: value for name, value in DENSE.items() if name.startswith('dense/kernel')}
    return (tf1(tmp_path / 'a', strategy='mod', hosts=3, others=others, config=config(name='user')),
            tf2(tmp_path / 'b'))


def found(etpe, a, b, *arguments, status=1):
    """The kind of each difference by its name, and the notes."""
    report = etpe.json('checkpoint', 'diff', a, b, *arguments, status=status)
    return {one['name']: one['kind'] for one in report['differences']}, report['notes']


def test_tables_slots_step_and_dense_variables_are_paired_in_both_directions(etpe, tmp_path, both):
    a, b = both
    for pair, text in (((a, b), MAP), ((b, a), 'net/w -> dense/kernel'), ((b, a), BACK)):
        differences, notes = found(etpe, *pair, '--map', map_of(tmp_path, text), status=0)
        assert differences == {}
        assert notes == ['not compared: 3 tensors that only one API has, such as counters and '
                         'rates of TF2']
    assert 'no differences\n' in etpe(
        'checkpoint', 'diff', tmp_path / 'a', both[1], '--map', map_of(tmp_path, MAP))


def test_rows_that_differ_are_named_by_their_ids(etpe, tmp_path, both):
    rows = ROWS.copy()
    rows[[2, 5]] += 1
    prefix = tf2(tmp_path / 'c', **{'embedding/user': rows, V: KERNEL})
    report = etpe.json('checkpoint', 'diff', both[0], prefix, '--map', map_of(tmp_path, MAP),
                       status=1)
    assert [(one['name'], one['ids']) for one in report['differences']] == [
        ('dense/kernel/Adam_1', [[0, 20.0], [1, 20.0]]), (USER, [[2, 1.0], [5, 1.0]])]
    assert etpe.json('checkpoint', 'diff', prefix, both[0], '--map', map_of(tmp_path, BACK),
                     status=1)['differences'][0]['name'] == f'embedding/user{VALUE}'


def test_slots_and_tables_that_one_side_lacks_are_removed_or_added(etpe, tmp_path, both):
    a = both[0]
    objects = {path: value for path, value in OBJECTS.items() if '.S' not in path}
    prefix = tf2(tmp_path / 'c', {**objects, 'embedding/video': ROWS})
    differences, _ = found(etpe, a, prefix, '--map', map_of(tmp_path, MAP))
    assert differences == {f'{USER}/Adagrad': 'removed', f'embedding/video{VALUE}': 'added'}
    differences, _ = found(etpe, prefix, a, '--map', map_of(tmp_path, BACK))
    assert differences == {f'{USER}/Adagrad': 'added', f'embedding/video{VALUE}': 'removed'}


def test_slots_are_paired_whether_keras_or_the_tpuembedding_made_them(etpe, tmp_path, both):
    layer = 'model/layer/_tpu_embedding/user'
    prefix = tf2(tmp_path / 'c', {
        layer: ROWS, f'{layer}/.OPTIMIZER_SLOT/opt/accumulator': ROWS + 101,
        'opt/iter': np.int64(8)})
    arguments = ('--object-path', 'model/layer', '--optimizer-path', 'opt', '--map',
                 map_of(tmp_path, 'drop re dense/.*'))
    differences, notes = found(etpe, both[0], prefix, *arguments)
    assert differences == {f'{USER}/Adagrad': 'values', 'global_step': 'values'}
    assert notes[-1] == 'not compared: 3 tensors that the map drops'


def test_without_a_manifest_the_order_must_be_assumed_and_holds_for_tables_alone(etpe, tmp_path):
    others = {name: value for name, value in DENSE.items() if name.startswith('dense/kernel')}
    a = tf1(tmp_path / 'a', strategy='mod', hosts=3, others=others, manifest=False)
    arguments = ('checkpoint', 'diff', a, tf2(tmp_path / 'b'), '--map',
                 map_of(tmp_path, f'table {USER} -> user\n{MAP}'))
    assert 'E652' in etpe(*arguments, status=2)
    # The kernel and the table of TF2 are matrices too, and stay in their order.
    assert etpe.json(*arguments, '--assume', 'mod:3')['differences'] == []


def test_arguments_that_do_not_apply_are_refused(etpe, tmp_path, both):
    a, b = both
    for arguments, why in (
            ((a, b, '--rename', 'x=y'), '--rename: one of both is of TF2'),
            ((a, a, '--map', 'm'), '--map: both checkpoints are of one API'),
            ((b, b, '--object-path', 'm'), '--object-path: both'),
            ((a, a, '--optimizer-path', 'm'), '--optimizer-path: both'),
            ((a, b, '--object-path', 'x/../y'), '--object-path: parts')):
        assert why in etpe('checkpoint', 'diff', *arguments, status=2)
    assert 'E653' in etpe('checkpoint', 'diff', a, b, '--object-path', 'net/none', status=2)


def test_a_migrated_checkpoint_does_not_differ_from_its_source(etpe, tmp_path, both):
    a, _ = both
    path = map_of(tmp_path, MAP + f'{USER} -> other')
    for to in ('tf2', 'tfrs'):
        etpe('migrate', 'checkpoint', a, tmp_path / to, '--to', to, '--map', path)
        assert found(etpe, a, tmp_path / to, '--map', path, status=0)[0] == {}
