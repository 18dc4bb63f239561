"""A TF1 job and its TF2 form are compared number by number, and each mistake is found.

The TF1 forms train in a process of their own, the TF2 forms in this one.
"""

import contextlib
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import agreement_job as job
from harness.parts import soak_except
from harness.processes import run_harness

from estimator_tpu_embedding.checkpoint.files import Storage
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.migration import from_tf1, map_file
from estimator_tpu_embedding.migration.agreement import records
from estimator_tpu_embedding.migration.agreement.compare import compare
from estimator_tpu_embedding.migration.agreement.reading import Records
from estimator_tpu_embedding.migration.carry_out import carry_out
from estimator_tpu_embedding.migration.plan import Choices, plan
from estimator_tpu_embedding.migration.target import Target


@pytest.fixture(scope='module')
def folder_of(tmp_path_factory):
    """Makes for a TF1 form its checkpoint, what was recorded, and the checkpoint in TF2."""
    @functools.cache
    def folder_of(form):
        made = tmp_path_factory.mktemp(form)
        assert run_harness('agreement_job', made, form, loaded=True).returncode == 0
        map = map_file.parse(job.MAP)
        found = from_tf1.read(str(made / 'model' / 'model.ckpt-2'), CheckpointOptions(), map)
        carry_out(plan(found, Target(kind='tf2'), Choices(map=map)), str(made / 'new'))
        return made
    return folder_of


@pytest.fixture
def folder(folder_of):
    """That of the TF1 form with div."""
    return folder_of('div')


@pytest.fixture
def check(folder_of, tmp_path):
    """Checks a TF2 form against a TF1 form."""
    def check(old='div', *, tolerance=1e-5, features=None, **mistake):
        (tmp_path / 'b').mkdir()
        remarks = job.record(lambda: job.new(**mistake), folder_of(old) / 'new' / 'ckpt-2',
                             tmp_path / 'b')
        with Storage(str(folder_of(old) / 'records')) as a, Storage(str(tmp_path / 'b')) as b:
            return compare(Records(a), Records(b), tolerance=tolerance, features=features or {},
                           remarks=remarks)
    return check


def first(found):
    """Where the first difference is."""
    one = found.difference
    return one.step, one.kind, one.name, one.slot


@pytest.mark.soak
def test_the_same_job_is_equal_and_the_report_says_what_was_compared(check):
    found = check()
    assert found.difference is None and found.remarks == []
    batches = [job.drawn(1, 0.)[0][name][:job.SAMPLES] for name in job.TABLES]
    numbers = job.SAMPLES * len(job.TABLES) * 2  # Each activation has a width of 2.
    looked_up = sum(  # In each step, each row that is looked up in a table.
        len(set(np.concatenate([ids[begin:begin + job.BATCH].ravel() for ids in of_table])) - {-1})
        for begin in range(0, job.SAMPLES, job.BATCH)
        for of_table in (batches[:2], batches[2:]))
    assert found.steps == job.STEPS and found.numbers == {
        'ids': sum((ids >= 0).sum() for ids in batches), 'input': job.SAMPLES,
        'rows before': looked_up * 6, 'activation': numbers, 'gradient': numbers,
        'rows after': looked_up * 6, 'rows at the end': sum(job.ROWS.values()) * 6}


@pytest.mark.soak
def test_rows_are_compared_by_id_whatever_hosts_hold_them(check):
    found = check('mod')  # The TF1 form has two hosts of two cores, the TF2 form one of one.
    assert found.difference is None and found.remarks == []
    assert found.numbers['rows at the end'] == sum(job.ROWS.values()) * 6


@pytest.mark.soak
def test_another_learning_rate_shows_in_the_first_row_that_it_trains(check):
    found = check(rates={'video': .2, 'user': .5})
    assert first(found) == (1, 'rows after', 'video', '')
    assert 'table "video" is declared otherwise: learning_rate is 0.1 on A, 0.2 on B' in (
        found.remarks)
    moved_a, moved_b = found.difference.a, found.difference.b
    assert abs(moved_a - moved_b) > .01


@pytest.mark.soak
def test_the_default_of_epsilon_shows_where_gradients_are_small(check):
    found = check('tiny', scale=1e-6, epsilon=1e-7)
    assert first(found)[:2] == (1, 'rows after')
    assert any('epsilon is 1e-08 on A, 1e-07 on B' in remark for remark in found.remarks)


@pytest.mark.soak
def test_it_does_not_show_where_epsilon_is_right(check):
    assert check('tiny', scale=1e-6).difference is None


@pytest.mark.soak
def test_a_permuted_table_shows_before_anything_was_computed(check):
    found = check(before_step=job.permute)
    assert first(found) == (1, 'rows before', 'video', '')
    assert found.difference.row == 4  # The rows 4 and 5 changed places.


@pytest.mark.parametrize('mistake, wanted', soak_except([
    ({'weighted': False}, (1, 'ids', 'watched', '')),
    ({'seed': 2}, (1, 'ids', 'who', '')),
    ({'wrong_label': .5}, (2, 'input', 'labels', '')),
    ({'combiners': {'video': 'sum', 'user': 'sum'}}, (1, 'activation', 'who', '')),
    ({'dense_rate': .3}, (2, 'gradient', 'who', '')),
    ({'before_step': job.write_elsewhere}, (3, 'rows at the end', 'user', ''))], 3))
