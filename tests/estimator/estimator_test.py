import json
import logging
import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.compat.contrib.hparams import HParams

TABLE = 'dense_features/f_embedding/embedding_weights'
STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 4


def make(directory, columns=None, hosts=1, cores=1, config=None, **kwargs):
    columns = columns or [jobs.embedding('f')]
    return jobs.estimator(
        jobs.linear_model_fn(columns), columns, config or jobs.run_config(directory, hosts, cores),
        **{'batch_size': 4, **kwargs})


def bare(directory, **kwargs):
    return ete.TPUEstimator(**{
        'model_fn': lambda features, params: None, 'config': jobs.run_config(directory),
        'train_batch_size': 8, **kwargs})


@pytest.mark.parametrize('kwargs, error, text', [
    ({'config': None}, ValueError,
     '`config` must be provided with type `tpu_config.RunConfig`'),
    ({'params': {'batch_size': 3}}, ValueError,
     "['batch_size', 'context'] are reserved keys but existed in params {'batch_size': 3}."),
    ({'train_batch_size': None}, ValueError, '`train_batch_size` cannot be `None`'),
    ({'train_batch_size': 8.}, TypeError,
     "train_batch_size must be int, got <class 'float'>"),
    ({'eval_batch_size': -3}, ValueError, 'eval_batch_size must be positive, got -3'),
    ({'model_fn': lambda params: None}, ValueError, 'must include features argument.'),
    ({'export_saved_model_api_version': 3}, ValueError,
     'export_saved_model_api_version should be 1 or 2; got 3.')])
def test_bad_arguments_get_the_errors_of_the_original(tmp_path, kwargs, error, text):
    with pytest.raises(error) as caught:
        bare(tmp_path, **kwargs)
    assert text in str(caught.value)


def test_an_estimator_without_params_or_model_dir_has_an_empty_dict_and_a_new_directory(caplog):
    with caplog.at_level(logging.INFO, 'tensorflow'):
        made = ete.TPUEstimator(lambda features, params: None, config=ete.RunConfig(),
                                use_tpu=False, train_batch_size=-1, eval_batch_size='unchecked')
    assert made.params == {} and pathlib.Path(made.model_dir).is_dir()
    rewrites = made._session_config.graph_options.rewrite_options
    assert made._session_config.allow_soft_placement
    assert rewrites.meta_optimizer_iterations == rewrites.ONE
    assert '_TPUContext: eval_on_tpu True' in caplog.text
    assert 'eval_on_tpu ignored because use_tpu is False.' in caplog.text
    pathlib.Path(made.model_dir).rmdir()


@pytest.mark.parametrize('kwargs', [{'use_tpu': False}, {'eval_on_tpu': False}])
def test_mod_tables_are_refused_where_columns_would_read_them_on_the_cpu(tmp_path, kwargs):
    with pytest.raises(ValueError, match='Mod sharding of embedding tables not supported on CPU.'):
        make(tmp_path, strategy='mod', **kwargs)


def test_all_that_is_not_supported_yet_is_named_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': {'chief': ['localhost:1'], 'worker': ['localhost:2']},
        'task': {'type': 'chief', 'index': 0}}))
    config = ete.RunConfig(tpu_config=ete.TPUConfig(experimental_feed_hook=object))
    with pytest.raises(ete.UnsupportedError) as caught:
        make(tmp_path, config=config)
    assert str(caught.value) == (
        'E907 TPUConfig.experimental_feed_hook: it must be a subclass of '
        "TPUInfeedOutfeedSessionHook, without which nothing would feed; got <class 'object'>.\n"
        'E907 TF_CONFIG: a cluster of processes is for plain Estimators.  Unset it: hosts are '
        'emulated in one process, or they are workers: see etpe docs cluster.')


