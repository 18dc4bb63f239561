"""Warns that with `use_tpu=False` the optimizer of model_fn trains the tables; logs examples/sec.

The optimizer that the embedding spec declares trains tables only with `use_tpu=True`.
"""

from __future__ import annotations

import re
from typing import Any

import tensorflow.compat.v1 as tf

from .embedding_spec import EmbeddingConfigSpec


def warn_of_other_optimizer(spec: EmbeddingConfigSpec) -> None:
    """Warns which optimizer trains the tables of the default graph, and which was declared."""
    declared = ', '.join(_declared(spec)) or 'no optimizer'
    found = _optimizers_of(_tables(spec))
    what = f'{", ".join(found)} of model_fn trains' if found else 'nothing known here trains'
    unused = ' profile_data_directory is not used.' if spec.profile_data_directory else ''
    tf.logging.warning(
        'use_tpu=False: %s the embedding tables, and not what embedding_config_spec declares, '
        '%s.%s To train them with that, set use_tpu=True: this package emulates the TPU on the '
        'CPU.', what, declared, unused)


class ExamplesPerSecond(tf.train.StepCounterHook):
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
