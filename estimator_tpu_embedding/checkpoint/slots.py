"""Finds the slots of a table in a checkpoint, and their names there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .layout import Held

CPU_SUFFIXES = {
    'Adam/m': 'Adam', 'Adam/v': 'Adam_1', 'RMSProp/ms': 'RMSProp', 'RMSProp/mom': 'RMSProp_1',
    'CenteredRMSProp/ms': 'RMSProp', 'CenteredRMSProp/mg': 'RMSProp_1',
    'CenteredRMSProp/mom': 'RMSProp_2'}
"""The name of a slot on the TPU -> its name in `tf.train`, as in jobs with use_tpu=False."""

SUFFIXES = frozenset({
    *CPU_SUFFIXES, *CPU_SUFFIXES.values(), 'Adagrad', 'AdagradMomentum/Accumulator',
    'AdagradMomentum/Momentum', 'ProximalAdagrad', 'Ftrl', 'Ftrl_1', 'Momentum', 'ProximalYogi',
    'ProximalYogi_1', 'FrequencyEstimator', 'Adadelta', 'Adadelta_1', 'Lion'})
"""All names of slots; other tensors below a table, such as moving averages, are no slots."""


def stored_slots(held: Held, table: str, shape: Sequence[int]) -> frozenset[str]:
    """Returns the suffixes of the slots that are stored for a table of that shape.

    >>> held = Held('model.ckpt-1', {'t/Adam': [4, 2], 't/Ftrl': [4, 9], 't/mean': [4, 2]}, None)
    >>> stored_slots(held, 't', [4, 2])
    frozenset({'Adam'})
    """
    named = held.tables[table].slots if table in held.tables else SUFFIXES
    return frozenset(suffix for suffix in named
                     if list(held.shapes.get(f'{table}/{suffix}', ())) == list(shape))


def is_slot(tensor: str, tensors: Collection[str]) -> bool:
    """Whether a tensor has the name of a slot of another one.

    >>> is_slot('t/Adam/m', ['t', 't/Adam/m'])
    True
    """
    return any(tensor.endswith(f'/{suffix}') and tensor.removesuffix(f'/{suffix}') in tensors
               for suffix in SUFFIXES)


def names_there(wanted: Sequence[str], stored: Collection[str]) -> dict[str, str]:
    """Returns the names of slots in a checkpoint, by their names in the job.

    Names of a job without a TPU count only if their number is the same: with three slots the second
    slot of RMSProp means something else.

    >>> names_there(['RMSProp/ms', 'RMSProp/mom'], ['RMSProp', 'RMSProp_1'])
    {'RMSProp/ms': 'RMSProp', 'RMSProp/mom': 'RMSProp_1'}
    >>> names_there(['RMSProp/ms', 'RMSProp/mom'], ['RMSProp', 'RMSProp_1', 'RMSProp_2'])
    {'RMSProp/ms': 'RMSProp/ms', 'RMSProp/mom': 'RMSProp/mom'}
    """
    names = {slot: CPU_SUFFIXES.get(slot, slot) for slot in wanted}
    return names if set(names.values()) == set(stored) else {slot: slot for slot in wanted}