@pytest.mark.parametrize('verb, kwargs, error, text', [
    ('train', {}, ValueError, 'For TPU training, one of `steps` or `max_steps` must be set.'),
    ('train', {'steps': 2.}, TypeError, "Train steps must be int, got <class 'float'>"),
    ('train', {'steps': 0}, ValueError, 'Must specify steps > 0, given: 0'),
    ('train', {'max_steps': 2.}, TypeError,
     "Train max_steps must be int, got <class 'float'>"),
    ('evaluate', {}, ValueError, 'Evaluate `steps` must be set on TPU. Cannot be `None`.'),
    ('evaluate', {'steps': 2.}, TypeError, "Eval steps must be int, got <class 'float'>"),
    ('evaluate', {'steps': -321}, ValueError, 'Eval steps must be positive, got -321')])
def test_bad_step_counts_get_the_errors_of_the_original(tmp_path, verb, kwargs, error, text):
    with pytest.raises(error) as caught:
        getattr(make(tmp_path), verb)(jobs.input_fn_of(STEPS), **kwargs)
    assert text in str(caught.value)


def test_i13_a_batch_that_the_cores_do_not_divide_is_refused_with_the_arithmetic(tmp_path):
    with pytest.raises(ete.ConfigError) as caught:
        make(tmp_path, hosts=2, cores=2, batch_size=10).train(jobs.input_fn_of(STEPS), steps=1)
    assert str(caught.value) == (
        'E411 train_batch_size: train batch size 10 must be divisible by number of replicas 4; '
        'got 10 over 2 hosts x 2 cores.  Use 8 or 12.')
    assert not list(tmp_path.glob('model.ckpt*'))


def test_input_fn_and_model_fn_learn_batch_size_context_and_whatever_else_they_ask_for(tmp_path):
    seen = {}
    columns = [jobs.embedding('f')]

    def input_fn(params, mode, config, input_context):
        assert input_context is None  # There is no distribution strategy.
        context = params['context']
        seen[f'input {context.current_host}'] = (
            params['batch_size'], mode, config.model_dir, params['mine'], 'use_tpu' in params)
        params['mine'].append('changed')  # a copy
        return jobs.input_fn_of(STEPS)(params)

    def model_fn(features, labels, mode, params, config):
        seen['model'] = (params['batch_size'], mode, params['use_tpu'], params[
            'context'].num_replicas, list(params['mine']), config.tf_random_seed,
            features['f'].shape)
        params['mine'].append('changed')  # copies, both
        config._tf_random_seed = 7
        return jobs.linear_model_fn(columns)(features, labels, mode, params)

    jobs.estimator(model_fn, columns, jobs.run_config(tmp_path, 2, 1), batch_size=4,
                   params={'mine': []}).train(input_fn, steps=1)
    assert seen == {
        'input 0': (2, 'train', str(tmp_path), ['changed'], False),
        'input 1': (2, 'train', str(tmp_path), ['changed'], False),
        'model': (2, 'train', True, 2, [], 1, (2, 2))}


@pytest.mark.parametrize('input_fn, error, text', [
    (lambda: None, ValueError, 'does not include params argument, required by TPUEstimator to '
     'pass batch size as params["batch_size"]'),
    (lambda params: None, TypeError, '`input_fn` must return a `Dataset` for the PER_HOST_V2 '
     'input pipeline configuration.  It returned NoneType.'),
    (lambda params: ({'f': 1}, 2), TypeError, 'It returned tuple.')])
def test_i19_input_fns_that_do_not_fit_are_refused(tmp_path, input_fn, error, text):
    with pytest.raises(error) as caught:
        make(tmp_path).train(input_fn, steps=1)
    assert text in str(caught.value)


@pytest.mark.parametrize('verb, mode', [('train', 'train'), ('evaluate', 'eval')])
def test_i15_what_input_fn_raises_is_raised_with_a_note_of_host_and_mode(tmp_path, verb, mode):
    raised = MemoryError('of the user')

    def input_fn(params):
        if params['context'].current_host == 1:
            raise raised
        return jobs.input_fn_of(STEPS)(params)

    estimator = make(tmp_path, hosts=2, cores=1)
    with pytest.raises(MemoryError) as caught:
        getattr(estimator, verb)(input_fn, steps=1)
    assert caught.value is raised
    assert caught.value.__notes__ == [
        f'raised by the call of input_fn for host 1 in mode {mode}']


