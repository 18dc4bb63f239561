import numpy as np
import pytest
from harness.migrations import DENSE, ROWS, USER, VALUE, config, contents_of, tf1, tf2

from estimator_tpu_embedding.errors import ConfigError, IncompatibleCheckpointError
from estimator_tpu_embedding.migration.checkpoint_contents import KERAS, Target
from estimator_tpu_embedding.migration.map_file import parse
from estimator_tpu_embedding.migration.moves import Choices, plan

TF1, TF2, TFRS = Target(kind='tf1'), Target(kind='tf2'), Target(kind='tfrs', slots=KERAS)
MAP = 'dense/kernel -> net/w\ndense/bias -> net/b\n'
M, V = (f'net/w/.OPTIMIZER_SLOT/optimizer/{slot}' for slot in 'mv')


def moved(prefix, target, text='', **choices):
    """The new name of each tensor that goes along; in TF2 without the suffix."""
    map = parse(text, 'map')
    made = plan(contents_of(prefix, map), target, Choices(map=map, **choices))
    return {move.source.removesuffix(VALUE): move.target.removesuffix(VALUE)
            for move in made.moves}


def said(prefix, target, text='', error=ConfigError, **choices):
    """The messages about a plan that does not work."""
    with pytest.raises(error) as caught:
        moved(prefix, target, text, **choices)
    return '\n'.join(map(str, caught.value.problems))


def test_tables_are_called_as_in_the_config_and_dense_variables_as_in_the_map(tmp_path):
    assert moved(tf1(tmp_path), TF2, MAP) == {
        USER: 'embedding/tbl_user_embedding',
        f'{USER}/Adagrad': 'embedding/tbl_user_embedding.Saccumulators',
        'dense/kernel': 'net/w', 'dense/kernel/Adam': M, 'dense/kernel/Adam_1': V,
        'dense/bias': 'net/b', 'global_step': 'optimizer/iter', 'beta1_power': 'beta1_power'}


def test_back_to_tf1_slots_get_the_suffixes_of_tf1(tmp_path):
    assert moved(tf2(tmp_path), TF1, 'net/w -> dense/kernel\nuser -> u/embedding_weights') == {
        'embedding/user': 'u/embedding_weights', 'net/w': 'dense/kernel',
        'embedding/user.Saccumulators': 'u/embedding_weights/Adagrad', M: 'dense/kernel/Adam',
        V: 'dense/kernel/Adam_1', 'optimizer/iter': 'global_step'}


def test_within_tf1_names_stay_and_rows_are_put_into_another_order(tmp_path):
    contents = contents_of(tf1(tmp_path, strategy='mod', hosts=3))
    made = plan(contents, Target(kind='tf1', strategy='mod', hosts=2))
    assert {move.source for move in made.moves} == {move.target for move in made.moves} == {
        USER, f'{USER}/Adagrad', 'global_step', *DENSE}
    assert {move.source: move.is_reordered for move in made.moves if move.is_reordered} == {
        USER: True, f'{USER}/Adagrad': True}
    assert not any(move.is_reordered for move in plan(
        contents, Target(kind='tf1', strategy='mod', hosts=3)).moves)
    assert all(move.is_reordered == move.source.startswith(USER) for move in plan(
        contents, TF1).moves)


def test_what_only_the_other_api_needs_is_left_out_with_a_reason_unless_the_map_names_it(tmp_path):
    prefix, text = tf2(tmp_path), 'net/w -> w\n'
    made = plan(contents_of(prefix), TF1, Choices(map=parse(text)))
    assert 'hyper-parameter' in made.left_out[f'optimizer/learning_rate{VALUE}']
    assert moved(prefix, TF1, text + 'optimizer/learning_rate -> rate')[
        'optimizer/learning_rate'] == 'rate'


