"""Rows of tables in TF1 are taken in the order that they have, or the user has to say it."""


import numpy as np
import pytest
from harness import migrated_checkpoints as migrated

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.errors import ConfigError, IncompatibleCheckpointError
from estimator_tpu_embedding.migration import from_tf1, moves
from estimator_tpu_embedding.migration.checkpoint_contents import Target
from estimator_tpu_embedding.migration.map_file import parse

ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
MOD = {'t': [ROWS[::2], ROWS[1::2]], 't/Adagrad': [ROWS[::2], ROWS[1::2]],
       't/ExponentialMovingAverage': [ROWS[::2], ROWS[1::2]],
       'u': [ROWS[::2], ROWS[1::2]], 'u/Adagrad': [ROWS[::2], ROWS[1::2]], 'w': ROWS,
       'v': [ROWS[:2, 0], ROWS[2:, 0]]}


def read(path, lines, assume):
    """Reads a checkpoint with a map."""
    return from_tf1.read(str(path), CheckpointOptions(assume=assume), parse(lines))


def planned(path, lines, assume, kind):
    """Plans to take it to a kind of program."""
    moves.plan(read(path, lines, assume), Target(kind=kind),
               moves.Choices(map=parse(lines), step=1, drop_rest=True))


@pytest.mark.parametrize('kind', ['tf1', 'tf2'])
def test_a_table_is_not_taken_along_as_another_variable_with_its_rows_out_of_order(kind, tmp_path):
    path = migrated.write_tf1(tmp_path, MOD)
    lines = 'table t -> t\nu -> embedding/u\nre ([wv].*) -> net/\\1\n'
    with pytest.raises(ConfigError, match='E654 map:2: "u" must be called a table, or none: it is '
                       'in slices, and .*; got no "table" before its name') as error:
        planned(path, lines, 'mod:2', kind)
    assert len(error.value.problems) == 1
    planned(path, lines, 'div', kind)
    planned(path, lines.replace('u ->', 'table u ->'), 'mod:2', kind)


def test_moving_averages_and_single_slots_of_a_table_have_its_order(tmp_path):
    source = migrated.write_tf1(tmp_path, {**MOD, 'x': MOD['t'], 'x/Adam/m': MOD['t']})
    there = migrated.migrate(
        source, tmp_path / 'there', 'tf2', '--assume', 'mod:2', '--step', '1', lines=(
            'table re ([tux]) -> \\1\nx/Adam/m -> m\n'
            't/ExponentialMovingAverage -> mean\nre ([wv]) -> \\1'))
    for name in 'embedding/t', 'mean', 'm', 'embedding/x', 'embedding/t.Saccumulators', 'w':
        np.testing.assert_array_equal(migrated.value(there, name), ROWS, name)
    np.testing.assert_array_equal(migrated.value(there, 'v'), ROWS[:, 0])


def test_what_is_below_a_table_has_its_order_in_tf1_too(tmp_path):
    source = migrated.write_tf1(tmp_path, {name: MOD[name] for name in MOD if name[0] == 't'})
    lines = 'table t -> t\nt/ExponentialMovingAverage -> {}'
    there = migrated.migrate(source, tmp_path / 'there', 'tf2', '--assume', 'mod:2', '--step', '1',
                             lines=lines.format('mean'))
    back = migrated.migrate(there, tmp_path / 'back', 'tf1', '--order', 'mod:2', lines=(
        't -> t\nmean -> t/ExponentialMovingAverage'))
    same = migrated.migrate(
        source, tmp_path / 'same', 'tf1', '--assume', 'mod:2', '--order', 'mod:2', '--step', '1',
        lines=lines.format('t/ExponentialMovingAverage'))
    for prefix in back, same:
        read = Bundle.open(prefix).read
        for name in 't', 't/ExponentialMovingAverage':
            np.testing.assert_array_equal(read(name, 0, 4), [*ROWS[::2], *ROWS[1::2]], name)


def test_slices_that_are_not_those_of_the_assumed_hosts_are_refused(tmp_path):
    path = migrated.write_tf1(tmp_path, {'t': MOD['t'], 'u': ROWS, 'w': ROWS})
    for lines, assume, said in (
            ('table t -> t', 'mod:3', '"t" must have the slices of 3 hosts, as the assumed order '
             r'says: from rows \[0, 2, 3\]; got from \[0, 2\]'),
            ('table re ([tu]) -> \\1', 'mod:2', r'"u" must have .*\[0, 2\]; got from \[0\]')):
        with pytest.raises(IncompatibleCheckpointError, match=f'E652 .*: table {said}') as error:
            read(path, lines, assume)
        assert len(error.value.problems) == 1
    read(path, 'table t -> t\nu -> u', 'mod:2')
    read(path, 'table re ([uw]) -> \\1', 'mod:2')  # Somebody has put the slices together.
