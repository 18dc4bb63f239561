"""Builds profiles of small tables from lists of ids."""

import numpy as np

from estimator_tpu_embedding.core.table_profile import Subject, TableProfile, Tally


def subject(rows=10, *, table='t', hosts=2, cores=1, batch_size=4, dimension=2, strategy='div',
            features=(('f', 0),)):
    return Subject(table=table, vocabulary_size=rows, dimension=dimension, features=features,
                   hosts=hosts, cores_per_host=cores, batch_size=batch_size, strategy=strategy)


def profile_of(about, steps, begun=None):
    """Counts steps, each a list of ids that all belong to sample 0 of core 0 of feature 0."""
    tally = Tally(begun or TableProfile.empty(about))
    empty = np.zeros(0, np.int32), np.zeros(0, np.int64)
    for ids in steps:
        step = {name: [empty] * about.hosts * about.cores_per_host for name, _ in about.features}
        step[about.features[0][0]][0] = np.zeros(len(ids), np.int32), np.array(ids, np.int64)
        tally.add(step)
    return tally.profile(first_step=0, last_step=len(steps), steps=len(steps))
