"""Holds named tuples for each optimizer: the names of its slots, and the variables of its slots."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core import optimizers
from ..core.optimizer_base import Optimizer
from ..core.specs import TableSpec
from ..errors import ConfigError, Problem, quoted, shown

AdamSlotVariableNames = collections.namedtuple('AdamSlotVariableNames', ['m', 'v'])
AdamSlotVariables = collections.namedtuple('AdamSlotVariables', ['m', 'v'])
AdagradSlotVariableNames = collections.namedtuple('AdagradSlotVariableNames', ['accumulator'])
AdagradSlotVariables = collections.namedtuple('AdagradSlotVariables', ['accumulator'])
AdagradMomentumSlotVariableNames = collections.namedtuple(
    'AdagradMomentumSlotVariableNames', ['accumulator', 'momenta'])
AdagradMomentumSlotVariables = collections.namedtuple(
    'AdagradMomentumSlotVariables', ['accumulator', 'momenta'])
FrequencyEstimatorSlotVariableNames = collections.namedtuple(
    'FrequencyEstimatorSlotVariableNames', ['last_hit_step'])
FrequencyEstimatorSlotVariables = collections.namedtuple(
    'FrequencyEstimatorSlotVariables', ['last_hit_step'])
FtrlSlotVariableNames = collections.namedtuple(
    'FtrlSlotVariableNames', ['accumulator', 'linear'])
FtrlSlotVariable = collections.namedtuple('FtrlSlotVariable', ['accumulator', 'linear'])
MomentumSlotVariableNames = collections.namedtuple('MomentumSlotVariableNames', ['momenta'])
MomentumSlotVariables = collections.namedtuple('MomentumSlotVariables', ['momenta'])
ProximalAdagradSlotVariableNames = collections.namedtuple(
    'ProximalAdagradSlotVariableNames', ['accumulator'])
ProximalAdagradSlotVariables = collections.namedtuple(
    'ProximalAdagradSlotVariables', ['accumulator'])
ProximalYogiSlotVariableNames = collections.namedtuple(
    'ProximalYogiSlotVariableNames', ['v', 'm'])
ProximalYogiSlotVariables = collections.namedtuple('ProximalYogiSlotVariables', ['v', 'm'])
RMSPropSlotVariableNames = collections.namedtuple('RMSPropSlotVariableNames', ['ms', 'mom'])
RMSPropSlotVariables = collections.namedtuple('RMSPropSlotVariables', ['ms', 'mom'])

# The fields are in the order of `Optimizer.slots`.
_VARIABLES: dict[type[Optimizer], Any] = {
    optimizers.Adagrad: AdagradSlotVariables,
    optimizers.AdagradMomentum: AdagradMomentumSlotVariables,
    optimizers.Adam: AdamSlotVariables,
    optimizers.FrequencyEstimator: FrequencyEstimatorSlotVariables,
    optimizers.Ftrl: FtrlSlotVariable,
    optimizers.Momentum: MomentumSlotVariables,
    optimizers.ProximalAdagrad: ProximalAdagradSlotVariables,
    optimizers.ProximalYogi: ProximalYogiSlotVariables,
    optimizers.RMSProp: RMSPropSlotVariables,
}


class VariablesAndOps(NamedTuple):
    """The result of `TPUEmbedding.create_variables_and_ops`.

    Attributes:
      embedding_variables_by_table: one variable per host, for each table.
      slot_variables_by_table: a tuple such as `AdagradSlotVariables` for each table. Its fields
        hold one variable per host. It is `None` for a table without slots. In inference a table
        has slots if it has an optimizer of its own. They are restored and saved, and never
        change.
      load_ops: makes the operations that hand the variables to the engine.
      retrieve_ops: makes the operations that bring the variables up to date.
    """

    embedding_variables_by_table: dict[str, list[Any]]
    slot_variables_by_table: dict[str, Any]
    load_ops: Any
    retrieve_ops: Any


def slot_names_of(table: TableSpec, given: Mapping[str, Any] | None) -> list[str]:
    """Returns the names of the variables of a table's slots, in the order of its optimizer.

    Args:
      table: the table, with its optimizer if it has one.
      given: a tuple such as `AdagradSlotVariableNames` by table; the default names if empty.

    Raises:
      KeyError: if the table is not there.
      ConfigError: if its tuple belongs to another optimizer.
    """
    names = given[table.name] if given else None
    optimizer = table.optimizer
    if optimizer is None or not optimizer.slots:
        return []
    if not given:
        return [f'{table.name}/{slot.suffix}' for slot in optimizer.slots]
    fields = _VARIABLES[type(optimizer)]._fields
    if not all(isinstance(getattr(names, field, None), str) for field in fields):
        raise ConfigError(Problem(
            'E927', f'slot_variable_names_by_table["{table.name}"]', 'it must name the slots of '
            f'{optimizer.field}: {quoted(fields)}', shown(repr(names)),
            f'Give a {type(optimizer).__name__}SlotVariableNames, or leave out the argument.'))
    return [getattr(names, field) for field in fields]


def slot_tuple(optimizer: Optimizer, fields: list[Any]) -> Any:
    """Returns the tuple of an optimizer's slots; `None` if it has none."""
    return _VARIABLES[type(optimizer)](*fields) if fields else None
