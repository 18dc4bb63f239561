"""What the tests of the commands share."""

import pytest
from harness.commands import CONFIGS, Etpe


@pytest.fixture
def etpe(capsys, monkeypatch):
    """Runs commands where the golden configs are, so that their names are short."""
    monkeypatch.chdir(CONFIGS)
    return Etpe(capsys)
