import pytest

from estimator_tpu_embedding.core.kernels import Kernels, checked
from estimator_tpu_embedding.errors import ConfigError


@pytest.mark.parametrize('choice', ['auto', 'native', 'stock'])
@pytest.mark.parametrize('threads', [None, 1, 1024])
def test_what_can_be_said_of_kernels(choice, threads):
    assert checked(Kernels(choice, threads), 'here') == Kernels(choice, threads)


@pytest.mark.parametrize('said, problem', [
    (Kernels('fast'), "E474 here: kernels must be one of auto, native, stock; got 'fast'."),
    (Kernels(None), 'E474 here: .*got None.'),
    (Kernels(threads=0), r'E475 here: kernel_threads must be in \[1, 1024\]; got 0.  Leave'),
    (Kernels(threads=1025), 'E475'), (Kernels(threads=True), 'E475'),
    (Kernels(threads=2.), 'E475'), (Kernels('fast', -1), '(?s)E474.*E475')])
def test_what_cannot(said, problem):
    with pytest.raises(ConfigError, match=problem):
        checked(said, 'here')
