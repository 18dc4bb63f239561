"""The examples in docstrings are true."""

import doctest
import importlib
import pathlib

import pytest

import estimator_tpu_embedding

PACKAGE = pathlib.Path(estimator_tpu_embedding.__file__).parent
MODULES = sorted(
    '.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts)
    for path in PACKAGE.rglob('*.py') if '>>>' in path.read_text())


@pytest.mark.parametrize('name', MODULES)
def test_examples_of(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
