"""Runs the checks in C++; `tools/sanitize_native.py` runs them with sanitizers."""

import pytest
from harness.processes import ROOT, run_python
from harness.tools import load


def has_compiler():
    build = load('native_build')
    try:
        return bool(build.compiler())
    except build.NotCompiled:
        return False


@pytest.mark.soak
@pytest.mark.timeout(600)  # 13 seconds on an idle machine, and a minute on one that is not.
@pytest.mark.skipif(not has_compiler(), reason='there is no C++ compiler')
def test_the_inner_functions_do_what_their_headers_say():
    assert run_python(ROOT / 'tools' / 'sanitize_native.py', 'none', '--deadline', 250,
                      deadline=300).returncode == 0
