"""Checks that a model uses the columns of its spec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.plan import Plan
from ..errors import ConfigError, Problem, did_you_mean, quoted

_PLACE = 'EmbeddingConfigSpec(feature_columns=...)'
_MADE_FOR_COLUMNS = re.compile(r'Feature (.+)(?:_seq_length_|__TENSOR_CORE_MASK) is not in ')
"""TensorFlow's words on the features that a Featurizer makes for the columns of a spec."""


def check(columns: Sequence[Any], plan: Plan | None, error: Exception | None = None) -> None:
    """Makes sure that the spec has every column of model_fn, in the width that it expects.

    For a column that the spec lacks, TensorFlow would take the ids for the rows.

    Args:
      columns: TPU columns that model_fn used, all or those before `error`.
      plan: the plan of the spec; `None` for a job without a spec.
      error: the error that ended model_fn, or `None`.

    Raises:
      ConfigError: with every column that the spec does not have so.
    """
    widths = {feature.name: (plan.table(feature.table).dimension, feature.max_sequence_length)
              for feature in plan.features} if plan is not None else {}
    used = {(column.get_feature_key_name(), (
        column.get_embedding_table_size()[1], column.get_max_sequence_length())): None
        for column in columns}  # In the order of use.
    problems = [_problem(key, width, widths) for key, width in used if widths.get(key) != width]
    sought = _MADE_FOR_COLUMNS.search(str(error)) if error is not None else None
    if sought is not None and sought[1] not in {*widths, *(key for key, _ in used)}:
        problems.append(_missing(sought[1], widths))
    if problems:
        raise ConfigError(*problems) from error


def _problem(key: str, width: tuple[int, int], widths: Mapping[str, tuple[int, int]]) -> Problem:
    if key not in widths:
        return _missing(key, widths)
    (dimension, length), (planned, planned_length) = width, widths[key]
    return Problem(
        'E497', f'column "{key}"', f'model_fn must use the column of {_PLACE}, of dimension '
        f'{planned} and max_sequence_length {planned_length}',
        f'another one of dimension {dimension} and max_sequence_length {length}',
        'Make the columns once, and pass the same ones to both.')


def _missing(key: str, widths: Mapping[str, Any]) -> Problem:
    where = f'column "{key}"'
    if not widths:
        return Problem(
            'E496', where, f'{key} is not in {_PLACE}, so nothing looks it up: the estimator has '
            'no columns for tables', remedy='Give TPUEstimator an embedding_config_spec with the '
            'columns that model_fn uses.')
    return Problem(
        'E496', where, f'{key} is not in {_PLACE}, so nothing looks it up for model_fn, which '
        f'uses it; columns there: {quoted(sorted(widths)[:20])}',
        remedy=f'Add the column there.  {did_you_mean(key, widths)}'.rstrip())
