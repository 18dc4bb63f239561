"""Every row of the matrix of faults that this version answers for has a test, which names it.

A test shows a row if its name begins with it: `test_c09_...`, or `test_n01_n02_...` for two.
"""

import ast
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent

ROWS = [*(f'c{number:02}' for number in range(1, 33)), *(f'n{number:02}' for number in range(1, 9)),
        'h06', 'h07', 'h11']

# Rows without a test, each with the reason; one that has a test must leave.
UNTESTED = {}


def rows_of(source):
    """The rows that the tests of a source name."""
    return {row for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
            for row in re.findall(r'([chn]\d\d)_', (re.match(
                r'test_((?:[chn]\d\d_)*)', node.name) or [''] * 2)[1])}


def unshown(rows, shown, reasons):
    """What is wrong: rows that nothing shows, and reasons for rows that something does."""
    return sorted({*rows} - {*shown} - {*reasons}), sorted({*reasons} & {*shown})


def test_every_row_has_a_test_or_a_reason():
    shown = {row for path in TESTS.rglob('*_test.py') for row in rows_of(path.read_text())}
    assert unshown(ROWS, shown, UNTESTED) == ([], [])
    assert UNTESTED.keys() <= {*ROWS}


@pytest.mark.parametrize('source, expected', [
    ('def test_c09_a_flip_is_found(): pass', {'c09'}),
    ('def test_n01_n02_a_loss(): pass', {'n01', 'n02'}),
    ('class TestIt:\n  def test_h06_sigterm(self): pass', {'h06'}),
    ('def test_what_c09_says(): pass', set()),
    ('def c09_is_no_test(): pass', set()),
    ('text = "def test_c09_a(): pass"', set())])
def test_rows_are_read_from_the_names_of_tests(source, expected):
    assert rows_of(source) == expected


def test_a_missing_row_and_a_reason_that_is_not_needed_are_found():
    assert unshown(['c01', 'c02', 'c03'], {'c01', 'c02'}, {'c02': 'hard'}) == (['c03'], ['c02'])
