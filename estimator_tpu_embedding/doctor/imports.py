"""Follows import statements."""

from __future__ import annotations

import ast

from .escapes import ESCAPES
from .facts import Question, Use
from .meanings import ALWAYS, IMPORT, OTHERS, Binding, Meaning, is_examined
from .state import State
from .successors import made_by


def follow_import(state: State, node: ast.Import) -> None:
    """Binds the names of `import a.b` and `import a.b as c`."""
    for alias in node.names:
        top = alias.name.partition('.')[0]
        found = state.project.find(state.file, alias.name)
        if found is None:
            state.use(alias, Question(alias.name), alias.name, IMPORT)
            _bind(state, alias.asname or top, Question(alias.name if alias.asname else top))
            parts = alias.name.split('.') if not alias.asname else []
            state.dotted.update('.'.join(parts[:end]) for end in range(2, len(parts) + 1))
        elif found:
            _note_beside(state, alias, alias.name)
            _import_from_project(state, alias, found)
            whole = found if alias.asname else state.project.find(state.file, top) or found
            state.bind(alias.asname or top, (Meaning(file=whole),))
        else:
            _say_missing(state, alias, alias.name)
            state.bind(alias.asname or top, OTHERS)


def follow_import_from(state: State, node: ast.ImportFrom) -> None:
    """Binds the names of `from a import b`, `from . import b` and `from a import *`."""
    module = node.module or ''
    if module == '__future__':
        state.has_lazy_annotations |= any(one.name == 'annotations' for one in node.names)
    if node.level:
        found: str | None = state.project.relative(state.file, node.level, module)
    else:
        found = state.project.find(state.file, module)
    if found is None:
        _from_library(state, node, module)
    elif found:
        if not node.level:
            _note_beside(state, node, module)
        if module or node.names[0].name == '*':
            _import_from_project(state, node, found)
        for alias in node.names:
            _from_project(state, node, alias, found)
    else:
        _say_missing(state, node, '.' * node.level + module)
        for alias in node.names:
            if alias.name == '*':
                _star(state, Meaning())
            else:
                state.bind(alias.asname or alias.name, OTHERS)


def _from_library(state: State, node: ast.ImportFrom, module: str) -> None:
    for alias in node.names:
        if alias.name == '*':
            state.use(node, Question(module), f'{module}.*', IMPORT)
            _star(state, Meaning(Question(module)))
            if not is_examined(module):
                state.unknown_stars.append((node, module))
            continue
        question = Question(module, alias.name, True)
        state.use(alias, question, alias.name, IMPORT)
        _bind(state, alias.asname or alias.name, question)


def _star(state: State, star: Meaning) -> None:
    """Adds `from a import *`, which may replace names that are bound already."""
    state.order += 1
    state.stars.append(Binding(state.block, state.order, (star,)))


def _bind(state: State, name: str, question: Question) -> None:
    """Binds a name of a library, of which the last use is the import."""
    state.bind(name, (Meaning(question),))
    if not state.is_followed(name):
        state.escapes[state.uses[-1]] = ESCAPES


def _from_project(state: State, node: ast.ImportFrom, alias: ast.alias, file: str) -> None:
    """Binds one name of a module of the project."""
    if alias.name == '*':
        _star(state, Meaning(file=file))
        if not state.is_shallow and state.project.exports(file).is_unknown:
            state.say('W202', node, state.project.name(file), f'{node.module or "."}.*',
                      'a part of this module is unknown, and so are the names that come from it')
        return
    submodule = state.project.submodule(file, alias.name)
    is_own = bool(submodule) and file == state.file  # A package that imports its module.
    meaning = Meaning(file=submodule) if is_own else Meaning(file=file, names=alias.name)
    if submodule:
        _import_from_project(state, alias, submodule)
    if not submodule and not state.is_shallow and state.project.resolve(meaning) is None:
        module = state.project.name(file) or '.' * node.level if node.level else node.module
        state.say('E112', alias, f'{module}.{alias.name}', alias.name,
                  f'the module {module} of the project has no {alias.name}'
                  + made_by(alias.name))
    state.bind(alias.asname or alias.name, (meaning,))


def _import_from_project(state: State, node: ast.AST, file: str) -> None:
    if state.is_shallow:
        return
    for one in (*state.project.packages(file), file):  # These are imported before it.
        state.imports.setdefault(state.project.name(one), state.places.of(node))


def _note_beside(state: State, node: ast.AST, module: str) -> None:
    """Keeps an absolute import that leads into a package which it does not name."""
    if state.is_shallow or state.block.whole is not ALWAYS or IMPORT in state.caught:
        return
    folder = state.project.package_around(state.file, module.partition('.')[0])
    if folder:
        state.beside.append((folder, Use(state.places.of(node), Question(module), module)))


def _say_missing(state: State, node: ast.AST, module: str) -> None:
    state.say('E112', node, module, module, f'the project has no module {module}{made_by(module)}')
