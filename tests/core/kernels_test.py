import re

import pytest

from estimator_tpu_embedding.core.specs import Kernels
from estimator_tpu_embedding.errors import ConfigError


@pytest.mark.parametrize('choice', ['auto', 'native', 'stock'])
@pytest.mark.parametrize('threads', [None, 1, 1024])
def test_what_can_be_said_of_kernels(choice, threads):
    assert list(Kernels(choice, threads).problems('here')) == []


@pytest.mark.parametrize('said, problem', [
    (Kernels('fast'), "E474 here: kernels must be one of auto, native, stock; got 'fast'."),
    (Kernels(None), 'E474 here: .*got None.'),
    (Kernels(threads=0), r'E475 here: kernel_threads must be in \[1, 1024\]; got 0.  Leave'),
    (Kernels(threads=1025), 'E475'), (Kernels(threads=True), 'E475'),
    (Kernels(threads=2.), 'E475'), (Kernels('fast', -1), '(?s)E474.*E475')])
def test_what_cannot(said, problem):
    assert re.search(problem, str(ConfigError(*said.problems('here'))))
