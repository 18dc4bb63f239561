"""A TF1 job and its TF2 form are compared tensor by tensor, and each mistake is found.

The TF1 forms train in a process of their own, the TF2 forms in this one.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from harness import agreement_job as job
from harness.parts import soak_except
from harness.processes import run_harness

from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.migration import from_tf1, map_file
from estimator_tpu_embedding.migration.check_jobs import compare, moved
from estimator_tpu_embedding.migration.checkpoint_contents import Target
from estimator_tpu_embedding.migration.migrate_checkpoint import carry_out
from estimator_tpu_embedding.migration.moves import Choices, plan, read

MAP = map_file.parse(job.MAP)


@pytest.fixture(scope='module')
def folder_of(tmp_path_factory):
    """Makes for a TF1 form its checkpoints after each step, and the first of them in TF2."""
    @functools.cache
    def folder_of(form):
        made = tmp_path_factory.mktemp(form)
        assert run_harness('agreement_job', made, form, loaded=True).returncode == 0
        found = from_tf1.read(str(made / 'model' / 'model.ckpt-2'), CheckpointOptions(), MAP)
        carry_out(plan(found, Target(kind='tf2'), Choices(map=MAP)), str(made / 'new'))
        return made
    return folder_of


@pytest.fixture
def old(folder_of):
    """What a TF1 form has saved after some steps."""
    def old(steps, form='div'):
        folder = folder_of(form) / (f'{steps}' if steps else 'model')
        return read(str(folder / f'model.ckpt-{2 + steps}'), map=MAP)
    return old


@pytest.fixture
def new(folder_of, tmp_path):
    """What a TF2 form has saved after some steps, and its remarks."""
    numbers = itertools.count()

    def new(steps, form='div', begin=None, **mistake):
        folder = tmp_path / f'{next(numbers)}'
        folder.mkdir()
        remarks = job.new(**mistake).train(
            str(begin or folder_of(form) / 'new' / 'ckpt-2'), steps, str(folder))
        return read(tf.train.latest_checkpoint(str(folder))), remarks
    return new


@pytest.fixture
def check(old, new):
    """Checks a TF2 form against a TF1 form after all steps, or until they differ."""
    def check(form='div', steps=(job.STEPS,), tolerance=1e-5, **mistake):
        for number in steps:
            b, remarks = new(number, form, **mistake)
            found = compare(old(number, form), b, number, map=MAP, tolerance=tolerance)
            if found.differences:
                break
        assert remarks == [] and found.remarks == []
        return found
    return check


def first(found):
    """Where the first difference is."""
    one = found.differences[0]
    return one.step, one.kind, one.name


@pytest.mark.soak
@pytest.mark.parametrize('form', ['div', 'mod'])
def test_the_same_job_is_equal_whatever_hosts_hold_its_rows(check, form):
    found = check(form)  # With mod it has two hosts of two cores, the TF2 form one of one.
    numbers = 2 * sum(job.ROWS.values())
    assert found.differences == [] and found.steps == job.STEPS
    assert found.numbers == {'table': numbers, 'slot': 2 * numbers, 'variable': 2}


@pytest.mark.parametrize('mistake, wanted', soak_except([
    ({'rates': {'video': .2, 'user': .5}}, (1, 'table', 'video')),
    ({'before_step': job.permute}, (1, 'table', 'video')),
    ({'weighted': False}, (1, 'table', 'video')),
    ({'seed': 2}, (1, 'table', 'user')),
    ({'wrong_label': .5}, (2, 'table', 'user')),
    ({'combiners': {'video': 'sum', 'user': 'sum'}}, (1, 'table', 'user')),
    ({'dense_rate': .3}, (1, 'variable', 'dense')),
    ({'before_step': job.write_elsewhere}, (1, 'table', 'user'))], 0, 3))
def test_a_mistake_shows_after_the_step_that_makes_it(check, mistake, wanted):
    assert first(check(steps=range(job.STEPS + 1), **mistake)) == wanted


@pytest.mark.soak
def test_a_swapped_row_shows_before_anything_was_trained(check, folder_of, tmp_path):
    side = job.new()
    side.checkpoint.read(str(folder_of('div') / 'new' / 'ckpt-2'))
    job.permute({config.name: table for config, table in
                 side.checkpoint.embedding.embedding_tables.items()})
    found = check(steps=[0, 1], begin=side.checkpoint.save(str(tmp_path / 'swapped')))
    one, = found.differences
    assert (one.step, one.name, one.row, one.rows) == (0, 'video', 4, 2)
    assert str(one).startswith('before step 1: table "video", row 4, column ')


def test_rows_that_hardly_move_are_told_apart(old):
    assert moved(old(0), old(1)).keys() == {'video', 'user'}
    assert moved(old(0), old(1), 10.) == {'video': 0, 'user': 0} == moved(old(0), old(0))
    assert 0 < moved(old(0), old(1))['user'] <= job.DRAWN['user']


@pytest.mark.soak
def test_a_larger_tolerance_counts_differences_as_equal_and_names_the_largest(check):
    found = check(tolerance=10., rates={'video': .2, 'user': .5})
    assert found.differences == [] and abs(found.largest.a - found.largest.b) > .05


def test_what_cannot_be_paired_is_refused_all_at_once(old, tmp_path):
    other = read(job.new(rows={'video': 8, 'user': 9}).checkpoint.save(
        str(tmp_path / 'ckpt')))
    renamed = map_file.parse(f'{job.MAP}table user -> person\n')
    for map, wanted in (
            (MAP, {f'tensor "{name}"' for table in job.ROWS for name in (
                table, f'{table}/Adam/m', f'{table}/Adam/v')}),
            (renamed, {'table "user" of side A', 'table "user" of side B', 'tensor "video"',
                       'tensor "video/Adam/m"', 'tensor "video/Adam/v"'})):
        with pytest.raises(ConfigError) as raised:
            compare(old(0), other, 0, map=map, tolerance=1e-5)
        assert {problem.where for problem in raised.value.problems} == wanted
        assert {problem.code for problem in raised.value.problems} == {'E683'}


def test_what_only_one_side_has_is_a_remark(old, tmp_path):
    one = job.new(rates={'video': .1, 'user': .1})
    prefix = tf.train.Checkpoint(embedding=one.checkpoint.embedding, more=tf.Variable(1.)).save(
        str(tmp_path / 'ckpt'))
    found = compare(old(0), read(prefix), 0, map=MAP, tolerance=np.inf)
    assert found.remarks == ['not compared, on side A only: "dense"',
                             'not compared, on side B only: "more/.ATTRIBUTES/VARIABLE_VALUE"']


@pytest.mark.soak
def test_pipelined_jobs_are_compared_with_all_of_their_updates(check):
    assert check('pipelined', pipelined=True).differences == []
    assert first(check('pipelined', [1, 2]))[0] == 2  # It is no longer pipelined.
