"""The least time of a step, as the benchmark of the engine calculates it."""

import numpy as np


def test_the_bound_counts_each_distinct_row_and_streams_all_else(bench):
    workloads = bench('workloads')
    workload = workloads.equal('X', 1, 10, 4, 3, 1, 'sum')
    # Two distinct rows: read once, and changed with their slots. Then 3 ids of 8 bytes, and
    # activations and gradients of 3 samples, 16 bytes each.
    seconds = workload.least_seconds([[np.array([5, 7, 5])]], {4: 20.}, {4: 10.}, 60.)
    assert np.isclose(seconds, 2 / 20 + 4 / 10 + (24 + 96) / 60)
