"""Runs a TPUEstimator as a plain Estimator: exports, and all calls with `use_tpu=False`."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _legacy, _process, defaults
from ..checkpoint import model_dir, recover, restore, warm_start
from ..checkpoint.compare import check_words, stored_words
from ..checkpoint.held import Held
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.recover import Following, Known
from ..checkpoint.saver import CommittingSaver, Lineage, default_saver
from ..core.vocabulary import Words
from ..errors import CheckpointWriteError, Problem, UnsupportedError
from ..runner import summaries
from ..runner.graph import refuse_foreign_sums
from ..runner.progress import announce
from . import calls, settings
from .embedding_spec import EmbeddingConfigSpec
from .spec import TPUEstimatorSpec
from .tpu_config import InputPipelineConfig

_Estimator: Any = _legacy.estimator_class()


class _Reading(NamedTuple):
    """The reason why the base class calls model_fn: to restore a checkpoint, to export."""

    checkpoint: Following | None = None
    is_export: bool = False


class WithoutTpu(_Estimator):
    """A plain Estimator with the calls of a TPUEstimator and with checkpoints of `mod` tables."""

    _use_tpu: bool
    _export_to_cpu: bool
    _export_to_tpu: bool
    _spec: EmbeddingConfigSpec | None
    _warm_start_settings: Any
    _batch_sizes: dict[str, int | None]
    _known: Known
    _lineage: Lineage | None = None
    _words: Sequence[Words] = ()
    _reading = _Reading()
    _has_named_optimizers = False

    @contextlib.contextmanager
    def _restoring(self, checkpoint: Following | None, is_export: bool = False) -> Iterator[None]:
        """Marks the time in which the base class calls model_fn to restore from `checkpoint`."""
        self._reading = _Reading(checkpoint, is_export)
        try:
            yield
        finally:
            del self._reading

    @contextlib.contextmanager
    def _saving_after(self, checkpoint: Held | None) -> Iterator[None]:
        """Turns the saves of the base class into commits, while it trains in one process."""
        if self.config.cluster_spec or self._train_distribution is not None:
            yield
            return
        words = settings.words_of(self._spec)
        if checkpoint is not None:
            check_words(checkpoint, words, self._checkpoint_options())
        self._lineage, self._words = Lineage(), words
        if checkpoint is not None:
            self._lineage.add(checkpoint.prefix)
        try:
            yield
        finally:
            del self._lineage, self._words

    def _evaluate_without_tpu(self, checkpoint: Following | None, *args: Any) -> dict[str, Any]:
        """`Estimator.evaluate`; `args` are input_fn, steps, hooks, the checkpoint and name."""
        with self._restoring(checkpoint):
            results: dict[str, Any] = super().evaluate(*args)
        return results

    def _evaluate_run(self, *, output_dir: str, **kwargs: Any) -> dict[str, Any]:
        """Evaluates as the base class does, also where the event files cannot be written."""
        with contextlib.ExitStack() as stack:
            try:
                model_dir.require_writable(output_dir)
            except CheckpointWriteError as error:
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
        """Exports a graph for the CPU, in which columns read whole tables themselves.

        It gives what `predict` gives; its tables are in the order of ids.
        """
        _process.require_threads('export')
        if not (self._export_to_cpu or self._export_to_tpu):
            raise ValueError('One of export_to_cpu and export_to_tpu must be true.')
        if not self._export_to_cpu:
            raise UnsupportedError(Problem(
                'E915', 'TPUEstimator', 'export_to_cpu=False is not supported: only graphs for '
                'the CPU can be written', remedy='Leave it out.'))
        options = self._checkpoint_options()
        found = recover.chosen(self.model_dir, checkpoint_path, options, self._known)
        settings_of_start = self._warm_start_settings
        if found is None and settings_of_start is not None:
            start = warm_start.checkpoint_of(settings_of_start.ckpt_to_initialize_from, options)
            if start is not None:
                found = Following(self.model_dir, Held.open(start), options, is_named=True)
        if self._export_to_tpu:
            announce('export: a graph for the CPU, tagged "serve"; no TPU graph is written')
        with self._restoring(found, is_export=True):
            return super()._export_all_saved_models(
                export_dir_base, input_receiver_fn_map, assets_extra, as_text,
                found and found.prefix, strip_default_attrs)

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
        """Calls input_fn for a run without TPU, as the base class does."""
        del input_context
        if (mode != _legacy.mode_keys().TRAIN
                and self.config.tpu_config.eval_training_input_configuration
                == InputPipelineConfig.SLICED):
            raise ValueError('Invalid TPUConfig `eval_training_input_configuration` value. SLICED '
                             'mode only works on use_tpu = True.')
        return calls.call_input_fn(input_fn, self._params_without_tpu(mode), mode, self.config)

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
        """Calls model_fn for a run without TPU, as the base class does."""
        tf.logging.info('Running %s on CPU/GPU', mode)
        params = calls.with_items(
            self.params if self._reading.is_export else self._params_without_tpu(mode),
            use_tpu=False)
        if self._use_tpu and self._spec is not None and isinstance(features, Mapping):
            features = settings.without_engine(self._spec, features, self.config.id_policy)
        spec = calls.call_model_fn(self._model_fn, features, labels, mode, params, config)
        if isinstance(spec, TPUEstimatorSpec):
            spec = spec.as_estimator_spec()
        if not isinstance(spec, _legacy.estimator_spec_class()):
            raise ValueError('model_fn should return an EstimatorSpec.')
        refuse_foreign_sums()
        if not self._use_tpu and not self.config.cluster_spec:  # A cluster spreads them.
            settings.require_room()
        if mode == _legacy.mode_keys().TRAIN and not self._use_tpu:
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
        restore.with_saver(restore.finalized_once(spec.scaffold), CommittingSaver(
            saver, {}, b'', options=options, lineage=self._lineage, known=self._known,
            vocabularies=stored_words(self._words)))
        return spec

    def _with_messages(self, spec: Any) -> Any:
        """Names the optimizers once; returns the EstimatorSpec with a hook for examples/sec."""
        if self._spec is not None and not self._has_named_optimizers:
            self._has_named_optimizers = True
            _warn_of_other_optimizer(self._spec)
        config, batch_size = self.config, self._batch_sizes['train_batch_size']
        if batch_size is None or not config.log_step_count_steps:
            return spec
        return spec._replace(training_hooks=[*spec.training_hooks, _ExamplesPerSecond(
            batch_size, config.log_step_count_steps,
            config.model_dir if config.save_summary_steps else None)])

    def _in_order_of_ids(self, spec: Any) -> Any:
        """Returns the EstimatorSpec with a saver that restores tables in the order of ids."""
        found = self._reading.checkpoint
        if found is None:
            return spec
        options = self._checkpoint_options()
        check_words(found.held, settings.words_of(self._spec), options)
        plan = restore.plan_without_engine(found.held, options)
        restore.scaffold_for(spec.scaffold, found.prefix, plan, restore.saver_of_all, found)
        return spec

    def _checkpoint_options(self) -> CheckpointOptions:
        """Returns the checkpoint options of the RunConfig, or of the process without them."""
        options: CheckpointOptions | None = self.config.checkpoint
        return defaults.current().checkpoint if options is None else options

    def _params_without_tpu(self, mode: str) -> Any:
        batch_size = self._batch_size(mode)
        return (self.params if batch_size is None
                else calls.with_items(self.params, batch_size=batch_size))

    def _batch_size(self, mode: str) -> int | None:
        keys = _legacy.mode_keys()
        return self._batch_sizes[{keys.TRAIN: 'train_batch_size', keys.EVAL: 'eval_batch_size',
                                  keys.PREDICT: 'predict_batch_size'}[mode]]


def train_batch_size(estimator: Any) -> int | None:
    """Returns the global batch size of trainings; `None` if the Estimator does not know one."""
    return (estimator._batch_sizes['train_batch_size'] if isinstance(estimator, WithoutTpu)
            else None)


def _warn_of_other_optimizer(spec: EmbeddingConfigSpec) -> None:
    """Warns which optimizer trains the tables of the default graph, and which was declared."""
    declared = ', '.join(_declared(spec)) or 'no optimizer'
    found = _optimizers_of(_tables(spec))
    what = f'{", ".join(found)} of model_fn trains' if found else 'nothing known here trains'
    unused = ' profile_data_directory is not used.' if spec.profile_data_directory else ''
    tf.logging.warning(
        'use_tpu=False: %s the embedding tables, and not what embedding_config_spec declares, '
        '%s.%s To train them with that, set use_tpu=True: this package emulates the TPU on the '
        'CPU.', what, declared, unused)


class _ExamplesPerSecond(tf.train.StepCounterHook):
    """Logs `examples/sec` beside the `global_step/sec` of a plain Estimator."""

    def __init__(self, batch_size: int, every_n_steps: int, output_dir: str | None):
        """Logs and writes summaries every `every_n_steps` steps, each of `batch_size` samples."""
        super().__init__(every_n_steps=every_n_steps, output_dir=output_dir)
        self._batch_size = batch_size

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = self._batch_size * elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            self._summary_writer.add_summary(tf.Summary(value=[
                tf.Summary.Value(tag='examples/sec', simple_value=rate)]), global_step)
        tf.logging.info('examples/sec: %g', rate)


def _declared(spec: EmbeddingConfigSpec) -> list[str]:
    """Returns the classes of the optimizers that a spec declares."""
    parameters = [spec.optimization_parameters, *[
        table.optimization_parameters for table in (spec.table_to_config_dict or {}).values()]]
    return sorted({type(one).__name__ for one in parameters if one is not None})


def _tables(spec: EmbeddingConfigSpec) -> list[Any]:
    """Returns the trainable variables of the columns of a spec, or with the names of its tables."""
    columns = [*(spec.feature_columns or []), *(spec.tensor_core_feature_columns or [])]
    names = {name for column in columns for name in (column.name, column.get_embedding_var_name())}
    names.update(spec.table_to_config_dict or {})
    return [variable for variable in tf.trainable_variables()
            if names.intersection(variable.op.name.split('/'))]


def _optimizers_of(variables: list[Any]) -> list[str]:
    """Returns the names of the optimizers that change variables: `Adam` of `Adam/update_x`."""
    found = [re.search(r'([^/]+)/update', operation.name) for variable in variables
             for operation in variable.op.outputs[0].consumers()]
    return sorted({match.group(1) for match in found if match is not None})
