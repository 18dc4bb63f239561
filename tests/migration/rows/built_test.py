"""Imports: the new checkpoint is whole or not there, and jobs start from it."""

import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.faults import Faults, FaultyStorage
from harness.forged_job import VALUES
from harness.kill_job import live
from harness.memory import highest_rss_of
from harness.parts import soak_except

from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.checkpoint import recover
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import CheckpointError
from estimator_tpu_embedding.migration.rows import built, incoming
from estimator_tpu_embedding.migration.rows.built import Base, NewCheckpoint
from estimator_tpu_embedding.migration.rows.incoming import NamedFile
from estimator_tpu_embedding.migration.rows.outgoing import Chosen, export

TABLE = 'dense_features/f_embedding/embedding_weights'
ROWS = np.arange(1, 21, dtype=np.float32).reshape(10, 2)


@pytest.fixture
def files(tmp_path):
    """A folder with `VALUES` in reverse order as `r.npy`, and their ids as `i.npy`."""
    folder = tmp_path / 'files'
    folder.mkdir()
    np.save(folder / 'r.npy', VALUES[::-1].copy())
    np.save(folder / 'i.npy', np.arange(len(VALUES))[::-1].copy())
    return folder


def start(files, directory, base=None, name='t'):
    """Imports the files."""
    tables = incoming.from_elsewhere(
        str(files), [NamedFile(name, 'r.npy', '')], [NamedFile(name, 'i.npy', '')],
        None if base is None else {name: base.manifest.tables[name].rows})
    step = 0 if base is None else base.manifest.step
    NewCheckpoint(str(directory), step, tables, base).commit()


def test_an_import_that_is_killed_at_any_operation_is_whole_or_none(tmp_path, files, monkeypatch):
    counted = Faults()
    monkeypatch.setattr(built, 'Storage', lambda path: FaultyStorage(path, counted))
    start(files, tmp_path / 'out')
    whole = []
    for number in range(1, len(counted.log) + 1):
        out, faults = tmp_path / f'{number}', Faults(number)
        monkeypatch.setattr(built, 'Storage', lambda path: FaultyStorage(path, faults))
        assert live(tmp_path / f'log-{number}', 60, lambda: start(
            files, out)) == -signal.SIGKILL
        monkeypatch.setattr(built, 'Storage', Storage)
        whole.append(recover.recover(str(out)) is not None)
        if whole[-1]:
            with pytest.raises(CheckpointError, match='E661 .*hold no checkpoint'):
                start(files, out)
        else:
            start(files, out)
        found = recover.recover(str(out))
        np.testing.assert_array_equal(Bundle.open(found.prefix).read('t', 0, 11), VALUES)
    assert len(whole) > 8 and not whole[0] and whole[-1] and whole == sorted(whole)


def input_fn(params):
    return tf.data.Dataset.from_tensors(({'f': [1, 2, 3, 1]}, np.ones(4, np.float32))).repeat()


def job(directory, strategy, hosts, **kwargs):
    columns = [jobs.embedding('f')]
    return jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
        directory, hosts, 1), batch_size=4 * hosts, strategy=strategy, **kwargs)


class Look(tf.train.SessionRunHook):
    """Keeps the rows with which a training begins, in the order of ids."""

    def __init__(self, strategy, hosts):
        self.rows = np.zeros_like(ROWS)
        self._partition = Partition(strategy=strategy, vocabulary_size=10, num_hosts=hosts)

    def after_create_session(self, session, coord):
        for host, part in enumerate(jobs.parts_of(session.graph, TABLE)):
            self.rows[self._partition.ids_on(host)] = session.run(part)


@pytest.mark.parametrize('strategy, hosts', soak_except([('div', 1), ('mod', 2)], 1))
def test_a_job_starts_warm_from_a_table_of_elsewhere(tmp_path, strategy, hosts):
    np.save(tmp_path / 'r.npy', ROWS[::-1].copy())
    np.save(tmp_path / 'i.npy', np.arange(10)[::-1].copy())
    start(tmp_path, tmp_path / 'c', name=TABLE)
    look = Look(strategy, hosts)
    job(tmp_path / 'm', strategy, hosts, warm_start_from=_legacy.load().WarmStartSettings(
        str(tmp_path / 'c'), vars_to_warm_start='.*embedding_weights')).train(
            input_fn, steps=1, hooks=[look])
    np.testing.assert_array_equal(look.rows, ROWS)


@pytest.mark.soak
def test_a_job_goes_on_from_its_checkpoint_with_other_rows(tmp_path):
    job(tmp_path / 'm', 'mod', 2).train(input_fn, steps=2)
    prefix = str(tmp_path / 'm' / 'model.ckpt-2')
    before = jobs.stored(tmp_path / 'm', TABLE, 'mod', 2)
    np.save(tmp_path / 'r.npy', ROWS[[7, 4]])
    np.save(tmp_path / 'i.npy', np.array([7, 4]))
    start(tmp_path, tmp_path / 'c', Base(Bundle.open(prefix), read_manifest(prefix)), TABLE)
    look = Look('mod', 2)
    again = job(tmp_path / 'c', 'mod', 2)
    again.train(input_fn, steps=1, hooks=[look])
    before[[7, 4]] = ROWS[[7, 4]]
    np.testing.assert_array_equal(look.rows, before)
    assert again.get_variable_value('global_step') == 3


@pytest.mark.soak
@pytest.mark.serial
@pytest.mark.parametrize('format', ['npy', 'safetensors', 'parquet'])
def test_memory_does_not_depend_on_the_table(tmp_path, monkeypatch, format):
    """A table of 410 MB passes through less than 100 MB."""
    monkeypatch.setattr(built, 'WINDOW', 2**25)
    if format == 'parquet':
        pytest.importorskip('pyarrow.parquet')  # Its libraries take 70 MB.
    rows = 400_000
    np.save(tmp_path / 'r.npy', np.ones([rows, 256], 'f4'))
    np.save(tmp_path / 'i.npy', np.arange(rows)[::-1].copy())
    assert highest_rss_of(lambda: start(tmp_path, tmp_path / 'c')) < 100 * 2**20
    bundle = Bundle.open(str(tmp_path / 'c' / 'model.ckpt-0'))
    (tmp_path / 'r.npy').unlink()

    def there_and_back():
        partition = Partition(strategy='mod', vocabulary_size=rows, num_hosts=3)
        export(bundle, [Chosen('t', [], partition)], format, str(tmp_path / 'out'), name='t',
               step=0)
        tables, _ = incoming.exported(str(tmp_path / 'out'))
        NewCheckpoint(str(tmp_path / 'd'), 0, tables, None).commit()

    assert highest_rss_of(there_and_back) < 100 * 2**20
