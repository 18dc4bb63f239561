"""The choices of a process are checked together and replaced together."""

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import System, Topology
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import ConfigError


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults())


def test_install_says_all_that_is_wrong_with_its_arguments_and_changes_nothing():
    with pytest.raises(ConfigError) as caught:
        ete.install(hosts=0, ids='ignore', steps=0, kernels='fast', kernel_threads=1025)
    assert [(problem.code, problem.where) for problem in caught.value.problems] == [
        ('E474', 'etpe run or install()'), ('E475', 'etpe run or install()'), ('E438', 'ids'),
        ('E416', 'steps'), ('E410', 'topology')]
    assert defaults.current() == Defaults()
    assert defaults.system_of(None) == System(Topology(), is_explicit=False)


@pytest.mark.parametrize('hosts', [0, 10**6])
def test_a_system_that_cannot_be_is_refused_and_changes_nothing(hosts):
    with pytest.raises(ConfigError, match='E410 topology'):
        defaults.set_current(Defaults(system=System.sized(hosts, 1)))
    assert defaults.current() == Defaults()
