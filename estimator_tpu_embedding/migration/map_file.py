r"""Reads maps: text files that say which variable of a checkpoint becomes which one of another.

    # A comment.
    dense/kernel -> model/dense/kernel
    re bert/encoder/layer_(\d+)/(.*) -> encoder/layer-\1/\2
    table input_layer/user_embedding/embedding_weights -> user
    drop beta1_power
    drop re .*/ExponentialMovingAverage
    power beta1_power 0.9

A line has the old name, `->` and the new one. `re` makes the old name a regular expression that
must match all of a name; `\1` in the new name is its first group. `table` says that the variable is
an embedding table, and the new name that of the table. `drop` leaves a variable out. Slots go with
their variable, unless a line names them. Of several lines for a name, exact ones come first, then
the first expression. `power NAME BETA` makes a variable of TF1's Adam, BETA to the power step + 1.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from ..errors import ConfigError, Problem, shown
from ..proto import files

_ARROW = ' -> '
_REFERENCE = re.compile(r'\\(?:([0-9]{1,2})|g<(\w+)>)')
_MOST_BYTES, _MOST_RULES = 2**22, 50_000


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One line of a map.

    Attributes:
      where: the line, for messages.
      old: a name, or a regular expression.
      new: a name, or the replacement of the expression; `None` drops the variable.
      is_table: whether the variable is a table.
      pattern: the expression, if it is one.
    """

    where: str
    old: str
    new: str | None
    is_table: bool = False
    pattern: re.Pattern[str] | None = None

    def fits(self, name: str) -> bool:
        """Whether the line is about a name."""
        return self.pattern.fullmatch(name) is not None if self.pattern else name == self.old

    def renamed(self, name: str) -> str | None:
        """Returns the new name of a variable; `None` if it is dropped."""
        if self.pattern is None or self.new is None:
            return self.new
        found = self.pattern.fullmatch(name)
        return found.expand(self.new) if found is not None else None


@dataclasses.dataclass(frozen=True, slots=True)
class Map:
    """The lines of a map.

    Attributes:
      rules: about variables.
      powers: the base of each variable of Adam to be made, by its name.
    """

    rules: tuple[Rule, ...] = ()
    powers: tuple[tuple[str, float], ...] = ()

    def rule_for(self, name: str) -> Rule | None:
        """Returns the line that counts for a name."""
        exact = (rule for rule in self.rules if rule.pattern is None and rule.fits(name))
        loose = (rule for rule in self.rules if rule.pattern is not None and rule.fits(name))
        return next(exact, None) or next(loose, None)

    def idle(self, names: Iterable[str]) -> list[Rule]:
        """Returns the lines that are about none of these names."""
        known = list(names)
        return [rule for rule in self.rules if not any(map(rule.fits, known))]


def read(path: str) -> Map:
    """Reads the map in a file.

    Raises:
      ConfigError: E651 with all lines that cannot be read.
    """
    try:
        with files.open_regular(path, follow=True) as file:
            content = bytes(files.read_at_most(file, _MOST_BYTES + 1))
        if len(content) > _MOST_BYTES:
            raise ValueError(f'more than {_MOST_BYTES:,} bytes')
        text = content.decode()
    except (OSError, ValueError) as error:
        raise ConfigError(Problem(
            'E651', f'map {shown(path, 300)}', 'it must be a readable text file in UTF-8',
            shown(getattr(error, 'strerror', None) or error, 200))) from error
    return parse(text, path)


def parse(text: str, where: str = 'map') -> Map:
    """Returns the map in a text.

    Args:
      text: see above.
      where: its place, for messages.

    Raises:
      ConfigError: E651 with all lines that cannot be read.

    >>> parse('re a/(.*) -> b/\\\\1').rule_for('a/kernel').renamed('a/kernel')
    'b/kernel'
    """
    rules: list[Rule] = []
    powers: dict[str, float] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        line, place = line.strip(), f'{shown(where, 300)}:{number}'
        if not line or line.startswith('#'):
            continue
        try:
            if line.startswith('power '):
                _add_power(line, powers)
            else:
                rules.append(_rule(line, place))
        except (ValueError, re.error, IndexError) as error:
            problems.append(Problem(
                'E651', place, 'a line must be "OLD -> NEW" or "drop OLD", with "re" or "table" '
                'before OLD if wanted, or "power NAME BETA"',
                f'{shown(repr(line), 200)}: {shown(error, 200)}'))
    problems += _twice(rules)
    if len(rules) > _MOST_RULES:
        problems = [Problem('E651', shown(where, 300), f'it must have at most {_MOST_RULES:,} '
                            'lines', f'{len(rules):,}', 'Use regular expressions.')]
    if problems:
        raise ConfigError(*problems)
    return Map(tuple(rules), tuple(powers.items()))


def _rule(line: str, where: str) -> Rule:
    words, new = line, None
    drops = line.startswith('drop ')
    if drops:
        words = line.removeprefix('drop ').strip()
    else:
        if line.count(_ARROW) != 1:
            raise ValueError('no arrow between two names, or two arrows')
        words, new = (part.strip() for part in line.split(_ARROW))
    is_table = words.startswith('table ')
    words = words.removeprefix('table ').strip()
    is_pattern = words.startswith('re ')
    old = words.removeprefix('re ').strip()
    if not old or new == '':
        raise ValueError('a name is missing')
    pattern = re.compile(old) if is_pattern else None
    if pattern is not None and new is not None:
        _check_groups(pattern, new)
    return Rule(where, old, new, is_table, pattern)


def _check_groups(pattern: re.Pattern[str], new: str) -> None:
    """Makes sure that a replacement names groups that the expression has."""
    for found in _REFERENCE.finditer(new):
        group = found[1] or found[2]
        if group not in pattern.groupindex and not (
                group.isdigit() and int(group) <= pattern.groups):
            raise ValueError(f'the expression has no group {group}')
    if '\\' in _REFERENCE.sub('', new):
        raise ValueError(r'a \ that is not of a group such as \1 or \g<name>')


def _add_power(line: str, powers: dict[str, float]) -> None:
    _, name, base = line.split()
    if name in powers or not 0 < float(base) < 1:
        raise ValueError('each NAME comes once, and BETA is between 0 and 1')
    powers[name] = float(base)


def _twice(rules: Iterable[Rule]) -> Iterator[Problem]:
    """Yields a problem for each exact name with two lines."""
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.pattern is None and rule.old in seen:
            yield Problem('E651', rule.where, 'a name must have one line',
                          f'"{shown(rule.old, 200)}", which {seen[rule.old].where} names too')
        elif rule.pattern is None:
            seen[rule.old] = rule
