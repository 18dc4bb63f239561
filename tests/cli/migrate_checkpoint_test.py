import os

import numpy as np
import pytest
from harness.migrations import DENSE, ROWS, USER, config, map_of, tf1, tf2

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.errors import CheckpointWriteError
from estimator_tpu_embedding.migration import map_file

MAP = f'{USER} -> user\ndense/kernel -> net/w\ndense/bias -> net/b\n'


def content(prefix):
    """The type and bytes of each tensor."""
    bundle = Bundle.open(str(prefix))
    return {name: (one.kind, one.shape, bundle.read(name, 0, one.rows).tobytes())
            for name, one in bundle.tensors.items() if one.code}


def test_a_dry_run_has_a_line_for_each_tensor_and_writes_nothing(etpe, tmp_path):
    prefix = tf1(tmp_path / 'a', strategy='mod', hosts=3, slots={'Momentum': ROWS})
    said = etpe('migrate', 'checkpoint', prefix, tmp_path / 'b', '--to', 'tf2', '--map',
                map_of(tmp_path, MAP + 'drop beta1_power'), '--drop-slots', '--dry-run')
    lines = [line.split() for line in said.splitlines()]
    assert lines[:2] == [
        ['tensor', 'becomes', 'type', 'shape', 'new', 'order', 'of', 'rows'],
        [USER, 'embedding/user', 'float32', '[7,', '2]', 'mod:3', '->', 'ids']]
    assert ['dense/kernel/Adam', 'net/w/.OPTIMIZER_SLOT/optimizer/m', 'float32', '[2,', '3]'
            ] in lines
    assert ['global_step', 'optimizer/iter', 'int64', '[]'] in lines
    assert [f'{USER}/Momentum', *'--to tf2 has no place for it'.split()] in lines
    assert ['beta1_power', 'dropped', 'by'] in [line[:3] for line in lines]
    assert said.endswith(f'dry run: 148 B would go to {tmp_path}/b/ckpt-7\n')
    assert sorted(os.listdir(tmp_path)) == ['a', 'map']


def test_programs_get_every_tensor_of_a_plan(etpe, tmp_path):
    prefix = tf1(tmp_path / 'a', strategy='mod')
    found = etpe.json('migrate', 'checkpoint', prefix, tmp_path / 'b', '--to', 'tf2', '--map',
                      map_of(tmp_path, MAP), '--dry-run')
    assert len(found['moves']) == 8 and found['rows'] is None and found['map'] is None
    assert {'from': f'{USER}/Adagrad', 'to': 'embedding/user.Saccumulators/.ATTRIBUTES/'
            'VARIABLE_VALUE', 'kind': 'float32', 'shape': [7, 2], 'before': 'mod:2', 'after': 'ids',
            'reordered': True} in found['moves']
    assert (found['unnamed'], found['left_out'], found['made']) == ([], [], [])


def test_a_migration_counts_the_rows_that_it_compared(etpe, tmp_path):
    prefix = tf1(tmp_path / 'a', strategy='mod')
    arguments = ('migrate', 'checkpoint', prefix, tmp_path / 'b', '--to', 'tf2', '--map',
                 map_of(tmp_path, MAP))
    # 2 x 7 of the table, 3 x 2 and 3 of the dense variables, the step and the power of Adam.
    assert etpe(*arguments).endswith('ckpt-7: 208 B, 25 rows compared with the source, all equal\n')
    assert 'E656' in etpe(*arguments, status=2)
    assert etpe.json(*arguments, '--overwrite')['rows'] == 25


def test_a_dry_run_without_names_says_so_and_has_status_1(etpe, tmp_path):
    arguments = ('migrate', 'checkpoint', tf1(tmp_path / 'a', config=b''), tmp_path / 'b',
                 '--to', 'tf2')
    said = etpe(*arguments, '--dry-run', status=1)
    assert 'without a new name: 3 variables; --drop-rest' in said
    assert 'nothing names it' not in said
    assert etpe.json(*arguments, '--dry-run', status=1)['unnamed'] == [
        'dense/bias', 'dense/kernel', USER]
    assert 'E654' in etpe(*arguments, status=2) and not (tmp_path / 'b').exists()
    said = etpe(*arguments, '--dry-run', '--drop-rest')
    assert 'dense/kernel' in said and 'nothing names it' in said


