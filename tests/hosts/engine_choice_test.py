"""Which engine a plan gets, with the library and without it."""

import pytest
import tensorflow.compat.v1 as tf
from harness import graphs

from estimator_tpu_embedding.core.specs import Kernels
from estimator_tpu_embedding.errors import SetupError
from estimator_tpu_embedding.hosts import engine_choice
from estimator_tpu_embedding.hosts.placement import Placement
from estimator_tpu_embedding.native import library


@pytest.fixture
def without_library(monkeypatch):
    monkeypatch.setattr(library, '_load', library._load.__wrapped__)
    monkeypatch.setattr(library, 'PATH', library.PATH.with_name('absent.so'))
    engine_choice._tell.cache_clear()
    yield
    engine_choice._tell.cache_clear()


def chosen(kernels, **options):
    with tf.Graph().as_default():
        return engine_choice.choose_engine(graphs.small_plan(), {'t': 't'},
                                           kernels=Kernels(kernels), **options).kernels


@graphs.needs_native
def test_the_native_kernels_are_used_where_they_are_installed_and_nobody_says_otherwise():
    assert chosen('auto') == chosen('native') == 'native'
    assert chosen('stock') == 'stock'


def test_without_the_library_auto_is_stock_and_says_so_once(without_library, caplog):
    assert [chosen('auto'), chosen('stock'), chosen('auto')] == ['stock'] * 3
    told = [record.getMessage() for record in caplog.records if 'W006' in record.getMessage()]
    assert len(told) == 1
    assert 'cannot be used, ' in told[0]
    assert 'got absent.so was not compiled ' in told[0] and '  Install a C++17 compiler' in told[0]
    assert ' --no-cache-dir --no-binary estimator_tpu_embedding ' in told[0]  # Else pip's wheel.


def test_without_the_library_native_is_an_error(without_library):
    with pytest.raises(SetupError, match='E006 kernels: .*; got absent.so was not .*  Install a C'):
        chosen('native')


def test_hosts_that_are_processes_need_the_native_kernels(without_library):
    placement = Placement(graphs.small_plan().topology)
    for kernels, why in (('auto', 'got absent.so .*  Install a C'),
                         ('stock', "got kernels='stock'.  Leave the choice out")):
        with pytest.raises(SetupError, match=f'E006 kernels: hosts that are processes .*{why}'):
            chosen(kernels, placement=placement)


@pytest.mark.parametrize('has_another_copy, remedy', [
    (True, 'one installation of this package only'),
    (False, 'Install this package again on this machine')])
def test_a_library_that_is_there_but_of_no_use_has_a_remedy_of_its_own(
        monkeypatch, tmp_path, has_another_copy, remedy):
    broken = tmp_path / 'broken.so'
    broken.write_bytes(b'no library')
    monkeypatch.setattr(library, '_load', library._load.__wrapped__)
    monkeypatch.setattr(library, 'PATH', broken)
    if has_another_copy:  # TensorFlow then gives a module without operations.
        monkeypatch.setattr(tf, 'load_op_library', lambda path: object())
    with pytest.raises(SetupError, match=remedy):
        chosen('native')
