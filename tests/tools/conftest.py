import importlib
import pathlib

import pytest

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / 'tools' / 'bench'


@pytest.fixture
def bench(monkeypatch):
    """Imports a module of `tools/bench` by its name."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module
