#!/usr/bin/env python3
"""Runs the checks that everything must pass before it lands; `.ci/run` is this script.

    python3 tools/check.py

needs Python >= 3.11, pip and a C++ compiler, nothing else, and 8 GB of free disk. It takes at most
twenty minutes on two idle cores. In this order, it runs

1. lint (ruff), types (mypy), the architecture, and the fast tests: if one fails, the run ends;
2. the other short tests, two files at a time;
3. the tests marked `serial`, each file in a process of its own;
4. the tests marked `smoke`, of clusters, each in a network of its own.

A test of 2, 3 or 4 that failed runs once more, alone. If it passes then, the closing lines say
`FLAKY` and its name: list it in `tests/flaky.md` with a reason, or mend it. Tests marked `no_rerun`
have no second try. What is marked `soak` runs in `tools/soak.py`.

All that the script writes is in one temporary folder, which it removes, and in a log in
`~/.cache/etpe-ci`. The last line counts all tests. The exit status is 0 only if everything passed.
"""

import contextlib
import re
import sys
import time
from collections.abc import Iterator, Sequence

import gate_session
from gate_session import ROOT, TESTS, Ended, Results, Session

WATCHDOG_MINUTES = 45
STATIC = ('architecture_test.py', 'shape_test.py')
FAST = ('core', 'proto', 'ops')
SHORT = 'not soak and not serial and not smoke'
BY_FILE = ('-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder')
"""Files with few tests are the slow ones. The plugin would begin them last, and leave one core
idle.
"""
MOST_RERUN, RERUN_SECONDS = 10, 300
"""More than ten failures are no accident."""
MOST_SHOWN = 30
FLAKY, MOST_FLAKY = TESTS / 'flaky.md', 5
NAMED_FLAKY = re.compile(r'^FLAKY (\S.*)$', re.MULTILINE)


