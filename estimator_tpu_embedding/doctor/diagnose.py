"""Makes the diagnosis of files and folders, from finding them to the command that runs them.

The `etpe run` line of each program has a reason per flag, and what stops it first.
"""

from __future__ import annotations

import collections
import importlib.metadata
import importlib.util
import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence

from ..compat import environment
from ..errors import counted
from . import oracle, scan, sources, traps, verdicts
from .findings import MOST_STOPS, Diagnosis, Finding, Prescription, ScannedFile, Use
from .project import Reached
from .traps import Linked, options_of
from .verdicts import Flags

_SHOWN = {  # what people call it: its package
    'TensorFlow': 'tensorflow', 'Keras': 'keras', 'tf_keras': 'tf-keras',
    'tf-estimator-nightly': 'tf-estimator-nightly', 'protobuf': 'protobuf', 'NumPy': 'numpy'}

_OF_WHOLE_FILE = frozenset({'E131', 'E132', 'E133'})


def diagnose(paths: Sequence[str], select: Sequence[str] = ('',), ignore: Sequence[str] = ()
             ) -> Diagnosis:
    """Returns what the doctor has to say about code, none of which is run.

    Args:
      paths: of files and folders.
      select: beginnings of the codes that are reported.
      ignore: beginnings of the codes that are not, and that stop no program.
    """
    found = sources.find(paths)
    files = scan.scan(found)
    _choose_program(files, paths)
    answers = oracle.ask((use.question for file in files for use in (*file.uses, *file.escapes)),
                         paths)
    judged = verdicts.judge(files, answers)
    about = dict.fromkeys((
        *judged.findings, *traps.findings_of(files),
        *(each for file in files for each in (*file.unknown, *file.problems)), *_missing(),
        *found.problems))
    wanted = [finding for finding in sorted(about, key=_order)
              if not finding.code.startswith(tuple(ignore))]
    shown = [finding for finding in wanted if finding.code.startswith(tuple(select))]
    ignored = collections.Counter(finding.code for finding in about.keys() - set(shown))
    return Diagnosis(
        _versions(), shown, prescriptions(files, wanted, judged.flags),
        # Also of names that no library was asked about.
        collections.Counter(judged.verdicts) + collections.Counter(
            finding.verdict for file in files for finding in file.unknown),
        sum('E132' not in {one.code for one in file.problems} for file in files),
        sum(file.lines for file in files), dict(sorted(ignored.items())), [*found.left_out])


def _choose_program(files: Sequence[ScannedFile], paths: Sequence[str]) -> None:
    """Takes the files that the user named for programs, if nothing else is one."""
    if not any(file.is_program for file in files):
        named = {os.path.abspath(path) for path in paths}
        for file in files:
            file.is_program = os.path.abspath(file.path) in named


def _order(finding: Finding) -> tuple[object, ...]:
    """By file, place and code; those about the environment come first."""
    path, line, column, _, _, cell = finding.place or ('', 0, 0, 0, 0, 0)
    return path, cell, line, column, finding.code, finding.subject, finding.message


def _versions() -> list[tuple[str, str]]:
    """Returns (what, its state) of the environment; nothing of it is imported."""
    lines = [('Python', platform.python_version())]
    for name, package in _SHOWN.items():
        try:
            lines.append((name, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            lines.append((name, 'not installed'))
    return [*lines, ('etpe run sets', f'{environment.LEGACY_KERAS}=1, which selects Keras 2 '
                     '(tf_keras)')]


def _missing() -> Iterator[Finding]:
    """Yields E111 for each package that `etpe run` needs and that nobody can import."""
    for module, package in environment.PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            yield Finding('E111', None, module, '', f'etpe run needs the module {module}: pip '
                          f'install {package}', 'package')


def prescriptions(files: Sequence[ScannedFile], findings: Sequence[Finding],
                  flags: Mapping[str, Flags]) -> list[Prescription]:
    """Returns how to run each program of the project.

    Args:
      files: all that were scanned.
      findings: all findings about them that are selected.
      flags: by path of each file, what it needs with all files that it imports.
    """
    reached = Reached(files)
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.place is not None:
            by_path.setdefault(finding.place.path, []).append(finding)
    return [_prescription(file, reached, by_path, flags.get(file.path, Flags()))
            for file in files if file.is_program]


def _prescription(file: ScannedFile, reached: Reached, by_path: Mapping[str, Sequence[Finding]],
                  flags: Flags) -> Prescription:
    group = Linked(reached.files_of(file))
    stops = _stops_of(file, reached, by_path)[:MOST_STOPS]
    words, reasons = ['etpe', 'run'], []
    for option, uses in (('--tf1', flags.tf1), ('--contrib', flags.contrib)):
        if uses:
            words.append(option)
            reasons.append(f'{option}: {_named(uses)}')
    options, reason = options_of(group)
    words += options.split()
    reasons += filter(None, [reason])
    folder = ''
    if file.base:
        below = os.path.relpath(os.path.abspath(file.path), file.base)
        module = os.path.splitext(below)[0].replace(os.sep, '.').removesuffix('.__main__')
        folder = (os.path.dirname(file.path.removesuffix(below)) if file.path.endswith(below)
                  else os.path.relpath(file.base))
        words += ['-m', module]
        reasons.append(f'-m {module}: it imports from {folder or "the current folder"}')
    else:
        words.append(shlex.quote(file.path))
    command = ' '.join(words)
    if folder:
        command = f'cd {shlex.quote(folder)} && {command}'
    return Prescription(file.path, command, reasons, stops)


def _named(uses: Sequence[Use]) -> str:
    """Names the first use, and the number of other names: `tf.Session (line 3) and 2 others`."""
    first = uses[0]
    others = len({use.question.path for use in uses} - {first.question.path})
    return f'{first.written} ({first.place.path}:{first.place.line})' + (
        f' and {counted(others, "other name")}' if others else '')


def _stops_of(program: ScannedFile, reached: Reached, findings: Mapping[str, Sequence[Finding]]
              ) -> list[Finding]:
    """Returns the findings E that a run meets, in its order as far as imports tell it.

    Those in functions come last, since functions are called after all imports. The imports of a
    file come in the order of its lines, and what an imported file holds comes before the lines
    below that import. A file that does not parse is met as a whole.
    """
    seen: set[str] = set()
    met: list[tuple[bool, Finding]] = []
    todo: list[tuple[ScannedFile, Finding | None]] = [(program, None)]
    while todo:
        file, finding = todo.pop()
        if finding is not None:
            met.append((_is_in_function(file, finding), finding))
        elif file.path not in seen:
            seen.add(file.path)
            order: list[tuple[tuple[int, ...], ScannedFile, Finding | None]] = [
                ((1, place.cell, place.line, 0), imported, None)
                for place, imported in reached.imported(file)]
            for one in findings.get(file.path, ()):
                if one.code.startswith('E') and (place := one.place) is not None:
                    is_first = one.code in _OF_WHOLE_FILE and not place.cell
                    order.append(((not is_first, place.cell, place.line, 1), file, one))
            order.sort(key=lambda item: item[0])
            todo += [item[1:] for item in reversed(order)]
    return [finding for _, finding in sorted(met, key=lambda item: item[0])]


def _is_in_function(file: ScannedFile, finding: Finding) -> bool:
    place = finding.place
    return place is not None and any(cell == place.cell and first <= place.line <= last
                                     for cell, first, last in file.bodies)
