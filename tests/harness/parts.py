"""Marks all cases of a parametrized test as `soak`, except those that the gate runs too."""

import pytest


def soak_except(cases, *short):
    """Returns cases for `pytest.mark.parametrize`; those whose number is not in `short` are `soak`.

    >>> [bool(case.marks) for case in soak_except(['div', 'mod'], 1)]
    [True, False]
    """
    found = []
    for number, case in enumerate(cases):
        if not hasattr(case, 'marks'):
            case = pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
        marks = [*case.marks, *[pytest.mark.soak] * (number not in short)]
        found.append(pytest.param(*case.values, marks=marks, id=case.id))
    assert 0 < len(short) == len(set(short)) and max(short) < len(found)
    return found
