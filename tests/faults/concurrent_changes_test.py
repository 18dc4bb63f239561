"""What a job deletes to make room while others read it is no damage; they read the next.

Another process commits checkpoints when it is asked to, and keeps two.
"""

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.rotating_job import rotating

from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.checkpoint import recover
from estimator_tpu_embedding.cli.main import main
from estimator_tpu_embedding.errors import CheckpointError, IncompatibleCheckpointError

pytestmark = pytest.mark.no_rerun

nightly = _legacy.load()


def input_fn(params):
    size = params['batch_size']
    return tf.data.Dataset.from_tensors(
        ({'f': [1, 2, 3, 1][:size]}, np.zeros(size, np.float32))).repeat(9)


class Job:
    """A model whose model_fn, once there is a `rotation`, has the newest checkpoint go."""

    def __init__(self, directory, hosts=1, **kwargs):
        columns = [jobs.embedding('f')]
        model_fn = jobs.linear_model_fn(columns, lambda: tf.train.GradientDescentOptimizer(.1))
        self.directory, self.rotation, self.lost = str(directory), None, []

        def late(features, labels, mode, params):
            if self.rotation:
                self.lost.append(os.path.basename(recover.recover(self.directory).prefix))
                self.rotation()
            return model_fn(features, labels, mode, params)

        self.estimator = jobs.estimator(late, columns, jobs.run_config(
            directory, hosts, 1, keep_checkpoint_max=2), batch_size=4, **kwargs)


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """A job that has trained, and the prefix of its checkpoint."""
    job = Job(tmp_path_factory.mktemp('source'))
    job.estimator.train(input_fn, steps=1)
    return job, recover.recover(job.directory).prefix


WAYS = {'on the TPU': {}, 'not on the TPU': {'eval_on_tpu': False},
        'without a TPU': {'use_tpu': False}}


@pytest.mark.parametrize('way', WAYS)
def test_an_evaluation_that_loses_its_checkpoint_takes_the_next(tmp_path, source, way, caplog):
    want = source[0].estimator.evaluate(input_fn, steps=1)
    with rotating(tmp_path / 'model', source[1]) as rotation:
        job = Job(tmp_path / 'model', **WAYS[way])
        job.rotation = rotation
        for _ in range(2):
            got = job.estimator.evaluate(input_fn, steps=1)
            assert {**got, 'loss': 0} == {**want, 'loss': 0}
            np.testing.assert_allclose(got['loss'], want['loss'], rtol=1e-6)
    assert len(set(job.lost)) == len(job.lost) >= 2
    assert 'a job deleted it before it was read' in caplog.text and 'W619' in caplog.text


def test_so_do_exports(tmp_path, source):
    def serving():
        ids = tf.placeholder(tf.int64, [None])
        return nightly.export.ServingInputReceiver({'f': ids}, {'f': ids})

    with rotating(tmp_path / 'model', source[1]) as rotation:
        job = Job(tmp_path / 'model')
        job.rotation = rotation
        path = job.estimator.export_saved_model(str(tmp_path / 'export'), serving).decode()
    assert job.lost
    for name, _ in tf.train.list_variables(f'{path}/variables/variables'):
        np.testing.assert_array_equal(
            tf.train.load_variable(f'{path}/variables/variables', name),
            tf.train.load_variable(source[1], name))


def test_rows_that_lie_otherwise_are_put_into_place_from_the_next_one_too(tmp_path, source):
    two_hosts = {'hosts': 2, 'strategy': 'mod'}
    want = Job(source[0].directory, **two_hosts).estimator.evaluate(input_fn, steps=1)
    with rotating(tmp_path / 'model', source[1]) as rotation:
        job = Job(tmp_path / 'model', **two_hosts)
        job.rotation = rotation
        got = job.estimator.evaluate(input_fn, steps=1)
    np.testing.assert_allclose(got['loss'], want['loss'], rtol=1e-6)
    assert job.lost


