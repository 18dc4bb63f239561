"""Knows which files belong together by their imports, and the defaults of their flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .facts import Fact, Place, ScannedFile
from .values import UNREAD, Flag


class Known(NamedTuple):
    """The value of an argument, and where it comes from.

    Attributes:
      value: of the argument; of a flag its default.
      place: of the argument.
      source: `''` for a value that is written there; for a flag such as
        `', the default of FLAGS.use_tpu (train.py:7)'`.
      option: of a flag, as the command line has it: `'--use_tpu'`.
    """

    value: object
    place: Place
    source: str = ''
    option: str = ''

    @property
    def origin(self) -> str:
        """The flag, or the place of a value that is written there, for messages."""
        return self.source or f' ({self.place.path}:{self.place.line})'


class Linked:
    """Files that import one another, in either direction."""

    def __init__(self, files: Sequence[ScannedFile]):
        """Takes the files of one such group."""
        self.files = files
        self._by_kind: dict[str, list[Fact]] = {}
        self._flags: dict[str, list[Fact]] = {}
        for file in files:
            for fact in file.facts:
                self._by_kind.setdefault(fact.kind, []).append(fact)
        for flag in self.facts('flag'):
            self._flags.setdefault(str(flag.values['name']), []).append(flag)

    def facts(self, *kinds: str) -> list[Fact]:
        """Returns the facts of these kinds of all files, kind by kind."""
        return [fact for kind in kinds for fact in self._by_kind.get(kind, ())]

    def calls(self, *kinds: str) -> list[Fact]:
        """Returns the calls of constructs."""
        return [fact for fact in self.facts(*kinds) if fact.values['is_call']]

    def known(self, call: Fact, name: str, default: object = UNREAD) -> Known | None:
        """Returns the value of an argument of a call, or `None` if the source does not tell it.

        Args:
          call: a fact of a call.
          name: of the argument.
          default: the value where the call does not give the argument.
        """
        arguments, places = _mapping(call, 'arguments'), _mapping(call, 'places')
        if name not in arguments:
            is_told = default is not UNREAD and not call.values['is_open']
            return Known(default, call.place) if is_told else None
        value, place = arguments[name], places[name]
        assert isinstance(place, Place)
        if not isinstance(value, Flag):
            return None if value is UNREAD else Known(value, place)
        defined = self._definition(value, call.place.path)
        if defined is None or defined.values['default'] is UNREAD:
            return None
        where = f'{defined.place.path}:{defined.place.line}'
        return Known(defined.values['default'], place,
                     f', the default of {value.written} ({where})',
                     str(defined.values['option']))

    def as_written(self, call: Fact, name: str) -> object:
        """Returns a text or a flag that an argument is; `None` for all others.

        Two arguments with the same are equal, whatever the flag is.
        """
        value = _mapping(call, 'arguments').get(name)
        return value if isinstance(value, (str, Flag)) and value else None

    def _definition(self, flag: Flag, path: str) -> Fact | None:
        """Returns the only definition of a flag: in the same file, or else in the others."""
        found = self._flags.get(flag.name, [])
        own = [fact for fact in found if fact.place.path == path]
        chosen = own or found
        return chosen[0] if len(chosen) == 1 else None


def groups_of(files: Sequence[ScannedFile]) -> list[Linked]:
    """Returns the files in groups that import one another, in the order of the files.

    Files that no program of the project connects are groups of their own.
    """
    by_module = {file.module: index for index, file in enumerate(files) if file.module}
    group = list(range(len(files)))

    def root(index: int) -> int:
        while group[index] != index:
            group[index] = index = group[group[index]]
        return index

    for index, file in enumerate(files):
        for module in file.imports:
            if module in by_module:
                one, other = sorted((root(index), root(by_module[module])))
                group[other] = one
    found: dict[int, list[ScannedFile]] = {}
    for index, file in enumerate(files):
        found.setdefault(root(index), []).append(file)
    return [Linked(each) for each in found.values()]


def _mapping(fact: Fact, name: str) -> Mapping[str, object]:
    found = fact.values[name]
    assert isinstance(found, Mapping)
    return found
