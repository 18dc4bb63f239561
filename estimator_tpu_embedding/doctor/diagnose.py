"""Makes the diagnosis of files and folders, from finding them to the command that runs them.

Files are scanned one by one: what they say is kept, and no tree. The `etpe run` line of each
program has a reason per flag, and what stops it first.
"""

from __future__ import annotations

import ast
import collections
import gc
import importlib.metadata
import importlib.util
import io
import os
import platform
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..compat import environment
from ..errors import counted
from . import oracle, syntax, traps, verdicts
from .findings import MOST_STOPS, Diagnosis, Finding, Prescription, ScannedFile, Use
from .project import Project, Reached
from .sources import Found, Source, find, read
from .statements import follow_file
from .symbol_table import OTHERS, Exports, State
from .syntax import Nodes, last_name, text_of
from .tpu_calls import Program, facts_of
from .verdicts import Flags

_SHOWN = {  # what people call it: its package
    'TensorFlow': 'tensorflow', 'Keras': 'keras', 'tf_keras': 'tf-keras',
    'tf-estimator-nightly': 'tf-estimator-nightly', 'protobuf': 'protobuf', 'NumPy': 'numpy'}

_CORES_PER_HOST = 8
"""Cores of a host where `num_shards` sizes the system, as `estimator/tpu_context.py` does."""
_OF_WHOLE_FILE = frozenset({'E131', 'E132', 'E133'})
SURE, PERHAPS = 'sure', 'perhaps'
"""A program for sure, or unless another file imports it."""
_DECLARES = re.compile(r'\bflags\b|\blogging\b|load_|enable_|disable_')
"""Names of TensorFlow that a module may call when it is imported."""
_RUNS_AT_TOP = re.compile(r'(?!def |class |import |from )[^\W\d_]')
_RUNS = frozenset({'tensorflow.app.run', 'absl.app.run', 'tensorflow.compat.v1.app.run',
                   'tensorflow.test.main', 'tensorflow.compat.v1.test.main', 'unittest.main'})


def diagnose(paths: Sequence[str], select: Sequence[str] = ('',), ignore: Sequence[str] = ()
             ) -> Diagnosis:
    """Returns what the doctor has to say about code, none of which is run.

    `select` and `ignore` are beginnings of codes; what is ignored stops no program.
    """
    found = find(paths)
    files = scan(found)
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
    return [*lines, (
        'etpe run sets', f'{environment.LEGACY_KERAS}=1, which selects Keras 2 (tf_keras)')]


def _missing() -> Iterator[Finding]:
    """Yields E111 for each package that `etpe run` needs and that nobody can import."""
    for module, package in environment.PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            yield Finding('E111', None, module, '', f'etpe run needs the module {module}: pip '
                          f'install {package}', 'package')


def scan(found: Found) -> list[ScannedFile]:
    """Scans all files, and those of the same project that they import from outside of the paths."""
    project = Project(found, _exports_of)
    paths = list(dict.fromkeys(os.path.abspath(path) for path in found.files))
    files: list[ScannedFile] = []
    seen = set(paths)
    gc.disable()  # Trees have no cycles, and a collection visits all of their nodes.
    try:
        while paths:  # Then those that were not found, but are imported.
            files += [scan_file(read(project.shown(path)), project) for path in paths]
            imported = dict.fromkeys(os.path.abspath(path) for one in files
                                     for path in one.imports if path.endswith('.py'))
            paths = [path for path in imported if path not in seen]
            seen.update(paths)
    finally:
        gc.enable()
    imported_paths = {path for file in files for path in file.imports}
    for one in files:
        one.is_program &= one.is_sure or one.path not in imported_paths
    for group in Reached(files).groups():  # What one program does reaches no other.
        _excuse(group)
    return files


def scan_file(source: Source, project: Project) -> ScannedFile:
    """Scans one file; `project` says what modules hand out."""
    path = os.path.abspath(source.path)
    parsed = syntax.parse(source)
    nodes = Nodes(parsed.tree)
    state = State(path, parsed.places, project, nodes)
    scanned, program = state.scanned, ''
    scanned.problems = [*source.problems, *parsed.problems]
    try:
        follow_file(state, parsed.tree)
        scanned.facts = facts_of(nodes, state.resolve_all, parsed.places.of)
        project.remember(path, _exports(state, parsed.tree, source, not scanned.problems))
        program = _kind(parsed.tree, state.resolve_all)
    except RecursionError as error:
        scanned.problems.append(syntax.too_deep(parsed.places.at(1), error))
    if source.is_notebook:
        program = SURE
    elif parsed.problems and program != SURE:
        program = _kind_of_text(source.cells[0], parsed.problems[0]) or program
    scanned.is_program, scanned.is_sure = bool(program), program == SURE
    scanned.uses = sorted(dict.fromkeys(scanned.uses),
                          key=lambda use: (use.place.cell, use.place[1:3]))
    scanned.unknown = sorted(dict.fromkeys(scanned.unknown), key=lambda one: one.place or ())
    scanned.imports = dict(sorted(scanned.imports.items(), key=lambda item: item[1]))
    scanned.lines = sum(len(list(io.StringIO(text))) for text in source.cells)
    functions: list[Any] = [*nodes.of(ast.FunctionDef), *nodes.of(ast.AsyncFunctionDef)]
    places = [(parsed.places.of(one.body[0]), parsed.places.of(one)) for one in functions]
    scanned.bodies = [(first.cell, first.line, last.end_line) for first, last in places]
    return scanned


