"""Rows that come in any order are taken in the order of their places."""

import tempfile

import numpy as np
import pytest

from estimator_tpu_embedding.migration.rows.places import OFFSET_BYTES, ByPlace


def put(places, rows, order, most, step):
    """What comes out as one matrix, zeros where nothing came, and the size of the scratch file."""
    with tempfile.TemporaryFile(buffering=0) as file:
        by_place = ByPlace(file, places, rows.shape[1], rows.dtype.str, most)
        for first in range(0, len(order), step):
            some = order[first:first + step]
            by_place.put(some, rows[some])
        found, ends = np.zeros_like(rows), [0]
        for first, stop, at, part in by_place.windows():
            assert first == ends[-1] and part.dtype == rows.dtype
            found[first:stop][at] = part
            ends.append(stop)
        assert ends[-1] == places
        return found, file.seek(0, 2), len(ends) - 1


@pytest.mark.parametrize('code, width', [('<f4', 1), ('<f4', 3), ('<u2', 2)])
@pytest.mark.parametrize('most, windows', [(1, 100), (7 * 12, None), (2**25, 1)])
@pytest.mark.parametrize('step', [1, 13, 100])
def test_rows_come_out_in_the_order_of_places(code, width, most, windows, step):
    rows = np.arange(1, 100 * width + 1).astype(code).reshape(100, width)
    order = np.random.default_rng(1).permutation(100)
    found, size, count = put(100, rows, order, most, step)
    np.testing.assert_array_equal(found, rows)
    assert size == 100 * (width * rows.itemsize + OFFSET_BYTES)
    assert windows in (None, count)


def test_windows_in_which_no_row_came_are_empty():
    rows = np.arange(1, 11, dtype=np.float32).reshape(10, 1)
    found, _, count = put(10, rows, np.array([7, 2]), most=8, step=2)
    np.testing.assert_array_equal(found.ravel(), [0, 0, 3, 0, 0, 0, 0, 8, 0, 0])
    assert count == 5


def test_no_rows_are_no_bytes():
    assert put(3, np.zeros((3, 2), np.float32), np.zeros(0, int), most=8, step=1)[1:] == (0, 3)


def test_a_large_table_has_larger_windows_and_not_more_of_them():
    rows = np.arange(10_000, dtype=np.uint16).reshape(-1, 1)
    found, _, count = put(10_000, rows, np.arange(10_000)[::-1], most=2, step=10_000)
    np.testing.assert_array_equal(found, rows)
    assert count == 2500  # Of 4 rows, 8 bytes: no more than 20,000 / 2,048.