def test_a_dry_run_prints_the_lines_that_the_map_needs(etpe, tmp_path):
    prefix = tf1(tmp_path / 'a', slots={'Adagrad': ROWS}, config=b'', others={
        **DENSE, 'table x': np.float32(1)})
    arguments = ('migrate', 'checkpoint', prefix, tmp_path / 'b', '--to', 'tf2')
    lines = etpe(*arguments, '--dry-run', status=1).splitlines()[-5:-1]
    assert lines == ['dense/bias -> ?', 'dense/kernel -> ?', f'table {USER} -> ?',
                     r're table\ x -> ?']
    path = tmp_path / 'lines'
    path.write_text('\n'.join(lines))
    assert 'in the place of ?' in etpe(*arguments, '--map', path, status=2)
    path.write_text(path.read_text().replace('?', 'net/a', 1).replace('?', 'net/b', 1).replace(
        '?', 't', 1).replace('?', 'x'))
    assert etpe.json(*arguments, '--map', path)['unnamed'] == []


@pytest.mark.parametrize('to, slots, extra', [
    ('tf2', {'Adagrad': ROWS}, ()), ('tfrs', {'Adam/m': ROWS, 'Adam/v': ROWS + 9}, ()),
    ('tf2', {'Ftrl': ROWS, 'Ftrl_1': ROWS + 9}, ('--slots', 'keras')),
    ('tf1', {'Lion': ROWS}, ())])
def test_the_map_back_restores_every_name_and_byte(etpe, tmp_path, to, slots, extra):
    others = {**DENSE, 'bert/w': ROWS, 'bert/w/adam_m': ROWS + 1, 'bert/w/adam_v': ROWS + 2,
              'a w': np.float32(3)}
    first = tf1(tmp_path / 'a', strategy='mod', hosts=3, slots=slots, others=others)
    text = MAP + 'bert/w -> encoder/w\na w -> net/single\ndense/kernel/Adam -> first\n'
    if to == 'tf1':
        text += 're beta.* -> power'
    etpe('migrate', 'checkpoint', first, tmp_path / 'b', '--to', to, '--map',
         map_of(tmp_path, text), '--map-back', tmp_path / 'back', *extra)
    if to != 'tf1':
        lines = (tmp_path / 'back').read_text().splitlines()
        assert lines[1] == '# with --to tf1 --order mod:3'
        # Keras has the same names for both kinds of Adam.
        assert 'encoder/w/.OPTIMIZER_SLOT/optimizer/m -> bert/w/adam_m' in lines
    etpe('migrate', 'checkpoint', tmp_path / 'b', tmp_path / 'c', '--to', 'tf1', '--order', 'mod:3',
         '--map', tmp_path / 'back')
    second = tmp_path / 'c' / 'model.ckpt-7'
    assert content(first) == content(second)
    before, after = (read_manifest(str(prefix)) for prefix in (first, second))
    assert before.tables == after.tables and before.config == after.config
    assert etpe('checkpoint', 'diff', tmp_path / 'a', tmp_path / 'c') == 'no differences\n'


@pytest.mark.parametrize('to, flags', [
    ('tf1', ''), ('tfrs', ' --source-path net/layer')])
def test_the_map_back_of_tf2_begins_with_the_command_to_which_it_belongs(
        etpe, tmp_path, to, flags):
    prefix = tf2(tmp_path / 'a')
    where = ('--source-path', 'embedding') + (
        ('--object-path', 'net/layer') if to == 'tfrs' else ())
    etpe('migrate', 'checkpoint', prefix, tmp_path / 'b', '--to', to, *where, '--map-back',
         tmp_path / 'back', '--map', map_of(tmp_path, 'net/w -> w'))
    first, second = (tmp_path / 'back').read_text().splitlines()[:2]
    assert first == f'# The way back: etpe migrate checkpoint {tmp_path}/b DIR --map ' \
        f'{tmp_path}/back'
    assert second == ('# with --to, --object-path and --slots as that program has them' + flags)
    again = etpe('migrate', 'checkpoint', tmp_path / 'b', tmp_path / 'c', '--to', 'tf2',
                 *flags.split(), '--map', tmp_path / 'back')
    assert 'all equal' in again
    assert {name: value for name, value in content(prefix).items()
            if 'learning_rate' not in name and 'GRAPH' not in name}.items() <= (
        content(tmp_path / 'c' / 'ckpt-7').items())


