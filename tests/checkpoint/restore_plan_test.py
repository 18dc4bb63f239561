"""What is found of a checkpoint and a graph, given as shapes and tables; no TensorFlow."""

import pytest

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import Manifest, StoredTable
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import Opened, check_manifest
from estimator_tpu_embedding.checkpoint.restore_plan import Needed, compare
from estimator_tpu_embedding.checkpoint.tensors import Tensor
from estimator_tpu_embedding.errors import CorruptCheckpointError, IncompatibleCheckpointError


def table(strategy='div', hosts=1, rows=4, width=2, slots=()):
    return StoredTable(rows=rows, width=width, strategy=strategy, hosts=hosts, slots=slots)


def held(tables=None, step=3, **shapes):
    """A checkpoint of those tables and other tensors; without a manifest if `None`."""
    for name, one in (tables or {}).items():
        for tensor in (name, *[f'{name}/{slot}' for slot in one.slots]):
            shapes[tensor] = (one.rows, one.width)
    manifest = None if tables is None else Manifest(step=step, tables=tables, created_by='test')
    return opened(shapes, manifest)


def opened(shapes, manifest, dtype=1):
    return Opened(Bundle('/dir/model.ckpt-3', {
        name: Tensor(name, dtype, shape, ()) for name, shape in shapes.items()}, ()), manifest)


def needed(tables=None, optional=(), trains=True, **shapes):
    for name, one in (tables or {}).items():
        for tensor in (name, *[f'{name}/{slot}' for slot in one.slots]):
            shapes[tensor] = [one.rows, one.width]
    return Needed(shapes, tables or {}, optional, trains)


def problems(held, needed, **options):
    with pytest.raises(IncompatibleCheckpointError) as caught:
        compare(held, needed, CheckpointOptions(**options))
    return caught.value.problems


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


@pytest.mark.parametrize('wrong, text', [
    (held({'t': table()}, step=4), 'step 4'),
    (opened({'t': (5, 2)}, held({'t': table()}).manifest), 'table "t" of 4 x 2'),
    (opened({'t': (4, 2)}, held({'t': table()}).manifest, dtype=3), 'table "t" of 4 x 2')])
def test_a_manifest_of_another_checkpoint_is_not_believed(wrong, text):
    with pytest.raises(CorruptCheckpointError, match=f'E614 checkpoint model.ckpt-3.*; got {text}'):
        check_manifest(wrong)


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
