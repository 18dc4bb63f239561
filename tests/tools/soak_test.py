"""The soak goes on where it ended, and its items exist."""

import json

import pytest
from harness.processes import ROOT
from harness.tools import load


@pytest.fixture
def soak(tmp_path, monkeypatch):
    """The script, which keeps its results here."""
    script = load('soak')
    monkeypatch.setattr(script.gate_session, 'LOGS', tmp_path)
    monkeypatch.setattr(script.gate_session, 'commit', lambda: COMMIT)
    return script


def ended(test, outcome='passed', phases=('setup', 'call', 'teardown')):
    return [{'started': test}, *({'ended': test, 'phase': phase, 'outcome': outcome, 'seconds': 2.,
                                  'why': ''} for phase in phases)]


class Run:
    """Stands for a session: its calls of pytest, of which the second runs what the first left."""

    def __init__(self, soak, tmp_path, calls):
        self._soak, self._path, self._calls = soak, tmp_path / 'record', calls
        self.latest = self._results([])

    def _results(self, facts):
        self._path.write_text(''.join(json.dumps(fact) + '\n' for fact in facts))
        return self._soak.Results(self._path)

    def pytest_to_the_end(self, *paths, mark, options):
        for facts in self._calls:
            yield self._results(facts)


COMMIT = '1' * 40


def progress(soak, tmp_path, store, *calls):
    files = soak.files_of(TESTS)
    soak.Progress(Run(soak, tmp_path, calls), store, files, TESTS).run()


TESTS = ['tests/a_test.py::one', 'tests/a_test.py::two', 'tests/b_test.py::one',
         'tests/c_test.py::one']


def test_a_file_has_passed_when_all_of_its_tests_have(soak, tmp_path):
    store = soak.Store(COMMIT)
    first = [*ended(TESTS[0]), *ended(TESTS[2], 'failed')]
    progress(soak, tmp_path, store, first)
    assert store.found == {'b_test.py': f'FAILED: {TESTS[2]}'}
    progress(soak, tmp_path, store, first, ended(TESTS[1]))
    again = soak.Store(COMMIT)
    assert again.found['a_test.py'] == 'passed: 2, skipped: 0, 12 s'
    assert [again.has_passed(file) for file in soak.files_of(TESTS)] == [True, False, False]


def test_what_passes_in_a_process_that_fails_counts_for_nothing(soak, tmp_path):
    store = soak.Store(COMMIT)
    progress(soak, tmp_path, store, [*ended(TESTS[3]), {'down': 'gw0'}])
    assert store.found == {}


def test_a_second_soak_of_a_commit_does_not_begin(soak):
    store = soak.Store(COMMIT)
    store.claim()
    with pytest.raises(soak.Ended, match=f'another soak of {COMMIT} runs'):
        soak.Store(COMMIT).claim()


def test_what_it_names_exists(soak):
    files = [*soak.FIRST, *(word for command in soak.PROGRAMS.values() for word in command
                            if word.startswith('tools/'))]
    assert len(files) > len(soak.FIRST)
    assert all((ROOT / 'tests' / file).exists() or (ROOT / file).exists() for file in files)
