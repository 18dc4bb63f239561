"""Reads and compiles the code cells of an `.ipynb` file, in order, without Jupyter."""

from __future__ import annotations

import io
import json
import linecache
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from types import CodeType

from ..errors import Problem, SetupError
from ..proto import files

MAX_BYTES = 2**28
_ONLY_IPYTHON = re.compile(r'([ \t]*)([%!?].*|[\w.]+\?{1,2})')
_MOST_TOKENIZED = 2**20
"""The most characters of a cell that are searched for the beginnings of statements."""
_AROUND_CODE = ('%%capture', '%%time')
"""Cell magics that precede Python code."""


def read(path: str, most: int = MAX_BYTES) -> list[str]:
    """Returns the source of every code cell of a notebook that has so many bytes at most.

    Raises:
      SetupError: if the file is no notebook of Python code.
    """
    try:
        with files.open_regular(path, follow=True) as stream:
            content = json.loads(files.read_at_most(stream, most))
        kernel = (content.get('metadata') or {}).get('kernelspec') or {}
        language = kernel.get('language', 'python')
        cells = content['cells'] if 'cells' in content else [  # Up to version 3 of the format.
            cell for sheet in content['worksheets'] for cell in sheet['cells']]
        sources = [_joined(cell['source'] if 'source' in cell else cell['input'])
                   for cell in cells if cell['cell_type'] == 'code']
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _refused(path, f'{type(error).__name__}: {error}') from error
    if language != 'python':
        raise _refused(path, f'code in {language}')
    return sources


def codes(cells: Sequence[str], path: str, say: Callable[[str], None]) -> Iterator[CodeType]:
    """Compiles one cell after another.

    It skips each line that only IPython understands, such as `!pip install x` or
    `%matplotlib inline`, and each cell of that kind, such as `%%bash`; `say` is told of them.
    Tracebacks show the lines of cells.
    """
    for number, source in enumerate(cells, 1):
        name = f'{path}[code cell {number}]'
        try:
            text = python_of(source, lambda line: say(
                f'{path}, code cell {number}: skipped "{line}", which needs ' + (
                    'etpe run --tf1' if line.startswith('%tensorflow_version 1') else 'IPython')))
        except ValueError as error:
            raise _refused(path, f'code cell {number}: {error}') from error
        lines = [f'{line}\n' for line in text.split('\n')]
        linecache.cache[name] = (len(text), None, lines, name)
        yield compile(text, name, 'exec', dont_inherit=True)


def python_of(source: str, skipped: Callable[[str], None]) -> str:
    """Returns a cell without the lines for IPython; all other lines keep their numbers.

    Raises:
      ValueError: if it has null bytes, or too many lines that look like those for IPython.
    """
    before = ''
    while True:
        try:
            compile(source, 'cell', 'exec', dont_inherit=True)
            return before + source  # Such a line may be part of a string.
        except SyntaxError:
            pass
        if not source.lstrip().startswith('%%'):
            return before + _without_magic(source, skipped)
        magic, _, source = source.lstrip().partition('\n')
        skipped(magic)
        if magic.split()[0] not in _AROUND_CODE:
            return before
        before += '\n'


def _without_magic(source: str, skipped: Callable[[str], None]) -> str:
    """Returns the lines, with `pass` in place of each that only IPython understands."""
    kept: list[str] = []
    start, left = 0, _MOST_TOKENIZED  # No string or bracket is open before the line `start`.
    goes_on = False  # After a line for a shell that ends in a backslash.
    for line in source.split('\n'):
        found = _ONLY_IPYTHON.fullmatch(line)
        if found and not goes_on:
            left -= sum(map(len, kept[start:])) + len(kept) - start
            if left < 0:
                raise ValueError('too many lines in a cell begin as those of IPython do')
        if goes_on or found and _begins_statement(kept[start:]):
            if not goes_on:
                skipped(line.strip())
            goes_on = line.endswith('\\')
            if found and not found[1]:
                start = len(kept)
            kept.append(f'{found[1]}pass' if found else '')
        else:
            kept.append(line)
    return '\n'.join(kept)


def _begins_statement(before: Sequence[str]) -> bool:
    """Whether the next line begins a statement: these lines open no string and no bracket."""
    if before and before[-1].endswith('\\'):
        return False
    try:
        for _ in tokenize.generate_tokens(io.StringIO('\n'.join(before) + '\n').readline):
            pass
    except tokenize.TokenError:
        return False
    except SyntaxError:
        pass  # The compiler will report it.
    return True


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else ''.join(source)


def _refused(path: str, got: str) -> SetupError:
    return SetupError(Problem('E005', path, 'it must be a notebook with code cells in Python', got))
