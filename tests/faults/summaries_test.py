"""Rows C07 and C08: event files that cannot be written, and a model_dir that is read-only."""

import textwrap

import pytest
from harness import groups, jobs
from harness.processes import path_with_harness, run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import CheckpointWriteError

TMPFS = ['unshare', '-rm', 'sh', '-c', 'mount -t tmpfs -o size=$1 none "$2" && shift 2 && "$@"',
         'sh']
"""Runs what follows with a small file system of its own; two arguments are its size and place."""


def has_tmpfs(directory):
    return groups.run([*TMPFS, '100k', directory, 'true']).returncode == 0


JOB = textwrap.dedent("""
    import os, subprocess, sys
    os.environ['TF_USE_LEGACY_KERAS'] = '1'
    import tensorflow.compat.v1 as tf
    from faults import ending_test
    from harness import jobs
    import estimator_tpu_embedding as ete

    tf.logging.set_verbosity(tf.logging.INFO)
    full, elsewhere = sys.argv[1:]

    class Noise(tf.train.SummarySaverHook):
        def begin(self):
            self._summary_op = tf.summary.image(
                'noise', tf.random.uniform([1, 99, 99, 3]), collections=[])
            super().begin()

    ending_test.train(f'{full}/job', steps=2)
    ending_test.train(elsewhere, [Noise(save_steps=1, output_dir=f'{full}/noise', summary_op='')],
                      steps=40, save_checkpoints_steps=20)
    print('steps', ending_test.steps_on_disk(elsewhere))

    tf.summary.FileWriterCache.clear()
    subprocess.run(['mount', '-o', 'remount,ro', full], check=True)

    def model_fn(features, labels, mode, params):
        if mode == 'infer':
            print('predicts')
            return ete.TPUEstimatorSpec(mode, predictions={
                'y': features @ tf.get_variable('w', [2])[:, tf.newaxis]})
        print('builds', mode)
        return ending_test.model_fn(features, labels, mode, params)

    for use_tpu in (True, False):
        estimator = ete.TPUEstimator(
            model_fn, config=jobs.run_config(f'{full}/job'), train_batch_size=4,
            eval_batch_size=4, predict_batch_size=4, use_tpu=use_tpu)
        step = estimator.evaluate(ending_test.batches, steps=1)['global_step']
        rows = list(estimator.predict(lambda params: ending_test.batches(params).map(
            lambda features, labels: features).take(1)))
        print('evaluated', step, len(rows))
        try:
            estimator.train(ending_test.batches, max_steps=9)
        except ete.errors.CheckpointWriteError as error:
            print('refused', error)
    """)


@pytest.mark.skipif(not has_tmpfs('/mnt'), reason='needs a mount in a namespace of its own')
def test_c07_c08_a_full_disk_of_summaries_and_a_read_only_model_dir(tmp_path):
    full, elsewhere = tmp_path / 'full', tmp_path / 'elsewhere'
    full.mkdir()
    done = run_python('-c', JOB, full, elsewhere, before=[*TMPFS, '700k', str(full)],
                      PYTHONPATH=path_with_harness())
    assert done.returncode == 0, done.stderr
    # C07: of the disk that is full, that is all that is heard.
    assert 'steps [0, 20, 40]' in done.stdout
    assert done.stderr.count(f'W806 summaries in {full}/noise: ') == 1
    # C08: what only reads goes on without event files; training is refused before its graph.
    assert done.stdout.count('evaluated 2 4') == 2
    assert done.stderr.count(f'W806 summaries in {full}/job/eval: ') == 2
    assert done.stdout.count(f'refused E621 model_dir {full}/job: ') == 2
    assert 'builds eval' in done.stdout and 'builds train' not in done.stdout


@pytest.mark.parametrize('use_tpu', [True, False])
@pytest.mark.parametrize('directory', ['file/job', 'file', '/proc/self/job'])
def test_c08_a_model_dir_that_cannot_be_made_is_refused_before_the_graph_is_built(
        tmp_path, directory, use_tpu):
    (tmp_path / 'file').write_text('in the way')
    estimator = ete.TPUEstimator(
        lambda features, labels, mode, params: pytest.fail('called'),
        config=jobs.run_config(tmp_path / directory), train_batch_size=4, use_tpu=use_tpu)
    with pytest.raises(CheckpointWriteError, match=f'E621 model_dir .*{directory}'):
        estimator.train(lambda params: pytest.fail('called'), max_steps=1)
