"""The examples in docstrings are true, and every public name has one."""

import doctest
import importlib

import pytest
from harness.processes import run_python
from harness.source import NAME, sources

import estimator_tpu_embedding as ete

MODULES = sorted('.'.join((NAME, *source.file.removesuffix('.py').split('/')))
                 for source in sources() if '>>>' in source.text)
OF_A_PROCESS = {f'{NAME}.compat.install'}  # What they change would stay for other tests.
WITHOUT_EXAMPLE = {  # public name: why there is nothing to show
    'embedding_column': "TensorFlow's own", 'shared_embedding_columns': "TensorFlow's own"}


@pytest.mark.parametrize('name', sorted(set(MODULES) - OF_A_PROCESS))
def test_examples_of(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize('name', sorted(OF_A_PROCESS))
def test_examples_in_a_process_of_their_own(name):
    done = run_python('-c', f"""
import doctest, importlib
print(doctest.testmod(importlib.import_module({name!r})))""")
    assert 'failed=0' in done.stdout and 'attempted=0' not in done.stdout, done


@pytest.mark.parametrize('name', ete.__all__)
def test_every_public_name_has_an_example_or_a_reason(name):
    value = getattr(ete, name)
    found = doctest.DocTestFinder(recurse=False).find(value, name)
    has_example = value.__module__ in MODULES and any(each.examples for each in found)
    assert has_example != (name in WITHOUT_EXAMPLE)


def test_reasons_are_of_public_names():
    assert WITHOUT_EXAMPLE.keys() <= set(ete.__all__)
