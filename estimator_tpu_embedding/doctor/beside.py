"""Decides whether Python finds modules that lie in a package and are imported by their own name.

Python 2 took `import b` in a package for the module beside. Python 3 finds it only if the folder of
the package is in its search path. It is for a program that lies in that folder.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Sequence
from typing import NamedTuple

from .facts import Finding, ScannedFile, Use
from .reached import Reached


class Import(NamedTuple):
    """An import of a module that lies in a package, without the name of that package.

    Attributes:
      file: that has the import.
      folder: of the package, absolute.
      use: the same, as an import of a library.
    """

    file: ScannedFile
    folder: str
    use: Use


def settle(files: Sequence[ScannedFile], imports: Sequence[Import], changes_path: bool) -> None:
    """Adds what programs in other folders do not find: to `uses`, or to `unknown`.

    As a use it is no finding if an installed package has the module.

    Args:
      files: all files of the project.
      imports: those in question.
      changes_path: whether some file changes the search path, so nobody can tell.
    """
    if not imports:
        return
    reached, folders = Reached(files), collections.defaultdict[str, set[str]](set)
    programs = [file for file in files if file.is_program]
    own = {_folder(program) for program in programs}
    for program in programs:
        for file in reached.files_of(program):
            folders[file.path].add(_folder(program))
    for file, folder, use in imports:
        if folders[file.path] <= {folder} and folder in own:
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
