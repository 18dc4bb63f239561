"""Holds private names of the original's module `tpu_estimator` that derived estimators import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, defaults
from ..runner.input import filled
from ..runner.schedule import StopAtStep


class _TPUStopAtStepHook(StopAtStep):
    """Ends a training after a number of steps, or at a step.

    A derived estimator returns it from `_convert_train_steps_to_hooks`.
    """

    def __init__(self, iterations_per_loop_counter: Any, num_steps: int | None = None,
                 final_step: int | None = None):
        """Stops at the earlier end.

        Args:
          iterations_per_loop_counter: `(value, unit)`. It is checked alone, since the runner takes
            the value from the `TPUConfig`.
          num_steps: steps to make; or `None`.
          final_step: the global step to stop at; or `None`.

        Raises:
          ValueError: unless one of the two ends is given, and the unit is seconds or count.
        """
        if num_steps is None and final_step is None:
            raise ValueError('One of `num_steps` or `final_step` must be specified.')
        if num_steps is not None and final_step is not None:
            raise ValueError('Only one of `num_steps` or `final_step` can be specified.')
        if iterations_per_loop_counter.unit not in ('seconds', 'count'):
            raise ValueError('Only `count` or `seconds` are accepted as the '
                             '`iterations_per_loop_counter.unit')
        super().__init__(num_steps, final_step, defaults.current().step_limit)


class _InputsWithStoppingSignals:
    """The batches of a dataset, each with signals that say whether the data has ended."""

    def __init__(self, dataset: tf.data.Dataset, batch_size: int, add_padding: bool = False,
                 num_invocations_per_step: int = 1):
        """Lets batches follow that ask to stop: one, or with more invocations per step `2 n - 1`.

        Args:
          dataset: of features, or `(features, labels)`.
          batch_size: of a whole batch.
          add_padding: whether smaller batches are filled with zeros, and a mask shows where.
          num_invocations_per_step: how often a step takes a batch.
        """
        ends = dataset.take(1).map(self.insert_stopping_signal(True, batch_size, add_padding))
        if num_invocations_per_step > 1:
            ends = ends.repeat(2 * num_invocations_per_step - 1).map(self._all_padding)
        self._iterator = tf.data.make_initializable_iterator(dataset.map(
            self.insert_stopping_signal(False, batch_size, add_padding)).concatenate(ends))
        self._drawn: dict[str, Any] | None = None

    def dataset_initializer(self) -> tf.Operation:
        """Returns the operation that begins with the first batch."""
        return self._iterator.initializer

    def features_and_labels(self) -> tuple[Any, Any]:
        """Draws a batch; its labels are `None` if there are none.

        Raises:
          RuntimeError: if the signals of the last one were not taken.
        """
        if self._drawn is not None:
            raise RuntimeError('Internal Error: The previous inputs have not been properly '
                               'consumed. First call features_and_labels, then call signals.')
        self._drawn = self._iterator.get_next()
        return self._drawn['features'], self._drawn.get('labels')

    def signals(self) -> dict[str, tf.Tensor]:
        """Returns `'stopping'`, bool `[B, 1]`, and with padding `'padding_mask'`, int32 `[B]`.

        Raises:
          RuntimeError: if no batch was drawn.
        """
        if self._drawn is None:
            raise RuntimeError('Internal Error: The current inputs have not been properly '
                               'generated. First call features_and_labels, then call signals.')
        drawn, self._drawn = self._drawn, None
        signals: dict[str, tf.Tensor] = drawn['signals']
        return signals

    @staticmethod
    def insert_stopping_signal(stop: bool, batch_size: int, add_padding: bool = False
                               ) -> Callable[..., dict[str, Any]]:
        """Returns a function for `map` that gives each batch its signals."""

        def insert(*element: Any) -> dict[str, Any]:
            signals = {'stopping': tf.fill([batch_size, 1], stop)}
            if add_padding:
                rows = tf.shape(tf.nest.flatten(element)[0])[0]
                element = filled(element, batch_size)
                signals['padding_mask'] = tf.cast(tf.range(batch_size) >= rows, tf.int32)
            return {**dict(zip(('features', 'labels'), element)), 'signals': signals}

        return insert

    @staticmethod
    def _all_padding(batch: dict[str, Any]) -> dict[str, Any]:
        signals = {name: tf.ones_like(value) if name == 'padding_mask' else value
                   for name, value in batch['signals'].items()}
        return {**batch, 'signals': signals}


def _export_output_to_tensors(export_output: Any) -> list[Any]:
    """Returns the tensors of an `ExportOutput`; a classification has scores, then classes.

    Raises:
      ValueError: for something else.
    """
    outputs = _legacy.load().export
    if isinstance(export_output, outputs.ClassificationOutput):
        return [export_output.scores, export_output.classes]
    if isinstance(export_output, outputs.RegressionOutput):
        return [export_output.value]
    if isinstance(export_output, outputs.PredictOutput):
        return list(export_output.outputs.values())
    raise ValueError('`export_output` must be have type `ClassificationOutput`, '
                     f'`RegressionOutput`, or `PredictOutput`; got {export_output}.')
