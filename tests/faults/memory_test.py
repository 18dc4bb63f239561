"""Tables that no memory can hold are refused before any of it is taken: in real processes."""

import json

from harness.processes import run_harness

MOST = 2**31 - 1
ENGINES = ['train', 'train_without_tpu', 'evaluate', 'evaluate_on_cpu', 'predict', 'export', 'raw',
           'midlevel']


def refusals(*arguments):
    """By kind of job, what `harness.large_tables` prints of it: (class, text, bytes)."""
    done = run_harness('large_tables', *arguments)
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    return {job: tuple(rest) for job, *rest in lines}


def test_r01_tables_that_fit_no_memory_are_refused_before_any_is_taken():
    found = refusals(MOST)
    assert list(found) == ENGINES
    for job, (kind, text, grown) in found.items():
        table = {'raw': 't0', 'midlevel': 't0', 'train_without_tpu':
                 'dense_features/f0_embedding/embedding_weights'}.get(job, 'tbl_f0')
        slots = {'midlevel': '2 slots "momenta", "velocities"', 'train': '2 slots "Adam/m", '
                 '"Adam/v"', 'raw': '2 slots "Adam/m", "Adam/v"'}.get(job, '0 slots')
        count = 4 * MOST * 128 * (3 if slots.startswith('2') else 1)
        assert kind == 'ConfigError', job
        assert text.startswith(f'E462 table "{table}": rows and slots must fit the memory of this '
                               'process, '), job
        assert (f'what is left of RLIMIT_AS; got 2,147,483,647 rows x width 128 x 4 bytes x (1 + '
                f'{slots}) = {count:,} bytes (') in text, job
        assert grown < 2**26, job  # Its modules and its graph, but no table.


def test_r01_the_tables_of_a_job_count_together():
    # Three times 800 MB with slots, of which each fits into two gibibytes.
    (kind, text, grown), = refusals(500_000, 500_000, 600_000, '--only=train').values()
    assert (kind, text[:4]) == ('ConfigError', 'E463')
    assert '"tbl_f2": 600,000 rows x width 128' in text
    assert grown < 2**26


def test_r02_a_row_as_wide_as_a_table_is_long_is_refused_without_overflow():
    found = refusals(MOST, f'--width={MOST}')
    assert list(found) == ENGINES
    # Here TensorFlow refuses it, when the graph is built.
    assert found.pop('train_without_tpu')[:2] == (
        'ValueError', f'Value is out of int32 range: {MOST}')
    for job, (kind, text, grown) in found.items():
        assert kind == 'ConfigError', job
        assert text.startswith(('E413 table ', 'E462 table ')), job
        assert '2,147,483,647 rows' in text or '2147483647' in text, job
        assert grown < 2**26, job
