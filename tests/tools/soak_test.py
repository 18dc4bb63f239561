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
    return script


def ended(test, outcome='passed', phases=('setup', 'call', 'teardown')):
    return [{'started': test}, *({'ended': test, 'phase': phase, 'outcome': outcome, 'seconds': 2.,
                                  'why': ''} for phase in phases)]


class Run:
    """Stands for a session: its calls of pytest, of which the second runs what the first left."""

    def __init__(self, soak, tmp_path, collected, calls):
        self._soak, self._path, self._calls = soak, tmp_path / 'record', calls
        self._collected, self.latest = collected, self._results([])

    def _results(self, facts):
        self._path.write_text(''.join(json.dumps(fact) + '\n' for fact in facts))
        return self._soak.Results(self._path)

    def pytest(self, *arguments, mark):
        return self._results([{'collected': self._collected}])

    def pytest_to_the_end(self, *paths, mark, options):
        for facts in self._calls:
            yield self._results(facts)


def test_a_file_has_passed_when_all_of_its_tests_have(soak, tmp_path):
    tests = ['tests/a_test.py::one', 'tests/a_test.py::two', 'tests/b_test.py::one']
    store, files = soak.Store('1' * 40), ['a_test.py', 'b_test.py', 'c_test.py']
    first = [*ended(tests[0]), *ended(tests[2], 'failed')]
    soak.Progress(Run(soak, tmp_path, tests, [first]), store, files).run()
    assert store.found == {'b_test.py': f'FAILED: {tests[2]}'}
    soak.Progress(Run(soak, tmp_path, tests, [first, ended(tests[1])]), store, files).run()
    again = soak.Store('1' * 40)
    assert again.found['a_test.py'] == 'passed: 2, skipped: 0, 12 s'
    assert [again.has_passed(file) for file in files] == [True, False, False]


def test_results_of_a_checkout_with_changes_are_not_believed(soak):
    soak.Store('1' * 40 + '-changed').put('a_test.py', 'passed')
    assert not soak.Store('1' * 40 + '-changed').has_passed('a_test.py')
    assert not soak.Store('2' * 40).has_passed('a_test.py')


def test_its_items_exist(soak):
    files = [item for item in soak.items() if item not in soak.PROGRAMS]
    assert files[:len(soak.FIRST)] == sorted(soak.FIRST)
    assert all((ROOT / 'tests' / file).exists() for file in files)
    scripts = [word for command in soak.PROGRAMS.values() for word in command
               if word.startswith('tools/')]
    assert scripts and all((ROOT / script).exists() for script in scripts)
