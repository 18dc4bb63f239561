"""Every row of the matrix of faults has a test, which names it, or a reason why it has none.

`matrix.md` beside this file is the matrix. A test shows a row if its name begins with it:
`test_c09_...`, or `test_n01_n02_...` for two. To read which tests show what:
`python3 tests/faults/coverage_test.py`.
"""

import ast
import collections
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parent.parent
MATRIX = pathlib.Path(__file__).resolve().with_name('matrix.md')

SIZES = {'c': 32, 'h': 24, 'i': 23, 'm': 9, 'n': 8, 'p': 25, 'r': 6, 'u': 4}
"""How many rows each part has, so that none leaves the matrix unseen."""


def rows_in(matrix):
    """The rows of a matrix, in order: for each its reason for having no test, or `''`."""
    rows = {}
    for line in matrix.splitlines():
        cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
        if cells and re.fullmatch(r'[A-Z]\d\d', cells[0]):
            row = cells[0].lower()
            assert row not in rows, f'{row} is there twice'
            assert len(cells) in (3, 4) and all(cells[1:3]), f'{row} must say fault and outcome'
            rows[row] = cells[3] if len(cells) == 4 else ''
    return rows


def named_in(source):
    """Yields (row, name of the test) for the rows that the tests of a source name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            prefix = re.match(r'test_((?:[a-z]\d\d_)*)', node.name)
            for row in re.findall(r'([a-z]\d\d)_', prefix[1]) if prefix else ():
                yield row, node.name


def all_tests():
    """By row, the tests that name it, as `folder/file.py::name`."""
    found = collections.defaultdict(list)
    for path in sorted(TESTS.rglob('*_test.py')):
        for row, name in named_in(path.read_text()):
            found[row].append(f'{path.relative_to(TESTS)}::{name}')
    return found


def test_every_row_has_a_test_or_a_reason():
    rows, tests = rows_in(MATRIX.read_text()), all_tests()
    neither_or_both = [row for row, reason in rows.items() if bool(reason) == bool(tests[row])]
    assert not neither_or_both, 'a test must be called test_<row>_..., or the row say why not'
    assert not tests.keys() - rows.keys(), 'tests name rows that the matrix does not have'


def test_the_matrix_is_whole():
    expected = [f'{part}{number:02}' for part, size in SIZES.items()
                for number in range(1, size + 1)]
    assert list(rows_in(MATRIX.read_text())) == expected


if __name__ == '__main__':
    shown = all_tests()
    for one, why_not in rows_in(MATRIX.read_text()).items():
        print(one.upper(), *(shown[one] or [f'no test: {why_not}']), sep='\n  ')
