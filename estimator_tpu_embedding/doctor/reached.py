"""Knows what a program imports, in which order, and whether it must be run as a module."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set

from .facts import Finding, Place, ScannedFile

_OF_WHOLE_FILE = ('E131', 'E132', 'E133')


class Reached:
    """The files of a project, as imports lead to them."""

    def __init__(self, files: Sequence[ScannedFile]):
        """Takes all files of the project."""
        self._by_module = {file.module: file for file in files if file.module}
        self._by_path = {file.path: file for file in files}
        self._imports: dict[str, dict[str, tuple[Place, ScannedFile]]] = {}
        self._modules: set[str] = set()  # Paths without their endings, and the folders around.
        for file in files:
            path = os.path.splitext(_plain(file.path))[0]
            while path and path not in self._modules:
                self._modules.add(path)
                path = os.path.dirname(path)

    def files_of(self, program: ScannedFile) -> list[ScannedFile]:
        """Returns the program and all files that it imports, itself first."""
        found, todo = {program.path: program}, [program]
        while todo:
            for _, imported in self._imported(todo.pop()).values():
                if imported.path not in found:
                    found[imported.path] = imported
                    todo.append(imported)
        return list(found.values())

    def _imported(self, file: ScannedFile) -> dict[str, tuple[Place, ScannedFile]]:
        """Returns what a file imports by path, in order, with the packages around each module."""
        if file.path not in self._imports:
            found: dict[str, tuple[Place, ScannedFile]] = {}
            for module, place in sorted(file.imports.items(), key=lambda item: item[1]):
                parts = module.split('.')
                for end in range(1, len(parts) + 1):
                    imported = self._by_module.get('.'.join(parts[:end]))
                    if imported is not None:
                        found.setdefault(imported.path, (place, imported))
            self._imports[file.path] = found
        return self._imports[file.path]

    def stops_of(self, program: ScannedFile, findings: Mapping[str, Sequence[Finding]]
                 ) -> list[Finding]:
        """Returns the findings E that a run meets, in its order as far as imports tell it.

        Those in functions come last, since functions are called after all imports. The imports of a
        file come in the order of its lines, and what an imported file holds comes before the lines
        below that import. A file that does not parse is met as a whole.

        Args:
          program: a file.
          findings: by path.
        """
        seen: set[str] = set()
        met: list[Finding] = []
        todo: list[Finding | ScannedFile] = [program]
        while todo:
            item = todo.pop()
            if isinstance(item, Finding):
                met.append(item)
            elif item.path not in seen:
                seen.add(item.path)
                todo += reversed(self._in_order(item, [
                    one for one in findings.get(item.path, ()) if one.code.startswith('E')]))
        return sorted(met, key=self._is_in_function)

    def _is_in_function(self, finding: Finding) -> bool:
        place = finding.place
        return place is not None and any(cell == place.cell and first <= place.line <= last
                                         for cell, first, last in self._by_path[place.path].bodies)

    def _in_order(self, file: ScannedFile, own: Sequence[Finding]
                  ) -> list[Finding | ScannedFile]:
        """Returns the findings of a file and the files that it imports, by their lines."""
        order: list[tuple[tuple[int, int, int, int], Finding | ScannedFile]] = []
        for finding in own:
            assert finding.place is not None
            is_first = finding.code in _OF_WHOLE_FILE and not finding.place.cell
            order.append(((0 if is_first else 1, finding.place.cell, finding.place.line, 1),
                          finding))
        for place, imported in self._imported(file).values():
            order.append(((1, place.cell, place.line, 0), imported))
        return [item for _, item in sorted(order, key=lambda pair: pair[0])]

    def as_module(self, file: ScannedFile) -> tuple[str, str, str]:
        """Returns the folder, the module and the reason if a file runs as `-m MODULE` only.

        Python puts the folder of a script first in its path, and for `-m` the current folder. So
        imports of the packages around a script work with `-m` only, and relative ones too.
        All are `''` for a file that runs as a script.
        """
        known = {part for module in file.imports for part in module.split('.')}
        for fact in file.facts if file.module else ():
            if fact.kind != 'import':
                continue
            name, line = str(fact.values['module']), fact.place.line
            if fact.values['level']:
                top = self._top_package(file)
                why = f'line {line} imports relatively'
            else:
                top = self._folder_of(name.partition('.')[0], file, known)
                why = f'line {line} imports {name} from {top or "the current folder"}'
            if top is not None:
                return top, _module_below(top, file.path), why
        return '', '', ''

    def _top_package(self, file: ScannedFile) -> str | None:
        """Returns the folder that holds the outermost package around a file."""
        depth = file.module.count('.')
        folder = os.path.dirname(_plain(file.path))
        for _ in range(depth):
            folder = os.path.dirname(folder)
        return folder if depth else None

    def _folder_of(self, name: str, file: ScannedFile, known: Set[str]) -> str | None:
        """Returns a folder above a script's own that has a module of the project of that name.

        It is `None` where the script's own folder has it, or none of the project has.
        """
        folder = os.path.dirname(_plain(file.path))
        if name not in known or os.path.join(folder, name) in self._modules:
            return None
        while os.path.basename(folder) not in ('', os.pardir):
            folder = os.path.dirname(folder)
            if os.path.join(folder, name) in self._modules:
                return folder
        return None


def _module_below(folder: str, path: str) -> str:
    """Returns the module that a path is below a folder; a package for its `__main__`."""
    below = os.path.relpath(_plain(path), folder or os.curdir)
    return os.path.splitext(below)[0].replace(os.sep, '.').removesuffix('.__main__')


def _plain(path: str) -> str:
    return os.path.normpath(path)
