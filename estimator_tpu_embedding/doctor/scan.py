"""Scans files one by one: keeps what they say, and no tree."""

from __future__ import annotations

import ast
import concurrent.futures
import contextlib
import dataclasses
import functools
import gc
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _process
from . import old_code, places, programs
from .constructs import facts_of
from .facts import ScannedFile, Use
from .meanings import OTHERS, Exports
from .nodes import Nodes
from .project import Project
from .reached import Reached, settle_beside
from .sources import Found, Source, read
from .state import State
from .statements import follow_file


@dataclasses.dataclass(slots=True)
class _Scanned:
    file: ScannedFile
    patched: set[str]
    early: set[Use]
    program: str
    beside: list[tuple[ScannedFile, str, Use]]
    changes_path: bool
    imported: list[str]  # The files of its imports.


_FILES_PER_COLLECTION, _FILES_PER_PROCESS = 200, 50


def scan(found: Found) -> list[ScannedFile]:
    """Scans all files, and those of the same project that they import from outside of the paths."""
    project = project_of(found)
    paths = list(dict.fromkeys(os.path.abspath(path) for path in found.files))
    scanned: list[_Scanned] = []
    seen = set(paths)
    while paths:  # Then those that were not found, but are imported.
        scanned += _scan_all(paths, project)
        imported = dict.fromkeys(path for one in scanned for path in one.imported)
        paths = [path for path in imported if path not in seen]
        seen.update(paths)
    files = [one.file for one in scanned]
    by_path = {one.file.path: one for one in scanned}
    imported_names = {name for file in files for name in file.imports}
    for one in scanned:
        if one.program == programs.PERHAPS and one.file.module in imported_names:
            one.file.is_program = False
    for group in Reached(files).groups():  # What one program does reaches no other.
        _excuse([by_path[file.path] for file in group])
    settle_beside(files, [found for one in scanned for found in one.beside],
                  any(one.changes_path for one in scanned))
    for each in files:
        each.uses.sort(key=_order)
    return files


def _scan_all(paths: Sequence[str], project: Project) -> list[_Scanned]:
    """Scans files, in a process per CPU if they are many."""
    processes = min(len(os.sched_getaffinity(0)), len(paths) // _FILES_PER_PROCESS)
    # A fork in which other threads were at work may wait for a lock for ever.
    if processes < 2 or threading.active_count() > 1:
        return _scan_some(project, paths)
    parts = [paths[len(paths) * part // processes:len(paths) * (part + 1) // processes]
             for part in range(processes)]
    with concurrent.futures.ProcessPoolExecutor(
            processes, multiprocessing.get_context('fork'), _obey_parent) as pool:
        return [one for part in pool.map(functools.partial(_scan_some, project), parts)
                for one in part]


def _obey_parent() -> None:
    """Leaves Ctrl-C to the main process, with which this one ends."""
    _process.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _scan_some(project: Project, paths: Sequence[str]) -> list[_Scanned]:
    scanned: list[_Scanned] = []
    with warnings.catch_warnings(), _collector_paused():
        warnings.simplefilter('ignore')  # Python warns of escapes in the texts that it parses.
        for number, path in enumerate(paths, 1):
            if not number % _FILES_PER_COLLECTION:
                gc.collect()
            scanned.append(_scan(read(project.shown(path)), project))
    return scanned


def project_of(found: Found) -> Project:
    """Returns the project of some files, for scans of one file after the other."""
    return Project(found, _exports_of)


def scan_file(source: Source, project: Project) -> ScannedFile:
    """Scans one file.

    Args:
      source: what `sources.read` returned.
      project: says what modules of the project hand out; `Project()` knows no other file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        scanned = _scan(source, project)
    _excuse([scanned])
    return scanned.file


def _scan(source: Source, project: Project) -> _Scanned:
    path = os.path.abspath(source.path)
    result = ScannedFile(source.path, '' if source.is_notebook else project.name(path))
    result.problems += source.problems
    parsed = places.parse(source)
    result.problems += parsed.problems
    result.lines = parsed.places.lines
    nodes = Nodes(parsed.tree)
    state = State(path, parsed.places, project, nodes=nodes)
    program = ''
    try:
        follow_file(state, parsed.tree)
        result.facts += facts_of(nodes, state.resolve_all, parsed.places.of)
        project.remember(path, _exports(state, parsed.tree, source, not result.problems))
        program = programs.kind(parsed.tree, state.resolve_all)
    except RecursionError as error:
        result.problems.append(places.too_deep(parsed.places.at(1), error))
    if source.is_notebook:
        program = programs.SURE
    elif parsed.problems and program != programs.SURE:
        program = programs.kind_of_rest(parsed, source.cells[0]) or program
    result.uses += sorted(dict.fromkeys(state.uses), key=_order)
    result.problems += old_code.findings_of(source, nodes, parsed.places.of)
    result.escapes.update(state.escapes)
    result.unknown += sorted(dict.fromkeys(state.unknown), key=lambda one: one.place or ())
    result.imports.update(state.imports)
    result.is_program = bool(program)
    functions: list[Any] = [*nodes.of(ast.FunctionDef), *nodes.of(ast.AsyncFunctionDef)]
    for function in functions:
        first, last = parsed.places.of(function.body[0]), parsed.places.of(function)
        result.bodies.append((first.cell, first.line, last.end_line))
    return _Scanned(result, state.patched, state.early, program,
                    [(result, folder, use) for folder, use in state.beside],
                    any('sys.path' in text for text in source.cells),
                    [path for name in state.imports
                     if (path := project.file_of(name)).endswith('.py')])


def _exports_of(path: str, project: Project) -> Exports:
    """Returns what the module in a file hands out, from what stands at its top level."""
    source = read(path)
    parsed = places.parse(source, is_compiled=False)
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


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Pauses the search for cycles, which would look through each tree several times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
