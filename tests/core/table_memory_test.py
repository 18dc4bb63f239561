"""The declaration of memory on a disk, and what the check of memory makes of it."""

import pytest

from estimator_tpu_embedding.core.budget import Memory, Need, require_fit
from estimator_tpu_embedding.core.specs import Kernels
from estimator_tpu_embedding.core.table_memory import TableMemory
from estimator_tpu_embedding.errors import ConfigError


@pytest.mark.parametrize('resident, count', [
    (1, 1), ('7', 7), ('7 B', 7), ('1.5KiB', 1536), ('16GiB', 2**34), (' 2 TiB ', 2**41)])
def test_sizes_are_numbers_of_bytes_or_have_a_unit(resident, count):
    memory = TableMemory('/d', resident)
    assert memory.bytes == count and not list(memory.problems('here'))


@pytest.mark.parametrize('resident', [0, -1, '', '0', '-1', '16GB', '1e3', 'GiB', 2.5, True, None,
                                      2**63, '9999999999999TiB'])
def test_other_sizes_are_refused(resident):
    problem, = TableMemory('/d', resident).problems('here')
    assert str(problem).startswith(f'E468 here: resident must be a number of bytes above 0; got '
                                   f'{resident!r}.  Write a number of bytes, or one with KiB, ')


@pytest.mark.parametrize('directory', ['', 'tables', None, 7])
def test_the_directory_is_an_absolute_path(directory):
    problem, = TableMemory(directory, 1).problems('here')
    assert str(problem).startswith('E468 here: the directory of tables must be an absolute path; ')


def test_a_choice_of_the_job_goes_before_that_of_the_process():
    own, general = TableMemory('/own', 1), TableMemory('/general', 1)
    assert Kernels(memory=own).or_else(Kernels(memory=general)).memory == own
    assert Kernels().or_else(Kernels(memory=general)).memory == general


def test_the_check_of_memory_counts_what_is_resident():
    needs, memory = [Need('a', 1000, 8), Need('b', 10, 8)], Memory(4096, 'a page')
    with pytest.raises(ConfigError, match='^E462 table "a"'):
        require_fit(needs, memory)
    require_fit(needs, memory, TableMemory('/d', '4KiB'))
    require_fit(needs[1:], memory, TableMemory('/d', '1GiB'))  # All of it is in memory.
    with pytest.raises(ConfigError, match='^E468 table_memory: resident must fit the memory of '
                       r'this process, 4,096 bytes \(4.0 KiB\), a page; got 5,120 bytes'):
        require_fit(needs, memory, TableMemory('/d', '5KiB'))
