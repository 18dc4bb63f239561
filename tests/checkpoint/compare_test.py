"""What is found of a checkpoint and a graph, given as shapes and tables; no TensorFlow."""

import dataclasses

import pytest

from estimator_tpu_embedding.checkpoint.compare import compare
from estimator_tpu_embedding.checkpoint.layout import Held, Needed, Source
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.slots import SUFFIXES
from estimator_tpu_embedding.core.optimizers import OPTIMIZERS
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import CorruptCheckpointError, IncompatibleCheckpointError


def table(strategy='div', hosts=1, rows=4, width=2, slots=()):
    return StoredTable(rows=rows, width=width, strategy=strategy, hosts=hosts, slots=slots)


def held(tables=None, step=3, **shapes):
    """A checkpoint of those tables and other tensors; without a manifest if `None`."""
    for name, one in (tables or {}).items():
        for tensor in (name, *[f'{name}/{slot}' for slot in one.slots]):
            shapes[tensor] = (one.rows, one.width)
    manifest = None if tables is None else Manifest(step=step, tables=tables, created_by='test')
    return Held('/dir/model.ckpt-3', shapes, manifest)


def needed(tables=None, optional=(), trains=True, **shapes):
    for name, one in (tables or {}).items():
        for tensor in (name, *[f'{name}/{slot}' for slot in one.slots]):
            shapes[tensor] = [one.rows, one.width]
    return Needed(shapes, tables or {}, optional, trains)


def problems(held, needed, **options):
    with pytest.raises(IncompatibleCheckpointError) as caught:
        compare(held, needed, CheckpointOptions(**options))
    return caught.value.problems


def test_what_lies_as_it_does_here_is_restored_as_ever():
    for order in (('div', 3), ('mod', 3), ('mod', 1)):
        tables = {'t': table(*order, slots=('Adagrad',))}
        plan = compare(held(tables, w=(3,)), needed(tables, w=[None]), CheckpointOptions())
        assert plan.is_plain and plan.suits_tensorflow and plan.facts == ()


def test_hosts_that_hold_no_rows_change_nothing():
    assert compare(held({'t': table('mod', 5)}), needed({'t': table('mod', 9)}),
                   CheckpointOptions()).is_plain


def test_all_differences_come_in_one_error():
    found = problems(
        held({'t': table(), 'old': table(rows=7)}, table=(4, 2), dense=(3,), table_old=(1,)),
        needed({'t': table(width=3)}, table=[4, 3], dense=[3], table_new=[1], x=[2]),
        grow=['nowhere'])
    assert [problem.code for problem in found] == [
        'E604', 'E604', 'E606', 'E606', 'E632', 'E630']
    assert 'Similar names there: "table", "table_old"' in found[2].remedy
    assert found[3].remedy == ''
    assert all(problem.where == 'checkpoint model.ckpt-3' for problem in found[:5])


def test_variables_may_lack_where_the_user_restores_them():
    plan = compare(held(v=(2,)), needed(v=[2], w=[1], optional=('w',)), CheckpointOptions())
    assert plan.is_plain
    slots = {'t': table(slots=('Adagrad',))}
    plan = compare(held({}, v=(2,)), needed(slots, optional=('t',)), CheckpointOptions())
    assert plan.is_plain


@pytest.mark.parametrize('known', [None, {}])
def test_a_table_that_was_no_table_before_has_rows_in_the_order_of_ids(known):
    plan = compare(held(known, t=(4, 2)), needed({'t': table('div', 2)}), CheckpointOptions())
    assert plan.streamed == {'t': Source(
        't', Partition(strategy='div', vocabulary_size=4, num_hosts=1),
        Partition(strategy='div', vocabulary_size=4, num_hosts=2))}
    assert plan.suits_tensorflow and len(plan.facts) == (known is None)


@pytest.mark.parametrize('wrong, text', [
    (held({'t': table()}, step=4), 'step 4'),
    (Held('/dir/model.ckpt-3', {'t': (5, 2)}, held({'t': table()}).manifest),
     'table "t" of 4 x 2')])
def test_a_manifest_of_another_checkpoint_is_not_believed(wrong, text):
    with pytest.raises(CorruptCheckpointError, match=f'E614 checkpoint model.ckpt-3.*; got {text}'):
        compare(wrong, needed({'t': table()}), CheckpointOptions())