class Check:
    """The parts, and what they gave.

    Attributes:
      results: of each call of pytest, in order.
      flaky: node ids of tests that passed when they ran alone.
    """

    def __init__(self, run: Session) -> None:
        self._run, self.results, self.flaky = run, list[Results](), list[str]()

    @property
    def failed(self) -> dict[str, str]:
        """By node id, why, for tests that no second try has passed."""
        return {test: why for results in self.results for test, why in results.failed.items()
                if test not in self.flaky}

    def begin(self, part: str) -> None:
        """Announces a part."""
        self._run.say(f'== {self._run.seconds:.0f} s: {part}')

    def must(self, part: str, *command: object) -> None:
        """Runs a command in the checkout, where its settings are.

        Raises:
          Ended: if it fails.
        """
        self.begin(part)
        if self._run.call(command, cwd=ROOT):
            raise Ended(f'{part} failed')

    def tests(self, part: str, *paths: object, mark: str = SHORT,
              options: Sequence[object] = (), may_be_none: bool = False) -> None:
        """Runs tests, and keeps their results.

        Args:
          part: its name.
          *paths: files, folders or node ids.
          mark: which markers the tests must have.
          options: of pytest.
          may_be_none: whether it is right that there is no such test.

        Raises:
          Ended: if more tests have failed by now than are tried again, or if none can run.
        """
        self.begin(part)
        for results in self._run.pytest_to_the_end(
                *paths, mark=mark, options=[f'--maxfail={MOST_RERUN + 1}', *options]):
            self.results.append(results)
            if not (results.collected or results.failed or may_be_none):
                raise Ended(f'{part}: pytest found no test')
            if len(self.failed) > MOST_RERUN:
                raise Ended(f'more than {MOST_RERUN} tests failed')

    def all_parts(self) -> None:
        """Runs everything.

        Raises:
          Ended: if what runs afterwards would say nothing more.
        """
        binaries = self._run.binaries
        self.must('lint', binaries / 'ruff', 'check', '--no-cache', '.')
        self.must('types', binaries / 'mypy', '--config-file', 'setup.cfg',
                  '--cache-dir', self._run.folder / 'mypy')
        static, fast = [[TESTS / name for name in names] for names in (STATIC, FAST)]
        for part, paths, options in (('architecture', static, ()),
                                     (', '.join(FAST), fast, BY_FILE)):
            self.tests(part, *paths, options=options)
            if self.failed:
                raise Ended(f'{part} failed')
        self.begin('advice, which fails nothing')
        self._run.call([binaries / 'python', ROOT / 'tools' / 'advice.py'])
        self.tests('short tests', TESTS, options=[
            *BY_FILE, *(f'--ignore={path}' for path in (*static, *fast))])
        for path in marked('serial'):
            self.tests(str(path.relative_to(ROOT)), path, mark='serial and not soak',
                       may_be_none=True)
        for path in marked('smoke'):
            for test in re.findall(r'^def (test_\w+)', path.read_text(), re.MULTILINE):
                self.tests(test, f'{path}::{test}', mark='smoke')
        self.try_again()

    def try_again(self) -> None:
        """Runs each test that failed once more, alone."""
        end = time.monotonic() + RERUN_SECONDS
        for test in self.failed:
            path, _, rest = test.partition('::')
            if not rest:
                continue  # A file that cannot be imported, or a process.
            if time.monotonic() > end:
                break
            self.begin(f'once more: {test}')
            again = self._run.pytest(f'{ROOT / path}::{rest}', mark='not no_rerun',
                                     seconds=end - time.monotonic())
            if again.passed == [test] and not again.failed:
                self.flaky.append(test)

    def close(self) -> bool:
        """Says how it went; returns whether everything passed."""
        listed = FLAKY.read_text()
        earlier = dict[str, str]()
        for log in sorted(self._run.log.parent.glob('*.log')):
            if log != self._run.log and not log.stem.endswith('-changed'):
                with contextlib.suppress(FileNotFoundError):  # Another run removes it.
                    text = log.read_text(errors='replace')
                    earlier.update(dict.fromkeys(NAMED_FLAKY.findall(text), log.name))
        problems = [f'FAILED {test} - {why.splitlines()[-1] if why else ""}'
                    for test, why in self.failed.items()]
        for test in self.flaky:
            self._run.say(f'FLAKY {test}')
            if f'`{test}`' not in listed and test in earlier:
                problems.append(f'{test} was FLAKY before ({earlier[test]}): mend it, or list it '
                                f'in {FLAKY.relative_to(ROOT)} with the reason')
        if (count := len(re.findall(r'^\| `', listed, re.MULTILINE))) > MOST_FLAKY:
            problems.append(f'{FLAKY.relative_to(ROOT)} lists {count} tests, at most {MOST_FLAKY}')
        for line in problems[:MOST_SHOWN]:
            self._run.say(line)
        if not self._run.network:
            self._run.say('NO NETWORK of its own: "unshare --net" is refused here. So the tests '
                          'that open servers are skipped, those of clusters among them')
        return not problems

    def closing_line(self) -> str:
        """All calls of pytest, in the form of its own last line."""
        counts = {'failed': len(self.failed),
                  'passed': len(self.flaky) + sum(len(one.passed) for one in self.results),
                  'skipped': sum(len(one.skipped) for one in self.results)}
        return (', '.join(f'{count} {name}' for name, count in counts.items() if count)
                or 'no tests ran') + f' in {self._run.seconds:.2f}s'


def marked(name: str) -> Iterator:
    """Yields the files of tests that have a marker."""
    for path in sorted(TESTS.rglob('*_test.py')):
        if f'mark.{name}' in path.read_text():
            yield path


def main() -> None:
    """Installs and checks."""
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    try:
        with gate_session.session(gate_session.commit()) as run:
            run.end_after(WATCHDOG_MINUTES)
            check, ended = Check(run), ''
            try:
                check.begin('installation')
                run.install()
                check.all_parts()
            except Ended as error:
                ended = str(error)
            passed = check.close() and not ended
            if ended:
                run.say(f'ended early: {ended}')
            run.say(f'log: {run.log}')
            run.say(check.closing_line())
    except Ended as error:
        sys.exit(str(error))
    sys.exit(not passed)


if __name__ == '__main__':
    main()
