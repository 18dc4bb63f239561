"""The queues in which batches wait between `enqueue`, `dequeue` and `apply_gradients`.

The hardware pairs the three calls by the order of queues alone, and a program that pairs them
otherwise hangs. Here no call waits: a call that finds its queue empty or full fails and says why.

A step may also fail halfway for another reason, such as an assertion of the model. It would leave
batches in the queues, and every later step would get the activations of an earlier one. If one
graph holds all calls of a step, it is known how many batches a call must find. A call that finds
more drops them.
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
"""The uses of a batch: it gets no gradients, it must get some, or it may."""

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
    """The batches of one object, by replica, in the order of their `enqueue`."""

    def __init__(self, replicas: int, kinds: Sequence[tf.DType]):
        """Makes the queues, which live as long as this object.

        Args:
          replicas: how many, >= 1.
          kinds: the dtypes of the packed ids of a batch, at least one.
        """
        kinds = [tf.int32, *kinds]
        self._enqueued = [tf.queue.FIFOQueue(CAPACITY, kinds) for _ in range(replicas)]
        self._looked_up = [tf.queue.FIFOQueue(1, kinds) for _ in range(replicas)]
        # The number of waiting batches that the graph that enqueued them does not dequeue.
        self._left = [_state(0) for _ in range(replicas)]
        self._followed_enqueues, self._followed_dequeues = _Followed(), _Followed()
        # Functions, not copies, because each is used in many checks.
        self._give_up = [_called(functools.partial(self._empty, replica))
                         for replica in range(replicas)]

    def put(self, packed: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
            use: int | tf.Tensor) -> None:
        """Appends one batch for each of `replicas`; fails with E557 if one of them has no room.

        Args:
          packed: for each of the replicas a batch.
          replicas: the numbers of the replicas.
          use: int32 scalar, one of the constants above.
        """
        self._followed_enqueues.interrupt(replicas)
        expected = [_read(self._left[replica]) + self._followed_enqueues.count(replica)
                    for replica in replicas]
        sizes = self._sizes(replicas)
        fits, as_expected = sizes < CAPACITY, tf.equal(sizes, expected)
        if len(replicas) == len(self._looked_up):  # One call is for all replicas.
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
        """Takes the oldest batch of a replica, and keeps it for gradients if it may get any.

        Returns:
          The use of the batch, and its packed ids. To evaluate them fails with E554 if there is no
          batch, and with E555 if the batch before must still get its gradients.
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
        # If apply_gradients follows, only an unrelated failure can leave it out. For a name, this
        # alone decides the use of its batch.
        followed = self._followed_dequeues.add([replica], use_if_known)
        use = tf.where(use == EITHER, tf.where(followed, EITHER, INFERENCE), use)
        kept_use = tf.where(followed & (use == TRAINING), EITHER, use)
        with tf.control_dependencies([tf.cond(
                use == INFERENCE, lambda: tf.constant(0),
                lambda: self._keep(replica, kept_use, packed))]):
            return tf.identity(use), [tf.identity(tensor) for tensor in packed]

    def take_looked_up(self) -> list[list[tf.Tensor]]:
        """Takes for each replica the batch whose gradients have come.

        Returns:
          For each replica the packed ids. To evaluate them fails with E556 if a replica has no
          batch, and with E548 if the batches are not of the same step.

        Raises:
          CallError: if the same graph dequeued an earlier batch that must get its gradients too.
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
        """Returns how many batches of some replicas wait to be dequeued."""
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
    """A call in a graph.

    Attributes:
      followed: bool: whether the counterpart follows; final once the graph is traced.
      use: the use of the batch, `None` if it is known only when the graph is executed.
    """

    followed: OwnedVariable
    use: int | None


class _Followed:
    """Tells which calls are followed by their counterpart in the same graph, by replica.

    The counterpart of `enqueue` is `dequeue`, and that of `dequeue` is `apply_gradients`.
    """

    def __init__(self) -> None:
        self._open: weakref.WeakKeyDictionary[tf.Graph, dict[int, list[_Call]]] = (
            weakref.WeakKeyDictionary())
        self._all: list[_Call] = []  # Graphs do not keep variables.
        self._interrupted: set[int] = set()

    def count(self, replica: int) -> tf.Tensor:
        """Returns how many calls so far are followed later in the graph, once it is traced."""
        return tf.add_n([tf.constant(0), *(
            tf.cast(_read(call.followed), tf.int32) for call in self._of_graph()[replica])])

    def interrupt(self, replicas: Sequence[int]) -> None:
        """Treats calls outside as not followed, if a loop, a condition or a function calls too."""
        graph = getattr(tf.compat.v1.get_default_graph(), 'outer_graph', None)
        while graph is not None:
            for replica in replicas:
                self._interrupted.update(map(id, self._open.get(graph, {}).get(replica, ())))
            graph = getattr(graph, 'outer_graph', None)

    def add(self, replicas: Sequence[int], use: int | None) -> tf.Tensor:
        """Notes a call; returns whether its counterpart follows, once the graph is traced."""
        call = _Call(_state(False), use)
        for replica in replicas:
            self._of_graph()[replica].append(call)
        self._all.append(call)
        return _read(call.followed)

    def remove(self, replica: int, *, newest: bool = False) -> tuple[bool, int | None]:
        """Notes that the counterpart of an open call was made.

        Returns:
          Whether there is such an open call, and its use.
        """
        calls = self._of_graph()[replica]
        call = calls.pop(-1 if newest else 0) if calls else None
        if call is None or id(call) in self._interrupted:
            return False, None
        with on_host():
            call.followed.assign(True)
        return True, call.use

    def is_open(self, replica: int, use: int) -> bool:
        """Returns whether a call of this use is open."""
        return any(call.use == use for call in self._of_graph()[replica])

    def _of_graph(self) -> dict[int, list[_Call]]:
        return self._open.setdefault(tf.compat.v1.get_default_graph(),
                                     collections.defaultdict(list))


def _called(function: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a function that is traced once and not inlined into its callers."""
    return tf.function(function, autograph=False, experimental_attributes={'_noinline': True})


def _state(value: int | bool) -> OwnedVariable:
    """Creates a variable that outlives graphs and that no strategy replicates."""
    with on_host():
        return OwnedVariable(initial_value=value, trainable=False,
                             dtype=tf.bool if isinstance(value, bool) else tf.int32)


def _read(state: OwnedVariable) -> tf.Tensor:
    return tf.raw_ops.ReadVariableOp(resource=state.handle, dtype=state.dtype)
