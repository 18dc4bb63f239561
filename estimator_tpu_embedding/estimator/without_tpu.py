"""Runs a TPUEstimator as a plain Estimator: exports, and all calls with `use_tpu=False`.

Such a graph reads tables without the engine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _legacy, _process, _tf, defaults
from ..checkpoint import recover, restore, warm_start
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.recover import Following, Known, Opened
from ..checkpoint.restore_plan import check_words, stored_words
from ..checkpoint.saver import CommittingSaver
from ..checkpoint.saver_builder import default_saver
from ..checkpoint.storage import make_writable
from ..columns import columns_without_engine
from ..core.budget import Need, require_fit
from ..hosts import memory_limits
from ..runner import summaries
from ..runner.progress import announce
from ..runner.step_graph import refuse_foreign_sums
from . import inference_on_tpu, job_settings, user_functions
from .embedding_spec import EmbeddingConfigSpec
from .tpu_config import InputPipelineConfig
from .tpu_estimator_names import ExamplesPerSecondHook
from .tpu_estimator_spec import TPUEstimatorSpec

_Estimator: Any = _legacy.load().Estimator
_KEYS = _legacy.load().ModeKeys
VERBS = {_KEYS.TRAIN: 'train', _KEYS.EVAL: 'evaluate', _KEYS.PREDICT: 'predict'}
BATCH_SIZES = {_KEYS.TRAIN: 'train_batch_size', _KEYS.EVAL: 'eval_batch_size',
               _KEYS.PREDICT: 'predict_batch_size'}


class _Reading(NamedTuple):
    """The reason why the base class calls model_fn: to restore a checkpoint, to export."""

    checkpoint: Following | None = None
    is_export: bool = False


class WithoutTpu(_Estimator):
    """A plain Estimator with the calls of a TPUEstimator and with checkpoints of `mod` tables."""

    _use_tpu: bool
    _export_to_cpu: bool
    _export_to_tpu: bool
    _export_api_version: Any
    _session_config: tf.ConfigProto
    _spec: EmbeddingConfigSpec | None
    _warm_start_settings: Any
    _batch_sizes: dict[str, int | None]
    _known: Known
    _lineage: set[str] | None = None
    _reading = _Reading()
    _export_directory: Any = None
    _is_for_tpu = False
    _has_warned = False

    @contextlib.contextmanager
    def _restoring(self, checkpoint: Following | None, is_export: bool = False) -> Iterator[None]:
        """Marks the time in which the base class calls model_fn to restore from `checkpoint`."""
        self._reading = _Reading(checkpoint, is_export)
        try:
            yield
        finally:
            del self._reading

    @contextlib.contextmanager
    def _saving_after(self, checkpoint: Opened | None) -> Iterator[None]:
        """Turns the saves of the base class into commits, while it trains in one process."""
        if self.config.cluster_spec or self._train_distribution is not None:
            yield
            return
        self._lineage = set()
        if checkpoint is not None:
            check_words(checkpoint, job_settings.words_of(self._spec),
                        self._checkpoint_options())
            self._lineage.add(checkpoint.prefix)
        try:
            yield
        finally:
            del self._lineage

    def _evaluate_run(self, *, output_dir: str, **kwargs: Any) -> dict[str, Any]:
        """Evaluates as the base class does, also where the event files cannot be written."""
        with contextlib.ExitStack() as stack:
            try:
                if '://' not in output_dir:
                    make_writable(output_dir)
            except OSError as error:
                summaries.warn(output_dir, error)
                output_dir = stack.enter_context(tempfile.TemporaryDirectory())
            results: dict[str, Any] = super()._evaluate_run(output_dir=output_dir, **kwargs)
        return results

    def _predict_without_tpu(self, checkpoint: Following | None, *args: Any) -> Iterator[Any]:
        """`Estimator.predict`; `args` are its own."""
        rows = super().predict(*args)
        with self._restoring(checkpoint):
            first = list(itertools.islice(rows, 1))  # Until then model_fn was called.
        yield from first
        yield from rows

    def _export_all_saved_models(self, export_dir_base: str, input_receiver_fn_map: Any,
                                 assets_extra: Any = None, as_text: bool = False,
                                 checkpoint_path: str | None = None,
                                 strip_default_attrs: bool = True) -> Any:
        """Exports a graph for the CPU, one for a TPU, or both, where columns read whole tables.

        They give what `predict` gives; their tables are in the order of ids.
        """
        _process.require_threads('export')
        if defaults.current().graph_only is not None:
            announce('export: nothing is written, since nothing was trained')
            return None
        if not (self._export_to_cpu or self._export_to_tpu):
            raise ValueError('One of export_to_cpu and export_to_tpu must be true.')
        has_tpu_graph = self._export_to_tpu and _KEYS.PREDICT in input_receiver_fn_map
        if not (self._export_to_cpu or has_tpu_graph):
            raise ValueError('No valid modes for exporting found. Got '
                             f'{input_receiver_fn_map.keys()}.')
        options = self._checkpoint_options()
        found = self._chosen(checkpoint_path)
        settings_of_start = self._warm_start_settings
        if found is None and settings_of_start is not None:
            start = warm_start.checkpoint_of(settings_of_start.ckpt_to_initialize_from, options)
            if start is not None:
                found = Following(self.model_dir, Opened.open(start), options, is_named=True)
        if has_tpu_graph:
            announce('export: a graph for a TPU, tagged "serve" and "tpu", ' + (
                'beside that for a CPU, which TensorFlow 2 loads with tags=["serve"]'
                if self._export_to_cpu else 'which no CPU can run'))
        with self._restoring(found, is_export=True), self._removing_if_it_fails():
            return super()._export_all_saved_models(
                export_dir_base, input_receiver_fn_map, assets_extra, as_text,
                found and found.prefix, strip_default_attrs)

    @contextlib.contextmanager
    def _removing_if_it_fails(self) -> Iterator[None]:
        """Leaves no directory behind that is half an export, unless the process ends in it."""
        self._export_directory = None
        try:
            yield
        except BaseException:
            if self._export_directory is not None:
                with contextlib.suppress(tf.errors.OpError):
                    tf.io.gfile.rmtree(self._export_directory)
            raise

    def _add_meta_graph_for_mode(self, builder: Any, input_receiver_fn_map: Any,
                                 checkpoint_path: str, save_variables: bool = True,
                                 mode: str = _KEYS.PREDICT, export_tags: Any = None,
                                 check_variables: bool = True, strip_default_attrs: bool = True
                                 ) -> None:
        """Adds the graphs of a mode, that for the CPU first; its variables serve both."""
        self._export_directory = _tf.directory_of_builder(builder)
        if self._export_to_tpu and mode != _KEYS.PREDICT:
            tf.logging.warning(
                'TPUEstimator only handles mode PREDICT for exporting when `export_to_tpu` is '
                '`True`; Mode %s will be ignored for TPU.', mode)
        if self._export_to_cpu:
            super()._add_meta_graph_for_mode(
                builder, input_receiver_fn_map, checkpoint_path, save_variables, mode, export_tags,
                check_variables, strip_default_attrs)
        if not self._export_to_tpu or mode != _KEYS.PREDICT:
            return
        is_alone, config = not self._export_to_cpu, self._session_config
        self._is_for_tpu = True
        self._session_config = inference_on_tpu.session_config(config)
        try:
            super()._add_meta_graph_for_mode(
                builder, {inference_on_tpu.MODE: input_receiver_fn_map[mode]}, checkpoint_path,
                is_alone, inference_on_tpu.MODE, list(inference_on_tpu.TAGS), is_alone,
                strip_default_attrs)
        except Exception as error:
            error.add_note('raised by the TPU graph of an export, which TPUEstimator('
                           'export_to_tpu=False) leaves out')
            raise
        finally:
            self._session_config = config
            del self._is_for_tpu

    def _create_global_step(self, graph: tf.Graph) -> Any:
        """Makes the step; in a TPU graph it must be a resource."""
        with contextlib.nullcontext() if not self._is_for_tpu else tf.variable_scope(
                tf.get_variable_scope(), use_resource=True):
            return super()._create_global_step(graph)

    def _maybe_warm_start(self, checkpoint: str | None) -> None:
        """Starts from `warm_start_from` as the base class does, with rows in the order of ids."""
        with self._starting_warm(checkpoint):
            super()._maybe_warm_start(checkpoint)

    @contextlib.contextmanager
    def _starting_warm(self, checkpoint: str | None) -> Iterator[None]:
        """Checks the checkpoint of `warm_start_from` before the base class starts from it."""
        given, options = self._warm_start_settings, self._checkpoint_options()
        if checkpoint or not given:
            yield
            return
        self._warm_start_settings = found = warm_start.resolved(given, options)
        try:
            warm_start.check_order_for_warm_start(found.ckpt_to_initialize_from, options)
            yield
        finally:
            self._warm_start_settings = given

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str,
                       input_context: Any = None) -> Any:
        if (mode != _KEYS.TRAIN
                and self.config.tpu_config.eval_training_input_configuration
                == InputPipelineConfig.SLICED):
            raise ValueError('Invalid TPUConfig `eval_training_input_configuration` value. SLICED '
                             'mode only works on use_tpu = True.')
        return user_functions.call_input_fn(
            input_fn, self._params_without_tpu(mode), mode, self.config)

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
        is_for_tpu, version = mode == inference_on_tpu.MODE, self._export_api_version
        mode = _KEYS.PREDICT if is_for_tpu else mode
        tf.logging.info('Running %s on CPU/GPU', mode)
        params = user_functions.with_items(
            self.params if self._reading.is_export else self._params_without_tpu(mode),
            use_tpu=is_for_tpu and not inference_on_tpu.is_whole(version))
        if self._use_tpu and self._spec is not None and isinstance(features, Mapping):
            features = _without_engine(self._spec, features, self.config.id_policy, is_for_tpu)

        def call_model(features: Any) -> Any:
            spec = user_functions.call_model_fn(
                self._model_fn, features, labels, mode, params, config)
            if not isinstance(spec, (TPUEstimatorSpec, _legacy.load().EstimatorSpec)):
                raise ValueError('model_fn should return an EstimatorSpec.')
            return spec

        spec = (inference_on_tpu.rewritten(call_model, features, version, self._spec)
                if is_for_tpu else call_model(features))
        if isinstance(spec, TPUEstimatorSpec):
            spec = spec.as_estimator_spec()
        if is_for_tpu and self._export_to_cpu:
            return spec  # Its variables are those of the other graph.
        if not is_for_tpu and defaults.current().backend == 'emulated':
            refuse_foreign_sums()
        if not self._use_tpu and not self.config.cluster_spec:  # A cluster spreads them.
            _require_memory()
        if mode == _KEYS.TRAIN and not self._use_tpu:
            return self._with_messages(self._committing(spec))
        return self._in_order_of_ids(spec)

    def _committing(self, spec: Any) -> Any:
        """Returns the EstimatorSpec with a saver that commits: no step twice, nothing in parts."""
        if self._lineage is None:
            return spec
        saver = restore.saver_of(spec.scaffold) or default_saver(
            self.config.keep_checkpoint_max, self.config.keep_checkpoint_every_n_hours)
        if isinstance(saver, restore.OBJECT_SAVERS):
            return spec
        # Nobody asks here whether the last save failed.
        options = dataclasses.replace(self._checkpoint_options(), max_save_failures=1)
        restore.keep_saver(restore.finalized_once(spec.scaffold), CommittingSaver(
            saver, {}, b'', options=options, lineage=self._lineage, known=self._known,
            vocabularies=stored_words(job_settings.words_of(self._spec))))
        return spec

    def _with_messages(self, spec: Any) -> Any:
        """Warns once of the optimizer; returns the EstimatorSpec with a hook for examples/sec."""
        if self._spec is not None and not self._has_warned:
            self._has_warned = True
            parameters = [self._spec.optimization_parameters, *[
                table.optimization_parameters
                for table in (self._spec.table_to_config_dict or {}).values()]]
            declared = sorted({type(one).__name__ for one in parameters if one is not None})
            tf.logging.warning(
                'use_tpu=False: the optimizer of model_fn trains the embedding tables, and not '
                'what embedding_config_spec declares, %s.%s To train them with that, set '
                'use_tpu=True: this package emulates the TPU on the CPU.',
                ', '.join(declared) or 'no optimizer',
                ' profile_data_directory is not used.' if self._spec.profile_data_directory else '')
        config, batch_size = self.config, self._batch_sizes['train_batch_size']
        if batch_size is None or not config.log_step_count_steps:
            return spec
        return spec._replace(training_hooks=[*spec.training_hooks, _ExamplesPerSecond(
            batch_size, config.log_step_count_steps,
            output_dir=config.model_dir if config.save_summary_steps else None)])

    def _in_order_of_ids(self, spec: Any) -> Any:
        """Returns the EstimatorSpec with a saver that restores tables in the order of ids."""
        found = self._reading.checkpoint
        if found is None:
            return spec
        options = self._checkpoint_options()
        check_words(found.opened, job_settings.words_of(self._spec), options)
        plan = restore.plan_without_engine(found.opened, options)
        restore.scaffold_for(spec.scaffold, found.prefix, plan, restore.saver_of_all, found)
        return spec

    def _chosen(self, path: str | None) -> Following | None:
        """Returns the checkpoint at a path, or without one the newest, and a way to read it."""
        return recover.chosen(
            job_settings.absolute(self.model_dir), path and job_settings.absolute(path),
            self._checkpoint_options(), self._known)

    def _checkpoint_options(self) -> CheckpointOptions:
        """Returns the checkpoint options of the RunConfig, or of the process without them."""
        options: CheckpointOptions | None = self.config.checkpoint
        return defaults.current().checkpoint if options is None else options

    def _params_without_tpu(self, mode: str) -> Any:
        batch_size = self._batch_size(mode)
        return (self.params if batch_size is None
                else user_functions.with_items(self.params, batch_size=batch_size))

    def _batch_size(self, mode: str) -> int | None:
        return self._batch_sizes[BATCH_SIZES[mode]]


def train_batch_size(estimator: Any) -> int | None:
    """Returns the global batch size of trainings; `None` if the Estimator does not know one."""
    return (estimator._batch_sizes['train_batch_size'] if isinstance(estimator, WithoutTpu)
            else None)


def _without_engine(spec: EmbeddingConfigSpec, features: Mapping[str, Any],
                    id_policy: str | Mapping[str, str] | None, keeps_dense: bool
                    ) -> dict[str, Any]:
    """Returns features with which a model computes the same without the engine as with it.

    The tables must fit the memory that this process may have.
    """
    tables, declared, on_tensor_core = job_settings.declared_by(spec, id_policy)
    require_fit([Need(table.name, table.vocabulary_size, table.dimension) for table in tables],
                memory_limits.limit())
    if spec.feature_columns is None:
        return columns_without_engine.with_activations(features, tables, declared)
    columns = [*spec.feature_columns, *(spec.tensor_core_feature_columns or [])]
    return columns_without_engine.with_ids(
        features, columns, [*declared, *on_tensor_core], keeps_dense)


def _require_memory() -> None:
    """Makes sure that the tables in the default graph, which has no engine, fit the memory.

    Every float32 variable with rows counts as a table; slots are variables of their own there.
    """
    needs = []
    for name, (shape, parts) in restore.variables_by_name().items():
        rows, width = shape if shape is not None and len(shape) == 2 else (None, None)
        if rows is not None and width is not None and parts[0].dtype.base_dtype == tf.float32:
            needs.append(Need(name, rows, width))
    require_fit(needs, memory_limits.limit())


class _ExamplesPerSecond(ExamplesPerSecondHook):
    """Logs `examples/sec` beside the `global_step/sec` of a plain Estimator."""

    _tags = ('examples/sec',)
