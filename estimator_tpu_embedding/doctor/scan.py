"""Scans files one by one: keeps what they say, and no tree."""

from __future__ import annotations

import ast
import dataclasses
import gc
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from . import syntax
from .findings import Finding, ScannedFile, Use
from .meanings import OTHERS, Exports
from .project import Project, Reached
from .sources import Found, Source, read
from .state import State
from .statements import follow_file
from .syntax import Nodes, last_name, text_of
from .traps import facts_of

SURE, PERHAPS = 'sure', 'perhaps'
"""A program for sure, or unless another file imports it."""
_DECLARES = re.compile(r'\bflags\b|\blogging\b|load_|enable_|disable_')
"""Names of TensorFlow that a module may call when it is imported."""
_RUNS = frozenset({'tensorflow.app.run', 'absl.app.run', 'tensorflow.compat.v1.app.run',
                   'tensorflow.test.main', 'tensorflow.compat.v1.test.main', 'unittest.main'})


@dataclasses.dataclass(slots=True)
class _Scanned:
    file: ScannedFile
    patched: set[str]
    early: set[Use]
    program: str
    beside: list[tuple[str, Finding]]


def scan(found: Found) -> list[ScannedFile]:
    """Scans all files, and those of the same project that they import from outside of the paths."""
    gc.disable()  # Trees have no cycles, and a collection visits all of their nodes.
    try:
        return _scan_all(found)
    finally:
        gc.enable()


def _scan_all(found: Found) -> list[ScannedFile]:
    project = Project(found, _exports_of)
    paths = list(dict.fromkeys(os.path.abspath(path) for path in found.files))
    scanned: list[_Scanned] = []
    seen = set(paths)
    while paths:  # Then those that were not found, but are imported.
        scanned += [_scan(read(project.shown(path)), project) for path in paths]
        imported = dict.fromkeys(os.path.abspath(path) for one in scanned
                                 for path in one.file.imports if path.endswith('.py'))
        paths = [path for path in imported if path not in seen]
        seen.update(paths)
    files = [one.file for one in scanned]
    by_path = {one.file.path: one for one in scanned}
    imported_paths = {path for file in files for path in file.imports}
    for one in scanned:
        if one.program == PERHAPS and one.file.path in imported_paths:
            one.file.is_program = False
    for group in Reached(files).groups():  # What one program does reaches no other.
        _excuse([by_path[file.path] for file in group])
    folders = {os.path.dirname(os.path.abspath(file.path)) for file in files if file.is_program}
    for one in scanned:
        one.file.unknown += [each for folder, each in one.beside if folder not in folders]
    for each in files:
        each.uses.sort(key=_order)
    return files


def scan_file(source: Source, project: Project) -> ScannedFile:
    """Scans one file.

    Args:
      source: what `sources.read` returned.
      project: says what modules of the project hand out; `Project()` knows no other file.
    """
    scanned = _scan(source, project)
    _excuse([scanned])
    return scanned.file


def _scan(source: Source, project: Project) -> _Scanned:
    path = os.path.abspath(source.path)
    result = ScannedFile(source.path)
    result.problems += source.problems
    parsed = syntax.parse(source)
    result.problems += parsed.problems
    result.lines = parsed.places.lines
    nodes = Nodes(parsed.tree)
    state = State(path, parsed.places, project, nodes=nodes)
    program = ''
    try:
        follow_file(state, parsed.tree)
        result.facts += facts_of(nodes, state.resolve_all, parsed.places.of)
        project.remember(path, _exports(state, parsed.tree, source, not result.problems))
        program = _kind(parsed.tree, state.resolve_all)
    except RecursionError as error:
        result.problems.append(syntax.too_deep(parsed.places.at(1), error))
    if source.is_notebook:
        program = SURE
    elif parsed.problems and program != SURE:
        program = _kind_of_text(parsed, source.cells[0]) or program
    result.uses += sorted(dict.fromkeys(state.uses), key=_order)
    result.escapes.update(state.escapes)
    result.unknown += sorted(dict.fromkeys(state.unknown), key=lambda one: one.place or ())
    result.imports.update(sorted(state.imports.items(), key=lambda item: item[1]))
    result.base = state.base
    result.is_program = bool(program)
    functions: list[Any] = [*nodes.of(ast.FunctionDef), *nodes.of(ast.AsyncFunctionDef)]
    for function in functions:
        first, last = parsed.places.of(function.body[0]), parsed.places.of(function)
        result.bodies.append((first.cell, first.line, last.end_line))
    return _Scanned(result, state.patched, state.early, program, state.beside)


