import pytest

from estimator_tpu_embedding.core import defaults
from estimator_tpu_embedding.core.kernels import Kernels
from estimator_tpu_embedding.errors import ConfigError


def test_the_default_kernels_are_what_the_process_was_told(monkeypatch):
    monkeypatch.setattr(defaults, '_default_kernels', Kernels())
    defaults.set_default_kernels(Kernels('stock', 3))
    with pytest.raises(ConfigError, match=r"E474 etpe run or install\(\): .*got 'fast'"):
        defaults.set_default_kernels(Kernels('fast'))
    assert defaults.default_kernels() == Kernels('stock', 3)


def test_the_default_policy_for_ids_is_what_the_process_was_told(monkeypatch):
    monkeypatch.setattr(defaults, '_default_id_policy', 'error')
    defaults.set_default_id_policy('drop')
    assert defaults.default_id_policy() == 'drop'
    defaults.set_default_id_policy(None)
    assert defaults.default_id_policy() == 'error'
    with pytest.raises(ConfigError, match="E438 ids: .*got 'ignore'"):
        defaults.set_default_id_policy('ignore')