@pytest.mark.parametrize('make, why', [
    (lambda path: path.touch(), 'something there'),
    (lambda path: path.symlink_to('nowhere'), 'something there'),
    (lambda path: path.parent.rmdir(), 'no folder')])
def test_e659_no_file_is_replaced_by_a_map_and_nothing_migrated_then(etpe, tmp_path, make, why):
    (tmp_path / 'maps').mkdir()
    make(tmp_path / 'maps' / 'file')
    said = etpe('migrate', 'checkpoint', tf1(tmp_path / 'a'), tmp_path / 'b', '--to', 'tf2',
                '--map-back', tmp_path / 'maps' / 'file', '--drop-rest', status=2)
    assert 'E659 map ' in said and why in said and not (tmp_path / 'b').exists()


def test_e659_a_map_that_cannot_be_written_after_all(tmp_path):
    with pytest.raises(CheckpointWriteError, match='E659 .*File exists'):
        (tmp_path / 'map').touch()
        map_file.write(str(tmp_path / 'map'), '')


@pytest.mark.parametrize('source, arguments, why', [
    ('tf1', '--to tf2 --order mod:2', '--order: only --to tf1 has an order'),
    ('tf1', '--to tf1 --order mod', '--order: it must be "div" or "mod:H"'),
    ('tf2', '--to tf1 --slots keras', '--slots: TF1 has one kind'),
    ('tf1', '--to tf1 --object-path x', '--object-path: neither SRC'),
    ('tf1', '--to tf1 --optimizer-path x', '--optimizer-path: neither SRC'),
    ('tf1', '--to tf2 --source-path x', '--source-path: SRC is a checkpoint of TF1'),
    ('tf2', '--to tf1 --source-path embedding --object-path x', '--object-path: --source-path'),
    ('tf2', '--to tf1 --assume div', '--assume: SRC is a checkpoint of TF2'),
    ('tf1', '--to tf2 --step -1', '--step: it must be >= 0'),
    ('tf1', '--to tf2 --step 9223372036854775808', '--step: it must be >= 0'),
    ('tf1', '--to tf2 --object-path a//b', '--object-path: parts of the name'),
    ('tf1', '--to tf2 --optimizer-path ..', '--optimizer-path: parts of the name'),
    ('tf2', '--to tf1 --source-path a/./b', '--source-path: parts of the name'),
    ('tf1', '--to tf3', "--to: invalid choice"), ('tf1', '', 'required: --to'),
    ('tf1', '--to tf2 --dry-run --map-back x', 'not allowed with')])
def test_an_argument_that_does_not_apply_is_refused(etpe, tmp_path, source, arguments, why):
    prefix = (tf1 if source == 'tf1' else tf2)(tmp_path / 'a')
    said = etpe('migrate', 'checkpoint', prefix, tmp_path / 'b', *arguments.split(), status=2)
    assert 'usage: etpe migrate checkpoint' in said and why in said
    assert not (tmp_path / 'b').exists()


def test_a_step_that_the_user_says_is_made_for_the_job(etpe, tmp_path):
    prefix = tf2(tmp_path / 'a', {'embedding/user': ROWS})
    arguments = ('migrate', 'checkpoint', prefix, tmp_path / 'b', '--to', 'tf1')
    assert '--step N' in etpe(*arguments, status=2)
    said = etpe(*arguments, '--step', 30)
    assert 'made: 30' in said and f'{tmp_path}/b/model.ckpt-30: ' in said
    stored = content(tmp_path / 'b' / 'model.ckpt-30')
    assert stored['global_step'] == ('int64', (), np.int64(30).tobytes())
    etpe('migrate', 'checkpoint', tf1(tmp_path / 'c', others={}, config=config()),
         tmp_path / 'd', '--to', 'tf2', '--step', 7)
