"""What all Python files have in common that `etpe migrate config` writes: their head and sizes."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from ...errors import counted
from .facts import JOB, Declaration, Note
from .text import Call, Expression, comment, lines, quoted

NONE_OF_ALL = '# Some tables have no optimizer here, so there is none for all.'
"""A comment: an optimizer for all tables would silently train those too."""

_Key = TypeVar('_Key', bound=Hashable)


def head(title: str, imports: Sequence[str], declaration: Declaration, notes: Iterable[Note]
         ) -> list[str]:
    """Returns the first lines of a file: its title, the notes of the job, and the imports.

    Args:
      title: the docstring; the package wrote it.
      imports: lines that import modules.
      declaration: where it comes from.
      notes: all notes; those of tables and features stand beside them.
    """
    own = list(dict.fromkeys(map(str, (note for note in notes if note.where == JOB))))
    elsewhere = len({note.where for note in notes if note.where != JOB})
    found = [f'"""{title}"""', '']
    found += comment(f'Made by "etpe migrate config" of {quoted(declaration.where)}.')
    for text in own:
        found += comment(text, mark='# - ')
    if elsewhere:
        found += comment('1 table or feature below has a note.' if elsewhere == 1 else
                         f'{elsewhere} tables or features below have notes.', mark='# - ')
    return [*found, '', *imports]


def by_place(notes: Iterable[Note]) -> dict[str, list[str]]:
    """Returns the texts of notes by the place that they are about."""
    found: dict[str, list[str]] = {}
    for note in notes:
        found.setdefault(note.where, []).append(str(note))
    return found


def batch_lines(declaration: Declaration, *names: str) -> list[str]:
    """Returns the lines about the batch, which name its size for all cores and for one.

    Args:
      declaration: it says the sizes, or not.
      *names: of the global size, and of the size per core if there is a name for it.
    """
    sizes = declaration.sizes
    per_core, cores = sizes.batch_size_per_core, sizes.cores
    whole = per_core * cores if per_core is not None and cores is not None else None
    if whole is not None:
        how = (f'{counted(whole, "sample")} = {counted(cores or 0, "core")} x {per_core}, on '
               f'{counted(sizes.hosts or 1, "host")}. A core is a replica.')
    else:
        how = 'What was read does not say the batch size.'
        if declaration.origin == 'TF1':
            how += ' TPUEstimator has it as train_batch_size, for all cores together.'
    return [*comment(how), *(f'{name} = {value}' for name, value in zip(names, (whole, per_core)))]


@dataclasses.dataclass(frozen=True, slots=True)
class Constants:
    """Names for the values that several places share."""

    names: dict[Hashable, str]

    @classmethod
    def of(cls, keys: Sequence[tuple[Hashable, str]]) -> Constants:
        """Returns a name for each key that appears twice or more.

        Args:
          keys: each with the beginning of its name.

        >>> Constants.of([(1, 'SGD'), (2, 'SGD'), (1, 'SGD'), (3, 'SGD'), (3, 'SGD')]).names
        {1: 'SGD', 3: 'SGD_2'}
        """
        counts = collections.Counter(key for key, _ in keys)
        of_name: collections.Counter[str] = collections.Counter()
        names: dict[Hashable, str] = {}
        for key, name in dict(keys).items():
            if counts[key] > 1:
                of_name[name] += 1
                names[key] = name if of_name[name] == 1 else f'{name}_{of_name[name]}'
        return cls(names)


def commonest(keys: Iterable[_Key]) -> _Key | None:
    """Returns the key that appears most often, the first if there are several; `None` of none.

    >>> commonest([1, 2, 2, 1])
    1
    """
    counts = collections.Counter(keys)
    return max(counts, key=counts.__getitem__, default=None)


def assigned(name: str, value: Expression) -> list[str]:
    """Returns the lines of an assignment."""
    return list(lines(f'{name} = ', value))


def constant_of(made: Call) -> str:
    """Returns how the name of a constant begins that holds the value of a call.

    >>> constant_of(Call('api.SGD(', ()))
    'SGD'
    """
    return made.opening.rpartition('.')[2].removesuffix('(').removesuffix('Parameters').upper()
