"""Gives variables their first values: from a checkpoint, a warm start or their initializers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint import restore, vocabularies, warm_start
from ..checkpoint.following import Following, followed
from ..core.names import is_of_dummy
from .gradients import DUMMY_COLLECTION
from .progress import announce
from .run import Run


def scaffold_of(run: Run, following: Following | None,
                default: Callable[[], Any] = restore.saver_of_all
                ) -> tf.train.Scaffold:
    """Returns the scaffold that gives all variables their first values: the model's, or a new one.

    Args:
      run: its graph is the default graph, to which the scaffold may add.
      following: the checkpoint to restore. If it is `None`, variables begin with values of a warm
        start or with initial ones.
      default: makes the saver if neither the scaffold nor the graph has one.

    Raises:
      CheckpointError: if the checkpoint, or the one of the warm start, cannot be restored.
    """
    fill = _start_warm(run) if following is None else None
    scaffold = _scaffold_of_model(run)
    if fill is not None:
        return restore.with_start(scaffold, fill)
    if following is None:
        return scaffold
    job = run.job
    plan = restore.plan_for(
        following.held, run.stored_tables(), job.checkpoint, trains=job.verb == 'train',
        # A scaffold of the user may restore from elsewhere what is not in the checkpoint.
        is_optional=run.graph.outputs[0].scaffold_fn is not None)
    if job.lookups is not None:
        vocabularies.check(following.held, job.lookups.words, job.checkpoint)
    if plan.facts:
        announce(f'{job.verb}: {plan.where}: {"; ".join(plan.facts)}')
    planned = restore.scaffold_for(scaffold, following.prefix, plan, default)
    return planned if job.verb == 'train' else followed(planned, following)


def _scaffold_of_model(run: Run) -> tf.train.Scaffold:
    """Returns the user's scaffold, or a new one."""
    make = run.graph.outputs[0].scaffold_fn
    if make is None:
        return tf.train.Scaffold()
    scaffold = make()
    if scaffold is None:
        raise ValueError('TPUEstimatorSpec.scaffold_fn returns None, which is not allowed')
    return restore.finalized_once(scaffold)


def _start_warm(run: Run) -> Callable[[tf.Session], None] | None:
    """Arranges for variables to begin with values of another checkpoint, if the job asks for it.

    `tf.train.warm_start` starts trainable variables, or global ones. Tables of the engine must
    count as both, also where they are in neither collection. The dummies of `gradients.py` and
    their slots must count as neither.

    Returns:
      A function that fills the tables, or `None`.
    """
    settings = run.job.warm_start
    if settings is None:
        return None
    tables = run.stored_tables()
    collections = [tf.get_collection_ref(key) for key in (
        tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.GLOBAL_VARIABLES)]
    before = [list(collection) for collection in collections]
    dummies = {id(dummy) for dummy in tf.get_collection(DUMMY_COLLECTION)}
    for collection in collections:
        collection[:] = [variable for variable in collection if id(variable) not in dummies
                         and not is_of_dummy(variable.op.name)]
    collections[0] += [variable for variable in tf.global_variables()
                       if _tf.full_name_and_shape(variable)[0] in tables]
    try:
        return warm_start.start_warm(settings, tables, run.job.checkpoint)
    finally:
        for collection, variables in zip(collections, before):
            collection[:] = variables
