"""Builds a replica of the model per core, a tower, in one graph by one Python thread per core.

Where TensorFlow can copy what tower 0 made, the other towers are copies (`tower_copies.py`), and
only core 0 calls the model. Otherwise each core does, as follows.

The threads run in lock-step: one at a time, core 0 first. They change places only where the model
ends or sums over replicas, as `CrossShardOptimizer.apply_gradients` does. So the graph is
the same at every run, and a sum finds the values of all cores.

Three things make every tower believe that it is alone in the graph:

- *Variables*: tower 0 makes them, and every other tower gets them. It asks by name, shape and
  dtype, and gets a variable that fits and that it does not hold yet: that of the same lines of
  code, otherwise the first one. So layers and optimizer slots exist once, under the names that
  one core gives them. A variable that the model keeps between its calls is made for tower 0
  alone; another tower gets it when it first uses it.
- *Random numbers*: Python's and NumPy's global generators are in the same state for every
  tower, as if the model was built only once.
- *Collections*: each tower has its own view of the graph's collections, which is put in place
  while the tower runs. It lacks update ops, losses and summaries of other cores. It also lacks
  their entries in TensorFlow's stores of variables and variable scopes, and in Keras' counters of
  layer names, so names do not grow suffixes. When all towers are built, the view of tower 0
  stays: only its side effects count, as on the hardware.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import dataclasses
import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import ConfigError, Problem
from ..hosts.placement import Placement
from .tower_copies import TowerCopies
from .tower_variables import SharedVariables, leave_to_first

T = TypeVar('T')
R = TypeVar('R')

# Without these, resources that only a later tower made would never be initialised.
_KEPT_FROM_ALL_TOWERS = (tf.GraphKeys.TABLE_INITIALIZERS, tf.GraphKeys.QUEUE_RUNNERS,
                         tf.GraphKeys.RESOURCES, tf.GraphKeys.LOCAL_RESOURCES)


_current: contextvars.ContextVar[Tower | None] = contextvars.ContextVar('tower', default=None)


def towers_being_built() -> Towers[Any] | None:
    """Returns the towers of which the current thread builds one, or `None`."""
    tower = _current.get()
    return tower.towers if tower is not None else None


def number_of_cores() -> int:
    """Returns how many towers are being built; 1 outside of towers."""
    towers = towers_being_built()
    return towers.count if towers is not None else 1


def current_core() -> int:
    """Returns the core whose tower the current thread builds; 0 outside of towers."""
    tower = _current.get()
    return tower.core if tower is not None else 0


def meet(value: T, combine: Callable[[list[T]], R]) -> R:
    """Returns `combine` of the values of all cores, in their order; it is called once."""
    towers = towers_being_built()
    return combine([value]) if towers is None else towers.meet(value, combine)


class Towers(Generic[T]):
    """Builds towers in the default graph. Use one object for one graph.

    Attributes:
      count: the number of towers.
      placement: the hosts of the cores, if sums over replicas are to be made in two steps: on each
        host, then of the hosts in their order. It does not matter for the values whether the hosts
        are remote.
      silenced: the changes of variables by other towers than the first in the last `build`; they
        have no effect.
      is_copied: whether the last `build` called its function for core 0 alone.
    """

    def __init__(self, count: int, placement: Placement | None = None):
        self.count, self.placement = count, placement
        self.silenced: set[tf.Operation] = set()
        self.is_copied = False
        self._copies: TowerCopies | None = None
        self._failure: BaseException | None = None
        self._deposits: list[dict[int, Any]] = []
        self._made: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._towers: list[Tower] = []
        self._variables = SharedVariables(count)
        self._first_operation = 0
        self._graph = tf.get_default_graph()

    @property
    def num_sums(self) -> int:
        """How often the towers met."""
        return len(self._deposits)

    def operations(self) -> list[list[tf.Operation]]:
        """Returns the operations that each tower made in the last `build`."""
        operations = self._graph.get_operations()
        return [[each for part in tower.ranges for each in operations[part]]
                for tower in self._towers]

    def build(self, function: Callable[[int], T], copies: TowerCopies | None = None) -> list[T]:
        """Calls `function(core)` for every core and returns the results in order.

        Args:
          function: makes one tower.
          copies: of tower 0, which take the place of further calls if they can.

        Raises:
          Whatever the first failing call raised.
          ConfigError: if the calls differ in their variables or in their sums.
        """
        own = view_of(self._graph)  # Tower 0 has the very lists of the graph.
        base = own._replace(collections={
            key: list(items) for key, items in own.collections.items()})
        before = _tf.variable_scope_state()
        self._towers = self._towers or [
            Tower(self, core, base._replace(
                collections=_tf.copied_variable_store(self._graph)), before)
            for core in range(self.count)]
        for tower in self._towers:
            tower.begin(base)
        self._towers[0].view, self._towers[0].scope = own, before
        self._failure, self._copies, self.is_copied = None, copies, False
        try:
            with (_tf.bounded_gradients(), _tf.repeats_shared(self._graph, self._repeats),
                  _tf.inputs_seen(self._graph, self._take_kept), folded()):
                if self.count == 1:
                    self._run(0, function)  # In this thread, where a debugger expects it.
                else:
                    self._run_in_threads(function)
        finally:  # The very scope of before, since TensorFlow compares.
            _tf.put_variable_scope_state((before[0], self._towers[0].scope[1]))
        if self._failure is not None:
            put_view(self._graph, base)
            raise self._failure
        self._keep_collections()
        self.silenced = leave_to_first(self.operations(), self._variables.initializers())
        return [tower.result for tower in self._towers]

    def _repeats(self) -> _tf.Repeats | None:
        """Returns those of the tower whose turn it is, but for tower 0."""
        tower = _current.get()
        return tower.repeats if tower and tower.towers is self and tower.core else None

    def _take_kept(self, inputs: Sequence[tf.Tensor]) -> None:
        """Lets the tower whose turn it is hold the variables that it uses."""
        core = current_core()
        if core and towers_being_built() is self:
            self._variables.take_kept(core, inputs, self._towers[0].view.collections.get(
                tf.GraphKeys.REGULARIZATION_LOSSES, []))

    def _run_in_threads(self, function: Callable[[int], T]) -> None:
        _tf.thread_local_stacks(self._graph)
        # Each in a copy of the context: defaults that the caller set, as of `arg_scope`, hold.
        threads = [threading.Thread(target=contextvars.copy_context().run,
                                    args=(self._run, core, function), daemon=True,
                                    name=f'tower-{core}') for core in range(self.count)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:
            self._fail(error)
            raise

    def meet(self, value: Any, combine: Callable[[list[Any]], R], group: tuple[int, ...] = (), *,
             may_copy: bool = False) -> R:
        """See the function `meet`; `combine` is called once per `group`.

        With `may_copy` the values of other cores may be copies from here on.
        """
        if self.count > 1 and (tf.get_default_graph() is not self._graph
                               or _tf.is_in_control_flow(self._graph)):
            raise ConfigError(Problem(
                'E456', 'model_fn', 'sums over replicas, and with them '
                'CrossShardOptimizer.apply_gradients, must be outside of tf.cond, tf.while_loop '
                'and tf.function', remedy='Apply the gradients always, multiplied by 0 where '
                'they are not to count.'))
        tower = self._towers[current_core()]
        number = tower.num_sums
        tower.num_sums += 1
        if number == len(self._deposits):
            self._deposits.append({})
        if (copies := self._copies_from_here(may_copy)) is not None:
            if len(group) not in (0, self.count):
                raise too_late('a sum over a group of cores')
            made = combine([value, *copies.of(value)])
            copies.pass_over()
            return made
        deposits = self._deposits[number]
        deposits[tower.core] = value
        tower.view = view_of(self._graph)
        self._hand_over(tower)
        self._await_turn(tower)
        if len(deposits) < self.count:
            raise unequal(f'sum {number + 1} on cores {sorted(deposits)} only')
        if (number, group) not in self._made:
            self._made[number, group] = combine([deposits[each] for each in range(self.count)])
        return cast(R, self._made[number, group])

    def _run(self, core: int, function: Callable[[int], T]) -> None:
        tower = self._towers[core]
        before = _current.set(tower)
        try:
            self._await_turn(tower)
            with self._graph.as_default(), _tf.tpu_shard_context(self.count), \
                    tf.variable_creator_scope(self._variables.creator(core)):
                scope, counts = tower.scope
                _tf.put_variable_scope_state((copy.copy(scope), counts))
                tf.get_variable_scope().set_use_resource(True)
                if not (core and self.is_copied):
                    tower.result = function(core)
                    if (copies := self._copies_from_here(True)) is not None:
                        for other, result in zip(self._towers[1:], copies.of(tower.result)):
                            other.result = result
                tower.scope = _tf.variable_scope_state()
            tower.view = view_of(self._graph)
        except Abandoned:
            pass
        except BaseException as error:  # Handed to the thread that called build().
            self._fail(error)
        _current.reset(before)
        self._hand_over(tower, is_done=True)

    def _copies_from_here(self, may_copy: bool) -> TowerCopies | None:
        """Returns copies if the other cores get such; decided when tower 0 first waits for them."""
        if self._copies is not None and not self.is_copied and current_core() == 0:
            self.is_copied = may_copy and self._copies.can_begin()
            if not self.is_copied:
                self._copies = None
        return self._copies if self.is_copied else None

    def _hand_over(self, tower: Tower, is_done: bool = False) -> None:
        # The version counts operations, while `get_operations` would copy all of them.
        tower.ranges.append(slice(self._first_operation, self._graph.version))
        tower.is_done = is_done
        following = self._towers[tower.core + 1:] + self._towers[:tower.core + 1]
        left = [each for each in following if not each.is_done]
        if left:  # Perhaps the same one.
            left[0].turn.release()

    def _await_turn(self, tower: Tower) -> None:
        tower.turn.acquire()  # Unbounded: others run code of the user.
        if self._failure is not None:
            raise Abandoned
        self._first_operation = self._graph.version
        put_view(self._graph, tower.view)
        if tower.core:  # Otherwise TensorFlow finds the step by its name, and in it only a handle.
            self._graph.get_collection_ref(tf.GraphKeys.GLOBAL_STEP)[:] = (
                self._towers[0].view.collections.get(tf.GraphKeys.GLOBAL_STEP, []))

    def _fail(self, error: BaseException) -> None:
        """Lets all towers give up after the first failure."""
        self._failure = self._failure or error
        for tower in self._towers:
            tower.turn.release()

    def _keep_collections(self) -> None:
        """Leaves the graph with tower 0's collections, and all towers' initializers."""
        view = self._towers[0].view
        for key in _KEPT_FROM_ALL_TOWERS:
            items = [item for tower in self._towers
                     for item in tower.view.collections.get(key, [])]
            view.collections.setdefault(key, [])[:] = {id(item): item for item in items}.values()
        put_view(self._graph, view)


class View(NamedTuple):
    """The state of graph and process as one tower sees it, with Keras' counters of layer names.

    The graph itself holds the collections while the tower runs.
    """

    collections: dict[Any, list[Any]]
    layer_names: dict[Any, Any]
    random_states: tuple[Any, Any]


@dataclasses.dataclass(slots=True, eq=False)
class Tower:
    """The state of one tower between its turns.

    Attributes:
      num_sums: how often it met the others.
      ranges: the positions of its operations in the graph.
      repeats: its operations on shapes, which it makes once. Users know those of tower 0 by name.
      turn: is released when its thread may go on.
    """

    towers: Towers[Any]
    core: int
    view: View
    scope: tuple[Any, dict[str, int]]
    num_sums: int = 0
    result: Any = None
    ranges: list[slice] = dataclasses.field(default_factory=list)
    repeats: _tf.Repeats = dataclasses.field(default_factory=_tf.Repeats)
    turn: threading.Semaphore = dataclasses.field(default_factory=threading.Semaphore)
    is_done: bool = False

    def begin(self, base: View) -> None:
        """Prepares another build, which begins with the collections of `base`."""
        # Keys that are not strings are TensorFlow's own stores, which must not be shared.
        self.view = base._replace(collections={
            key: list(items) for view, is_text in ((base, True), (self.view, False))
            for key, items in view.collections.items() if isinstance(key, str) is is_text})
        self.ranges = []
        self.turn, self.is_done = threading.Semaphore(int(self.core == 0)), False


def view_of(graph: tf.Graph) -> View:
    """Returns the current state."""
    return View(*_tf.collections_and_names(graph), random_states())


def put_view(graph: tf.Graph, view: View) -> None:
    """Makes a state the current one."""
    _tf.put_collections_and_names(graph, view.collections, view.layer_names)
    put_random_states(view.random_states)


def unequal(got: str) -> ConfigError:
    """Returns the error of a model that does not sum the same on every core."""
    return ConfigError(Problem(
        'E451', 'model_fn', 'it must sum over replicas equally often on every core', got,
        'Do not make the structure of the model depend on the core.'))


def too_late(got: str) -> ConfigError:
    """Returns the error of what copies of tower 0 cannot do."""
    return ConfigError(Problem(
        'E456', 'model_fn', 'sums over groups of cores, and gradients of sums, must come before '
        'CrossShardOptimizer.apply_gradients', got, 'Apply the gradients at the end.'))


class Abandoned(BaseException):
    """Unwinds a thread after another one failed."""


@contextlib.contextmanager
def folded() -> Iterator[None]:
    """Leaves out what other cores log as core 0 did, unless TensorFlow's logger debugs."""
    if logging.getLogger('tensorflow').isEnabledFor(logging.DEBUG):
        yield
        return
    of_first: set[tuple[str, int, str]] = set()

    def is_news(record: logging.LogRecord) -> bool:
        if _current.get() is None:
            return True
        try:
            key = record.name, record.levelno, record.getMessage()
        except Exception:  # Its handler will tell of a format that does not fit.
            return True
        if current_core() == 0:
            of_first.add(key)
        return current_core() == 0 or key not in of_first

    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    handlers = {handler for logger in loggers if isinstance(logger, logging.Logger)
                for handler in logger.handlers}
    for handler in handlers:
        handler.addFilter(is_news)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_news)


def random_states() -> tuple[Any, Any]:
    """Returns the current states of `random` and `numpy.random`."""
    return random.getstate(), np.random.get_state()


def put_random_states(states: tuple[Any, Any]) -> None:
    """Puts back states that `random_states` returned."""
    random.setstate(states[0])
    np.random.set_state(states[1])


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds Python's and NumPy's generators; puts their states of before back at the end.

    Models draw from them while they are built. Keras, for example, takes the seeds of its
    initializers from `random`.
    """
    before = random_states()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        put_random_states(before)
