"""The options of `etpe run` are declared once: the parser and the split agree."""

import argparse

import pytest

from estimator_tpu_embedding.cli import run_options


def options():
    """(name, whether it has a value) of each option that comes before the script."""
    parser = argparse.ArgumentParser(add_help=False)
    run_options.add_to(parser)
    return [(name, action.nargs != 0) for action in parser._actions
            for name in action.option_strings]


@pytest.mark.parametrize('name, has_value', options())
def test_the_script_comes_after_the_value_of_an_option(name, has_value):
    before = [name, 'value'] if has_value else [name]
    assert run_options.split_at_script([*before, 'job.py', name, 'other']) == (
        [*before, 'job.py'], [name, 'other'])
    assert run_options.split_at_script([f'{name}=value', 'job.py']) == (
        [f'{name}=value', 'job.py'], [])
