r"""Maps: text files that say which variable of a checkpoint becomes which one of another.

    # A comment.
    dense/kernel -> model/dense/kernel
    re bert/encoder/layer_(\d+)/(.*) -> encoder/layer-\1/\2
    table input_layer/user_embedding/embedding_weights -> user
    drop beta1_power
    drop re .*/ExponentialMovingAverage
    power beta1_power 0.9

A line has the old name, `->` and the new one. `re` makes the old name a regular expression that
must match all of a name; `\1` in the new name is its first group. `table` says that the variable is
an embedding table, and the new name is a table's. `drop` leaves a variable out. Slots go with their
variable, unless an exact line names them, or an expression that does not fit the variable.

Of several lines for a name, the exact one counts; otherwise the first expression does. An
expression fits names of up to 250 characters. `power NAME BETA` makes a variable of TF1's Adam:
BETA to the power step + 1. White space around names does not count.

A dry run prints the lines to begin with, and a migration writes the map that leads back.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..checkpoint.object_graph import Place
from ..checkpoint.storage import created
from ..errors import CheckpointWriteError, ConfigError, Problem, shown
from ..proto import files
from .checkpoint_contents import TF1

if TYPE_CHECKING:
    from .moves import MigrationPlan

UNKNOWN = '?'
"""Stands for a new name that the user has to fill in."""
_END_OF_LINE = re.compile(r'\r\n?|\n')
_ARROW = re.compile(r'\s+->\s+')
_WORD = re.compile(r'(table|re|drop)\s+')
_PLAIN = re.compile(r'(?!(?:table|re|drop)\s|#|.*\s->\s|\s)[^\\]*(?<!\s)')
LONGEST_NAME = 250
"""An expression fits no longer name: checkpoints of strangers have names of any length."""
_MOST_BYTES, _MOST_PROBLEMS = 2**26, 50


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One line of a map."""

    where: str  # The line, for messages.
    old: str  # A name, or a regular expression.
    new: str | None  # A name, or the replacement of the expression; `None` drops the variable.
    is_table: bool = False
    pattern: re.Pattern[str] | None = None  # The expression, if it is one.

    def fits(self, name: str) -> bool:
        """Whether the line is about a name."""
        if self.pattern is None:
            return name == self.old
        return len(name) <= LONGEST_NAME and self.pattern.fullmatch(name) is not None

    def renamed(self, name: str) -> str | None:
        """Returns the new name of a variable; `None` if it is dropped."""
        if self.pattern is None or self.new is None:
            return self.new
        found = self.pattern.fullmatch(name)
        return found.expand(self.new) if found is not None else None


class Map:
    """The lines of a map: rules about variables, and names and bases of Adam's powers to be made.
    """

    def __init__(self, rules: Iterable[Rule] = (), powers: Iterable[tuple[str, float]] = ()):
        """Takes lines; each exact name has one."""
        self.rules, self.powers = tuple(rules), tuple(powers)
        self._exact = {rule.old: rule for rule in self.rules if rule.pattern is None}
        self._loose = [rule for rule in self.rules if rule.pattern is not None]
        self._found: dict[str, Rule | None] = {}

    def rule_for(self, name: str) -> Rule | None:
        """Returns the line that counts for a name."""
        if name not in self._found:
            self._found[name] = self._exact.get(name) or next(
                (rule for rule in self._loose if rule.fits(name)), None)
        return self._found[name]

    def rule_for_slot(self, slot: str, variable: str) -> Rule | None:
        """Returns the line for a slot alone; expressions that fit its variable mean that one."""
        return self._exact.get(slot) or next(
            (rule for rule in self._loose if rule.fits(slot) and not rule.fits(variable)), None)

    def idle(self, names: Iterable[str]) -> list[Rule]:
        """Returns the lines that are about none of these names."""
        known = set(names)
        used = {id(self.rule_for(name)) for name in known}
        # An expression may be about names that an earlier line takes, all the same.
        return [rule for rule in self.rules if id(rule) not in used and (
            rule.old not in known if rule.pattern is None else not any(map(rule.fits, known)))]


def read(path: str) -> Map:
    """Reads the map in a file.

    Raises:
      ConfigError: E651 with all lines that cannot be read.
    """
    try:
        text = files.content_of(path, _MOST_BYTES, follow=True).decode('utf-8-sig')
    except (OSError, ValueError) as error:
        raise ConfigError(Problem(
            'E651', f'map {shown(path, 300)}', 'it must be a readable text file in UTF-8',
            shown(getattr(error, 'strerror', None) or error, 200))) from error
    return parse(text, path)