def test_a_mistake_shows_in_the_first_tensor_that_it_reaches(check, mistake, wanted):
    assert first(check(**mistake)) == wanted


def test_what_hardly_anything_happens_to_is_named_since_it_is_always_equal(folder, tmp_path):
    def tiny():
        side = job.new(scale=1e-6, rates={'video': 1e-7, 'user': .5})
        return dataclasses.replace(side, batches=side.batches.map(lambda words, labels: ((
            {**words[0], 'who': tf.sparse.retain(words[0]['who'], words[0]['who'].values < 0)},
            words[1]), labels)))

    job.record(tiny, folder / 'new' / 'ckpt-2', tmp_path)
    with Storage(str(tmp_path)) as storage:
        found = compare(Records(storage), Records(storage), tolerance=1e-5, features={})
    assert found.difference is None and [one.partition(': ')[2] for one in found.remarks] == [
        '"who"', '"liked", "watched"', '"video"']


@pytest.mark.soak
def test_both_values_and_their_place_are_named(check):
    found = check(wrong_label=.5)
    label = job.drawn(1, 0.)[2][job.BATCH + 1]
    assert (found.difference.row, found.difference.column) == (1, 0)
    assert found.difference.a == label and found.difference.b == label + np.float32(.5)
    assert str(found.difference) == (
        f'step 2: input "labels", sample 1, column 0: A has {label:.9g}, B has {label + .5:.9g}')


@pytest.mark.soak
def test_a_weight_is_named_with_its_id_and_sample(check):
    difference = check(weighted=False).difference
    ids, weights, _ = job.drawn(1, 0.)
    sample = np.flatnonzero((ids['watched'] >= 0).any(1))[0]
    assert difference.row == sample and difference.b.endswith('of weight 1')
    assert difference.a.startswith('id ') and difference.a != difference.b


@pytest.mark.soak
def test_a_larger_tolerance_counts_differences_as_equal_and_names_the_largest(check):
    found = check(tolerance=10., rates={'video': .2, 'user': .5})
    assert found.difference is None
    assert abs(found.largest.a - found.largest.b) > .05


@pytest.mark.soak
def test_features_of_other_names_are_paired_if_the_user_says_so(check):
    assert check(names={'who': 'person'}, features={'who': 'person'}).difference is None


@pytest.mark.parametrize('mistake, wanted', soak_except([
    ({'names': {'who': 'person'}}, ['feature "person"', 'feature "who"']),
    ({'rows': {'video': 8, 'user': 9}}, ['table "user"', 'table "video"'])], 0))
def test_what_cannot_be_paired_is_refused_all_at_once(folder, tmp_path, mistake, wanted):
    def nothing_restored():
        return dataclasses.replace(job.new(**mistake), checkpoint=tf.train.Checkpoint())

    (tmp_path / 'b').mkdir()
    job.record(nothing_restored, folder / 'new' / 'ckpt-2', tmp_path / 'b')
    with Storage(str(folder / 'records')) as a, Storage(str(tmp_path / 'b')) as b, (
            pytest.raises(ConfigError)) as raised:
        compare(Records(a), Records(b), tolerance=1e-5, features={})
    assert [problem.where for problem in raised.value.problems] == wanted
    assert {problem.code for problem in raised.value.problems} == {'E683'}


@pytest.mark.soak
def test_pipelined_jobs_are_compared_with_the_activations_that_they_had(check):
    found = check('pipelined', pipelined=True, samples=job.SAMPLES + job.BATCH)
    assert found.difference is None and found.steps == job.STEPS


@pytest.mark.soak
def test_a_job_that_is_no_longer_pipelined_shows_in_an_activation(check):
    found = check('pipelined')
    assert first(found)[:2] == (2, 'activation')


@pytest.mark.soak
def test_a_pipelined_loop_is_seen_up_to_its_last_update(folder, tmp_path):
    for name, samples in (('whole', job.SAMPLES), ('short', job.SAMPLES - job.BATCH)):
        (tmp_path / name).mkdir()
        job.record(lambda: job.new(pipelined=True, samples=samples),
                   folder / 'new' / 'ckpt-2', tmp_path / name, steps=2)
    with Storage(str(tmp_path / 'whole')) as whole, Storage(str(tmp_path / 'short')) as short:
        assert Records(whole).steps == 2  # The third batch makes the update of the second.
        assert Records(short).steps == 1


@pytest.mark.soak
def test_a_table_may_be_recorded_in_many_parts(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(records, 'CHUNK_BYTES', 16)  # two rows
    forms = {'a': {}, 'b': {}, 'c': {'before_step': job.write_elsewhere}}
    with contextlib.ExitStack() as stack:
        sides = {}
        for name, mistake in forms.items():
            (tmp_path / name).mkdir()
            job.record(lambda: job.new(**mistake), folder / 'new' / 'ckpt-2', tmp_path / name)
            sides[name] = Records(stack.enter_context(Storage(str(tmp_path / name))))
        assert [key.part for key in sides['a'].keys
                if (key.kind, key.name) == ('rows at the end', 'user')] == [0, 1, 2, 3]
        same, other = [compare(sides['a'], sides[name], tolerance=0., features={})
                       for name in ('b', 'c')]
    assert same.difference is None
    assert same.numbers['rows at the end'] == sum(job.ROWS.values()) * 6
    assert first(other) == (3, 'rows at the end', 'user', '') and other.difference.row == 6
