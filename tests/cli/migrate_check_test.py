"""`etpe migrate check` runs two jobs, and says by its exit status whether they are the same.

Where a test says so, its jobs run in forks of a process that has imported TensorFlow.
"""

import os

import pytest
from harness import agreement_job as job
from harness import loaded
from harness.processes import path_with_harness, run_harness

from estimator_tpu_embedding.cli.main import main
from estimator_tpu_embedding.migration import check_jobs

JOB = 'py:harness.agreement_job:'


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """The model_dir of the TF1 form after two steps; a map and the migrated one are beside it."""
    made = tmp_path_factory.mktemp('job')
    assert run_harness('agreement_job', made, 'div', loaded=True).returncode == 0
    (made / 'map').write_text(job.MAP)
    assert main(['migrate', 'checkpoint', str(made / 'model'), str(made / 'b'), '--to', 'tf2',
                 '--map', str(made / 'map')]) == 0
    return made / 'model'


@pytest.fixture
def quick(monkeypatch):
    """Runs each side in a fork."""
    def run(command, *, stdin, stdout, stderr, timeout, check):
        done = loaded.run(command[1:], None, {**os.environ, 'PYTHONPATH': path_with_harness()},
                          timeout)
        stdout.write((done.stdout + done.stderr).encode())
        return done
    monkeypatch.setattr(check_jobs.subprocess, 'run', run)


def arguments(model, old='OLD.div', new='NEW.right', *others):
    return ('migrate', 'check', JOB + old, JOB + new, '--checkpoint', model / 'model.ckpt-2',
            '--checkpoint-b', model.parent / 'b', '--map', model.parent / 'map', '--steps',
            job.STEPS, *others)


def test_it_says_that_a_migrated_job_is_the_same(etpe, model, quick):
    found = etpe.json(*arguments(model, 'OLD.installing'))
    assert found['equal'] and found['differences'] == found['remarks'] == []
    assert found['compared']['steps'] == job.STEPS
    assert found['compared']['table'] == sum(job.ROWS.values()) * 2
    assert found['checkpoint'].endswith('model.ckpt-2')
    assert found['checkpoint_b'].endswith('b/ckpt-2')


@pytest.mark.soak
def test_jobs_of_one_api_begin_with_one_checkpoint(etpe, model, quick):
    found = etpe.json('migrate', 'check', f'{JOB}OLD.div', f'{JOB}OLD.mod', '--checkpoint', model,
                      '--steps', job.STEPS)
    assert found['equal'] and found['remarks'] == []


@pytest.mark.soak
@pytest.mark.parametrize('new, step, table', [
    ('NEW.other_rate', 1, 'video'), ('NEW.wrong_label', 2, 'user')])
def test_it_names_the_step_after_which_the_jobs_differ(etpe, model, quick, new, step, table):
    printed = etpe(*arguments(model, 'OLD.div', new), status=1)
    assert f'different: after step {step}: table "{table}", row ' in printed


@pytest.mark.soak
def test_other_ids_are_told_by_the_rows_that_move(etpe, model, quick):
    found = etpe.json(*arguments(model, 'OLD.div', 'NEW.other_data'), status=1)
    assert [remark for remark in found['remarks'] if 'do both look up the same ids?' in remark]


@pytest.mark.soak
@pytest.mark.parametrize('new, expected', [
    ('NEW.fails', ['ValueError: the data are gone', 'E684 side B', 'exit status 1']),
    ('NEW.killed', ['E684 side B', 'it was killed by signal 9 (Killed)']),
    ('NEW.ends', ['E685 side B']), ('Unsaved', ['E685 side B']),
    ('NEW.few_batches', ['E687 side B', 'it must make and save 3 steps', 'got 2']),
    ('no_such_side', ['has no attribute', 'E684 side B'])])
def test_a_side_that_fails_is_an_error_with_its_reason(etpe, model, quick, new, expected):
    errors = etpe(*arguments(model, 'OLD.div', new), status=2)
    assert [text for text in expected if text not in errors] == []


@pytest.mark.soak
def test_an_object_that_is_no_side_is_refused(etpe, model, quick):
    assert 'E682 side A: it must be an EstimatorSide' in etpe(
        *arguments(model, 'RATES', 'NEW.right'), status=2)


def test_a_side_that_hangs_is_killed_at_the_deadline(etpe, model):
    """Python itself takes longer to start."""
    assert 'E686 side A: it must end within 0.01 seconds' in etpe(
        *arguments(model, 'NEW.hangs', 'NEW.right', '--deadline', .01), status=2)


def test_all_arguments_that_are_wrong_are_named_at_once(etpe, model):
    errors = etpe('migrate', 'check', 'jobs.old', JOB, '--checkpoint', model, '--steps', 0,
                  '--tolerance', 'nan', '--deadline', -1, status=2)
    assert [line.split(': ')[1] for line in errors.splitlines()] == [
        f'E681 {where}' for where in ('A', 'B', 'deadline', 'steps', 'tolerance')]