def parse(text: str, where: str = 'map') -> Map:
    r"""Returns the map in a text; `where` is its place, for messages.

    Raises:
      ConfigError: E651 with the lines that cannot be read, up to 50 of them.

    >>> parse('re a/(.*) -> b/\\1').rule_for('a/kernel').renamed('a/kernel')
    'b/kernel'
    """
    rules: list[Rule] = []
    powers: dict[str, float] = {}
    problems: list[Problem] = []
    for number, line in enumerate(_END_OF_LINE.split(text), 1):
        line, place = line.strip(), f'{shown(where, 300)}:{number}'
        if not line or line.startswith('#'):
            continue
        try:
            if line.split(maxsplit=1)[0] == 'power' and not _ARROW.search(line):
                _add_power(line, powers)
            else:
                rules.append(_rule(line, place))
        except ValueError as error:
            problems.append(Problem(
                'E651', place, 'a line must be "OLD -> NEW" or "drop OLD", with "re" or "table" '
                'before OLD if wanted, or "power NAME BETA"',
                f'"{shown(line, 200)}": {shown(error, 200)}'))
    problems += _twice(rules)
    if problems:
        raise ConfigError(*problems[:_MOST_PROBLEMS])
    return Map(rules, powers.items())


def _rule(line: str, where: str) -> Rule:
    """Returns what a line says; a ValueError says why it cannot be read."""
    old, *others = _ARROW.split(line)
    word, words = '', set()
    while (found := _WORD.match(old)) is not None and found[1] not in words:
        word, old = found[1], old[found.end():]
        words.add(word)
        if word == 're':  # What follows is the expression, whatever it begins with.
            break
    drops, is_table, is_pattern = (each in words for each in ('drop', 'table', 're'))
    if len(others) != (0 if drops else 1):
        raise ValueError('"drop" has one name' if drops else
                         'no arrow with spaces around it, or two of them')
    if drops and is_table:
        raise ValueError('"drop table": "drop" is enough')
    new = None if drops else others[0]
    if not old or new == '':
        raise ValueError('a name is missing')
    if new == UNKNOWN:
        raise ValueError(f'write the new name in the place of {UNKNOWN}, or "drop" before the old')
    if not is_pattern:
        return Rule(where, old, new, is_table)
    try:
        pattern = re.compile(old)
        if new is not None:
            pattern.sub(new, '')  # It reads the new name too.
    except (re.error, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f'no regular expression, or new name for one: {error}') from error
    return Rule(where, old, new, is_table, pattern)


def _add_power(line: str, powers: dict[str, float]) -> None:
    _, name, base = line.split()
    if name in powers or not 0 < float(base) < 1:
        raise ValueError('each NAME comes once, and BETA is between 0 and 1')
    powers[name] = float(base)


def _twice(rules: Iterable[Rule]) -> Iterator[Problem]:
    """Yields a problem for each name, or expression, with two lines."""
    seen: dict[tuple[str, bool], Rule] = {}
    for rule in rules:
        first = seen.setdefault((rule.old, rule.pattern is None), rule)
        if first is not rule:
            yield Problem('E651', rule.where, 'a name must have one line',
                          f'"{shown(rule.old, 200)}", which {first.where} names too')


def way_back(plan: MigrationPlan, comments: Iterable[str] = ()) -> str:
    """Returns a map that gives the tensors of the new checkpoint their old names."""
    contents = plan.contents
    tables = {one.tensor: (new, one.name) for one, new in plan.names.tables}
    lines = []
    for move in plan.moves:
        new, old = tables.get(move.source, (
            str(Place.of_key(move.target) or move.target), contents.text_of(move.source)))
        if new != old or move.variable is not None:
            lines.append(line(new, old, move.source in tables and contents.is_tf2
                              and plan.target.kind == TF1))
    left = [f'# Left behind: {shown(name, 1000)}' for name in plan.left_out]
    return '\n'.join([*(f'# {line}' for line in comments), *sorted(lines), *left, ''])


def line(old: str, new: str, is_table: bool = False) -> str:
    """Returns the line that gives a name a new one."""
    left = old if _PLAIN.fullmatch(old) else f're {re.escape(old)}'
    text = f'{"table " if is_table else ""}{left} -> {new}'
    if not old.isprintable() or not new.isprintable() or not _PLAIN.fullmatch(new):
        return f'# No line can say this: {shown(text, 1000)}'
    return text


def require_new(path: str) -> None:
    """Makes sure that a file can be made at `path`, before much time is spent: E659 otherwise."""
    if os.path.lexists(path):
        raise _refused(path, 'something there')
    if not os.path.isdir(os.path.dirname(path) or '.'):
        raise _refused(path, 'no folder for it')


def write(path: str, text: str) -> None:
    """Writes a map into a file that is not there yet: E659 otherwise."""
    try:
        with created(path) as file:
            file.write(text.encode(errors='backslashreplace'))
    except (OSError, ValueError) as error:
        raise _refused(path, shown(getattr(error, 'strerror', None) or error, 200)) from error


def _refused(path: str, got: str) -> CheckpointWriteError:
    return CheckpointWriteError(Problem(
        'E659', f'map {shown(path, 300)}', 'it must be possible to make a new file there', got,
        'Name another file.'))
