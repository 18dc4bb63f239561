"""Names that a script can import, but that raise an error when it uses them."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import Problem, UnsupportedError
from . import old_names

FEED_OPERATIONS = (
    'InfeedDequeue', 'InfeedDequeueTuple', 'InfeedEnqueue', 'InfeedEnqueuePrelinearizedBuffer',
    'InfeedEnqueueTuple', 'OutfeedDequeue', 'OutfeedDequeueTuple', 'OutfeedDequeueTupleV2',
    'OutfeedDequeueV2', 'OutfeedEnqueue', 'OutfeedEnqueueTuple')
"""The operations of the queues between a host and its cores."""


class _Refused:
    """Base of classes that refuse to make objects."""

    remedy = ''

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(cls.problem())

    @classmethod
    def problem(cls) -> Problem:
        """Returns what is wrong with a use of it."""
        return Problem('E930', cls.__name__, 'it is part of how the original ran on a TPU, and '
                       'has no meaning here', remedy=cls.remedy)


def message_of(value: Any) -> str:
    """Returns what the use of a name raises; `''` for everything but these stand-ins."""
    problem = getattr(value, 'problem', None) if isinstance(value, type) and issubclass(
        value, _Refused) else None
    return '' if problem is None else str(problem())


def refused(module: str) -> dict[str, Any]:
    """Returns a class by each name of a module of the original that has no meaning here.

    A call of it, or of a class derived from it, raises `UnsupportedError`, E930.
    """
    return {name: type(name, (_Refused,), {'remedy': remedy})
            for name, remedy in old_names.refused()[module].items()}
