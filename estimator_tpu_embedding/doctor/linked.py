"""Holds the facts of files that run together, and the defaults of their flags."""

from __future__ import annotations

from collections.abc import Sequence
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

    @property
    def size(self) -> int:
        """The value if it is a positive number, 0 otherwise."""
        return self.value if type(self.value) is int and self.value > 0 else 0


class Linked:
    """The files of one program."""

    def __init__(self, files: Sequence[ScannedFile]):
        """Takes the files."""
        self.files = files

    def facts(self, *kinds: str) -> list[Fact]:
        """Returns the facts of these kinds of all files, kind by kind."""
        return [fact for kind in kinds for file in self.files for fact in file.facts
                if fact.kind == kind]

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
        if name not in call.values['arguments']:
            is_told = default is not UNREAD and not call.values['is_open']
            return Known(default, call.place) if is_told else None
        value, place = call.values['arguments'][name], call.values['places'][name]
        if not isinstance(value, Flag):
            return None if value is UNREAD else Known(value, place)
        found = [fact for fact in self.facts('flag') if fact.values['name'] == value.name]
        found = [fact for fact in found if fact.place.path == call.place.path] or found
        if len(found) != 1 or found[0].values['default'] is UNREAD:
            return None
        where = f'{found[0].place.path}:{found[0].place.line}'
        return Known(found[0].values['default'], place,
                     f', the default of {value.written} ({where})', found[0].values['option'])

    def as_written(self, call: Fact, name: str) -> object:
        """Returns a text or a flag that an argument is; `None` for all others.

        Two arguments with the same are equal, whatever the flag is.
        """
        value = call.values['arguments'].get(name)
        return value if isinstance(value, (str, Flag)) and value else None
