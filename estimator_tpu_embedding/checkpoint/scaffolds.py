"""Gives a model's scaffold another saver or start function, and checks that it keeps the saver.

A scaffold may be of a class of the user, so it is changed in place. A copy would be of TensorFlow's
class, and would lack the user's `finalize`. Hooks of the user would still hold the first scaffold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import ConfigError, Problem


def with_saver(scaffold: tf.train.Scaffold, saver: Any) -> tf.train.Scaffold:
    """Gives the scaffold another saver, which its `finalize` must leave there (E928)."""
    _tf.arrange_scaffold(scaffold, saver=saver)
    keep_saver(scaffold)
    return scaffold


def keep_saver(scaffold: tf.train.Scaffold) -> None:
    """Makes `finalize` raise E928 if it changes the saver of the scaffold, or of the graph."""
    finalize = scaffold.finalize

    def checked() -> tf.train.Scaffold:
        saver = scaffold.saver or next(iter(tf.get_collection(tf.GraphKeys.SAVERS)), None)
        finalize()
        # TensorFlow itself replaces a Checkpoint by a saver.
        if scaffold.saver is not saver and not isinstance(
                saver, (tf.train.Checkpoint, tf.compat.v2.train.Checkpoint)):
            raise ConfigError(Problem(
                'E928', 'scaffold', 'its finalize must leave the saver that is there, around which '
                'is what restores tables and commits checkpoints', 'another',
                'Give the saver to the constructor of the scaffold.'))
        return scaffold

    scaffold.finalize = checked


def with_start(scaffold: tf.train.Scaffold, start: Callable[[tf.Session], None]
               ) -> tf.train.Scaffold:
    """Makes the scaffold call `start` with a new session before its own `init_fn`."""
    theirs = scaffold.init_fn

    def init_fn(session: tf.Session) -> None:
        start(session)
        if theirs is not None:
            theirs(session)

    _tf.arrange_scaffold(scaffold, init_fn=init_fn)
    return scaffold


def finalized_once(scaffold: tf.train.Scaffold) -> tf.train.Scaffold:
    """Makes the scaffold call its `finalize` for the first session of a graph only.

    The graph is final after that. A `finalize` that adds operations does not know whether the
    session replaces a lost one.
    """
    finalize = scaffold.finalize
    graphs: list[tf.Graph] = []

    def once() -> tf.train.Scaffold:
        graph = tf.get_default_graph()
        if not any(graph is other for other in graphs):
            finalize()
            graphs.append(graph)
        return scaffold

    scaffold.finalize = once
    return scaffold
