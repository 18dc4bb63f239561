"""Knows what a program imports, in which order, and whether it must be run as a module."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set

from .facts import Finding, Place, ScannedFile, Use

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
            path = os.path.splitext(os.path.normpath(file.path))[0]
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

    def groups(self) -> list[list[ScannedFile]]:
        """Returns the files of each program, and then of each other file that nobody imports."""
        files = list(self._by_path.values())
        imported = {path for file in files for path in self._imported(file)}
        found: list[list[ScannedFile]] = []
        seen: set[str] = set()
        for file in sorted(files, key=lambda one: (not one.is_program, one.path in imported)):
            if file.is_program or file.path not in seen:
                found.append(self.files_of(file))
                seen.update(one.path for one in found[-1])
        return found

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
                todo += reversed(self._in_order(item, findings.get(item.path, ())))
        return sorted(met, key=self._is_in_function)

    def _is_in_function(self, finding: Finding) -> bool:
        place = finding.place
        return place is not None and any(cell == place.cell and first <= place.line <= last
                                         for cell, first, last in self._by_path[place.path].bodies)

    def _in_order(self, file: ScannedFile, own: Sequence[Finding]
                  ) -> list[Finding | ScannedFile]:
        """Returns the findings E of a file and the files that it imports, by their lines."""
        order: list[tuple[tuple[bool, int, int, int], Finding | ScannedFile]] = []
        for finding in own:
            if finding.code.startswith('E') and (place := finding.place) is not None:
                is_first = finding.code in _OF_WHOLE_FILE and not place.cell
                order.append(((not is_first, place.cell, place.line, 1), finding))
        for place, imported in self._imported(file).values():
            order.append(((True, place.cell, place.line, 0), imported))
        return [item for _, item in sorted(order, key=lambda pair: pair[0])]

    def as_module(self, file: ScannedFile) -> tuple[str, str, str]:
        """Returns the folder, the module and the reason if a file runs as `-m MODULE` only.

        Python puts the folder of a script first in its path, and for `-m` the current folder. So
        imports of the packages around a script work with `-m` only, and relative ones too.
        All are `''` for a file that runs as a script.
        """
        known = {part for module in file.imports for part in module.split('.')}
        own = os.path.dirname(os.path.normpath(file.path))
        for fact in file.facts if file.module else ():
            if fact.kind != 'import':
                continue
            name, line = fact.values['module'], fact.place.line
            top: str | None = None
            if fact.values['level']:
                top = own
                for _ in range(file.module.count('.')):
                    top = os.path.dirname(top)
                top = top if '.' in file.module else None
                why = f'line {line} imports relatively'
            else:
                top = self._folder_of(name.partition('.')[0], own, known)
                why = f'line {line} imports {name} from {top or "the current folder"}'
            if top is not None:
                below = os.path.relpath(os.path.normpath(file.path), top or os.curdir)
                return top, os.path.splitext(below)[0].replace(os.sep, '.').removesuffix(
                    '.__main__'), why
        return '', '', ''

    def _folder_of(self, name: str, folder: str, known: Set[str]) -> str | None:
        """Returns a folder above a script's own that has a module of the project of that name.

        It is `None` where the script's own folder has it, or none of the project has.
        """
        if name not in known or os.path.join(folder, name) in self._modules:
            return None
        while os.path.basename(folder) not in ('', os.pardir):
            folder = os.path.dirname(folder)
            if os.path.join(folder, name) in self._modules:
                return folder
        return None


def settle_beside(files: Sequence[ScannedFile],
                  imports: Iterable[tuple[ScannedFile, str, Use]], changes_path: bool) -> None:
    """Adds imports that Python 3 does not find: to `uses`, or to `unknown` if nobody can tell.

    Python 2 took `import b` in a package for the module beside. Python 3 finds it only if the
    folder of the package is in its search path. It is for a program that lies in that folder. As a
    use it is no finding if an installed package has the module.

    Args:
      files: all files of the project.
      imports: files with the folder of such a package, and the import, as one of a library.
      changes_path: whether some file changes the search path, so nobody can tell.
    """
    groups = [(_folder(group[0]), {file.path for file in group})
              for group in Reached(files).groups() if group[0].is_program]
    for file, folder, use in imports:
        of_file = {program for program, paths in groups if file.path in paths}
        if of_file <= {folder} and folder in (program for program, _ in groups):
            continue
        if changes_path:
            file.unknown.append(Finding(
                'W201', use.place, use.question.module, use.written,
                f'Python finds it only if its search path has {os.path.basename(folder)}, which '
                'the project perhaps adds when it runs', 'unknown'))
        else:
            file.uses.append(use)


def _folder(file: ScannedFile) -> str:
    return os.path.dirname(os.path.abspath(file.path))
