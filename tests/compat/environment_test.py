"""Environment variables of the original: taken, without effect and said so, or refused."""

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat import environment


def test_variables_that_direct_workers_are_named_as_without_effect(monkeypatch):
    assert environment.variables_without_effect() == []
    monkeypatch.setenv('TF_TPU_WATCHDOG_TIMEOUT', '60')
    monkeypatch.setenv('TF_TPU_GRACEFUL_SHUTDOWN_MODE', 'shutdown_worker')
    assert list(map(str, environment.variables_without_effect())) == [
        'W462 TF_TPU_GRACEFUL_SHUTDOWN_MODE: it has no effect: there are no workers to direct '
        'here; got shutdown_worker.',
        'W462 TF_TPU_WATCHDOG_TIMEOUT: it has no effect: there are no workers to direct here; '
        'got 60.']


def test_an_unknown_shutdown_mode_is_refused_as_in_the_original(monkeypatch):
    monkeypatch.setenv('TF_TPU_GRACEFUL_SHUTDOWN_MODE', 'polite')
    with pytest.raises(ete.ConfigError, match='Unknown TF_TPU_GRACEFUL_SHUTDOWN_MODE "polite"'
                       ) as caught:
        environment.variables_without_effect()
    assert 'E468' in str(caught.value)
