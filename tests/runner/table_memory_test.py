"""Jobs with large tables on a disk: same numbers as in memory, and clear errors."""

import pathlib
import re
import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, groups, jobs
from harness.network import require_private_network
from harness.processes import EXAMPLE, run_etpe, run_harness

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.core.specs import Kernels
from estimator_tpu_embedding.hosts import engine_choice
from estimator_tpu_embedding.native import first_values
from estimator_tpu_embedding.runner import progress

ROWS = 30_000  # Of 16 floats, with a slot: 3.7 MiB.
TABLE = 'dense_features/{}_embedding/embedding_weights'
NAMES = [TABLE.format('f'), TABLE.format('f') + '/Adagrad', TABLE.format('g'),
         TABLE.format('g') + '/Adagrad', 'w/kernel']
pytestmark = [pytest.mark.no_rerun, graphs.needs_native]


def mapped():
    """The mappings of this process from files without a name."""
    return [line for line in pathlib.Path('/proc/self/maps').read_text().splitlines()
            if line.endswith('(deleted)') and 'rw-s' in line]


def advice():
    """How this process says that it reads them: `sr` in order, `rr` at random places."""
    found, flags = set(mapped()), []
    lines = iter(pathlib.Path('/proc/self/smaps').read_text().splitlines())
    for line in lines:
        if line in found:
            words = next(each for each in lines if each.startswith('VmFlags:')).split()
            flags += [word for word in words if word in ('sr', 'rr')]
    return ' '.join(flags)