def _kind(tree: ast.Module, paths_of: Callable[[ast.expr], Sequence[str]]) -> str:
    """Returns `SURE`, `PERHAPS`, or `''` for a file that runs nothing when it is started."""
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


def _kind_of_text(text: str, problem: Finding) -> str:
    """Returns the same for a file that does not parse: a statement at its top level runs."""
    if '__main__' in text:
        return SURE
    line = text.split('\n')[problem.place.line - 1] if problem.place else ''
    return PERHAPS if _RUNS_AT_TOP.match(line) else ''


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and {'__name__', '__main__'} <= {
        last_name(one) or text_of(one) for one in (test.left, *test.comparators)}


def _exports_of(path: str, project: Project) -> Exports:
    """Returns what the module in a file hands out, from what stands at its top level."""
    source = read(path)
    parsed = syntax.parse(source, is_compiled=False)
    state = State(path, parsed.places, project)
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


def _excuse(linked_files: Sequence[ScannedFile]) -> None:
    """Marks uses of names that files linked by imports put there, such as by `np.int = int`."""
    patched = frozenset[str]().union(*(one.patched for one in linked_files))
    for one in linked_files if patched else ():
        one.uses = [use._replace(is_guarded=True) if use not in one.early and any(
            f'{use.question.path}.'.startswith(f'{path}.') for path in patched) else use
            for use in one.uses]


def prescriptions(files: Sequence[ScannedFile], findings: Sequence[Finding],
                  flags: Mapping[str, Flags]) -> list[Prescription]:
    """Returns how to run each program of the project; `flags` are by path of each file."""
    reached = Reached(files)
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.place is not None:
            by_path.setdefault(finding.place.path, []).append(finding)
    return [_prescription(file, reached, by_path, flags.get(file.path, Flags()))
            for file in files if file.is_program]


def _prescription(file: ScannedFile, reached: Reached, by_path: Mapping[str, Sequence[Finding]],
                  flags: Flags) -> Prescription:
    stops = _stops_of(file, reached, by_path)[:MOST_STOPS]
    words, reasons = ['etpe', 'run'], []
    for option, uses in (('--tf1', flags.tf1), ('--contrib', flags.contrib)):
        if uses:
            words.append(option)
            reasons.append(f'{option}: {_named(uses)}')
    options, why = _sizes_of(Program(reached.files_of(file)))
    if options:
        words.append(options)
        reasons.append(f'{options}: {why}')
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


def hosts_for(cores: int, of_replica: int = 1) -> int | None:
    """Returns hosts for a number of cores that must be stated; `None` if `etpe run` finds a size.

    The cores of each replica are on one host.

    >>> hosts_for(4), hosts_for(32), hosts_for(12), hosts_for(12, 4)
    (None, None, 2, 3)
    """
    if cores <= _CORES_PER_HOST or cores % _CORES_PER_HOST == 0:
        return None
    return next(hosts for hosts in range(2, cores + 1) if cores % hosts == 0
                and cores // hosts <= _CORES_PER_HOST and cores // hosts % of_replica == 0)


def sizes_for(cores: int, of_replica: int = 1) -> str:
    """Returns the options of `etpe run` for a number of cores.

    >>> sizes_for(12), sizes_for(16), sizes_for(4)
    ('--hosts 2 --cores 6', '--hosts 2 --cores 8', '--cores 4')
    """
    hosts = hosts_for(cores, of_replica) or max(cores // _CORES_PER_HOST, 1)
    return f'--hosts {hosts} --cores {cores // hosts}' if hosts > 1 else f'--cores {cores}'


def _sizes_of(program: Program) -> tuple[str, str]:
    """Returns the options for hosts and cores that a program needs, and why; `''` for none."""
    configs = [(shards, each) for call in program.facts('TPUConfig')
               if (shards := program.argument(call, 'num_shards', None))
               and (each := program.argument(call, 'num_cores_per_replica', None))]
    for shards, each in configs:
        of_replica = each.size or 1
        if shards.value is None and of_replica > 1:
            return sizes_for(of_replica), (f'a replica takes {of_replica} cores, as '
                                           f'num_cores_per_replica says{each.origin}')
        cores = shards.size * of_replica
        if cores and hosts_for(cores, of_replica) is not None and len(configs) == 1:
            return sizes_for(cores, of_replica), (
                f'num_shards is {shards.value}{shards.origin}, and no number of hosts with 8 cores '
                'each has so many')
    # Nobody else states the cores of a loop with a raw `TPUEmbedding`.
    for call in program.facts('shard', 'batch_parallel') if not configs and program.facts(
            'TPUEmbedding') else ():
        replicas = program.argument(call, 'num_shards')
        if replicas is not None and replicas.size > 1:
            return sizes_for(replicas.size), (
                f'{call.values["written"]} makes {replicas.value} replicas{replicas.origin}, and a '
                'TPUEmbedding has as many cores as the system')
    return '', ''


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