def test_names_in_options_may_be_short_but_must_mean_one_table():
    tables = {'a/f/weights': table(), 'b/g/weights': table()}
    for name in ('a/f/weights', 'f/weights', 'a', 'f', 'a/f'):
        assert compare(held(tables), needed({**tables, 'a/f/weights': table(rows=5)}),
                       CheckpointOptions(grow=[name])).streamed.keys() == {'a/f/weights'}
    ambiguous, = problems(held(tables), needed(tables), grow=['weights'])
    assert str(ambiguous) == (
        'E630 CheckpointOptions.grow: it must name one table of this job, in full or by '
        'parts of its name that no other has; got "weights", which may be "a/f/weights", '
        '"b/g/weights".')
    unknown, = problems(held(tables), needed(tables), reset_slots=['a/f/weigths'])
    assert str(unknown).endswith('Similar names there: "a/f/weights", "b/g/weights".')
    for rename, text in (({'x': 'a/f/weights'}, None), ({'f/weights': 'x'}, 'of this job'),
                         ({'x': 'new'}, 'of the checkpoint')):
        job = needed({**tables, 'new': table()})
        if text is None:  # It has the new name already.
            assert compare(held(tables), job, CheckpointOptions(rename=rename)).begun == ('new',)
        else:
            assert text in problems(held(tables), job, rename=rename)[0].rule


def test_an_evaluation_does_not_care_for_names_that_a_training_means():
    tables = {'t': table()}
    assert compare(held(tables), needed(tables, trains=False),
                   CheckpointOptions(grow=['other'])).is_plain


def test_slots_are_no_tables_that_a_name_may_mean():
    there = held(**{'in/old/weights': (4, 2), 'in/old/weights/Adagrad': (4, 2)})
    plan = compare(there, needed({'new/weights': table(slots=('Adagrad',))}),
                   CheckpointOptions(rename={'old': 'new'}))
    assert plan.streamed['new/weights/Adagrad'].tensor == 'in/old/weights/Adagrad'


def test_options_name_tables_as_the_checkpoint_or_as_the_job_calls_them():
    before, after = table('mod', 2), table('mod', 2, rows=6, slots=('Adagrad',))
    for name in ('old', 'new'):
        plan = compare(held({'old': before}), needed({'new': after}), CheckpointOptions(
            rename={'old': 'new'}, grow=[name], reset_slots=[name]))
        assert plan.begun == ('new/Adagrad',) and not plan.suits_tensorflow
        assert plan.streamed['new'].tensor == 'old' and not plan.streamed['new'].is_whole


CENTERED = {f't/RMSProp{number}': (4, 2) for number in ('', '_1', '_2')}


@pytest.mark.parametrize('there, here, lost', [
    (held({'t': table(slots=('Adagrad',))}), (), '"Adagrad"'),
    (held(t=(4, 2), **{'t/Adagrad': (4, 2), 't/mean': (4, 2)}), (), '"Adagrad"'),
    (held({'t': table(slots=('Ftrl', 'Ftrl_1'))}), ('Ftrl',), '"Ftrl_1"'),
    (held(t=(4, 2), **CENTERED), ('RMSProp/ms', 'RMSProp/mom'), '"RMSProp/ms", "RMSProp/mom"')])
def test_c23_slots_are_not_lost_without_a_word(there, here, lost):
    problem, = problems(there, needed({'t': table(slots=here)}))
    assert problem.code == 'E631' and f'slots {lost} of table "t"' in problem.rule
    plan = compare(there, needed({'t': table(slots=here)}), CheckpointOptions(reset_slots=['t']))
    assert plan.begun == tuple(f't/{slot}' for slot in here)
    assert plan.facts[-1].startswith('the slots of "t" ')
    assert compare(there, needed({'t': table()}, trains=False), CheckpointOptions()).begun == ()


def test_c23_the_names_of_all_slots_are_known():
    for field, kind in OPTIMIZERS.items():
        required = {one.name: .5 for one in dataclasses.fields(kind)
                    if one.default is one.default_factory is dataclasses.MISSING}
        assert {slot.suffix for slot in kind(**required).slots} <= SUFFIXES, field


def test_c22_a_table_that_is_dropped_is_reported_and_the_dense_part_beside_it_explained():
    there = held({'t': table(), 'in/old/weights': table()}, kernel=(4, 1))
    plan = compare(there, needed({'t': table()}, kernel=[4, 1]), CheckpointOptions(drop=['old']))
    assert plan.facts == ('its table "in/old/weights" is dropped',)
    problem, = problems(there, needed({'t': table()}, kernel=[2, 1]), drop=['old'])
    assert problem.code == 'E604' and 'warm_start_from' in problem.remedy
