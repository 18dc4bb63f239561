"""What a project does not want to hear: comments in its files, and `[etpe]` of its `setup.cfg`.

```python
table = np.int(3)  # etpe: ignore[E121]
tf.contrib.slim    # etpe: ignore
```
```ini
[etpe]
ignore = E101 W2
exclude = third_party/* generated.py
```
"""

from __future__ import annotations

import configparser
import fnmatch
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..errors import ConfigError, Problem, did_you_mean, shown
from ..proto import files
from .facts import Finding, ScannedFile

SETTINGS_FILE, SECTION = 'setup.cfg', 'etpe'
_MOST_BYTES = 2**20
_COMMENT = re.compile(r'#\s*etpe:\s*ignore(?:\s*\[([\w,\s]*)\])?(?![\w\[])', re.IGNORECASE)
_ENDS = frozenset({tokenize.NEWLINE, tokenize.ENDMARKER})


class Settings(NamedTuple):
    """What `[etpe]` of a `setup.cfg` says.

    Attributes:
      select: beginnings of the codes that count.
      ignore: beginnings of the codes that do not.
      exclude: patterns of paths that are not scanned, relative to `folder`.
      folder: where the file is; `''` if there is none.
    """

    select: tuple[str, ...] = ('',)
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    folder: str = ''

    def excludes(self, path: str) -> bool:
        """Whether a file, or a folder that it is in, is named by `exclude`."""
        if not self.exclude:
            return False
        below = os.path.relpath(os.path.abspath(path), os.path.abspath(self.folder))
        parts = below.split(os.sep)
        ways = [os.sep.join(parts[:count]) for count in range(1, len(parts) + 1)]
        return any(fnmatch.fnmatchcase(way, pattern.rstrip('/'))
                   for way in ways for pattern in self.exclude)


def comments(text: str) -> dict[int, frozenset[str]]:
    """Returns the codes that comments tell to ignore, by line; an empty set stands for all.

    A comment counts for its line. At the end of a statement of several lines, it counts for all of
    them.

    >>> comments('a = np.int(\\n  1)  # etpe: ignore[E121]\\nb = 2  # etpe: ignore')
    {1: frozenset({'E121'}), 2: frozenset({'E121'}), 3: frozenset()}
    """
    if 'etpe:' not in text.lower():
        return {}
    found: dict[int, frozenset[str]] = {}
    begin = 0  # line of the statement; 0 between statements
    pending: list[tuple[int, frozenset[str]]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                if (codes := _codes_of(token.string)) is not None:
                    pending.append((token.start[0], codes))
            elif token.type in _ENDS:
                for line, codes in pending:
                    ends = begin and line == token.start[0]
                    _add(found, range(begin if ends else line, line + 1), codes)
                begin, pending = 0, []
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                begin = begin or token.start[0]
    except (tokenize.TokenError, SyntaxError):
        # Nobody can tell comments of such a file from strings, so each line counts by itself.
        for number, written in enumerate(text.splitlines(), 1):
            if (codes := _codes_of(written)) is not None:
                _add(found, (number,), codes)
    return found


def _codes_of(comment: str) -> frozenset[str] | None:
    match = _COMMENT.search(comment)
    if match is None:
        return None
    return frozenset(re.findall(r'\w+', (match[1] or '').upper()))


def _add(found: dict[int, frozenset[str]], lines: Iterable[int], codes: frozenset[str]) -> None:
    for line in lines:
        before = found.get(line, codes)
        found[line] = before | codes if before and codes else frozenset()


def is_ignored(finding: Finding, file: ScannedFile | None) -> bool:
    """Whether a comment of its file ignores a finding; `file` is `None` if it has none."""
    place = finding.place
    if place is None or file is None:
        return False
    for line in {place.line, max(place.line, place.end_line)}:
        codes = file.ignores.get((place.cell, line))
        if codes is not None and (not codes or finding.code.startswith(tuple(codes))):
            return True
    return False


def settings_of(path: str, codes_of: Callable[[Iterable[str]], tuple[str, ...]]) -> Settings:
    """Returns the settings of the project that a path belongs to.

    They are those of the nearest `setup.cfg` with a section `[etpe]`, in the folder of the path or
    above it.

    Args:
      path: of a file or folder.
      codes_of: returns the beginnings of codes in capitals; its ValueError says which is none.

    Raises:
      ConfigError: E135, if the file, a key or a value is not as it must be.
    """
    folder = os.path.abspath(path)
    while True:
        file = os.path.join(folder, SETTINGS_FILE)
        if (section := _section(file)) is not None:
            return _settings(file, section, codes_of)
        if folder == (above := os.path.dirname(folder)):
            return Settings()
        folder = above


def _section(file: str) -> dict[str, str] | None:
    """The keys and values of `[etpe]`; `None` if there is no such file or no such section."""
    try:
        with files.open_regular(file, follow=True) as stream:
            content = bytes(files.read_at_most(stream, _MOST_BYTES))
    except OSError:
        return None
    if f'[{SECTION}]'.encode() not in content:  # A broken file of another project is not ours.
        return None
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(content.decode('utf-8-sig'), file)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(_problem(file, 'it must be as configparser reads it',
                                   ' '.join(str(error).split()))) from error
    return dict(parser[SECTION]) if SECTION in parser else None


def _settings(file: str, section: dict[str, str],
              codes_of: Callable[[Iterable[str]], tuple[str, ...]]) -> Settings:
    found: dict[str, tuple[str, ...]] = {}
    problems = []
    for key, value in section.items():
        words = tuple(value.replace(',', ' ').split())
        try:
            if key not in ('select', 'ignore', 'exclude'):
                raise KeyError(key)
            if not words:
                raise ValueError('nothing is written there')
            found[key] = words if key == 'exclude' else codes_of(words)
        except KeyError:
            problems.append(_problem(
                file, f'[{SECTION}] has the keys select, ignore and exclude', key,
                did_you_mean(key, ('select', 'ignore', 'exclude'))))
        except ValueError as error:
            problems.append(_problem(file, f'[{SECTION}] {key}: {error}', value))
    if problems:
        raise ConfigError(*problems)
    return Settings(**found, folder=os.path.dirname(file))


def _problem(file: str, rule: str, got: str, remedy: str = '') -> Problem:
    return Problem('E135', shown(file, 300), rule, shown(got, 400), remedy)


def selected(code: str, select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether a code begins as one of `select` does, and as none of `ignore`."""
    return code.startswith(tuple(select)) and not code.startswith(tuple(ignore))