def _kind(tree: ast.Module, paths_of: Callable[[ast.expr], Sequence[str]]) -> str:
    """Returns `SURE`, `PERHAPS`, or `''` for a file that runs nothing when it is started.

    Args:
      tree: of the file.
      paths_of: returns the paths of a name of a library; none for other expressions.
    """
    found = ''
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_main(node.test):
            return SURE
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            waiting += [*node.body, *getattr(node, 'orelse', ())]
        if isinstance(node, ast.With):
            found = PERHAPS
        if isinstance(node, (ast.Expr, ast.Assign)) and isinstance(node.value, ast.Call):
            path = ''.join(paths_of(node.value.func)[:1])
            if path in _RUNS or path.endswith('.app.run'):
                return SURE
            if isinstance(node, ast.Expr) and (not path or path.startswith('builtins.')) or (
                    path.startswith('tensorflow.') and not _DECLARES.search(path)):
                found = PERHAPS
    return found


def _kind_of_text(parsed: syntax.Parsed, text: str) -> str:
    """Returns `SURE`, `PERHAPS` or `''` for a file that does not parse."""
    if '__main__' in text:
        return SURE
    lines = text.split('\n')
    line = min(problem.place.line for problem in parsed.problems if problem.place)
    # A statement at its top level does not parse.
    return PERHAPS if lines[line - 1][:1].isalpha() and not lines[line - 1].startswith(
        ('def ', 'class ', 'import ', 'from ')) else ''


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and {'__name__', '__main__'} <= {
        last_name(one) or text_of(one) for one in (test.left, *test.comparators)}


def _exports_of(path: str, project: Project) -> Exports:
    """Returns what the module in a file hands out, from what stands at its top level."""
    source = read(path)
    parsed = syntax.parse(source, is_compiled=False)
    state = State(path, parsed.places, project, is_shallow=True)
    is_whole = not source.problems and not parsed.problems
    try:
        follow_file(state, parsed.tree)
    except RecursionError:
        is_whole = False
    return _exports(state, parsed.tree, source, is_whole)


def _exports(state: State, tree: ast.Module, source: Source, is_whole: bool) -> Exports:
    names = {name: state.module.live(name, state.module.block, state.order, False)[0]
             for name in state.module.names}
    if any('global ' in text for text in source.cells):
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                names.update((name, names.get(name, OTHERS)) for name in node.names)
    return Exports(names, tuple(one.meanings[0] for one in state.stars),
                   state.is_open or '__getattr__' in names, not is_whole)


def _excuse(linked_files: Sequence[_Scanned]) -> None:
    """Marks uses of names that files linked by imports put there, such as by `np.int = int`."""
    patched = frozenset[str]().union(*(one.patched for one in linked_files))
    for one in linked_files if patched else ():
        one.file.uses = [use._replace(is_guarded=True) if use not in one.early and _is_patched(
            use, patched) else use for use in one.file.uses]


def _is_patched(use: Use, patched: frozenset[str]) -> bool:
    path = use.question.path
    return path in patched or any(
        path[:end] in patched for end, sign in enumerate(path) if sign == '.')


def _order(use: Use) -> tuple[int, int, int]:
    return use.place.cell, use.place.line, use.place.column
