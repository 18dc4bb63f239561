"""Rewrites the files of a project, each after a scan of its new text, and never through a link."""

from __future__ import annotations

import collections
import difflib
import importlib.util
import io
import os
import re
import tokenize
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..checkpoint.files import write_atomically
from ..errors import Problem, SetupError, shown
from ..proto import files
from . import scan, sources
from .facts import Finding, Place, ScannedFile, Use
from .fixing.bindings import BUILTINS
from .project import Project

_MOST_BYTES = 2**24
_NEWER = 'the file has changed since it was read'


class Rewritten(NamedTuple):
    """One file, before it is written.

    Attributes:
      path: of the file.
      before: its text.
      after: the new text; the same if nothing can be fixed.
      encoding: of both.
      status: that the file had when it was read; `None` if it was not.
      done: findings that the new text does not have.
      left: other findings with a successor, and why they were left.
    """

    path: str
    before: str = ''
    after: str = ''
    encoding: str = 'utf-8'
    status: os.stat_result | None = None
    done: Sequence[Finding] = ()
    left: Sequence[tuple[Finding, str]] = ()

    def diff(self) -> str:
        """Returns the unified diff, `''` if nothing changes."""
        before, after = (re.findall(r'[^\n]*\n|[^\n]+', text)
                         for text in (self.before, self.after))
        name = shown(self.path, 1000)  # It may have line ends.
        return ''.join(
            line if line.endswith('\n') else f'{line}\n\\ No newline at end of file\n'
            for line in difflib.unified_diff(before, after, f'a/{name}', f'b/{name}'))

    def written(self) -> Rewritten:
        """Writes the new text in one step; returns what was done and left then."""
        if self.before == self.after:
            return self
        try:
            status = os.lstat(self.path)
            if self.status is None or _identity(status) != _identity(self.status):
                return self._failed(_NEWER)
            if not os.access(self.path, os.W_OK):
                return self._failed('the file is not writable')
            write_atomically(self.path, self.after.encode(self.encoding), status.st_mode & 0o7777)
        except OSError as error:
            return self._failed(str(error.strerror))
        return self

    def _failed(self, reason: str) -> Rewritten:
        return self._replace(after=self.before, done=(), left=[
            *self.left, *((finding, reason) for finding in self.done)])


def rewritten(paths: Sequence[str], findings: Iterable[Finding]) -> list[Rewritten]:
    """Returns each file with fixes that are possible; nothing is written.

    Args:
      paths: that were diagnosed.
      findings: of the diagnosis; those with a successor are to be fixed.

    Raises:
      SetupError: E134, if LibCST is not installed.
    """
    if importlib.util.find_spec('libcst') is None:
        raise SetupError(Problem('E134', 'etpe doctor', '--fix and --diff need the package libcst',
                                 'it is not installed', 'pip install ".[doctor]"'))
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.successor and finding.place:
            by_path.setdefault(finding.place.path, []).append(finding)
    project = scan.project_of(sources.find(paths))
    return [_rewritten(path, several, project) for path, several in sorted(by_path.items())]


def _rewritten(path: str, findings: list[Finding], project: Project) -> Rewritten:
    def left(reason: str) -> Rewritten:
        return Rewritten(path, left=[(finding, reason) for finding in findings])

    if any(finding.place and finding.place.cell for finding in findings):
        return left('it is in a notebook')
    try:
        with files.open_regular(path, follow=False) as stream:
            status = os.fstat(stream.fileno())
            content = bytes(files.read_at_most(stream, _MOST_BYTES + 1))
        if len(content) > _MOST_BYTES:
            return left('it is too large')
        if status.st_nlink > 1:  # A new file would take one name only.
            return left('the file has another name too, by a hard link')
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        text = content.decode(encoding)
        if text.encode(encoding) != content:
            return left(f'its encoding {encoding} cannot be written as it was')
    except OSError as error:
        return left(f'it cannot be read: {error.strerror}')
    except (ValueError, SyntaxError, LookupError):
        return left(_NEWER)
    return _checked(Rewritten(path, text, text, encoding, status), findings, project)


def _checked(file: Rewritten, findings: Sequence[Finding], project: Project) -> Rewritten:
    """The file with its new text, if the scans of both texts agree with what was to be done."""
    from libcst import CSTLogicError, ParserSyntaxError

    from .fixes import fixed
    old = _scanned(file.path, file.before, project)
    left, able = [], []
    meanings: dict[Place | None, set[str]] = collections.defaultdict(set)
    for use in old.uses:
        meanings[use.place].add(_name(use))
    for finding in findings:
        names = meanings[finding.place]
        if names == {finding.subject}:
            able.append(finding)
        else:
            left.append((finding, 'the name has another meaning too' if finding.subject in names
                         else _NEWER))
    try:
        found = fixed(file.before, able)
    except (ParserSyntaxError, CSTLogicError, SyntaxError, RecursionError, MemoryError) as error:
        why = ('the file is nested too deeply' if isinstance(error, (RecursionError, MemoryError))
               else 'the file does not parse')
        return file._replace(left=[*left, *((one, why) for one in able)])
    left += found.left
    if found.done and not _agree(old, _scanned(file.path, found.text, project), found.done):
        return file._replace(left=[*left, *(
            (one, 'the new text would not have been what was intended') for one in found.done)])
    return file._replace(after=found.text, done=found.done, left=left)


def _scanned(path: str, text: str, project: Project) -> ScannedFile:
    return scan.scan_file(sources.Source(path, [sources.with_line_feeds(text)]), project)


def _agree(old: ScannedFile, new: ScannedFile, done: Sequence[Finding]) -> bool:
    """Whether the names that were fixed are gone, and all others are as they were."""
    subjects = {finding.subject: finding.successor for finding in done}
    successors = {finding.successor.removeprefix(BUILTINS) for finding in done}
    places = {finding.place for finding in done}

    def others(uses: Iterable[Use]) -> collections.Counter[str]:
        return collections.Counter(
            renamed(name) for name in map(_name, uses) if name not in subjects and not
            any(_is_below(one, name) for one in successors))

    def renamed(name: str) -> str:
        """The path by an import that was fixed, as of `Mapping.register`, or one as it was."""
        for end in (place for place, char in enumerate(name) if char == '.'):
            if name[:end] in subjects:
                return subjects[name[:end]].removeprefix(BUILTINS) + name[end:]
        return name

    at_fault = sum(_name(use) in subjects for use in new.uses)
    return (not new.problems and len(new.unknown) <= len(old.unknown)
            and at_fault == sum(_name(use) in subjects and use.place not in places
                                for use in old.uses)
            and others(old.uses) == others(new.uses))


def _name(use: Use) -> str:
    """The name as findings have it."""
    return use.question.path.removeprefix(BUILTINS)


def _is_below(path: str, name: str) -> bool:
    return f'{path}.'.startswith(f'{name}.')


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns,
            status.st_ctime_ns)
