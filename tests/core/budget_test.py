import pytest

from estimator_tpu_embedding.core.budget import Memory, Need, needs_of, require_fit
from estimator_tpu_embedding.core.optimizers import Adam
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import ConfigError

KIB = Memory(1024, 'a kibibyte')


@pytest.mark.parametrize('mode, slots, count', [
    ('training', ('Adam/m', 'Adam/v'), 3 * 84), ('inference', (), 84)])
def test_a_plan_needs_its_rows_and_where_it_trains_its_slots_on_all_hosts_together(
        mode, slots, count):
    plan = resolve([TableSpec(name='t', vocabulary_size=7, dimension=3)],
                   [FeatureSpec(name='f', table='t')], Topology(num_hosts=2), batch_size=2,
                   optimizer=Adam(learning_rate=.1), mode=mode)
    need, = needs_of(plan)
    assert need == Need('t', 7, 3, slots)
    assert need.bytes == count == sum(map(plan.bytes_per_host, range(2)))


@pytest.mark.parametrize('needs', [
    [], [Need('a', 16, 8, ('s',))], [Need('a', 16, 8)] * 2])
def test_what_fits_to_the_last_byte_is_not_refused(needs):
    require_fit(needs, KIB)


def refusal(needs):
    with pytest.raises(ConfigError) as caught:
        require_fit(needs, KIB)
    return str(caught.value)


def test_r01_every_table_that_is_too_large_by_itself_is_named_with_the_arithmetic():
    assert refusal([Need('a', 257, 1), Need('b', 1, 1), Need('c', 16, 8, ('s', 't'))]) == '''\
E462 table "a": rows and slots must fit the memory of this process, 1,024 bytes (1.0 KiB), a \
kibibyte; got 257 rows x width 1 x 4 bytes x (1 + 0 slots) = 1,028 bytes (1.0 KiB).  \
Take fewer or narrower rows, an optimizer with fewer slots, or more memory.
E462 table "c": rows and slots must fit the memory of this process, 1,024 bytes (1.0 KiB), a \
kibibyte; got 16 rows x width 8 x 4 bytes x (1 + 2 slots "s", "t") = 1,536 bytes (1.5 KiB).  \
Take fewer or narrower rows, an optimizer with fewer slots, or more memory.'''


def test_r01_tables_that_are_too_large_together_are_summed_and_the_largest_named():
    text = refusal([Need(f't{number}', 10 + number, 4) for number in range(9)])
    assert text.startswith(
        'E463 tables: rows and slots of all tables together must fit the memory of this process, '
        '1,024 bytes (1.0 KiB), a kibibyte; got 2,016 bytes (2.0 KiB) for 9 tables, the largest of '
        'which are "t8": 18 rows x width 4 x 4 bytes x (1 + 0 slots) = 288 bytes (288 B); "t7": ')
    assert '"t4"' in text and '"t3"' not in text


def test_r02_numbers_beyond_63_bits_do_not_wrap():
    most = 2**31 - 1
    assert Need('t', most, most, ('a', 'b')).bytes == 12 * most**2 > 2**63
    assert f'got 2,147,483,647 rows x width 2,147,483,647 x 4 bytes x (1 + 0 slots) = ' \
           f'{4 * most**2:,} bytes' in refusal([Need('t', most, most)])
