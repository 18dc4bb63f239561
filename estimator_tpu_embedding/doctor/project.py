"""Knows which files are modules of the project, what each hands out, and what it imports.

A module of the project is sought as Python would: beside the file, then from the folder that holds
its outermost package. After these come the folders between it and the paths that the user named.
Programs of one folder are often started with PYTHONPATH. So a module that is found nowhere there is
sought among all files by its whole dotted name, unless a known library has its first name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from .findings import CERTAIN, FALLBACK, STARRED, Place, Question, ScannedFile
from .sources import Found
from .symbol_table import OTHER, OTHERS, Exports, Meaning, Meanings

_LIBRARIES = frozenset(sys.stdlib_module_names) | {'keras', 'numpy', 'tensorflow', 'tf_keras'}
"""Packages that a file elsewhere in the project does not hide."""
_COMPILED = ('.so', '.pyd', '.pyc')
_MOST_STEPS = 1000
"""The most modules through which one name is followed."""


class Project:
    """The modules of the files that were found."""

    def __init__(self, found: Found, examine: Callable[[str, Project], Exports]):
        """Examines a file when another imports it; without roots only relative imports do."""
        self._roots = {os.path.abspath(root): root for root in found.roots}
        self._shown = {os.path.abspath(path): path for path in found.files}
        self._examine = examine
        self._exports: dict[str, Exports] = {}
        self._folders: dict[str, tuple[set[str], set[str]]] = {}
        self._found: dict[tuple[str, str], str | None] = {}
        self._by_end: dict[str, list[str]] = {}
        for file in self._shown:
            name = os.path.splitext(_module_file(file))[0]
            self._by_end.setdefault(os.path.basename(name), []).append(name)

    def find(self, importer: str, module: str) -> str | None:
        """Returns the file or folder of an absolute import.

        It is `''` if its package is in the project and it is not, and `None` if no part is.
        """
        key = (os.path.dirname(importer), module)
        if key not in self._found:
            self._found[key] = self._seek(key[0], module)
        return self._found[key]

    def relative(self, importer: str, level: int, module: str) -> str:
        """Returns the file or folder of a relative import, or `''`."""
        folder = os.path.dirname(importer)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        if not module:
            return self._package(folder) or folder
        return self._below(folder, module) or ''

    def submodule(self, file: str, name: str) -> str:
        """Returns the file or folder of a module in a package, or `''`."""
        if os.path.basename(file) == '__init__.py':
            file = os.path.dirname(file)
        elif file.endswith(('.py', *_COMPILED)):
            return ''
        return self._below(file, name) or ''

    def exports(self, file: str) -> Exports:
        """Returns what a module hands out; it may be a folder without `__init__.py`."""
        if file not in self._exports:
            if not file.endswith('.py'):
                return Exports({}, is_open=file.endswith(_COMPILED))
            self._exports[file] = self._examine(file, self)
        return self._exports[file]

    def remember(self, file: str, exports: Exports) -> None:
        """Keeps what a module hands out that was examined for another reason."""
        self._exports.setdefault(file, exports)

    def resolve(self, meaning: Meaning) -> Meanings | None:
        """Returns what a name in a module means, through all that modules import of each other.

        A `file` in the result is a whole module. It is `None` if the module certainly lacks it.
        """
        result: list[Meaning] = []
        waiting, seen = [meaning], set[tuple[str, str]]()
        while waiting:
            one = waiting.pop()
            if not one.file or not one.names:
                result.append(one)
            elif (one.file, one.names) not in seen and len(seen) < _MOST_STEPS:
                seen.add((one.file, one.names))
                found = self._step(one)
                waiting += reversed(found)
        return tuple(dict.fromkeys(result)) or (OTHERS if len(seen) >= _MOST_STEPS else None)

    def base_of(self, file: str, level: int, module: str) -> str:
        """Returns the folder from which a script must be run with `-m` because of an import.

        Python puts the folder of a script first in its path, and for `-m` the current folder. So
        imports of the packages around a script work with `-m` only, and relative ones too. The
        result is `''` if the script may run by its path.
        """
        own = os.path.dirname(file)
        if level:
            base = own
            for _ in range(level):
                base = os.path.dirname(base)
            return min(base, self._outside(own), key=len)
        found = self.find(file, module.partition('.')[0])
        base = os.path.dirname(_module_file(found)) if found else own
        return base if base != own and own.startswith(os.path.join(base, '')) else ''

    def packages(self, file: str) -> list[str]:
        """Returns the files of the packages that a module is in, outermost first."""
        found: list[str] = []
        folder = os.path.dirname(_module_file(file))
        while (package := self._package(folder)) and folder != os.path.dirname(folder):
            found.insert(0, package)
            folder = os.path.dirname(folder)
        return found

    def shown(self, file: str) -> str:
        """Returns the path of a file as the user reaches it."""
        if file in self._shown:
            return self._shown[file]
        for root, shown in self._roots.items():
            if file.startswith(os.path.join(root, '')):
                return os.path.normpath(os.path.join(shown, os.path.relpath(file, root)))
        return file

    def _step(self, meaning: Meaning) -> list[Meaning]:
        """Returns what a name in a module leads to, nothing if it is not there."""
        first, _, rest = meaning.names.partition('.')
        exports = self.exports(meaning.file)
        if first in exports.names:
            return [one.inside(rest).under(meaning.choice) for one in exports.names[first]]
        submodule = self.submodule(meaning.file, first)
        if submodule:
            return [Meaning(file=submodule, names=rest).under(meaning.choice)]
        libraries = [Question(one.question.module, first, True)
                     for one in exports.stars if one.question is not None]
        result = [one._replace(names=meaning.names).under(meaning.choice)
                  for one in exports.stars if one.file]
        for one in reversed(libraries):  # The others have what the last lacks.
            choice = STARRED if one != libraries[-1] else FALLBACK if libraries[1:] else CERTAIN
            result.append(Meaning(one, choice=choice).inside(rest).under(meaning.choice))
        if libraries:
            return result
        if exports.is_open or exports.is_unknown:
            result.append(OTHER)
        return result

    def _seek(self, folder: str, module: str) -> str | None:
        top = module.partition('.')[0]
        is_partial = False
        for base in self._bases(folder) if self._roots else ():
            if top in _LIBRARIES and (base != folder or self._package(base)):
                continue
            found = self._below(base, module)
            if found and not (top in _LIBRARIES and not self._is_regular(base, top)):
                return found
            is_partial |= found == '' and self._is_regular(base, top)
        if is_partial:
            return ''
        if top in _LIBRARIES:
            return None
        return self._by_whole_name(module)

    def _bases(self, folder: str) -> list[str]:
        """Returns the folders that may be in `sys.path` for a file of a folder, nearest first."""
        inside = self._outside(folder)
        bases = [folder, inside]
        while any(inside.startswith(os.path.join(root, '')) for root in self._roots):
            inside = os.path.dirname(inside)
            bases.append(inside)
        return list(dict.fromkeys((*bases, *self._roots)))

    def _outside(self, folder: str) -> str:
        """Returns a folder, or the folder that holds its outermost package."""
        while self._package(folder) and folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
        return folder

    def _by_whole_name(self, module: str) -> str | None:
        end = os.sep + module.replace('.', os.sep)
        found = [name for name in self._by_end.get(module.rpartition('.')[2], ())
                 if name.endswith(end)]
        if not found:
            return None
        name = min(found, key=lambda one: (len(one), one))
        return f'{name}.py' if f'{name}.py' in self._shown else self._package(name)

    def _below(self, folder: str, module: str) -> str | None:
        """Returns the file or folder of a module; `''` if only its package is there, or `None`."""
        parts = module.split('.')
        for number, part in enumerate(parts):
            files, folders = self._list(folder)
            is_last = number == len(parts) - 1
            whole = os.path.join(folder, part)
            is_folder = part in folders
            package = self._package(whole) if is_folder else ''
            if package:
                if is_last:
                    return package
            elif f'{part}.py' in files:
                return f'{whole}.py' if is_last else ''
            elif any(name.partition('.')[0] == part and name.endswith(_COMPILED)
                     for name in files):
                return f'{whole}.so' if is_last else ''
            elif not is_folder or is_last and not self._has_modules(whole):
                return '' if number else None
            elif is_last:
                return whole
            folder = whole
        return None

    def _is_regular(self, base: str, top: str) -> bool:
        return bool(self._package(os.path.join(base, top))) or (
            f'{top}.py' in self._list(base)[0])

    def _has_modules(self, folder: str) -> bool:
        files, folders = self._list(folder)
        return any(name.endswith('.py') for one in (files, *(
            self._list(os.path.join(folder, part))[0] for part in folders)) for name in one)

    def _package(self, folder: str) -> str:
        """Returns the path of `__init__.py` in a folder, or `''`."""
        return os.path.join(folder, '__init__.py') if (
            '__init__.py' in self._list(folder)[0]) else ''

    def _list(self, folder: str) -> tuple[set[str], set[str]]:
        """Returns the names of the files and of the folders in a folder."""
        if folder not in self._folders:
            files, folders = set[str](), set[str]()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        (folders if entry.is_dir() else files).add(entry.name)
            except OSError:
                pass  # It was left out with a reason, or it is not there.
            self._folders[folder] = files, folders
        return self._folders[folder]


def _module_file(file: str) -> str:
    """Returns the path of a module, which for a package is that of its folder."""
    folder, name = os.path.split(file)
    return folder if name == '__init__.py' else file


class Reached:
    """The files of a project, as imports lead to them."""

    def __init__(self, files: Sequence[ScannedFile]):
        self._by_path = {file.path: file for file in files}

    def imported(self, file: ScannedFile) -> list[tuple[Place, ScannedFile]]:
        """Returns what a file imports, in order, with the packages around each module."""
        return [(place, self._by_path[path]) for path, place in file.imports.items()
                if path in self._by_path]

    def files_of(self, program: ScannedFile) -> list[ScannedFile]:
        """Returns the program and all files that it imports, itself first."""
        found, todo = {program.path: program}, [program]
        while todo:
            for _, imported in self.imported(todo.pop()):
                if imported.path not in found:
                    found[imported.path] = imported
                    todo.append(imported)
        return list(found.values())

    def groups(self) -> list[list[ScannedFile]]:
        """Returns the files of each program, and then of each other file that nobody imports."""
        files = list(self._by_path.values())
        imported = {path for file in files for path in file.imports}
        found: list[list[ScannedFile]] = []
        seen: set[str] = set()
        for file in sorted(files, key=lambda one: (not one.is_program, one.path in imported)):
            if file.is_program or file.path not in seen:
                found.append(self.files_of(file))
                seen.update(one.path for one in found[-1])
        return found
