"""The norms of stored rows are those of NumPy, and rows without a gradient are found."""

import numpy as np
import pytest
from harness import forged_job

from estimator_tpu_embedding.checkpoint import row_norms, stored_rows
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.core.optimizers import SlotSpec

NAME = 'scope/t'


def norms_of(tmp_path, values, slot=None, first=.1):
    prefix = forged_job.save(tmp_path, values=values, slot=slot)
    return row_norms.norms_of(Bundle.open(prefix), NAME, [
        SlotSpec(suffix='Adagrad', initial_value=first)])


def test_norms_are_those_of_numpy_however_rows_are_read(tmp_path, monkeypatch):
    values = np.random.default_rng(1).lognormal(size=[1000, 3]).astype('f4')
    norms = np.linalg.norm(values, axis=1)
    whole = norms_of(tmp_path, values)
    assert whole['most'] == pytest.approx(norms.max())
    assert whole['median'] == pytest.approx(np.median(norms), abs=float(norms.max()) / 256)
    assert sum(whole['counts']) == whole['rows'] == 1000
    upper = [*whole['bounds'][1:], np.inf]
    assert whole['counts'] == [int(((norms >= low) & (norms < high)).sum())
                               for low, high in zip(whole['bounds'], upper)]
    monkeypatch.setattr(stored_rows, '_CHUNK', 100)  # The range of bins grows on the way.
    piecewise = norms_of(tmp_path, values)
    assert (sum(piecewise['counts']), piecewise['most']) == (1000, whole['most'])


def test_rows_whose_slots_have_their_first_value_were_never_touched(tmp_path):
    slot = np.full([11, 3], .1, 'f4')
    slot[[2, 5]] += 1
    values = np.ones([11, 3], 'f4')
    values[1] = np.nan
    found = norms_of(tmp_path, values, slot)
    assert (found['untouched'], found['not_finite']) == (9, 1)


def test_without_a_slot_nothing_is_said_of_them(tmp_path):
    prefix = forged_job.save(tmp_path)
    assert row_norms.norms_of(Bundle.open(prefix), NAME)['untouched'] is None


def test_rows_of_zeros_have_one_bin(tmp_path):
    found = norms_of(tmp_path, np.zeros([11, 3], 'f4'))
    assert (found['counts'], found['most']) == ([11], 0.)
