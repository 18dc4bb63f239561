"""Runs a user's program as Python would: a script, a module, or the cells of a notebook."""

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
from typing import Any, NoReturn

from ..errors import Problem, SetupError
from . import notebook


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A program for `etpe run`; it is executed as `__main__`."""

    name: str
    """The value of `sys.argv[0]`."""
    file: str
    """The prefix of the file names of its own frames."""
    execute: Callable[[], object]


def put_folder_first(path: str | None) -> None:
    """Puts the folder of a script first in the search path of modules, as Python does.

    Call it before TensorFlow is imported. Then a module beside the script takes precedence over a
    module of the same name that TensorFlow imports. For `-m`, without a path, that is the current
    folder.
    """
    if path is None:
        sys.path[0] = os.getcwd()
    else:
        whole = os.path.abspath(path)
        sys.path[0] = os.path.dirname(whole) if _is_source(path) else whole


def script(path: str) -> Program:
    """Returns the program of `python PATH`: source, or a folder or archive with `__main__.py`."""
    file = os.path.abspath(path)  # The script may change its folder.
    if not _is_source(path):
        return Program(path, file, lambda: runpy.run_path(file, run_name='__main__'))

    def execute() -> None:
        with io.open_code(file) as stream:
            source = stream.read()  # Bytes may name their encoding; a pipe is read once.
        code = compile(source, file, 'exec', dont_inherit=True)
        _run_as_main([code], __file__=file, __cached__=None)

    return Program(path, file, execute)


def module(name: str) -> Program:
    """Returns the program of `python -m NAME`.

    It imports the packages around the module, which may import TensorFlow.

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
    """Returns the program of a notebook: its code cells in order, in its folder, as in Jupyter.

    Raises:
      SetupError: if the file is no notebook of Python code.
    """
    cells = notebook.read(path)

    def execute() -> None:
        os.chdir(os.path.dirname(os.path.abspath(path)))
        _run_as_main(notebook.codes(cells, path, say))

    return Program(path, path, execute)


def run(program: Program, arguments: Sequence[str]) -> None:
    """Runs a program as `__main__`; its `sys.exit` and its errors pass through."""
    sys.argv[:] = [program.name, *arguments]
    program.execute()


def begin_anew(directory: str) -> NoReturn:
    """Begins this process anew, with the same arguments, in the directory in which it began."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os.chdir(directory)
    os.execv(sys.executable, sys.orig_argv)


def frames_of(error: BaseException, program: Program) -> TracebackType | None:
    """Returns the traceback of an error from the first frame of the program on.

    If no frame belongs to the program, it could not be compiled, and there is no traceback.
    """
    traceback = error.__traceback__
    while traceback is not None and not traceback.tb_frame.f_code.co_filename.startswith(
            program.file):
        traceback = traceback.tb_next
    return traceback


def _is_source(path: str) -> bool:
    return not os.path.isdir(path) and not path.endswith(('.pyc', '.zip', '.pyz', '.egg'))


def _spec_of(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{name}.'.startswith(f'{error.name}.'):
            raise  # The package exists, but a module that it imports does not.
        return None


def _run_as_main(codes: Iterable[CodeType], **attributes: Any) -> None:
    """Runs code in a new module `__main__`, which stays: threads and exit handlers look there."""
    main = types.ModuleType('__main__')
    vars(main).update(attributes, __builtins__=builtins)
    sys.modules['__main__'] = main
    for code in codes:
        exec(code, vars(main))
