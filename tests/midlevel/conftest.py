import pytest
from harness import tfrs


@pytest.fixture(scope='module')
def tfrs_names():
    """The emulated classes are where TFRS looks for them."""
    with tfrs.names_in_place():
        yield
