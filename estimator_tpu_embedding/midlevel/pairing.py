"""Where batches wait between `enqueue`, `dequeue` and `apply_gradients`.

On the hardware the three are paired by the order of queues alone, and where a program pairs them
otherwise it hangs. Here nothing waits: what finds its queue empty or full fails, and says why.

A step may also fail in its middle by something else, an assertion of the model, say. What it left
in the queues would give all later steps the activations of the steps before them. So where the
calls of a step are traced in one graph, which executes all of them, it is known how many batches
are to be found, and what is left over is given up.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..errors import CallError, Problem
from ..native.owned import OwnedVariable
from ..ops import checks
from .tables import on_host

INFERENCE, TRAINING, EITHER = 0, 1, 2
"""What becomes of a batch: it gets no gradients, it must, or it may."""

CAPACITY = 64
"""Batches per replica that may wait to be dequeued."""

_NO_BATCH = Problem(
    'E556', 'apply_gradients', 'every replica must have dequeued a batch that was enqueued with '
    'training=True, since the last apply_gradients', remedy='Enqueue with training=True where '
    'apply_gradients is called; leave apply_gradients out in evaluation.')
_APART = Problem(
    'E548', 'apply_gradients', 'all replicas must have enqueued and dequeued as many batches',
    remedy='Call both in every replica. If they are, a step before failed in between: all that '
    'waited is given up, and the next step goes on.')


class Pairing:
    """The batches of one object, by replica, in the order in which they came."""

    def __init__(self, replicas: int, kinds: Sequence[tf.DType]):
        """Makes the queues, which live as long as this object.

        Args:
          replicas: how many, >= 1.
          kinds: dtypes of what is kept of a batch, at least one.
        """
        kinds = [tf.int32, *kinds]
        self._enqueued = [tf.queue.FIFOQueue(CAPACITY, kinds) for _ in range(replicas)]
        self._looked_up = [tf.queue.FIFOQueue(1, kinds) for _ in range(replicas)]
        # Of the batches that wait, those that no graph that enqueues them dequeues too.
        self._left = [_state(0) for _ in range(replicas)]
        self._followed_enqueues, self._followed_dequeues = _Followed(), _Followed()
        # Functions that are called, as each stands in many checks.
        self._give_up = [_called(functools.partial(self._empty, replica))
                         for replica in range(replicas)]

    def put(self, packed: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
            use: int | tf.Tensor) -> None:
        """Appends one batch for each of `replicas`; fails with E557 if one of them has no room.

        Args:
          packed: for each of them a batch.
          replicas: their numbers.
          use: int32 scalar, one of the constants above.
        """
        self._followed_enqueues.interrupt(replicas)
        expected = [_read(self._left[replica]) + self._followed_enqueues.count(replica)
                    for replica in replicas]
        sizes = self._sizes(replicas)
        fits, as_expected = sizes < CAPACITY, tf.equal(sizes, expected)
        if len(replicas) == len(self._looked_up):  # They are at the same place of the program.
            kept = [one.size() for one in self._looked_up]
            as_expected &= tf.equal(kept, kept[0])
        room = self._unless(
            tf.reduce_all(fits & as_expected), replicas, lambda: [checks.require(
                fits, Problem(
                    'E557', 'enqueue', f'at most {CAPACITY} batches of a replica may wait to be '
                    'dequeued', remedy='Call dequeue once for each enqueue. All that waited is '
                    'given up.'), got=tf.constant('one more'))])
        followed = self._followed_enqueues.add(replicas, tf.get_static_value(use))
        ready = [tensor for batch in packed for tensor in batch]
        with tf.control_dependencies([room, *ready]):
            for replica, batch in zip(replicas, packed):
                self._left[replica].assign_add(1 - tf.cast(followed, tf.int32))
                self._enqueued[replica].enqueue([use, *batch])

    def take(self, replica: int) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The oldest batch of a replica, and its use; it is kept for gradients if it may get any.

        When it is evaluated it fails with E554 if there is none, and with E555 if the last one
        must still get its gradients.
        """
        waiting = self._enqueued[replica]
        with tf.control_dependencies([checks.require(waiting.size() > 0, Problem(
                'E554', f'dequeue in replica {replica}', 'there must be a batch that was enqueued '
                'and not yet dequeued', remedy='Call enqueue before dequeue, once for each '
                'dequeue, by the same name, in the same thread.'), got=tf.constant('none'))]):
            use, *packed = waiting.dequeue()
            is_followed, use_if_known = self._followed_enqueues.remove(replica)
            if not is_followed:
                self._left[replica].assign_sub(1)
        # Where apply_gradients follows, only a failure of another kind leaves it out. A name says
        # by that alone what its batch is for.
        followed = self._followed_dequeues.add([replica], use_if_known)
        use = tf.where(use == EITHER, tf.where(followed, EITHER, INFERENCE), use)
        kept_use = tf.where(followed & (use == TRAINING), EITHER, use)
        with tf.control_dependencies([tf.cond(
                use == INFERENCE, lambda: tf.constant(0),
                lambda: self._keep(replica, kept_use, packed))]):
            return tf.identity(use), [tf.identity(tensor) for tensor in packed]

    def take_looked_up(self) -> list[list[tf.Tensor]]:
        """For each replica the batch whose gradients have come.

        When it is evaluated it fails with E556 if a replica has none, and with E548 if they are
        not of the same step.

        Raises:
          CallError: if one that must get its gradients was dequeued before, in the same graph.
        """
        everywhere = range(len(self._looked_up))
        for replica in everywhere:
            self._followed_dequeues.remove(replica, newest=True)
            if self._followed_dequeues.is_open(replica, TRAINING):
                raise CallError(Problem(
                    'E555', 'apply_gradients', 'a batch that is enqueued with training=True needs '
                    'one apply_gradients before the next one is dequeued', 'two of dequeue',
                    'Call dequeue and apply_gradients in turns, or give the calls of each batch '
                    'a name.'))
        sizes = tf.stack([kept.size() for kept in self._looked_up])
        waiting = self._sizes(everywhere)
        found, together = sizes > 0, tf.equal(waiting, waiting[0])
        with tf.control_dependencies([self._unless(
                tf.reduce_all(found & together), everywhere, lambda: [
                    checks.require(found, _NO_BATCH, got=tf.strings.join(
                        ['none in replica ', tf.strings.as_string(tf.argmin(sizes))])),
                    checks.require(together, _APART, got=tf.strings.reduce_join(
                        tf.strings.as_string(waiting), separator=', '))])]):
            return [kept.dequeue()[1:] for kept in self._looked_up]

    def _keep(self, replica: int, use: tf.Tensor, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        """Keeps a batch until its gradients come, in place of the one before."""
        kept = self._looked_up[replica]
        before = tf.cond(kept.size() > 0, lambda: kept.dequeue()[0], lambda: tf.constant(INFERENCE))
        with tf.control_dependencies([checks.require(before != TRAINING, Problem(
                'E555', f'dequeue in replica {replica}', 'a batch that is enqueued with '
                'training=True needs one apply_gradients before the next one is dequeued',
                remedy='Enqueue with training=False where apply_gradients is not called. If it '
                'is, the step before failed in between: its batch and this one are given up, and '
                'the next step goes on.'), got=tf.constant('none'))]):
            kept.enqueue([use, *packed])
        return tf.constant(0)

    def _sizes(self, replicas: Sequence[int]) -> tf.Tensor:
        """How many batches of some replicas wait to be dequeued."""
        return tf.stack([self._enqueued[replica].size() for replica in replicas])

    def _unless(self, fine: tf.Tensor, replicas: Sequence[int],
                fail: Callable[[], list[tf.Operation]]) -> tf.Tensor:
        """Unless all is fine, gives up the batches of replicas, and fails if `fail` does."""
        def give_up() -> tf.Tensor:
            with tf.control_dependencies([self._give_up[replica]() for replica in replicas]):
                failed = fail()
            with tf.control_dependencies(failed):
                return tf.constant(0)
        return tf.cond(fine, lambda: tf.constant(0), give_up)

    def _empty(self, replica: int) -> tf.Tensor:
        """Gives up the batches of a replica."""
        for queue in (self._enqueued[replica], self._looked_up[replica]):
            tf.while_loop(lambda _, queue=queue: queue.size() > 0,
                          lambda _, queue=queue: [tf.ensure_shape(queue.dequeue()[0], [])],
                          [tf.constant(0)])
        with tf.control_dependencies([self._left[replica].assign(0).op]):
            return tf.constant(0)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call of a graph.

    Attributes:
      followed: bool: whether the other call follows, once the graph is traced.
      use: of the batch, `None` if that is known only when the graph is executed.
    """

    followed: OwnedVariable
    use: int | None


class _Followed:
    """Calls, by graph and replica, that another call in the same graph is to follow."""

    def __init__(self) -> None:
        self._open: weakref.WeakKeyDictionary[tf.Graph, dict[int, list[_Call]]] = (
            weakref.WeakKeyDictionary())
        self._all: list[_Call] = []  # Graphs do not keep variables.
        self._interrupted: set[int] = set()

    def count(self, replica: int) -> tf.Tensor:
        """Calls that are to be followed later in the graph, once that is traced."""
        return tf.add_n([tf.constant(0), *(
            tf.cast(_read(call.followed), tf.int32) for call in self._of_graph()[replica])])

    def interrupt(self, replicas: Sequence[int]) -> None:
        """Counts no call around a loop, a condition or a function that calls, too, as followed."""
        graph = getattr(tf.compat.v1.get_default_graph(), 'outer_graph', None)
        while graph is not None:
            for replica in replicas:
                self._interrupted.update(map(id, self._open.get(graph, {}).get(replica, ())))
            graph = getattr(graph, 'outer_graph', None)

    def add(self, replicas: Sequence[int], use: int | None) -> tf.Tensor:
        """Notes a call; gives whether it is followed by another one, once the graph is traced."""
        call = _Call(_state(False), use)
        for replica in replicas:
            self._of_graph()[replica].append(call)
        self._all.append(call)
        return _read(call.followed)

    def remove(self, replica: int, *, newest: bool = False) -> tuple[bool, int | None]:
        """Notes a call that follows one that is open: whether there is one, and its use."""
        calls = self._of_graph()[replica]
        call = calls.pop(-1 if newest else 0) if calls else None
        if call is None or id(call) in self._interrupted:
            return False, None
        with on_host():
            call.followed.assign(True)
        return True, call.use

    def is_open(self, replica: int, use: int) -> bool:
        """Whether a call of this use is open."""
        return any(call.use == use for call in self._of_graph()[replica])

    def _of_graph(self) -> dict[int, list[_Call]]:
        return self._open.setdefault(tf.compat.v1.get_default_graph(),
                                     collections.defaultdict(list))


def _called(function: Callable[[], Any]) -> Callable[[], Any]:
    """A function that is traced once and not copied to where it is called."""
    return tf.function(function, autograph=False, experimental_attributes={'_noinline': True})


def _state(value: int | bool) -> OwnedVariable:
    """A variable that outlives graphs, and that no strategy replicates."""
    with on_host():
        return OwnedVariable(initial_value=value, trainable=False,
                             dtype=tf.bool if isinstance(value, bool) else tf.int32)


def _read(state: OwnedVariable) -> tf.Tensor:
    return tf.raw_ops.ReadVariableOp(resource=state.handle, dtype=state.dtype)
