"""Proxies for web pages stay out of the way of workers, and stay in place for everybody else."""

import os

import pytest

from estimator_tpu_embedding.cluster import local_workers, server


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in ('grpc_proxy', 'https_proxy', 'http_proxy', 'no_grpc_proxy', 'no_proxy'):
        monkeypatch.delenv(name, raising=False)


def test_workers_join_the_machines_that_are_reached_directly_and_use_no_proxy(monkeypatch):
    monkeypatch.setenv('http_proxy', 'http://proxy:3128')
    monkeypatch.setenv('no_proxy', 'intranet')
    for _ in range(2):
        server.avoid_proxies(['10.0.0.3', '10.0.0.4'])
    assert os.environ['no_grpc_proxy'] == 'intranet,10.0.0.3,10.0.0.4'
    assert os.environ['http_proxy'] == 'http://proxy:3128'
    server.forget_proxies()  # As a worker does.
    assert 'http_proxy' not in os.environ


def test_a_child_imports_this_very_package_first(monkeypatch):
    monkeypatch.setenv('PYTHONPATH', '/else')
    first, *others = local_workers.environment()['PYTHONPATH'].split(os.pathsep)
    here = os.path.join(first, local_workers.PACKAGE, 'cluster', 'local_workers.py')
    assert os.path.samefile(here, local_workers.__file__)
    assert others == ['/else']
