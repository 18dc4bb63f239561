"""A plugin of pytest that writes down each test when it starts, and each result when it is known.

So the test is known that ends its process, hangs, or is killed. `tools/gate_session.py` names two
files by variables. `ETPE_RECORD` gets a JSON object per line, which `Results` reads; `ETPE_LOG`
gets a line of text per start, for a person. Several processes append to both.
"""

import json
import os
import time

import pytest

WORKER = os.environ.get('PYTEST_XDIST_WORKER')


def append(variable: str, line: str) -> None:
    """Adds one line to a file by one call of the system, so that lines of processes never mix."""
    if path := os.environ.get(variable):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f'{line}\n'.encode(errors='replace'))
        finally:
            os.close(file)


def record(**fact: object) -> None:
    """Adds a fact to the record."""
    append('ETPE_RECORD', json.dumps(fact))


def pytest_collection_finish(session):
    """Writes down which tests will run; every worker collects the same, but one may die."""
    record(collected=[item.nodeid for item in session.items])


def pytest_collectreport(report):
    """Writes down a file that could not be imported, or that skips all of its tests."""
    if report.failed:
        record(broken=report.nodeid, why=str(report.longrepr)[-2000:])
    elif report.skipped and WORKER in (None, 'gw0'):
        record(skipped=report.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Writes down a worker that did not end as it should; called in the main process."""
    if error:
        record(down=node.gateway.id)


def pytest_runtest_protocol(item):
    """Called where the test runs, before any of it does."""
    record(started=item.nodeid)
    append('ETPE_LOG', f'{time.strftime("%H:%M:%S")} {WORKER or "main"} pid {os.getpid()} starts '
                       f'{item.nodeid}')


def pytest_runtest_logreport(report):
    """Called in a worker, too; only the main process hears of a worker that died."""
    if WORKER is None:
        crash = getattr(report.longrepr, 'reprcrash', None)
        record(ended=report.nodeid, phase=report.when, outcome=report.outcome,
               seconds=report.duration, why=str(
                   crash.message if crash else report.longrepr or '')[-500:])