class Mapped(tf.train.SessionRunHook):
    """Counts the mappings while a job runs."""

    def after_run(self, run_context, run_values):
        self.found = mapped()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A directory for tables; values come in pieces far smaller than a table."""
    monkeypatch.setattr(first_values, 'PIECE_BYTES', 2**16)
    made = tmp_path / 'files'
    made.mkdir()
    if groups.run(['stat', '-f', '-c', '%T', made]).stdout.strip() == 'tmpfs':
        pytest.skip('folders of tests are in memory')
    return made


def make(directory, memory=None, **kwargs):
    columns = [jobs.embedding('f', ROWS, 16, 'mean'), jobs.embedding('g', 70, 2, 'sqrtn')]
    return jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(
            directory, 2, 2, kernels='native', table_memory=memory, **kwargs), strategy='mod')


def steps_of(count, seed):
    generator = np.random.default_rng(seed)
    return jobs.input_fn_of([
        {'f': generator.integers(0, ROWS, [8, 3]), 'g': generator.integers(0, 70, [8, 1]),
         'label': generator.normal(size=8).astype(np.float32)} for _ in range(count)])


def stored(directory):
    return {name: tf.train.load_variable(str(directory), name) for name in NAMES}


def assert_same(one, other):
    for name in NAMES:
        np.testing.assert_array_equal(one[name], other[name], name)


def test_tables_on_a_disk_have_the_same_numbers_and_leave_no_file(tmp_path, disk):
    memory, found = ete.TableMemory(str(disk), '1MiB'), {}
    for name, where in (('memory', None), ('disk', memory)):
        hook = Mapped()
        make(tmp_path / name, where).train(steps_of(4, 1), max_steps=4, hooks=[hook])
        found[name] = len(hook.found)
        said = re.search('; disk per step, first values and checkpoints too: .* read, .* written',
                         progress.reports()[-1].last_line())
        assert bool(said) == (where is not None)
        # The second training restores the checkpoint of the first one.
        make(tmp_path / name, where).train(steps_of(3, 2), steps=3)
    # The rows and the slot of the large table; the small one is in memory.
    assert found == {'memory': 0, 'disk': 2}
    assert_same(stored(tmp_path / 'memory'), stored(tmp_path / 'disk'))
    evaluated = [make(tmp_path / name, where).evaluate(steps_of(2, 3), steps=2)
                 for name, where in (('memory', None), ('disk', memory))]
    assert evaluated[0] == evaluated[1]
    assert list(disk.iterdir()) == [] and mapped() == []


def test_what_a_saver_holds_is_read_in_order_until_it_is_freed():
    with graphs.building('native_disk'), graphs.session_of('native_disk') as session:
        plan = graphs.small_plan()
        backend = graphs.disk_backend(
            plan, {table.name: table.name for table in plan.tables}, tf.constant(0))
        session.run([tf.global_variables_initializer(), backend.engine.open()])
        session.run(backend.engine.load())
        part = backend.tables[plan.tables[0].name].rows[0]
        view = part._read_variable_op(no_copy=True)
        with tf.control_dependencies([view]):
            during = tf.py_func(advice, [], tf.string)
        with tf.control_dependencies([during]):
            held = tf.reduce_sum(view)
        found = session.run([during, held])[0].decode()
        assert found.count('sr') == 1 and 'sr' not in advice() and 'rr' in advice()


@pytest.mark.soak
def test_tables_train_and_are_restored_where_no_buffer_has_room_for_them(tmp_path, disk):
    """Rows and slot have 586 MiB each, and the process may take 400 MiB with all its threads."""
    for step in (2, 4):
        done = run_harness('disk_tables_job', tmp_path / 'model', disk, '--rows=1200000',
                           f'--room={400 * 2**20}')
        assert (done.returncode, done.stdout) == (0, f'step {step}\n')


def test_a_job_that_is_killed_leaves_no_file(tmp_path, disk):
    done = run_harness('disk_tables_job', tmp_path / 'model', disk, '--then=kill', loaded=True)
    assert done.returncode == -signal.SIGKILL
    assert list(disk.iterdir()) == []


def test_a_disk_that_fails_ends_the_process_with_a_line_and_loses_nothing_saved(tmp_path, disk):
    done = run_harness('disk_tables_job', tmp_path / 'model', disk, '--then=fail', loaded=True)
    assert done.returncode == -signal.SIGBUS
    assert [line for line in done.stderr.splitlines() if 'SIGBUS' in line] == [
        f'estimator_tpu_embedding: E479 table_memory {disk}: its disk cannot read or write a page '
        'of a table (SIGBUS), so this process ends. What was saved stays.']
    assert recover(str(tmp_path / 'model')).step == 0


def test_a_bus_error_elsewhere_is_left_to_the_handler_that_was_there_before(tmp_path, disk):
    done = run_harness('disk_tables_job', tmp_path / 'model', disk, '--then=fail-elsewhere',
                       loaded=True)
    assert done.returncode == -signal.SIGBUS
    assert 'Fatal Python error: Bus error' in done.stderr and 'fail_elsewhere' in done.stderr
    assert 'E479' not in done.stderr


@pytest.mark.parametrize('directory, message', [
    ('{}/none', 'it must be a directory in which this process can write files; got No such file '),
    ('/proc', 'it must be a directory in which this process can write files; got '),
    ('/dev/shm', 'it must be on a local disk; got tmpfs.  Take a directory on an SSD of ')])
def test_a_directory_that_cannot_hold_tables_is_refused_before_training(
        tmp_path, directory, message):
    path = directory.format(tmp_path)
    with pytest.raises(ete.ConfigError) as caught:
        make(tmp_path / 'model', ete.TableMemory(path, '1MiB')).train(steps_of(2, 1), steps=2)
    assert str(caught.value).startswith(f'E479 table_memory {path}: {message}')
    assert not list((tmp_path / 'model').glob('model.ckpt*'))


def test_a_disk_without_room_is_refused_with_the_bytes(tmp_path, disk):
    columns = [jobs.embedding('f', 2**31 - 1, 4096)]  # 64 TiB with the slot.
    config = jobs.run_config(tmp_path / 'model', table_memory=ete.TableMemory(
        str(disk), '1MiB'))
    with pytest.raises(ete.ConfigError, match=r'^E479 .*: its disk must have room for the tables, '
                       r'70368744177664 bytes; got \d+ bytes free\.  Make room'):
        jobs.estimator(jobs.linear_model_fn(columns), columns, config).train(
            jobs.input_fn_of([{'f': np.ones([8, 1], int), 'label': np.ones(8, np.float32)}]),
            steps=1)


def test_stock_kernels_refuse_tables_on_a_disk(tmp_path):
    memory = ete.TableMemory(str(tmp_path), '1MiB')
    with pytest.raises(ete.ConfigError, match="^E468 RunConfig: only native kernels have tables "):
        ete.RunConfig(kernels='stock', table_memory=memory)
    with pytest.raises(TypeError, match='^E498 RunConfig: table_memory must be a TableMemory; '):
        ete.RunConfig(table_memory='/ssd')
    with pytest.raises(ete.ConfigError, match="^E468 kernels: .*; got kernels='stock'"):
        engine_choice.choose_engine(graphs.small_plan(), {}, kernels=Kernels(
            'stock', memory=memory))


def census(model_dir, *arguments):
    """Every value in the last checkpoint of the census job."""
    done = run_etpe('run', '--steps=40', *arguments, EXAMPLE, f'--model_dir={model_dir}')
    assert done.returncode == 0
    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.soak
@pytest.mark.parametrize('hosts', ['--hosts=2', '--processes=2'])
def test_the_census_job_has_the_same_numbers_on_workers_too(tmp_path, disk, hosts):
    require_private_network()
    alone = census(tmp_path / 'memory', hosts)
    found = census(tmp_path / 'disk', hosts, f'--table-dir={disk}', '--resident=1KiB')
    assert found.keys() == alone.keys() and list(disk.iterdir()) == []
    for name, values in alone.items():
        np.testing.assert_array_equal(found[name], values, name)


@pytest.mark.soak
def test_a_directory_that_a_worker_lacks_is_refused_before_training(tmp_path):
    require_private_network()
    done = run_etpe('run', '--processes=2', f'--table-dir={tmp_path}/none', '--resident=1KiB',
                    EXAMPLE, f'--model_dir={tmp_path}/model')
    assert done.returncode == 1
    assert f'ConfigError: E479 table_memory {tmp_path}/none: it must be a directory' in done.stderr
