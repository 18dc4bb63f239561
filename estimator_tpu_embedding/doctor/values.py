"""Reads the values of arguments that the source shows plainly: literals, defaults of flags."""

from __future__ import annotations

import ast
import collections
import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Union

from .facts import Fact, Place, ScannedFile
from .syntax import Nodes, called_name, text_of


class Flag(NamedTuple):
    """The value of a command-line flag, such as `FLAGS.use_tpu`.

    Attributes:
      name: of the flag.
      written: as the source has it.
    """

    name: str
    written: str


class Unread(enum.Enum):
    """A value that the source does not show."""

    VALUE = 'unread'


UNREAD = Unread.VALUE
Value = Union[bool, int, float, str, None, Flag, Unread]

_FLAGS = frozenset('FLAGS flags args arguments opt opts options parsed parsed_args'.split())
"""What scripts call the object with the values of their flags."""


class Values:
    """Reads values in one file: literals, flags, and names that are assigned once."""

    def __init__(self, nodes: Nodes):
        """Takes the nodes of the file."""
        self._nodes = nodes

    def of(self, node: ast.expr) -> Value:
        """Returns the value of an expression; `UNREAD` if it is no literal and no flag."""
        if isinstance(node, ast.Name):
            node = self.assigned(node.id) or node
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (
                node.value.id in _FLAGS):
            return Flag(node.attr, f'{node.value.id}.{node.attr}')
        return _constant(node)

    def assigned(self, name: str) -> ast.expr | None:
        """Returns the expression that a name stands for, if the file binds it only once."""
        return self._assigned_once.get(name)

    @functools.cached_property
    def _assigned_once(self) -> dict[str, ast.expr]:
        nodes = self._nodes
        bound = collections.Counter(each.id for each in nodes.of(ast.Name)
                                    if not isinstance(each.ctx, ast.Load))
        bound.update(each.arg for each in nodes.of(ast.arg))  # Its value comes from callers.
        bound.update((each.asname or each.name).partition('.')[0] for each in nodes.of(ast.alias))
        bound.update(each.name for each in nodes.of(ast.FunctionDef))
        bound.update(each.name for each in nodes.of(ast.ClassDef))
        bound.update(name for each in nodes.of(ast.Global) for name in each.names)
        bound.update(name for each in nodes.of(ast.Nonlocal) for name in each.names)
        found = {each.id: node.value for node in nodes.of(ast.Assign) for each in node.targets
                 if isinstance(each, ast.Name)}
        found.update((node.target.id, node.value) for node in nodes.of(ast.AnnAssign)
                     if isinstance(node.target, ast.Name) and node.value is not None)
        return {name: value for name, value in found.items() if bound[name] == 1}


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
        self._facts: dict[str, list[Fact]] = {}
        for file in files:
            for fact in file.facts:
                self._facts.setdefault(fact.kind, []).append(fact)

    def facts(self, *kinds: str) -> list[Fact]:
        """Returns the facts of these kinds of all files, kind by kind."""
        return [fact for kind in kinds for fact in self._facts.get(kind, ())]

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


def flags_of(nodes: Nodes, place_of: Callable[[ast.AST], Place]) -> Iterator[Fact]:
    """Yields a fact `'flag'` per definition of a flag of absl, `tf.flags` or argparse.

    It has `name`, `option` as it is given on the command line, and `default` (`UNREAD` if the
    source does not show it).
    """
    for node in nodes.of(ast.Call):
        called = called_name(node)
        by_name = {each.arg: each.value for each in node.keywords}
        texts = [text_of(each) or '' for each in node.args]
        default = by_name.get('default')
        if called.startswith('DEFINE_'):
            name = texts[0] if texts else text_of(by_name.get('name'))
            option, default = f'--{name}', node.args[1] if len(node.args) > 1 else default
        elif called == 'add_argument' and texts:
            option = next((each for each in texts if each.startswith('--')), texts[0])
            name = text_of(by_name.get('dest')) or option.lstrip('-').replace('-', '_')
        else:
            continue
        is_switch = text_of(by_name.get('action')) in ('store_true', 'store_false')
        if name:
            yield Fact('flag', place_of(node), {
                'name': name, 'option': option,
                'default': False if is_switch and default is None else _constant(default)})


def _constant(node: ast.expr | None) -> Value:
    """Returns the value of a literal, and `None` where there is nothing."""
    if node is None:
        return None
    return node.value if isinstance(node, ast.Constant) and (
        node.value is None or isinstance(node.value, (bool, int, float, str))) else UNREAD
