"""What `--json FILE` of a benchmark writes, and what it does not."""

import doctest
import json
import os
import re
import socket
import sys
import threading

import pytest
from harness import groups
from harness.network import require_private_network
from harness.processes import ROOT

FOLDER = ROOT / 'tools' / 'bench'
HELPERS = {
    'cluster_engines', 'compare', 'disk_engine', 'engine_profile', 'evidence', 'exchange_model',
    'figures', 'laws', 'networks', 'ours', 'peers', 'quiet', 'sessions', 'start_job',
    'start_profile', 'transformer', 'turns', 'workloads'}
BENCHMARKS = sorted({path.stem for path in FOLDER.glob('*.py')} - HELPERS)
TINY = {
    'checkpoint': ['--gib=.01', '--rounds=1'], 'cli_start': ['1'],
    'cluster': ['--shrink=500', '--tasks=2', '--windows=1', '--steps=1', '--starts=0',
                '--models=W2', '--seconds=0', '--noisy'],
    'cluster_calm': ['--minutes=.5', '--busy=0'], 'cluster_kills': ['--kills=1'],
    'doctor': ['--files=20', '--lines=40', '--rounds=1'],
    'engine': ['W2', '--shrink=500', '--windows=1', '--seconds=0', '--noisy', '--bandwidth'],
    'job': ['--shrink=500', '--rounds=1', '--steps=100', '--noisy'],
    'keras_fit': ['--shrink=500', '--windows=1', '--steps=2'],
    'memory': ['--rows=2000', '--batch=60'], 'migrate': ['--gib=.01', '--rounds=1'],
    'pipeline': ['wait', '--shrink=500', '--steps=2'], 'runner': ['--features=1,2'],
    'report': ['--steps=200', '--tables=2', '--checkpoints=1', '--gib=.001', '--rounds=1',
               '--noisy'],
    'startup': ['--shrink=500', '--rounds=1', '--steps', '--profile', '--noisy'],
    'table_memory': ['--rows=20000', '--gib=1.5', '--windows=1', '--steps=2', '--warm-up=1',
                     '--saves=1', '--seconds=0', '--noisy'],
    'timeline': ['--shrink=500', '--steps=30'],
    'tf2': ['--cases=0', '--shrink=500', '--windows=1', '--steps=2']}


@pytest.fixture
def evidence(bench):
    return bench('evidence')


def run(name, file, *arguments):
    """The JSON that a benchmark wrote."""
    groups.run([sys.executable, FOLDER / f'{name}.py', *arguments, '--json', file],
               check=True, cwd=file.parent, deadline=560)
    return json.loads(file.read_text())


def recorded(evidence, file, add):
    with evidence.recorded(file, 'job') as figures:
        add(figures)
    return json.loads(file.read_text())


def test_a_figure_is_the_median_of_its_windows_and_what_lacks_is_noted(evidence, tmp_path):
    medians = []

    def add(figures):
        medians.append(figures.add('a', 'ms', [4, 1, 2, 3, 5]))
        medians.append(figures.add('b', 's', iter([.123456789])))

    content = recorded(evidence, tmp_path / 'a.json', add)
    assert medians == [3, .123456789]
    assert content['figures'] == {
        'a': {'unit': 'ms', 'median': 3, 'low': 2, 'high': 4, 'windows': 5},
        'b': {'unit': 's', 'median': .123457, 'low': .123457, 'high': .123457, 'windows': 1}}
    assert (content['format'], content['benchmark'], 'notes' in content) == (1, 'job', False)
    content = recorded(evidence, tmp_path / 'a.json', lambda figures: figures.notes.append('no x'))
    assert content['notes'] == ['no x']


def test_the_circumstances_are_complete(evidence, tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, 'SAMPLE_SECONDS', .01)
    monkeypatch.setattr(sys, 'argv', ['job.py', '--steps', '3', '--json', 'job.json'])
    sampled, plain = threading.Semaphore(0), os.getloadavg
    monkeypatch.setattr(os, 'getloadavg', lambda: sampled.release() or plain())
    about = recorded(evidence, tmp_path / 'a.json', lambda figures: [
        figures.add('a', 'ms', [1]), *(sampled.acquire() for _ in range(4))])['circumstances']
    assert about['command'] == 'tools/bench/job.py --steps 3'
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00', about['date'])
    assert about['machine']['cores'] >= 1 and about['machine']['memory_gib'] > 0
    assert about['machine']['cpu'] and about['machine']['kernel'].startswith('Linux ')
    assert len(about['load']['before']) == len(about['load']['after']) == 3
    assert about['load']['during']['samples'] > 1
    assert about['load']['during']['median'] <= about['load']['during']['highest']
    assert about['versions'].keys() == {
        'python', 'tensorflow', 'numpy', 'estimator_tpu_embedding'}
    assert all(about['versions'].values())


def repository(tmp_path, evidence, monkeypatch):
    """A repository with one commit, in the place of this one; returns git in it."""
    def git(*arguments):
        return groups.run(['git', '-c', 'user.name=x', '-c', 'user.email=x', *arguments],
                          cwd=tmp_path, check=True).stdout

    results = tmp_path / 'tools' / 'bench' / 'results'
    results.mkdir(parents=True)
    (tmp_path / 'file').write_text('1')
    git('init')
    git('add', '.')
    git('commit', '-m', 'x')
    monkeypatch.setattr(evidence, 'ROOT', tmp_path)
    return git


def test_the_commit_is_named_and_whether_files_differ_from_it(evidence, tmp_path, monkeypatch):
    commit = repository(tmp_path, evidence, monkeypatch)('rev-parse', 'HEAD').strip()
    assert evidence._commit() == {'commit': commit, 'dirty': False}
    (tmp_path / 'tools' / 'bench' / 'results' / 'job.json').write_text('{}')
    assert evidence._commit() == {'commit': commit, 'dirty': False}
    (tmp_path / 'file').write_text('2')
    assert evidence._commit() == {'commit': commit, 'dirty': True}


@pytest.mark.parametrize('module', ['engine_profile', 'evidence', 'figures'])
def test_the_examples_hold(bench, module):
    assert doctest.testmod(bench(module)).failed == 0


def test_every_benchmark_has_a_tiny_run():
    assert BENCHMARKS == sorted(TINY)


def check(content, name, folder):
    text = json.dumps(content)
    assert content['benchmark'] == name
    assert content['figures'] and all(one['windows'] for one in content['figures'].values())
    for private in (socket.gethostname(), str(ROOT), str(folder), sys.prefix):
        # As a word: a host may be called `vm`.
        assert not re.search(rf'(?<!\w){re.escape(private)}(?!\w)', text)


@pytest.mark.soak
@pytest.mark.parametrize('name', sorted(TINY))
def test_each_benchmark_writes_its_figures_and_nothing_of_whose_machine_it_is(name, tmp_path):
    if name.startswith('cluster'):
        require_private_network()
    check(run(name, tmp_path / 'a.json', *TINY[name]), name, tmp_path)
