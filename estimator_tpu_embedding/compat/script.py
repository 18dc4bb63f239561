"""Runs a program of the user as Python would: a script, a module, or the cells of a notebook."""

from __future__ import annotations

import builtins
import dataclasses
import importlib.util
import io
import os
import runpy
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, TracebackType
from typing import Any

from ..errors import Problem, SetupError
from . import notebook


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """What `etpe run` runs.

    Attributes:
      name: for `sys.argv[0]`.
      file: what the file names of its own frames begin with.
      execute: runs it as `__main__`.
    """

    name: str
    file: str
    execute: Callable[[], object]


def put_folder_first(path: str | None) -> None:
    """Makes the folder of a script the first where modules are looked for, as Python does.

    Before TensorFlow is imported: a module beside a script comes before one of the same name that
    TensorFlow happens to import.

    Args:
      path: of the script; `None` for a module, which Python looks for in the current folder.
    """
    if path is None:
        sys.path[0] = os.getcwd()
    else:
        whole = os.path.abspath(path)
        sys.path[0] = os.path.dirname(whole) if _is_source(path) else whole


def script(path: str) -> Program:
    """As `python PATH` runs it: source, or a folder or archive with a `__main__.py`."""
    file = os.path.abspath(path)  # So a script that changes its folder still finds its files.
    if not _is_source(path):
        return Program(path, file, lambda: runpy.run_path(file, run_name='__main__'))

    def execute() -> None:
        with io.open_code(file) as stream:
            source = stream.read()  # As bytes, which may name their encoding; a pipe gives it once.
        code = compile(source, file, 'exec', dont_inherit=True)
        _run_as_main([code], __file__=file, __cached__=None)

    return Program(path, file, execute)


def module(name: str) -> Program:
    """As `python -m NAME` runs it. TensorFlow may be imported: packages around it are.

    Raises:
      SetupError: if there is no such module.
    """
    spec = _spec_of(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _spec_of(f'{name}.__main__')
    code = getattr(spec.loader, 'get_code', lambda _: None)(spec.name) if spec else None
    if spec is None or spec.origin is None or code is None:
        raise SetupError(Problem(
            'E004', '-m', 'it must name a module, or a package with a __main__ module', name,
            f'Run it where the package is, or set PYTHONPATH; it was looked for in {os.getcwd()}.'))
    return Program(spec.origin, spec.origin, lambda: _run_as_main(
        [code], __file__=spec.origin, __cached__=spec.cached, __spec__=spec,
        __package__=spec.parent, __loader__=spec.loader))


def notebook_program(path: str, say: Callable[[str], None]) -> Program:
    """The code cells of a notebook in order, in its folder, as Jupyter runs them.

    Args:
      path: of the notebook.
      say: told of every line that only IPython could run; it is skipped.

    Raises:
      SetupError: if it is no notebook of Python code.
    """
    cells = notebook.read(path)

    def execute() -> None:
        os.chdir(os.path.dirname(os.path.abspath(path)))
        _run_as_main(notebook.codes(cells, path, say))

    return Program(path, path, execute)


def run(program: Program, arguments: Sequence[str]) -> None:
    """Runs a program as `__main__`; its `sys.exit` and its errors pass through.

    Args:
      program: what to run.
      arguments: what follows it in `sys.argv`, untouched.
    """
    sys.argv[:] = [program.name, *arguments]
    program.execute()


def frames_of(error: BaseException, program: Program) -> TracebackType | None:
    """The traceback of an error from the first frame of the program on, as Python shows it.

    Nothing of it, if no frame is the program's: then it could not even be compiled.
    """
    traceback = error.__traceback__
    while traceback is not None and not traceback.tb_frame.f_code.co_filename.startswith(
            program.file):
        traceback = traceback.tb_next
    return traceback


def _is_source(path: str) -> bool:
    return not os.path.isdir(path) and not path.endswith(('.pyc', '.zip', '.pyz', '.egg'))


def _spec_of(name: str) -> Any:
    """The spec of a module, `None` where there is none."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{name}.'.startswith(f'{error.name}.'):
            raise  # The package is there, and imports something that is not.
        return None


def _run_as_main(codes: Iterable[CodeType], **attributes: Any) -> None:
    """Runs code in a new module `__main__`, which stays: threads and exit handlers look there."""
    main = types.ModuleType('__main__')
    vars(main).update(attributes, __builtins__=builtins)
    sys.modules['__main__'] = main
    for code in codes:
        exec(code, vars(main))