def test_an_expression_that_fits_a_variable_and_its_slots_means_the_variable(tmp_path):
    found = moved(tf1(tmp_path), TF2, r're dense/(.*) -> net/\1')
    assert found['dense/kernel/Adam'] == 'net/kernel/.OPTIMIZER_SLOT/optimizer/m'
    found = moved(tf1(tmp_path), TF2, 'dense/bias -> b\nre dense/(.*) -> net/\\1\n'
                  'dense/kernel/Adam -> first\ndrop re .*/Adam_1')
    assert found['dense/kernel/Adam'] == 'first' and 'dense/kernel/Adam_1' not in found
    assert found['dense/bias'] == 'b'


def test_drop_leaves_out_a_variable_with_its_slots_or_only_the_slot(tmp_path):
    prefix = tf1(tmp_path)
    made = plan(contents_of(prefix), TF2, Choices(map=parse(
        f'drop re dense/.*\ndrop {USER}/Adagrad\ndrop global_step\ndrop beta1_power', 'map')))
    assert made.left_out == {
        'dense/kernel': 'dropped by map:1', 'dense/kernel/Adam': 'dropped by map:1',
        'dense/kernel/Adam_1': 'dropped by map:1', 'dense/bias': 'dropped by map:1',
        f'{USER}/Adagrad': 'dropped by map:2', 'global_step': 'dropped by map:3',
        'beta1_power': 'dropped by map:4'}
    assert [move.source for move in made.moves] == [USER] and made.step == 7


def test_e654_variables_without_names_are_counted_and_named_unless_they_are_left_out(tmp_path):
    prefix = tf1(tmp_path, config=config(rows=8))
    message = said(prefix, TF2)
    assert f'3 without, which have 3 slots: "dense/bias", "dense/kernel", "table {USER}"' in message
    assert '--dry-run' in message and '--drop-rest' in message
    assert moved(prefix, TF2, drop_rest=True).keys() == {'global_step', 'beta1_power'}
    made = plan(contents_of(prefix), TF2, may_lack_names=True)
    assert [named.variable.name for named in made.nameless] == ['dense/bias', 'dense/kernel', USER]
    assert made.left_out['dense/kernel/Adam'] == 'nothing names it'


def test_e654_the_map_of_another_job_is_known_by_its_lines(tmp_path):
    message = said(tf1(tmp_path), TF2, MAP + 'bert/w -> x\nre bert/.* -> y\ntable dense/x -> z')
    assert message.count('E654 map:') == 3 and 'Is it the map of another job' in message
    assert 'a line with "table" must be about an embedding table' in said(
        tf2(tmp_path, **{f'{M}x': ROWS}), TF1, f'net/w -> w\ntable {M}x -> t')


def test_e654_one_target_twice_and_a_variable_inside_of_another(tmp_path):
    message = said(tf1(tmp_path), TF2, 're dense/.* -> net')
    assert '"net/.ATTRIBUTES/VARIABLE_VALUE" must have one source; got "dense/bias", "dense/k' in (
        message)
    message = said(tf1(tmp_path), TF2, 'dense/kernel -> net\ndense/bias -> net/a/b')
    assert 'a variable at "net" can have none inside; got "net/a/b"' in message
    assert 'a variable at "embedding" can have none inside' in said(
        tf1(tmp_path), TF2, 'dense/kernel -> embedding\ndense/bias -> b')
    assert 'at "embedding/_variables" can have none inside' in said(
        tf1(tmp_path), TF2, 'dense/kernel -> embedding/_variables/x\ndense/bias -> b')
    assert 'must have one source; got "dense/bias", "global_step"' in said(
        tf1(tmp_path), TF2, 'dense/kernel -> w\ndense/bias -> optimizer/iter')
    moved(tf2(tmp_path), TF1, 'net/w -> a/b\nuser -> a')  # Nothing wrong in TF1.


@pytest.mark.parametrize('name, why', [
    ('a//b', 'must not be empty'), ('/a', 'must not be empty'), ('a/', 'must not be empty'),
    ('..', '"." or ".."'), ('a\0b', 'printable'), ('x' * 1001, '1001 characters'),
    ('a/.ATTRIBUTES/VARIABLE_VALUE', 'without /.ATTRIBUTES/')])
