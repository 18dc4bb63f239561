"""Environment variables of the original are taken, without effect and said so."""

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
