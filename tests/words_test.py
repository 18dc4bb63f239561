"""Sentences that a stranger reads are short, and free of phrases that need a second reading.

Read are the heads and public docstrings of the package, the texts of `etpe explain`, README.md and
the documents of `etpe docs`. Code, tables, figures and headings are left out, and a list of names
counts as one word.
"""

import ast
import re
import textwrap

import pytest
from harness.processes import ROOT
from harness.source import PACKAGE, sources

from estimator_tpu_embedding.cli.codes import ENTRIES

DOCUMENTS = [ROOT / 'README.md', *sorted((PACKAGE / 'docs').glob('*.md'))]

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
    for code, entry in ENTRIES.items():
        for text in entry:
            yield f'etpe explain {code}', text


def test_sentences_are_short_and_need_one_reading():
    found = [f'{place}: {line}' for place, text in texts() for line in offences(text)]
    assert not found, '\n' + '\n'.join(found)


LONG = ' '.join(['word'] * (MOST_WORDS + 1))


@pytest.mark.parametrize('text, said', [
    (f'{LONG}.', f'{MOST_WORDS + 1} words, at most {MOST_WORDS}: '),
    (f'Short.\n\n- {LONG}.', f'{MOST_WORDS + 1} words'),
    (f'Args:\n  one: {LONG}.', f'{MOST_WORDS + 2} words'),
    ('It is there; else the default.', '"else": say "otherwise"'),
    ('Nothing for whoever waits.', '"whoever": say "a caller that"'),
    ('What those of an engine are.', '"What those of": say name the thing'),
    ('Variables of all else.', '"all else": say "everything else"')])
def test_a_sentence_that_needs_two_readings_is_found(text, said):
    found = list(offences(text))
    assert [line for line in found if line.startswith(said)]


@pytest.mark.parametrize('text', [
    LONG.replace(' word', '. Word'), f'Short.\n\n```\n{LONG}; else x\n```\n', f'| {LONG} |',
    f'# {LONG}', f'Short:\n\n    {LONG}', f'>>> {LONG}\n{LONG}\n', f'<!-- {LONG} -->',
    'It takes ' + ', '.join(['`a name`'] * 50) + ' and `another`.',
    'Something else. Nobody else in the house, or elsewhere.'])
def test_code_tables_and_lists_of_names_are_no_sentences(text):
    assert not list(offences(text))


def test_what_users_read_is_read_here():
    places = {place for place, _ in texts()}
    assert {'README.md', 'etpe explain E412', 'cli/stored/show.py', 'core/plan.py'} < places
    assert len([place for place in places if place.endswith('.md')]) > 5


def test_private_names_are_left_out_and_methods_are_read():
    tree = ast.parse(textwrap.dedent('''
        """Head."""
        def _hidden():
            """Hidden."""
        class Shown:
            """Class."""
            def method(self):
                """Method."""
                def inner():
                    """Inner."""
    '''))
    assert sorted(docstrings(tree)) == ['Class.', 'Head.', 'Method.']
