#!/usr/bin/env python3
"""Prints what a reader may find too long or hard to read. It is advice: nothing fails for it.

    .venv/bin/python tools/advice.py

needs the package. It reads the sizes of files and functions of the package, and of documents. It
finds long sentences, and phrases that need a second reading, in the heads and public docstrings of
the package, README.md and the documents of `etpe docs`. Code, tables, figures and headings are left
out, and a list of names counts as one word.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests'))

from harness.source import PACKAGE, size_without_docstring, sources  # noqa: E402

DOCUMENTS = [ROOT / 'README.md', *sorted((PACKAGE / 'docs').glob('*.md'))]
BYTES = {'README.md': 9216, 'estimator_tpu_embedding/ARCHITECTURE.md': 12288,
         'estimator_tpu_embedding/docs/migrating.md': 20480}
LINES_OF_FILE, LINES_OF_FUNCTION = 500, 40
MOST_WORDS = 28
FORBIDDEN = {
    r'what (?:those|that|is|are) of': 'name the thing',
    r'that of|those of what': 'the noun itself: "the width of"',
    r'what those|what that is|what is|what must': 'name the thing',
    r'those (?:who|that)': 'the noun itself: "users who"',
    r'whoever': '"a caller that", or the passive voice',
    r'be it': '"whether it is"',
    r'all else': '"everything else", or name it',
    r'of which there': 'two sentences',
    r'(?<=[;,] )else|else (?:a|it|the|they)': '"otherwise", in a sentence of its own',
    r'by `None`': '"if it is `None`"',
    r'nothing is known of|of (?:these|those) nothing': 'the subject first',
}
"""Regular expressions for phrases, and the better way to say it."""

_CODE = re.compile(r'^\s*(```|~~~).*?^\s*\1\s*$', re.DOTALL | re.MULTILINE)
_FIGURES = re.compile(r'<!-- figures: .*?<!-- /figures -->', re.DOTALL)
_COMMENT = re.compile(r'<!--.*?-->', re.DOTALL)
_EXAMPLE = re.compile(r'^ *>>>.*(?:\n.*\S.*)*', re.MULTILINE)
_BREAK = re.compile(r'\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) )|\n(?=\s*\*{0,2}`?\w+`?(?:, `?\w+`?)*: )')
_MARK = re.compile(r'^\s*(?:[-*>]|\d+\.) ')
_END = re.compile(r'(?<=[.!?])["\')*]*\s+(?=[A-Z`"\'(\[\d])')
_NAMES = re.compile(r'(?:[`"\'*][^`\s]*[`"\'*,;]*[,;]?\s+(?:and |or )?){2,}')
_INLINE = re.compile(r'`[^`]*`')


def sentences(text):
    """Yields the sentences of a docstring or of a document in Markdown."""
    for pattern in (_CODE, _FIGURES, _COMMENT, _EXAMPLE):
        text = pattern.sub('\n\n', text)
    for part in _BREAK.split(text):
        # A block that is indented deeper than prose is code, and `|` begins a row of a table.
        if not part.strip() or part.lstrip('\n').startswith('    ') or part.lstrip()[0] in '|#':
            continue
        yield from _END.split(' '.join(_MARK.sub('', part).split()))


def words(sentence):
    """The number of words; several names in a row are one."""
    return len(_NAMES.sub('names ', _INLINE.sub('`name`', sentence)).split())


def offences(text):
    """Yields a line for each thing in a text that needs a second reading."""
    for sentence in sentences(text):
        if (count := words(sentence)) > MOST_WORDS:
            yield f'{count} words, at most {MOST_WORDS}: {sentence}'
        for phrase, better in FORBIDDEN.items():
            if found := re.search(rf'(?<![\w-])(?:{phrase})(?![\w-])', sentence, re.IGNORECASE):
                yield f'"{found[0]}": say {better}: {sentence}'


def docstrings(tree):
    """The docstrings of a module that users of it read: its head, and of public names."""
    if ast.get_docstring(tree):
        yield ast.get_docstring(tree)
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name.startswith('_') and node.name != '__init__':
                continue
            if ast.get_docstring(node):
                yield ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def texts():
    """Yields (place, text) of all that a stranger reads."""
    for source in sources():
        for text in docstrings(source.tree):
            yield source.file, text
    for path in DOCUMENTS:
        yield str(path.relative_to(ROOT)), path.read_text()


def sizes():
    """Yields a line for each file, text or function that is larger than a reader likes."""
    for path, most in BYTES.items():
        if (size := len((ROOT / path).read_bytes())) > most:
            yield f'{path}: {size} bytes, better at most {most}'
    for source in sources():
        if (count := len(source.text.splitlines())) > LINES_OF_FILE:
            yield f'{source.file}: {count} lines, better at most {LINES_OF_FILE}'
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef) and (
                    count := size_without_docstring(node)) > LINES_OF_FUNCTION:
                yield (f'{source.file}:{node.lineno} {node.name}: {count} lines, better at most '
                       f'{LINES_OF_FUNCTION}')


def main():
    """Prints all advice."""
    found = [*sizes(), *(f'{place}: {line}' for place, text in texts() for line in offences(text))]
    for line in found:
        print(line)
    print(f'{len(found)} pieces of advice')


if __name__ == '__main__':
    main()
