"""M01 to M03, M05, M06, M09: migrations that are killed, ended, or that meet others at work."""

import json
import os
import pathlib
import shutil
import signal
import tempfile

import numpy as np
import pytest
from harness import migration_job as job
from harness.parts import soak_except
from harness.processes import path_with_harness, run_harness, run_python, started
from harness.rotating_job import rotating

from estimator_tpu_embedding.checkpoint.file_names import MANIFEST, PARTIAL
from estimator_tpu_embedding.cli import etpe_migrate_checkpoint

pytestmark = pytest.mark.no_rerun
LEFT = {'.ete-lock', 'checkpoint', *(f'{job.NAME}{suffix}' for suffix in (
    '.data-00000-of-00001', '.index', '.tables.json'))}
"""What is in a directory after a migration into it."""


def swept(every, *options):
    """Yields what was found after kills at operations of a migration, in order."""
    parent = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        done = run_harness('migration_job', folder, every, *options)
        assert done.returncode == 0, done.stderr
        yield [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope='module', params=soak_except([1, 2], 1))
def kills(request):
    """Kills of a migration into a new directory: at every operation, or at about 20 of them."""
    yield from swept(request.param)


@pytest.fixture(scope='module', params=soak_except([1, 5], 1))
def overwriting(request):
    """Kills of a migration over an older one."""
    yield from swept(request.param, '--overwrite')


def of_tensorflow(directory):
    """The `offset` of the checkpoint that TensorFlow takes for the newest, or `None`."""
    import tensorflow as tf
    prefix = tf.train.latest_checkpoint(directory)
    if prefix is None:
        return None
    reader = tf.train.load_checkpoint(prefix)
    offset = float(reader.get_tensor(job.KEYS['t'])[0, 0])
    np.testing.assert_array_equal(reader.get_tensor(job.KEYS['t']), job.values(offset))
    np.testing.assert_array_equal(reader.get_tensor(job.KEYS['t/Adagrad']),
                                  job.values(offset) + np.float32(.5))
    return offset


def test_m01_after_a_kill_there_is_all_of_the_checkpoint_or_nothing(kills):
    assert len(kills) >= 15
    found = [line['found'] for line in kills]
    last = found.index(job.NEW)
    assert kills[last - 1]['operation'].startswith(('rename', 'sync'))
    assert found == [None] * last + [job.NEW] * (len(kills) - last)
    assert [line['listed'] for line in kills] == [
        [] if line['found'] is None else [job.NAME] for line in kills]


def test_m01_nor_does_tensorflow_take_anything_else_for_one(kills):
    assert {of_tensorflow(line['directory']) for line in kills} == {None, job.NEW}


def test_m02_nor_does_tensorflow_while_one_is_replaced(overwriting):
    found = [of_tensorflow(line['directory']) for line in overwriting]
    assert set(found) == {job.OLD, None, job.NEW}
    assert found == sorted(found, key=[job.OLD, None, job.NEW].index)


def test_m01_the_next_migration_says_what_it_finds_and_succeeds(kills):
    for line in kills:
        assert line['last'] == job.NEW
        if line['found'] is None:
            assert line['status'] == 0 and set(line['left']) == LEFT
            says = [text for text in line['out'].splitlines() if text.startswith('removed what')]
            saves = {0: [], 1: ['1 save'], 2: ['2 saves']}[line['stages']]
            assert says == [f'removed what {text} that did not end had left' for text in saves]
        else:
            assert line['status'] == 2 and 'E656' in line['err'] and job.NAME in line['err']


def test_m02_a_kill_while_one_is_replaced_leaves_the_old_one_or_the_new_one(overwriting):
    kept = [line['kept'] for line in overwriting]
    first = kept.index(job.NEW)
    assert kept == [job.OLD] * first + [job.NEW] * (len(kept) - first)
    for line in overwriting:  # A reader finds the same, or nothing until a job finishes it.
        assert line['found'] in (job.OLD, job.NEW, None, 'E612')
        assert (line['status'], line['last']) == (0, job.NEW) and set(line['left']) == LEFT


