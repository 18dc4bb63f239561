"""The choices of a process are checked together and replaced together."""

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import Kernels, System, Topology
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import ConfigError


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults())


def test_a_process_that_chose_nothing_has_one_core_and_no_limits():
    assert defaults.current() == Defaults()
    assert defaults.system_of(None) == System(Topology(), is_explicit=False)


def test_what_was_chosen_holds_until_something_else_is():
    choices = Defaults(kernels=Kernels('stock', 3), id_policy='drop', step_limit=1)
    defaults.set_current(choices)
    assert defaults.current() is choices
    defaults.set_current(Defaults())
    assert defaults.current() == Defaults()


@pytest.mark.parametrize('choices, text', [
    (Defaults(kernels=Kernels('fast')), r"E474 etpe run or install\(\): .*got 'fast'"),
    (Defaults(kernels=Kernels(threads=0)), r'E475 etpe run or install\(\): .*got 0'),
    (Defaults(id_policy='ignore'), "E438 ids: .*got 'ignore'"),
    (Defaults(step_limit=0), 'E416 steps: it must be at least 1; got 0'),
    (Defaults(system=System.sized(0, 1)), 'E410 topology'),
    (Defaults(system=System.sized(10**6, 1)), 'E410 topology')])
def test_a_choice_that_cannot_be_is_refused_and_changes_nothing(choices, text):
    with pytest.raises(ConfigError, match=text):
        defaults.set_current(choices)
    assert defaults.current() == Defaults()


def test_install_says_all_that_is_wrong_with_its_arguments_and_changes_nothing():
    with pytest.raises(ConfigError) as caught:
        ete.install(hosts=0, ids='ignore', steps=0, kernels='fast', kernel_threads=1025)
    assert sorted(problem.code for problem in caught.value.problems) == [
        'E410', 'E416', 'E438', 'E474', 'E475']
    assert defaults.current() == Defaults()


def test_the_system_of_a_resolver_is_its_own_or_that_of_the_process():
    class Resolver:
        emulated_system = System.sized(3, 1)

    defaults.set_current(Defaults(system=System.sized(2, 2)))
    assert defaults.system_of(Resolver()).topology.num_hosts == 3
    assert defaults.system_of(None) == defaults.system_of('other') == System.sized(2, 2)