def test_e654_names_that_no_variable_can_have(tmp_path, name, why):
    message = said(tf1(tmp_path), TF2, f'dense/kernel -> {name}\ndense/bias -> b')
    assert message.startswith('E654 variable ') and why in message
    if 'ATTR' not in name:
        message = said(tf1(tmp_path), TF2, f'{USER} -> {name}\n{MAP}')
        assert message.startswith('E654 table ') and why in message


def test_e654_a_table_is_a_matrix_of_floats(tmp_path):
    prefix = tf2(tmp_path, n=np.ones((3, 2), 'i4'), b=np.ones(3, 'f4'))
    message = said(prefix, TF1, 'table n -> n\ntable b -> b', drop_rest=True)
    assert 'table "n" must be a matrix of floats; got int32 [3, 2]' in message
    assert 'table "b" must be a matrix of floats; got float32 [3]' in message
    prefix = tf1(tmp_path, others={'n': np.ones((1, 3, 2), 'f4'), 'b': np.float32(1)})
    message = said(prefix, TF2, 'table n -> n\ntable b -> b')
    assert 'table "n" must be a matrix of floats; got float32 [1, 3, 2]' in message
    assert 'table "b" must be a matrix of floats; got float32 []' in message


def test_e654_powers_are_for_tf1_only_and_made_by_the_step(tmp_path):
    assert 'only --to tf1 has powers' in said(tf1(tmp_path), TF2, MAP + 'power p 0.5')
    made = plan(contents_of(tf2(tmp_path)), TF1, Choices(
        map=parse('net/w -> w\npower beta1_power 0.5')))
    assert [(one.target, one.value) for one in made.made] == [('beta1_power', 0.5**8)]
    assert 'must have one source' in said(tf2(tmp_path, number=2), TF1, 'net/w -> p\npower p 0.9')


def test_the_step_is_the_one_of_the_checkpoint_or_the_one_that_the_user_says(tmp_path):
    prefix = tf2(tmp_path, {'embedding/user': ROWS})
    assert 'its step must be known' in said(prefix, TF1)
    made = plan(contents_of(prefix), TF1, Choices(step=30))
    assert made.step == 30 and [(one.target, one.value) for one in made.made] == [
        ('global_step', 30)]
    prefix = tf2(tmp_path, number=2)
    assert 'does not say its step, and this one says 7; got 8' in said(
        prefix, TF1, step=8, drop_rest=True)
    assert plan(contents_of(prefix), TF1, Choices(step=7, drop_rest=True)).made == []


def test_the_step_of_newer_keras_keeps_its_path_within_tf2(tmp_path):
    prefix = tf2(tmp_path, {'embedding/user': ROWS, 'optimizer/_iterations': np.int64(4)})
    assert moved(prefix, TF1)['optimizer/_iterations'] == 'global_step'
    assert moved(prefix, TFRS)['optimizer/_iterations'] == 'optimizer/_iterations'


@pytest.mark.parametrize('target, slots, optimizer', [
    (TF2, {'Momentum': ROWS}, 'Momentum'), (TFRS, {
        'AdagradMomentum/Accumulator': ROWS, 'AdagradMomentum/Momentum': ROWS}, 'AdagradMomentum')])
def test_e655_slots_without_a_place_are_an_error_or_listed(tmp_path, target, slots, optimizer):
    prefix = tf1(tmp_path, slots=slots, others={})
    message = said(prefix, target, error=IncompatibleCheckpointError)
    assert message.startswith('E655') and f'got {optimizer}, with slots "{USER}/' in message
    made = plan(contents_of(prefix), target, Choices(drop_slots=True))
    assert made.left_out == {f'{USER}/{slot}': f'--to {target.kind} has no place for it'
                             for slot in slots}
    assert USER in [move.source for move in made.moves]
    # Slots that the map drops or names itself lack no place.
    plan(contents_of(prefix), target, Choices(map=parse('drop re .*Momentum.*/.*|.*/Momentum')))


def test_all_problems_come_at_once(tmp_path):
    message = said(tf1(tmp_path, slots={'Momentum': ROWS}), TF2, 'bert -> x\ndense/kernel -> a//b')
    for part in ('E654 map:1', 'E654 variable "a//b"', '1 without', 'E655'):
        assert part in message