def _with_chief_hooks(features, labels, mode, params):
    spec = jobs.linear_model_fn([jobs.embedding('f')])(features, labels, mode, params)
    return _legacy.load().EstimatorSpec(
        mode, loss=spec.loss, train_op=spec.train_op,
        training_chief_hooks=[tf.train.SessionRunHook()])


def _without_scaffold(features, labels, mode, params):
    return jobs.linear_model_fn([jobs.embedding('f')])(
        features, labels, mode, params)._replace(scaffold_fn=lambda: None)


@pytest.mark.parametrize('model_fn, error, text', [
    (lambda features, labels: None, ValueError, 'does not include params argument, required by '
     "TPUEstimator to pass batch size as params['batch_size']"),
    (_with_chief_hooks, ValueError, 'training_chief_hooks returned by EstimatorSpec is not '
     'supported in TPUEstimator.If you want to pass training hooks, please pass via '
     'training_hooks.'),
    (_without_scaffold, ValueError, 'TPUEstimatorSpec.scaffold_fn returns None, which is not '
     'allowed'),
    (lambda features, params: None, ValueError,
     'model_fn does not take labels, but input_fn returns labels.')])
def test_model_fns_that_do_not_fit_are_refused(tmp_path, model_fn, error, text):
    columns = [jobs.embedding('f')]
    estimator = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path), batch_size=4)
    with pytest.raises(error) as caught:
        estimator.train(jobs.input_fn_of(STEPS), steps=1)
    assert text in str(caught.value)


@pytest.mark.parametrize('kwargs, error, text', [
    ({'predict_batch_size': None}, ValueError, 'predict_batch_size in TPUEstimator constructor '
     'cannot be `None` if .predict is running on TPU.'),
    ({'predict_batch_size': 10}, ete.ConfigError,
     'predict batch size 10 must be divisible by number of replicas 4'),
    ({'input_fn': lambda params: {'f': tf.zeros([1], tf.int64)}}, TypeError,
     'For mode PREDICT, `input_fn` must return `Dataset` instead of `features` and `labels`.'),
    ({'hooks': [1]}, TypeError, 'Hooks must be a SessionRunHook'),
    ({'checkpoint_path': '/nonexistent/model.ckpt-1'}, ete.EteError,
     'E613 checkpoint model.ckpt-1')])
def test_a_prediction_that_cannot_be_made_says_so_when_its_first_row_is_asked_for(
        tmp_path, kwargs, error, text):
    size = kwargs.pop('predict_batch_size', 4)
    estimator = make(tmp_path, hosts=2, cores=2, predict_batch_size=size)
    rows = estimator.predict(**{'input_fn': ids_input_fn([1, 2]), **kwargs})
    with pytest.raises(error) as caught:
        next(rows)
    assert text in str(caught.value)


def ids_input_fn(ids):
    """The ids `f`, all from host 0."""
    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices({'f': np.array(ids, np.int64)}).batch(
            params['batch_size'])
        return dataset if params['context'].current_host == 0 else dataset.take(0)
    return input_fn


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
def test_a_training_checkpoint_is_read_as_the_newest_or_as_that_which_is_named(tmp_path, strategy):
    estimator = make(tmp_path, hosts=3, batch_size=6, strategy=strategy)
    batch = {'f': np.array([0, 1, 2, 3, 8, 9]), 'label': np.ones(6, np.float32)}
    estimator.train(jobs.input_fn_of([batch] * 3), steps=3)
    tables = {path: jobs.stored(path, TABLE, strategy, 3) for path in (
        tmp_path / 'model.ckpt-0', tmp_path / 'model.ckpt-3')}
    assert not np.allclose(*tables.values())
    for path, table in tables.items():
        kwargs = {'checkpoint_path': str(path)} if path.name.endswith('-0') else {}
        rows = list(estimator.predict(ids_input_fn(range(10)), **kwargs))
        np.testing.assert_array_equal([row['net'] for row in rows], table)
        assert estimator.evaluate(jobs.input_fn_of([batch]), steps=1, **kwargs)[
            'global_step'] == int(path.name[-1])