@pytest.mark.parametrize('way', WAYS)
def test_one_that_was_named_is_not_replaced(tmp_path, source, way):
    with rotating(tmp_path / 'model', source[1]) as rotation:
        job = Job(tmp_path / 'model', **WAYS[way])
        path = recover.recover(job.directory).prefix
        job.rotation = rotation
        name = os.path.basename(path)
        for _ in range(2):  # It is gone amid the first evaluation, and before the second.
            with pytest.raises(CheckpointError, match=f'E628 checkpoint {name}: .*a job deleted'):
                job.estimator.evaluate(input_fn, steps=1, checkpoint_path=path)


def test_another_kind_of_checkpoint_takes_no_place(tmp_path, source):
    other = Job(tmp_path / 'model')
    other.estimator.train(input_fn, steps=1)
    columns = [jobs.embedding('f', buckets=11)]
    larger = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
        tmp_path / 'larger', 1, 1), batch_size=4)
    larger.train(input_fn, steps=2)

    class Replace(tf.train.SessionRunHook):
        def begin(self):  # After the graph is built, and before the session restores.
            for path in pathlib.Path(other.directory).glob('model.ckpt-*'):
                path.unlink()
            for path in (tmp_path / 'larger').glob('model.ckpt-2.*'):
                path.rename(pathlib.Path(other.directory, path.name))

    with pytest.raises(IncompatibleCheckpointError, match='E629 checkpoint model.ckpt-2'):
        other.estimator.evaluate(input_fn, steps=1, hooks=[Replace()])


@pytest.mark.parametrize('command', [['verify'], ['show', '--sample', '1']])
def test_tools_beside_a_job_report_no_damage(tmp_path, source, capsys, command):
    with rotating(tmp_path / 'model', source[1]) as rotation:
        for _ in range(20):
            with rotation.beside():
                status = main(['checkpoint', command[0], str(tmp_path / 'model'), *command[1:],
                               '--format', 'json'])
            printed = capsys.readouterr()
            report = json.loads(printed.out)
            assert status == 0, printed
            assert not report.get('findings') and not report.get('skipped')
            assert not any(one['findings'] for one in report.get('checkpoints', ()))


def test_a_damaged_checkpoint_beside_a_job_is_still_told(tmp_path, source, capsys):
    model = tmp_path / 'model'
    with rotating(model, source[1]) as rotation:
        for path in pathlib.Path(source[1]).parent.glob('model.ckpt-1.*'):
            if not path.name.endswith('.json'):
                (model / path.name.replace('ckpt-1', 'ckpt-0')).write_bytes(path.read_bytes())
        data, = model.glob('model.ckpt-0.data*')
        data.write_bytes(data.read_bytes()[:-1])
        for command in ('verify', 'ls'):
            with rotation.beside():
                assert main(['checkpoint', command, str(model)]) == 1
            printed = capsys.readouterr().out
            assert 'E613 checkpoint model.ckpt-0' in printed and printed.count('E613') == 1


def test_what_is_half_deleted_is_no_checkpoint_and_no_damage(tmp_path, source, capsys):
    for path in pathlib.Path(source[1]).parent.glob('model.ckpt-1.*'):
        for step in (1, 2):
            (tmp_path / path.name.replace('ckpt-1', f'ckpt-{step}')).write_bytes(path.read_bytes())
    (tmp_path / 'model.ckpt-2.tables.json').rename(tmp_path / 'model.ckpt-2.tables.json.partial')
    (tmp_path / 'model.ckpt-2.index').unlink()
    for command in ('verify', 'ls', 'show'):
        assert main(['checkpoint', command, str(tmp_path), '--format', 'json']) == 0
        report = json.loads(capsys.readouterr().out)
        if command == 'ls':
            assert report['partial'] == ['model.ckpt-2'] and not report['findings']
            assert [one['name'] for one in report['checkpoints']] == ['model.ckpt-1']
