"""Holds `TPUEstimator`, which trains, evaluates and predicts on emulated TPU hosts."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _process, _tf, defaults
from ..checkpoint import model_dir
from ..checkpoint.recover import Following, Known
from ..checkpoint.restore_plan import check_order_of_ids
from ..core.deployment import Deployment
from ..runner import inference, summaries, training
from ..runner.job import Job
from ..runner.training import StopAtStep
from . import job_settings, original_runner, tpu_addresses, user_functions
from .embedding_spec import EmbeddingConfigSpec
from .tpu_config import (
    ExportSavedModelApiVersion,
    InputPipelineConfig,
    RunConfig,
    TPUConfig,
    check_positive,
    without_addresses,
)
from .tpu_context import EstimatorContext, deploy
from .without_tpu import BATCH_SIZES, VERBS, WithoutTpu

_RESERVED = ('batch_size', 'context')


class TPUEstimator(WithoutTpu):
    """Trains and evaluates a model whose embedding tables live on TPU hosts, emulated here.

    Each core of the emulated system has a replica of the model, and the tables are spread over the
    hosts. The optimizer of the `embedding_config_spec` trains the tables; the model's own trains
    the rest. With `use_tpu=False` it is a plain Estimator, in which the model's optimizer trains
    the tables too, as in the original. Its first training then warns of that.

    The loss is the sum of the two rows that the two samples look up. Its gradient is 1 for each
    of them, so plain gradient descent with the rate 0.5 takes 0.5 from the rows 1 and 3:

    >>> import tempfile
    >>> import estimator_tpu_embedding as ete
    >>> video = ete.embedding_column(
    ...     tf.feature_column.categorical_column_with_identity('video', num_buckets=4),
    ...     dimension=1, initializer=tf.ones_initializer())
    >>> def model_fn(features, mode, params):
    ...     loss = tf.reduce_sum(tf.feature_column.input_layer(features, [video]))
    ...     optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    ...     return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
    ...         loss, tf.train.get_global_step()))
    >>> def input_fn(params):
    ...     return tf.data.Dataset.from_tensors({'video': [[1], [3]]})
    >>> spec = ete.EmbeddingConfigSpec([video], ete.StochasticGradientDescentParameters(0.5))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     estimator = TPUEstimator(model_fn, directory, ete.RunConfig(), train_batch_size=2,
    ...                              embedding_config_spec=spec)
    ...     estimator = estimator.train(input_fn, steps=1)
    ...     print(estimator.get_variable_value(
    ...         'input_layer/video_embedding/embedding_weights').tolist())
    [[1.0], [0.5], [1.0], [0.5]]
    """

    def __init__(self, model_fn: Callable[..., Any] | None = None, model_dir: str | None = None,
                 config: RunConfig | None = None, params: dict[str, Any] | None = None,
                 use_tpu: bool = True, train_batch_size: int | None = None,
                 eval_batch_size: int | None = None, predict_batch_size: int | None = None,
                 batch_axis: Sequence[int] | None = None, eval_on_tpu: bool = True,
                 export_to_tpu: bool = True, export_to_cpu: bool = True,
                 warm_start_from: Any = None,
                 embedding_config_spec: EmbeddingConfigSpec | None = None,
                 export_saved_model_api_version: Any = 1):
        """Checks and stores the arguments.

        Args:
          model_fn: called with features, labels, mode, params and config, as far as it takes
            them; returns a `TPUEstimatorSpec`.
          model_dir: the directory of checkpoints and event files.
          config: the RunConfig of this package.
          params: passed on to model_fn and input_fn, with `'batch_size'` and `'context'` added.
          use_tpu: `False` runs a plain Estimator.
          train_batch_size: samples of all cores per training step.
          eval_batch_size: samples of all cores per evaluation step.
          predict_batch_size: samples of all cores per prediction step.
          batch_axis: with PER_HOST_V1 input, the dimension of each tensor that is cut among the
            cores. The tensors are the features and labels in their flat order. `None` gives a
            whole tensor to each core.
          eval_on_tpu: `False` evaluates as a plain Estimator does.
          export_to_tpu: whether an export has a graph for a TPU, tagged `serve` and `tpu`.
          export_to_cpu: whether it has one for a CPU, tagged `serve`.
          warm_start_from: a checkpoint or `WarmStartSettings` to start from.
          embedding_config_spec: the embedding columns and their optimizer.
          export_saved_model_api_version: 1 rewrites the whole model_fn for the TPU graph. With 2
            the model_fn calls `inference_on_tpu` or its kin itself.

        Raises:
          ValueError, TypeError: as the original does.
        """
        if not isinstance(config, RunConfig):
            raise ValueError('`config` must be provided with type `tpu_config.RunConfig`')
        if params is not None and any(key in params for key in _RESERVED):
            raise ValueError(f'{list(_RESERVED)} are reserved keys but existed in params '
                             f'{params}.')
        self._known = Known()
        self._batch_sizes = {
            'train_batch_size': train_batch_size, 'eval_batch_size': eval_batch_size,
            'predict_batch_size': predict_batch_size}
        if use_tpu:
            job_settings.check_for_tpu(config, self._batch_sizes, embedding_config_spec)
        strategy = job_settings.strategy_of(embedding_config_spec)
        if strategy == 'mod' and not (use_tpu and eval_on_tpu):
            raise ValueError('Mod sharding of embedding tables not supported on CPU.')
        _legacy.check_model_fn(model_fn, params)
        with _tf.without_deprecation_warnings():
            super().__init__(model_fn=model_fn, model_dir=model_dir, params=params,
                             config=without_addresses(config),
                             warm_start_from=warm_start_from)
        tf.logging.info('_TPUContext: eval_on_tpu %s', eval_on_tpu)
        if not use_tpu and eval_on_tpu:
            tf.logging.warning('eval_on_tpu ignored because use_tpu is False.')
        choices = defaults.current()
        if use_tpu and choices.backend != 'tpu':
            job_settings.check_directories(self.model_dir, embedding_config_spec)
        self._session_config = job_settings.without_arithmetic_optimizer(
            self._session_config)
        self._use_tpu = use_tpu
        self._batch_axis = batch_axis
        self._eval_on_tpu = eval_on_tpu
        self._export_to_tpu = export_to_tpu
        self._export_to_cpu = export_to_cpu
        self._export_api_version = export_saved_model_api_version
        self._spec = embedding_config_spec
        self._on_tpu: Any = None
        if choices.graph_only is not None or (use_tpu and choices.backend == 'tpu'):
            self._on_tpu = original_runner.estimator_of(
                model_fn, model_dir=self.model_dir, config=config, params=params, use_tpu=use_tpu,
                eval_on_tpu=eval_on_tpu, export_to_tpu=export_to_tpu, export_to_cpu=export_to_cpu,
                batch_axis=batch_axis, warm_start_from=warm_start_from,
                embedding_config_spec=embedding_config_spec, **self._batch_sizes)
        if export_saved_model_api_version not in (1, 2, *ExportSavedModelApiVersion):
            raise ValueError('export_saved_model_api_version should be 1 or 2; got '
                             f'{export_saved_model_api_version}.')

    def _assert_members_are_not_overridden(self) -> None:
        """Allows overriding, which the base class forbids: this class replaces how it runs."""

    def _convert_train_steps_to_hooks(self, steps: int | None, max_steps: int | None
                                      ) -> list[tf.train.SessionRunHook]:
        if not self._use_tpu:
            return super()._convert_train_steps_to_hooks(steps, max_steps)
        if steps is None and max_steps is None:
            raise ValueError('For TPU training, one of `steps` or `max_steps` must be set. '
                             'Cannot be both `None`.')
        for name, value in (('steps', steps), ('max_steps', max_steps)):
            if value is not None:
                check_positive(value, f'Train {name}')
        return [StopAtStep(steps, max_steps, defaults.current().step_limit)]

    def train(self, input_fn: Callable[..., Any],
              hooks: Sequence[tf.train.SessionRunHook] | None = None, steps: int | None = None,
              max_steps: int | None = None, saving_listeners: Sequence[Any] | None = None) -> Any:
        """Trains; see `tf.estimator.Estimator.train`.

        Raises:
          CheckpointError: if `model_dir` cannot be used, or its checkpoint cannot be restored.
        """
        _process.require_threads('train')
        if self._on_tpu is not None:
            original_runner.run(self._on_tpu, 'train', input_fn, hooks, steps, max_steps,
                                saving_listeners)
            return self
        if max_steps is not None and self.config.is_chief and os.path.isdir(self.model_dir):
            # The base class looks there for the step that is reached.
            with model_dir.claimed(self.model_dir):
                model_dir.settle(self.model_dir, self._checkpoint_options(), self._known)
        return super().train(input_fn, hooks, steps, max_steps, saving_listeners)

    def _train_model(self, input_fn: Callable[..., Any], hooks: list[tf.train.SessionRunHook],
                     saving_listeners: list[Any]) -> Any:
        if not self._use_tpu:
            if not self.config.is_chief:
                return super()._train_model(input_fn, hooks, saving_listeners)
            with model_dir.claimed(self.model_dir):
                options = self._checkpoint_options()
                found = model_dir.settle(self.model_dir, options, self._known)
                if found is not None:
                    check_order_of_ids(found, options)
                prefix = None if found is None else found.prefix
                with self._saving_after(found), self._starting_warm(prefix):
                    return super()._train_model(input_fn, hooks, saving_listeners)
        # Those of the caller come first, then that of `_convert_train_steps_to_hooks`.
        stop = next((hook for hook in reversed(hooks) if isinstance(hook, StopAtStep)), None)
        if stop is None:
            raise ValueError('_convert_train_steps_to_hooks must return a _TPUStopAtStepHook, or '
                             'what TPUEstimator returns.')
        return training.train(
            self._job(_legacy.load().ModeKeys.TRAIN, input_fn), stop=stop, hooks=hooks,
            listeners=saving_listeners, cadence=job_settings.cadence(self.config))

    def evaluate(self, input_fn: Callable[..., Any], steps: int | None = None,
                 hooks: Sequence[tf.train.SessionRunHook] | None = None,
                 checkpoint_path: str | None = None, name: str | None = None) -> dict[str, Any]:
        """Evaluates the model.

        Args:
          input_fn: called once per host; returns a `tf.data.Dataset`.
          steps: batches of all cores to evaluate.
          hooks: called around the one `session.run` that does all steps.
          checkpoint_path: the checkpoint to evaluate; the newest of model_dir if `None`.
          name: the name of the evaluation, part of the directory of its event files.

        Returns:
          The metrics, `'loss'` and `'global_step'`.

        Raises:
          ValueError, TypeError: if `steps` is not a positive int.
          tf.errors.OutOfRangeError: if the data ends before the last step.
        """
        _process.require_threads('evaluate')
        if self._on_tpu is not None and (self._eval_on_tpu or self._writes_graphs):
            on_tpu: dict[str, Any] = original_runner.run(
                self._on_tpu, 'evaluate', input_fn, steps, hooks, checkpoint_path, name)
            return on_tpu
        found = self._chosen(checkpoint_path)
        if not (self._use_tpu and self._eval_on_tpu):
            if self._use_tpu:
                tf.logging.info('_is_running_on_cpu: eval_on_tpu disabled')
            with self._restoring(found):
                results: dict[str, Any] = super().evaluate(
                    input_fn, steps, hooks, found and found.prefix, name)
            return results
        if steps is None:
            raise ValueError('Evaluate `steps` must be set on TPU. Cannot be `None`.')
        check_positive(steps, 'Eval steps')
        self._warn_of_no_checkpoint(found, 'evaluate')
        job = self._job(_legacy.load().ModeKeys.EVAL, input_fn)
        results = inference.evaluate(job, steps=steps, hooks=_legacy.checked_hooks(hooks),
                                     following=found)
        with tf.Graph().as_default(), summaries.survived(self.eval_dir(name)):
            _legacy.write_evaluation(self.eval_dir(name), results, results['global_step'],
                                     None if found is None else found.prefix)
        return results

    def predict(self, input_fn: Callable[..., Any], predict_keys: Any = None,
                hooks: Sequence[tf.train.SessionRunHook] | None = None,
                checkpoint_path: str | None = None, yield_single_examples: bool = True
                ) -> Iterator[Any]:
        """Yields predictions, one row for every sample of the data.

        Args:
          input_fn: called once per host; returns a `tf.data.Dataset`. Its batches may be smaller
            than `params['batch_size']`, and it may end earlier on one host.
          predict_keys: the predictions that are wanted; `None` is all.
          hooks: called around every step.
          checkpoint_path: the checkpoint to predict with; the newest of model_dir if `None`.
          yield_single_examples: `False` yields the rows of a step at once.

        Yields:
          Rows step by step, within a step host by host, within a host core by core. The cores of
          a host take turns in its dataset. With one host that is the order of the data.

        Raises:
          ValueError, TypeError, RuntimeError: as the original does, when the first row is asked
            for.
          IncompatibleCheckpointError: if the checkpoint does not fit the model.
        """
        _process.require_threads('predict')
        if predict_keys is not None and not isinstance(predict_keys, Container):
            raise TypeError('predict_keys must be a list of names of predictions, or None; got '
                            f'{predict_keys!r}.  predict takes no number of steps: it goes on to '
                            'the end of the data.')
        arguments = input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples
        if self._writes_graphs:
            original_runner.run(self._on_tpu, 'predict', *arguments)
            return
        if self._on_tpu is not None and self._spec is None:
            yield from original_runner.rows(self._on_tpu, *arguments)
            return
        found = self._chosen(checkpoint_path)
        if not self._use_tpu or self._on_tpu is not None:  # A TPU looks up nothing to predict.
            yield from self._predict_without_tpu(
                found, input_fn, predict_keys, hooks, found and found.prefix,
                yield_single_examples)
            return
        hooks = _legacy.checked_hooks(hooks)
        self._warn_of_no_checkpoint(found, 'predict')
        steps = inference.predict(
            self._job(_legacy.load().ModeKeys.PREDICT, input_fn), hooks=hooks, following=found,
            select=functools.partial(self._extract_keys, predict_keys=predict_keys))
        with contextlib.closing(steps):
            for values in steps:
                if not yield_single_examples:
                    yield values
                elif isinstance(values, dict):
                    for row in range(self._extract_batch_length(values)):
                        yield {key: value[row] for key, value in values.items()}
                else:
                    yield from values

    @property
    def _writes_graphs(self) -> bool:
        return defaults.current().graph_only is not None

    def _warn_of_no_checkpoint(self, found: Following | None, verb: str) -> None:
        if found is None:
            tf.logging.warning('Could not find trained model in model_dir: %s, running '
                               'initialization to %s.', self.model_dir, verb)

    def _deployment(self, mode: str) -> Deployment:
        verb, batch_size = VERBS[mode], self._batch_size(mode)
        if batch_size is None:
            raise ValueError(f'{BATCH_SIZES[mode]} in TPUEstimator constructor cannot be `None` '
                             f'if .{verb} is running on TPU.')
        return deploy(self.config, verb, batch_size)

    @property
    def _ctx(self) -> EstimatorContext:
        """Describes the system to hooks and derived estimators, as the original's private one."""
        keys = _legacy.load().ModeKeys
        return EstimatorContext(self._deployment, keys.TRAIN, lambda mode: not self._use_tpu or (
            mode == keys.EVAL and not self._eval_on_tpu))

    def _job(self, mode: str, input_fn: Callable[..., Any]) -> Job:
        config, keys = self.config, _legacy.load().ModeKeys
        verb, deployment = VERBS[mode], self._deployment(mode)
        axes = self._batch_axis
        if config.tpu_config.per_host_input_for_training != InputPipelineConfig.PER_HOST_V1:
            axes = None
        if axes is not None and mode == keys.PREDICT:
            raise TypeError('For mode PREDICT, batch_axis is not supported yet.')
        lookups = None
        if self._spec is not None:
            lookups = job_settings.lookups(
                self._spec, deployment.topology, deployment.batch_size, verb, config.id_policy)
        on_tpu = user_functions.TpuCalls(mode=mode, deployment=deployment, params=self.params,
                                         config=config, plan=lookups.plan if lookups else None)
        return Job(
            verb=verb, deployment=deployment, lookups=lookups, batch_axes=axes,
            skips_nonfinite=config.nonfinite_gradients == 'skip',
            seed=config.tf_random_seed, input_deadline=config.input_deadline_secs,
            shutdown_deadline=config.shutdown_deadline_secs,
            source=functools.partial(on_tpu.source, input_fn),
            input_fn=user_functions.place_of(input_fn),
            call_model=functools.partial(on_tpu.output, self._model_fn),
            model_dir=job_settings.absolute(self.model_dir), warm_start=self._warm_start_settings,
            session_config=self._session_config, checkpoint=self._checkpoint_options(),
            known=self._known,
            kernels=job_settings.kernels_of(config, self._session_config),
            feed_hook=on_tpu.feed_hook, cluster=tpu_addresses.cluster_of(config),
            input_on_workers=config.input_on_workers)


def export_estimator_savedmodel(estimator: Any, export_dir_base: str,
                                serving_input_receiver_fn: Callable[[], Any],
                                assets_extra: dict[str, str] | None = None,
                                as_text: bool = False, checkpoint_path: str | None = None) -> Any:
    """Exports the model of a plain Estimator, as a TPUEstimator with its model_fn does.

    The Estimator has a model_fn that takes params, and a model_dir. For the other arguments see
    `tf.estimator.Estimator.export_saved_model`.

    Returns:
      The path of the export, as bytes.
    """
    config = RunConfig(model_dir=estimator.model_dir, tpu_config=TPUConfig(
        per_host_input_for_training=InputPipelineConfig.PER_HOST_V2))  # Never called for input.
    exporter = TPUEstimator(
        _legacy.model_fn_of(estimator), config=config,
        params=estimator.params, use_tpu=True, train_batch_size=2048, eval_batch_size=2048)
    return exporter.export_saved_model(
        export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path)
