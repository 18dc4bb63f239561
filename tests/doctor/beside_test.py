"""Imports of a module beside, as Python 2 had them: who finds it and who does not."""

import pytest
from harness.scanned import scanned

PROGRAM = 'from pkg import a\nif __name__ == "__main__": print(a)'


def of_b(tmp_path, **texts):
    """Returns what is said of the module `b`, as uses and as unknown names."""
    files = scanned(tmp_path, pkg__init='', pkg__b='x = 1', **texts)
    return ([(path, use.question.path) for path, file in files.items() for use in file.uses
             if use.question.path == 'b'],
            [each.code for file in files.values() for each in file.unknown])


@pytest.mark.parametrize('statement', ['import b', 'from b import x', 'def f():\n  import b'])
def test_a_module_beside_in_a_package_is_sought_as_a_library(tmp_path, statement):
    assert of_b(tmp_path, pkg__a=statement, main=PROGRAM) == ([('pkg/a.py', 'b')], [])


def test_a_module_deeper_in_a_package_is_sought_as_a_library(tmp_path):
    files = scanned(tmp_path, pkg__init='', pkg__a='import gin\ngin.x',
                    pkg__inner__init='', pkg__inner__gin='')
    assert 'gin' in [use.question.path for use in files['pkg/a.py'].uses]


@pytest.mark.parametrize('statement', [
    'from . import b', 'import pkg.b', 'from pkg import b',
    'try:\n  import b\nexcept ImportError:\n  from . import b',
    'try:\n  from . import b\nexcept ImportError:\n  import b'])
def test_other_ways_to_a_module_beside_need_no_library(tmp_path, statement):
    assert of_b(tmp_path, pkg__a=statement, main=PROGRAM) == ([], [])


def test_a_program_finds_what_lies_beside_it(tmp_path):
    main = 'import b, a\nif __name__ == "__main__": print(b)'
    assert of_b(tmp_path, pkg__a='import b', pkg__main=main) == ([], [])


def test_nobody_can_tell_where_the_search_path_changes(tmp_path):
    main = f'import sys\nsys.path.append("lib")\n{PROGRAM}'
    assert of_b(tmp_path, pkg__a='import b', main=main) == ([], ['W201'])
