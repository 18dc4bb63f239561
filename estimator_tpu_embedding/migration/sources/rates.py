"""Gives each learning rate that is a function a name, and a function that waits to be written.

A function of a program cannot be copied, and a config holds a mere number in its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.rates import DynamicRate
from ...proto.codec import RateOfTag
from .facts import JOB, NOT_WRITABLE, Note, Table, some
from .initializers import name_of
from .text import comment


@dataclasses.dataclass(frozen=True, slots=True)
class Rates:
    """The learning rates of a declaration that are functions.

    Attributes:
      names: of the new functions, by rate, in order of first appearance.
      tables: names of the tables of each rate.
    """

    names: dict[DynamicRate, str]
    tables: dict[DynamicRate, list[str]]

    @classmethod
    def of(cls, tables: Sequence[Table]) -> Rates:
        """Returns the rates of tables."""
        found: dict[DynamicRate, list[str]] = {}
        for table in tables:
            if table.dynamic is not None:
                found.setdefault(table.dynamic, []).append(table.name)
        return cls({rate: f'learning_rate_{tag}' for tag, rate in enumerate(found)}, found)

    def name(self, table: Table) -> str | None:
        """Returns the name of the function of a table, or `None`."""
        return None if table.dynamic is None else self.names[table.dynamic]

    def notes(self) -> Iterator[Note]:
        """Yields a note for each function."""
        for rate, name in self.names.items():
            yield Note(where=JOB, code=NOT_WRITABLE, fact='the learning rate of '
                       f'{some(self.tables[rate])} is a function of the step '
                       f'({_origin(rate.function)})', remedy=f'Write {name}.')

    def functions(self, target: str) -> list[str]:
        """Returns the lines of the functions, which raise an error until they are written."""
        found = []
        for rate, name in self.names.items():
            found += ['', '']
            found += comment(f'The rate of {some(self.tables[rate])}. The job had '
                             f'{_origin(rate.function)}.')
            found += (_OF_STEP if target == 'tf1' else _OF_NOTHING).format(name=name).splitlines()
        return found


_OF_STEP = '''\
def {name}(global_step):
    """Returns the learning rate at a step, a scalar tensor."""
    raise NotImplementedError('write {name}')
'''

_OF_NOTHING = '''\
# It has no argument: it reads a variable that is made in the scope of the
# strategy, and that the training loop increases. It is called while the
# step is traced, and its operations run at every step.
def {name}():
    """Returns the learning rate at this step, a scalar tensor."""
    raise NotImplementedError('write {name}')
'''


def _origin(function: Any) -> str:
    """Returns the function in the job, as far as it is known."""
    if isinstance(function, RateOfTag):
        return f'tag {function.tag} in its config'
    inner = getattr(function, 'function', function)  # TF2's, which takes no step.
    return name_of(inner)