def test_a_prediction_without_a_checkpoint_warns_that_it_has_learned_nothing(tmp_path, caplog):
    assert len(list(make(tmp_path).predict(ids_input_fn([1, 2])))) == 2
    assert (f'Could not find trained model in model_dir: {tmp_path}, running initialization to '
            'predict.') in caplog.text


@pytest.mark.parametrize('flags, mode, text', [
    ({'export_to_cpu': False, 'export_to_tpu': False}, 'infer',
     'One of export_to_cpu and export_to_tpu must be true.'),
    ({'export_to_cpu': False}, 'eval', 'No valid modes for exporting found.')])
def test_an_export_without_any_graph_is_refused_when_it_is_asked_for(tmp_path, flags, mode, text):
    estimator = make(tmp_path, **flags)
    with pytest.raises(ValueError, match=text):
        estimator.export_saved_model(
            str(tmp_path / 'export'), lambda: None, experimental_mode=mode)


@pytest.mark.parametrize('directory, said', [
    ('gs://bucket/p', 'E913 profile_data_directory: it must be a local directory'),
    ('../p', 'E439 .*; got a part ".."'), ('~/p', 'E439 .*; got "~"'),
    ('$HOME/p', r'E439 .*; got "\$"'), ('file:/p', 'E439 .*; got a URL scheme'),
    ('p\n', 'E439 .*; got a control character'), (pathlib.Path('/p'), 'E439 .*; got a PosixPath')])
def test_p15_a_directory_for_profiles_that_is_not_plainly_a_local_one_is_refused(
        tmp_path, directory, said):
    columns = [jobs.embedding('f')]
    with pytest.raises((ete.UnsupportedError, ete.ConfigError), match=said):
        ete.TPUEstimator(
            model_fn=jobs.linear_model_fn(columns), config=jobs.run_config(tmp_path),
            train_batch_size=4, embedding_config_spec=ete.EmbeddingConfigSpec(
                feature_columns=columns, optimization_parameters=ete.AdagradParameters(.1),
                profile_data_directory=directory))


@pytest.mark.parametrize('kind', ['train_distribute', 'eval_distribute'])
def test_a_distribution_strategy_is_refused_where_the_cores_are_the_replicas(tmp_path, kind):
    config = ete.RunConfig(model_dir=str(tmp_path), **{
        kind: tf.distribute.MirroredStrategy(['/cpu:0'])})
    with pytest.raises(ete.UnsupportedError, match='E914 RunConfig: a strategy is for'):
        ete.TPUEstimator(lambda features: None, config=config, train_batch_size=4)
    ete.TPUEstimator(lambda features: None, config=config, use_tpu=False)


@pytest.mark.parametrize('use_tpu', [True, False])
def test_params_keep_their_class_and_a_training_may_return_a_plain_spec(tmp_path, use_tpu):
    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        assert isinstance(params, HParams) and params.mine == 7 and params.use_tpu is use_tpu
        spec = jobs.linear_model_fn(columns, lambda: tf.train.GradientDescentOptimizer(.1))(
            features, labels, mode, params)
        return _legacy.load().EstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op)

    def input_fn(params):
        assert params.batch_size == 4 and ('context' in params) is use_tpu
        return tf.data.Dataset.from_tensors(({'f': [1, 2, 3, 1]}, np.ones(4, np.float32)))

    jobs.estimator(model_fn, columns, jobs.run_config(tmp_path), batch_size=4, use_tpu=use_tpu,
                   params=HParams(mine=7)).train(input_fn, steps=1)
    assert tf.train.load_variable(str(tmp_path), 'global_step') == 1
