#!/usr/bin/env python3
"""Runs what is too long for `tools/check.py`: hours of kills, clusters, matrices, other versions.

    python3 tools/soak.py [--list] [NAME ...]

needs what `check.py` needs. Each file with tests marked `soak` is an item, and so is each entry of
`PROGRAMS`; names select items that contain one of them. The result of each item goes into
`~/.cache/etpe-ci/soak/<commit>.json`, and `--list` prints what is there. A run that was interrupted
goes on where it ended: what passed at this commit is not run again. Results of a checkout with
changes are not kept.
"""

import argparse
import contextlib
import fcntl
import json
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import IO

import check
import gate_session
from gate_session import ROOT, TESTS, Ended, Results, Session

FIRST = ('conformance/backend_test.py', 'faults/cluster_test.py', 'cluster/cluster_test.py',
         'checkpoint/cluster_checkpoints_test.py', 'estimator/cluster_jobs_test.py')
"""Files whose fixtures start many processes, which should not wait for each other in the end."""
LIBRARIES = 'libraries/'
"""Its tests need the package index, and so a network."""
KEPT_EVERY = 30
"""Seconds."""
PROGRAMS = {
    'kills': ['{python}', '-m', 'harness.kill_job', '--kills', '500'],
    'versions': ['{python}', '-m', 'nox', '-f', 'tools/noxfile.py', '-s', 'tests', 'oldest'],
    'quickstart': ['{python}', '-m', 'nox', '-f', 'tools/noxfile.py', '-s', 'quickstart'],
    'libraries': ['{python}', '-m', 'pytest', '-q', '-m', 'soak', f'tests/{LIBRARIES}'],
    'protobuf': [sys.executable, 'tools/check_protobuf.py'],
    'sanitizers': [sys.executable, 'tools/sanitize_native.py'],
}
"""Besides tests: by name, the command, which runs in the checkout."""


def files_of(tests: Iterable[str]) -> list[str]:
    """The files of tests that need no network, below `tests/`, in the order in which they run."""
    files = {test.partition('::')[0].removeprefix('tests/') for test in tests}
    return sorted(filter(lambda file: not file.startswith(LIBRARIES), files),
                  key=lambda file: (file not in FIRST, file))


def chosen(items: Iterable[str], names: Sequence[str]) -> list[str]:
    """The items that contain one of some names; all if there are none."""
    return [item for item in items if not names or any(name in item for name in names)]


class Store:
    """The results of items at one commit: by name, what happened in words."""

    _lock: IO[str] | None

    def __init__(self, commit: str) -> None:
        self._commit, self._lock = commit, None
        self._path = gate_session.LOGS / 'soak' / f'{commit}.json'
        self.found = dict[str, str]()
        if not commit.endswith('-changed'):
            with contextlib.suppress(OSError, ValueError):  # There is none, or half of one.
                self.found |= json.loads(self._path.read_text())

    def claim(self) -> None:
        """Makes sure that no other soak of this commit runs beside this one.

        Raises:
          Ended: if one does.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = open(self._path.with_suffix('.lock'), 'w')
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Ended(f'another soak of {self._commit} runs') from None

    def put(self, name: str, result: str) -> None:
        """Keeps a result, whatever happens to this process next.

        It is that of the commit only if the checkout is still as it was.
        """
        if gate_session.commit() != self._commit:
            return
        self.found[name] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_suffix('.new')
        beside.write_text(json.dumps(self.found, indent=1, sort_keys=True) + '\n')
        beside.replace(self._path)

    def has_passed(self, name: str) -> bool:
        """Whether an item need not run again."""
        return self.found.get(name, '').startswith('passed')


class Progress:
    """What the tests of some files have given until now."""

    def __init__(self, run: Session, store: Store, files: list[str], tests: list[str]) -> None:
        self._run, self._store, self._files, self._all = run, store, files, tests
        self._calls: list[Results] = []

    def run(self) -> None:
        """Runs the tests; keeps the result of a file soon after its last test has ended."""
        paths = [TESTS / file for file in self._files]
        over = threading.Event()

        def keep() -> None:
            while not over.wait(KEPT_EVERY):
                self.put(self._run.latest)

        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            self._follow(*paths, mark='soak and not serial', options=(
                '-n', '2', '--dist', 'loadscope', '--no-loadscope-reorder', '--durations=50'))
            for path in set(check.marked('serial')) & set(paths):
                self._follow(path, mark='soak and serial')
        finally:
            over.set()
            keeper.join()
            self.put(self._run.latest)

    def _follow(self, *paths: object, mark: str, options: Sequence[object] = ()) -> None:
        for results in self._run.pytest_to_the_end(*paths, mark=mark, options=options):
            self._calls.append(results)

    def put(self, latest: Results) -> None:
        """Keeps the results of files whose tests have all ended, or one of whose has failed."""
        # Where pytest itself failed, what passed may be wrong.
        calls = [call for call in (*self._calls, latest)
                 if all(name.startswith('tests/') for name in call.failed)]
        for file in self._files:
            def own(tests: Iterable[str], file: str = file) -> set[str]:
                return {test for test in tests if test.partition('::')[0] == f'tests/{file}'}

            passed, failed, skipped = [
                own(test for call in calls for test in getattr(call, name))
                for name in ('passed', 'failed', 'skipped')]
            if failed:
                self._store.put(file, f'FAILED: {", ".join(sorted(failed))}')
            elif (found := own(self._all)) and passed | skipped == found:
                seconds = {test: call.seconds[test] for call in calls for test in own(call.seconds)}
                self._store.put(file, (f'passed: {len(passed)}, ' if passed else '')
                                + f'skipped: {len(skipped)}, {sum(seconds.values()):.0f} s')


def main() -> None:
    """Installs, and runs what has no result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--list', action='store_true', help='print the items with their results')
    options = parser.parse_args()
    commit = gate_session.commit()
    store = Store(commit)
    if options.list:
        for item in chosen(store.found, options.names):
            print(f'{item:60} {store.found[item]}')
        return
    try:
        with gate_session.session(f'soak-{commit}') as run:
            store.claim()
            run.install('soak')
            found = run.pytest('--collect-only', '-q', TESTS, mark='soak')
            if found.failed or not found.collected:
                raise Ended(f'not all tests can be collected: {", ".join(found.failed)}')
            tests = found.collected
            wanted = chosen([*files_of(tests), *PROGRAMS], options.names)
            missing = [item for item in wanted if not store.has_passed(item)]
            if files := [item for item in missing if item not in PROGRAMS]:
                Progress(run, store, files, tests).run()
            for name in missing[len(files):]:
                run.say(f'== {run.seconds:.0f} s: {name}')
                status = run.call([word.format(python=run.binaries / 'python')
                                   for word in PROGRAMS[name]], cwd=ROOT, PYTHONPATH=str(TESTS))
                store.put(name, f'FAILED with status {status}' if status else 'passed')
    except Ended as error:
        sys.exit(str(error))
    results = {item: store.found.get(item, 'no result') for item in wanted}
    others = {item: result for item, result in results.items() if not store.has_passed(item)}
    failed = [item for item, result in others.items() if not result.startswith('skipped')]
    for item, result in others.items():
        print(f'{item}: {result}')
    print(f'{len(results) - len(others)} passed, {len(others) - len(failed)} skipped, '
          f'{len(failed)} failed')
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
