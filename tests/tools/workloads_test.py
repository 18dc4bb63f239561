"""The least time of a step, and its rows, as the benchmark of the engine calculates them."""

import numpy as np


def test_the_bound_counts_each_distinct_row_and_streams_all_else(bench):
    workloads = bench('workloads')
    workload = workloads.equal('X', 1, 10, 4, 3, 1, 'sum')
    # Two distinct rows: read once, and changed with their slots. Then 3 ids of 8 bytes, and
    # activations and gradients of 3 samples, 16 bytes each.
    seconds = workload.least_seconds([[np.array([5, 7, 5])]], {4: 20.}, {4: 10.}, 60.)
    assert np.isclose(seconds, 2 / 20 + 4 / 10 + (24 + 96) / 60)


def test_rows_are_those_of_adagrad_on_halved_sums_of_squares(bench, monkeypatch):
    workloads = bench('workloads')
    workload = workloads.equal('X', 1, 3, 1, 2, 2, 'mean')
    monkeypatch.setattr(workloads.Workload, 'feeds', lambda _: [[np.array([0, 0, 0, 2])]])
    rows, = workload.rows_after(1)
    # Both means are .05. Row 0 gets the gradient .05 + .05 / 2, row 2 gets .05 / 2.
    gradients = np.array([[.075], [0], [.025]])
    np.testing.assert_allclose(rows, .05 - .1 * gradients / np.sqrt(.1 + gradients**2))
