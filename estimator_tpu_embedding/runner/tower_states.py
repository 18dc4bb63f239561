"""Holds the state of each tower between its turns: what it sees of the graph and of the process."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from . import randomness


class View(NamedTuple):
    """The state of graph and process as one tower sees it.

    Attributes:
      collections: of the graph; the graph itself holds them while the tower runs.
      layer_names: the counters by which Keras names layers.
      random_states: of Python and NumPy.
    """

    collections: dict[Any, list[Any]]
    layer_names: dict[Any, Any]
    random_states: tuple[Any, Any]


@dataclasses.dataclass(slots=True, eq=False)
class Tower:
    """The state of one tower between its turns.

    Attributes:
      core: the core that it is built for.
      view: the state of graph and process, as the tower sees it.
      scope: its variable scope, and the counters of names in it.
      num_sums: how often it met the others.
      result: of its build.
      ranges: the positions of its operations in the graph.
      repeats: its operations on shapes, which it makes once. Users know those of tower 0 by name.
    """

    core: int
    view: View
    scope: tuple[Any, dict[str, int]]
    num_sums: int = 0
    result: Any = None
    ranges: list[slice] = dataclasses.field(default_factory=list)
    repeats: _tf.Repeats = dataclasses.field(default_factory=_tf.Repeats)

    def begin(self, base: View) -> None:
        """Prepares another build, which begins with the collections of `base`."""
        # Keys that are not strings are TensorFlow's own stores, which must not be shared.
        self.view = base._replace(collections={
            key: list(items) for view, is_text in ((base, True), (self.view, False))
            for key, items in view.collections.items() if isinstance(key, str) is is_text})
        self.ranges = []


def view_of(graph: tf.Graph) -> View:
    """Returns the current state."""
    return View(_tf.collections_of(graph), _tf.keras_name_counters(graph),
                randomness.random_states())


def put_view(graph: tf.Graph, view: View) -> None:
    """Makes a state the current one."""
    _tf.put_collections(graph, view.collections)
    _tf.put_keras_name_counters(graph, view.layer_names)
    randomness.put_random_states(view.random_states)


def copy_collections(source: View, target: View) -> None:
    """Makes the collections of two states alike; lists of `target` stay the same objects."""
    for key in {*source.collections, *target.collections}:
        target.collections.setdefault(key, [])[:] = source.collections.get(key, [])


def copy_of(view: View) -> View:
    """Returns a state with collections of its own."""
    return view._replace(
        collections={key: list(items) for key, items in view.collections.items()})
