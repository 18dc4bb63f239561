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
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import CheckpointError
from estimator_tpu_embedding.migration import rows_import
from estimator_tpu_embedding.migration.rows_export import Chosen, export
from estimator_tpu_embedding.migration.rows_import import NamedFile

TABLE = 'dense_features/f_embedding/embedding_weights'
ROWS = np.arange(1, 21, dtype=np.float32).reshape(10, 2)


def put(folder, rows):
    """Writes rows in reverse order as `r.npy`, and their ids as `i.npy`."""
    folder.mkdir(exist_ok=True)
    np.save(folder / 'r.npy', rows[::-1])
    np.save(folder / 'i.npy', np.arange(len(rows))[::-1].copy())


def start(files, directory, name='t'):
    """Imports the files."""
    tables = rows_import.checked(
        str(files), [NamedFile(name, 'r.npy', '')], [NamedFile(name, 'i.npy', '')])
    rows_import.write(str(directory), tables)


def test_an_import_that_is_killed_at_any_operation_is_whole_or_none(tmp_path, monkeypatch):
    put(files := tmp_path / 'files', VALUES)
    counted = Faults()
    monkeypatch.setattr(rows_import, 'Storage', lambda path: FaultyStorage(path, counted))
    start(files, tmp_path / 'out')
    whole = []
    for number in range(1, len(counted.log) + 1):
        out, faults = tmp_path / f'{number}', Faults(number)
        monkeypatch.setattr(rows_import, 'Storage', lambda path: FaultyStorage(path, faults))
        assert live(tmp_path / f'log-{number}', 60, lambda: start(
            files, out)) == -signal.SIGKILL
        monkeypatch.setattr(rows_import, 'Storage', Storage)
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
    put(tmp_path, ROWS)
    start(tmp_path, tmp_path / 'c', TABLE)
    look, columns = Look(strategy, hosts), [jobs.embedding('f')]
    jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path / 'm', hosts, 1),
        batch_size=4 * hosts, strategy=strategy, warm_start_from=_legacy.load().WarmStartSettings(
            str(tmp_path / 'c'), vars_to_warm_start='.*embedding_weights')).train(
                input_fn, steps=1, hooks=[look])
    np.testing.assert_array_equal(look.rows, ROWS)


@pytest.mark.soak
@pytest.mark.serial
@pytest.mark.parametrize('format', ['npy', 'safetensors', 'parquet'])
def test_memory_does_not_depend_on_the_table(tmp_path, monkeypatch, format):
    """A table of 410 MB passes through less than 100 MB."""
    monkeypatch.setattr(rows_import, 'WINDOW', 2**25)
    if format == 'parquet':
        pytest.importorskip('pyarrow.parquet')  # Its libraries take 70 MB.
    rows = 400_000
    put(tmp_path, np.ones([rows, 256], 'f4'))
    assert highest_rss_of(lambda: start(tmp_path, tmp_path / 'c')) < 100 * 2**20
    bundle = Bundle.open(str(tmp_path / 'c' / 'model.ckpt-0'))
    (tmp_path / 'r.npy').unlink()

    def there_and_back():
        out, partition = str(tmp_path / 'out'), Partition(
            strategy='mod', vocabulary_size=rows, num_hosts=3)
        (one,), = export(bundle, [Chosen('t', [], partition)], format, out)
        rows_import.write(str(tmp_path / 'd'), rows_import.checked(out, [
            NamedFile('t', one.file, 't' if format != 'npy' else '')], []))

    assert highest_rss_of(there_and_back) < 100 * 2**20
