"""What whole jobs write into their `profile_data_directory`, and that nothing else changes."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.checkpoint import profile_files

pytestmark = pytest.mark.soak

TABLE = 'dense_features/f_embedding/embedding_weights'
LABEL = np.ones(8, np.float32)
FIRST = {'f': np.array([1, 2, 3, 1, 9, 9, 9, 9]),
         'g': [[1, 1], [], [6], [0], [5], [5, 5, 5], [2], [2]], 'label': LABEL}
OTHER = {'f': np.arange(8), 'g': [[3]] * 8, 'label': LABEL}


def estimator(tmp_path, hosts=1, cores=1, strategy='div', directory='profiles', iterations=2,
              columns=None, kernels='auto', **spec):
    columns = columns or [jobs.embedding('f'), jobs.embedding('g', 7)]
    return ete.TPUEstimator(
        model_fn=jobs.linear_model_fn(columns), train_batch_size=8, eval_batch_size=8,
        config=jobs.run_config(
            tmp_path / 'model', hosts, cores, iterations, kernels=kernels),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            feature_columns=columns, partition_strategy=strategy,
            optimization_parameters=ete.AdagradParameters(.5),
            profile_data_directory=directory and str(tmp_path / directory), **spec))


def repeated(steps):
    make = jobs.input_fn_of(steps)
    return lambda params: make(params).repeat()


def read(tmp_path):
    return {profile.subject.table: profile
            for profile in profile_files.read_all(str(tmp_path / 'profiles'))}


@pytest.mark.parametrize('hosts, cores', soak_except([(1, 1), (1, 4), (2, 2), (4, 1)], 2, 3))
@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
def test_the_ids_of_the_first_step_by_hand(tmp_path, hosts, cores, strategy):
    estimator(tmp_path, hosts, cores, strategy).train(
        jobs.input_fn_of([FIRST, OTHER, OTHER]), steps=3)
    found = read(tmp_path)
    f, g = found['tbl_f'], found['tbl_g']
    assert len(os.listdir(tmp_path / 'profiles')) == 2
    assert (f.subject.hosts, f.subject.cores_per_host) == (hosts, cores)
    assert (f.subject.batch_size, f.subject.strategy) == (8, strategy)
    assert (g.first_step, g.last_step, g.steps, g.sampled_steps) == (0, 3, 3, 1)
    assert f.features == (8,)
    assert g.features == (10,)
    assert f.ranges == (0, 2, 1, 1, 0, 0, 0, 0, 0, 4)  # A table of 10 rows has one per row.
    assert g.ranges[:7] == (1, 2, 2, 0, 0, 4, 1)
    # 10 rows on 4 hosts: 0 to 2, 3 to 5, 6 to 7 and 8 to 9 under div.
    loads = {1: ((8,), (8,)), 2: ((4, 4), (1, 7)), 4: ((3, 1, 0, 4), (0, 6, 1, 1))}[hosts]
    assert f.loads == dict(zip(('div', 'mod'), loads))


def test_a_job_that_goes_on_later_goes_on_counting(tmp_path, caplog):
    caplog.set_level('INFO', 'tensorflow')
    estimator(tmp_path).train(repeated([FIRST]), max_steps=5)
    first = read(tmp_path)['tbl_f']
    assert caplog.text.count('0 of 2 tables were read there, steps counted so far: 0') == 1
    estimator(tmp_path).train(repeated([OTHER]), max_steps=40)
    assert caplog.text.count('2 of 2 tables were read there, steps counted so far: 1') == 1
    found = read(tmp_path)['tbl_f']
    assert (first.steps, found.steps, found.first_step, found.last_step) == (5, 40, 0, 40)
    # Step 34 is the 2nd that is sampled: ids 0 to 7 once each.
    assert found.sampled_steps == 2
    assert found.ranges == (1, 3, 2, 2, 1, 1, 1, 1, 0, 4)


@pytest.mark.parametrize('kernels, hosts, cores, pipelined', soak_except([
    graphs.of_backend(*one) for one in (
        ('stock', 1, 1, False), ('native', 2, 2, True))], 1))
def test_counting_changes_no_number(tmp_path, kernels, hosts, cores, pipelined):
    stored = []
    for name, directory in (('with', 'profiles'), ('without', None)):
        job = estimator(tmp_path / name, hosts, cores, directory=directory, kernels=kernels,
                        pipeline_execution_with_tensor_core=pipelined)
        job.train(repeated([FIRST, OTHER]), steps=36)
        path = str(tmp_path / name / 'model')
        stored.append({variable: tf.train.load_variable(path, variable).tobytes()
                       for variable, _ in tf.train.list_variables(path)})
    assert stored[0] == stored[1] and f'{TABLE}/Adagrad' in stored[0]
    assert read(tmp_path / 'with')['tbl_f'].sampled_steps == 2


def test_a_damaged_profile_is_set_aside_with_a_warning(tmp_path, caplog):
    estimator(tmp_path).train(repeated([FIRST]), max_steps=2)
    path = next((tmp_path / 'profiles').glob('tbl_f-*'))
    path.write_bytes(b'precious')
    estimator(tmp_path).train(repeated([FIRST]), max_steps=4)
    assert caplog.text.count('W616 table "tbl_f": ') == 1
    assert (tmp_path / 'profiles' / f'{path.name}.unreadable-1').read_bytes() == b'precious'
    found = read(tmp_path)
    assert (found['tbl_f'].steps, found['tbl_g'].steps) == (2, 4)


def test_a_directory_that_cannot_be_written_ends_the_job_before_input_fn_is_called(tmp_path):
    (tmp_path / 'profiles').write_bytes(b'a file')
    with pytest.raises(ete.errors.CheckpointError, match='E615 profile_data_directory: '):
        estimator(tmp_path).train(lambda params: pytest.fail('called'), steps=1)
