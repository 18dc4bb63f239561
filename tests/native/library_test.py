"""The module that finds the compiled library."""

import importlib.util

from harness import graphs

from estimator_tpu_embedding.native import library

pytestmark = graphs.needs_native


def test_the_module_can_be_loaded_twice_in_a_process():
    assert library.why_not() == ''
    spec = importlib.util.find_spec(library.__name__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.why_not() == ''
    assert again.load().ete_lookup is not None