@pytest.fixture
def waiting(tmp_path):
    """A migration in another process that waits for its input to end when it has written."""
    prefix, map = job.make(tmp_path / 'source'), job.map_in(tmp_path)
    # A signal just before a read that blocks would not end it, so it looks again and again.
    code = ('import select, sys; from harness import migration_job as job\n'
            'def wait(phase):\n'
            '    print(phase, flush=True)\n'
            '    while phase == "written" and not select.select([sys.stdin], [], [], .1)[0]: pass\n'
            'with job.phases(wait):\n'
            f'    job.carried_out({prefix!r}, {map!r}, {str(tmp_path / "new")!r})\n')
    with started('-c', code) as (process, lines):
        assert 'written' in lines
        yield process, tmp_path


@pytest.mark.parametrize('number, status', [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_m03_a_signal_ends_it_and_removes_the_stage(waiting, number, status):
    process, folder = waiting
    process.send_signal(number)
    assert process.wait(240) == status
    assert os.listdir(folder / 'new') == ['.ete-lock']


def test_m06_a_second_migration_at_the_same_time_is_refused(waiting):
    process, folder = waiting
    status, _, error = job.migrate(folder / 'source', folder / 'new', folder / 'map')
    assert status == 2 and 'E622' in error and f'pid {process.pid}' in error
    process.stdin.close()
    assert process.wait(240) == 0
    assert job.content(folder / 'new' / job.NAME) == job.NEW


def limited(*arguments):
    """Runs `etpe` with 1 GiB of addresses; returns the most MiB of memory that it had."""
    code = ('import resource, sys\n'
            'resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n'
            'from harness import memory\n'
            'from estimator_tpu_embedding.cli.main import main\n'
            'assert main() == 0\n'
            'print(memory.most_rss())\n')
    done = run_python('-c', code, *arguments, OPENBLAS_NUM_THREADS='1',
                      PYTHONPATH=path_with_harness())
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1]) / 2**20


@pytest.fixture
def large_folder(tmp_path):
    """A folder that is emptied after the test; pytest would keep gigabytes."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize('strategy, hosts', [('div', 1), ('mod', 5)])
def test_m09_a_table_of_two_gigabytes_goes_there_and_back_in_little_memory(
        large_folder, strategy, hosts):
    map = job.map_in(large_folder)
    rows = {'small': 1000, 'large': 2**31 // 256}
    most = {}
    for size, count in rows.items():
        job.make_large(large_folder / size, count, strategy, hosts)
        there, back = large_folder / f'{size}-there', large_folder / f'{size}-back'
        most[size, 'there'] = limited('migrate', 'checkpoint', large_folder / size, there,
                                      '--to', 'tf2', '--map', map)
        most[size, 'back'] = limited('migrate', 'checkpoint', there, back, '--to', 'tf1',
                                     '--order', f'{strategy}:{hosts}' if hosts > 1 else 'div')
    for way in ('there', 'back'):
        assert most['large', way] - most['small', way] < 50, most
    for path in (large_folder / 'large').glob('*.data*'):
        made = large_folder / 'large-back' / path.name
        assert made.stat().st_size == path.stat().st_size


def test_m05_beside_a_job_that_keeps_deleting_nothing_is_ever_called_damaged(tmp_path):
    source, map = job.make(tmp_path / 'one'), job.map_in(tmp_path)
    outcomes = []
    with rotating(tmp_path / 'many', source) as rotation:
        for number in range(8):
            new = tmp_path / str(number)
            with rotation.beside():
                status, _, error = job.migrate(tmp_path / 'many', new, map)
            outcomes.append(error if status else job.content(new / job.NAME))
            assert status or set(os.listdir(new)) == LEFT
    assert all(one == job.NEW or 'E628' in one for one in outcomes), outcomes


def test_m05_a_manifest_that_goes_first_is_a_checkpoint_that_is_deleted(tmp_path, monkeypatch):
    source, map = job.make(tmp_path / 'one'), job.map_in(tmp_path)
    read = etpe_migrate_checkpoint.read

    def late(parsed, prefix, given):
        pathlib.Path(prefix + PARTIAL).touch()
        os.remove(prefix + MANIFEST)
        return read(parsed, prefix, given)

    monkeypatch.setattr(etpe_migrate_checkpoint, 'read', late)
    with rotating(tmp_path / 'many', source):  # The manifest of the other one says mod.
        status, _, error = job.migrate(tmp_path / 'many', tmp_path / 'new', map)
    assert status == 2 and 'E628' in error
