"""The queues in which batches wait between `enqueue`, `dequeue` and `apply_gradients`.

The hardware pairs the three calls by the order of queues alone, and a program that pairs them
otherwise hangs. Here no call waits: a call that finds its queue empty or full fails and says why.

A step may also fail halfway for another reason, such as an assertion of the model. It would leave
batches in the queues, and every later step would get the activations of an earlier one. If one
graph holds all calls of a step, it is known how many batches a call must find. A call that finds
more drops them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tensorflow as tf

from ..errors import CallError, Problem
from ..native.eager_variable import EagerTableVariable, read, small_variable
from ..ops import checks
from ..ops.checks import not_inlined
from .table_variables import on_host
from .traced_calls import OpenCalls

INFERENCE, TRAINING, EITHER = 0, 1, 2
"""The uses of a batch: it gets no gradients, it must get some, or it may."""

CAPACITY = 64
"""Batches per replica that may wait to be dequeued."""

_KEPT_AS = [INFERENCE, TRAINING, INFERENCE, INFERENCE, EITHER, EITHER]
"""The use as which a batch waits for gradients, by the use with which it was enqueued.

The first three are for graphs in which no apply_gradients follows: TRAINING stays, the others get
none. The last three are for graphs in which one follows. There only an unrelated failure can leave
it out, so INFERENCE stays, and the others may get gradients.
"""

_NO_BATCH = Problem(
    'E556', 'apply_gradients', 'every replica must have dequeued a batch that was enqueued with '
    'training=True, since the last apply_gradients', remedy='Enqueue with training=True where '
    'apply_gradients is called; leave apply_gradients out in evaluation.')
_APART = Problem(
    'E548', 'apply_gradients', 'all replicas must have enqueued and dequeued as many batches',
    remedy='Call both in every replica. If they are, a step before failed in between: all that '
    'waited is given up, and the next step goes on.')


def use_of(training: bool | tf.Tensor, name: str | None) -> int | tf.Tensor:
    """Returns the use of a batch, from the arguments of `TPUEmbedding.enqueue`."""
    if name is not None:
        return EITHER
    if isinstance(training, bool):
        return TRAINING if training else INFERENCE
    return tf.where(tf.cast(training, tf.bool), TRAINING, INFERENCE)


class BatchQueues:
    """The batches of one object, by replica, in the order of their `enqueue`.

    Every step comes through here, and the time of a small step is the number of its operations. So
    one variable has the numbers of all replicas. A batch that waits for gradients is in variables,
    because they take a fraction of the time of a queue.
    """

    def __init__(self, replicas: int, kinds: Sequence[tf.DType],
                 note_inference: Callable[[], tf.Tensor]):
        """Makes the queues, which live as long as this object.

        Args:
          kinds: the dtypes of the packed ids of a batch, at least one.
          note_inference: called where operations are wanted for a batch that gets no gradients;
            returns an int32 scalar. Replica 0 asks for all.
        """
        self._note_inference = note_inference
        self._everywhere = range(replicas)
        self._queues = [tf.queue.FIFOQueue(CAPACITY, [tf.int32, *kinds])
                        for _ in self._everywhere]
        # By replica: the use of the batch that was looked up last, and INFERENCE if none is kept.
        self._kept = _numbers([INFERENCE] * replicas)
        self._looked_up = [[_vector(kind) for kind in kinds] for _ in self._everywhere]
        # The number of waiting batches that the graph that enqueued them does not dequeue.
        self._left = _numbers([0] * replicas)
        self._open_enqueues, self._open_dequeues = OpenCalls(), OpenCalls()
        # Functions, not copies, because each is used in many checks.
        self._give_up = [not_inlined(functools.partial(self._empty, replica))
                         for replica in self._everywhere]
        self._pass = [not_inlined(functools.partial(self._keep_nothing, replica))
                      for replica in self._everywhere]

    def put(self, packed: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
            use: int | tf.Tensor) -> None:
        """Appends one batch for each of `replicas`; fails with E557 if one of them has no room.

        `use` is an int32 scalar, one of the constants above.
        """
        self._open_enqueues.interrupt(replicas)
        expected = self._open_enqueues.add_counts(replicas, _rows(self._left, replicas))
        sizes = self._sizes(replicas)
        fits = sizes < CAPACITY
        fine = fits & tf.equal(sizes, expected)
        if len(replicas) == len(self._everywhere) > 1:  # One call is for all replicas.
            is_kept = read(self._kept) > INFERENCE
            fine &= tf.equal(is_kept, is_kept[0])
        checked = self._unless(
            tf.reduce_all(fine), replicas, lambda: [checks.require(
                fits, Problem(
                    'E557', 'enqueue', f'at most {CAPACITY} batches of a replica may wait to be '
                    'dequeued', remedy='Call dequeue once for each enqueue. All that waited is '
                    'given up.'), got='one more')])
        followed = self._open_enqueues.add(replicas, tf.get_static_value(use))
        ready = [tensor for batch in packed for tensor in batch]
        with tf.control_dependencies([checked, *ready]):
            self._count_left(replicas, tf.fill([len(replicas)], 1 - followed))
            for replica, batch in zip(replicas, packed):
                self._queues[replica].enqueue([use, *batch])

    def take(self, replica: int) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Takes the oldest batch of a replica, and keeps it for gradients if it may get any.

        Returns:
          The use of the batch, and its packed ids. To evaluate them fails with E554 if there is no
          batch, and with E555 if the batch before must still get its gradients.
        """
        waiting = self._queues[replica]
        with tf.control_dependencies([checks.require(waiting.size() > 0, Problem(
                'E554', f'dequeue in replica {replica}', 'there must be a batch that was enqueued '
                'and not yet dequeued', remedy='Call enqueue before dequeue, once for each '
                'dequeue, by the same name, in the same thread.'), got='none')]):
            use, *packed = waiting.dequeue()
            is_followed, use_if_known = self._open_enqueues.remove(replica)
            if not is_followed:
                self._count_left([replica], [-1])
        followed = self._open_dequeues.add([replica], use_if_known)
        use = tf.gather(_KEPT_AS, followed * 3 + tf.ensure_shape(use, []))
        before = _rows(self._kept, replica)
        with tf.control_dependencies([tf.cond(
                tf.not_equal(use, INFERENCE) & tf.not_equal(before, TRAINING),
                functools.partial(self._keep, replica, use, packed),
                lambda: _silent(self._pass[replica](use)))]):
            return tf.identity(use), [tf.identity(tensor) for tensor in packed]

    def take_looked_up(self) -> list[list[tf.Tensor]]:
        """Takes for each replica the packed ids of the batch whose gradients have come.

        To evaluate them fails with E556 if a replica has no batch, and with E548 if the batches are
        not of the same step.

        Raises:
          CallError: if the same graph dequeued an earlier batch that must get its gradients too.
        """
        for replica in self._everywhere:
            self._open_dequeues.remove(replica, newest=True)
            if self._open_dequeues.is_open(replica, TRAINING):
                raise CallError(Problem(
                    'E555', 'apply_gradients', 'a batch that is enqueued with training=True needs '
                    'one apply_gradients before the next one is dequeued', 'two of dequeue',
                    'Call dequeue and apply_gradients in turns, or give the calls of each batch '
                    'a name.'))
        found = fine = read(self._kept) > INFERENCE
        waiting, together = tf.constant([0]), tf.constant(True)
        if len(self._everywhere) > 1:
            waiting = self._sizes(self._everywhere)
            together = tf.equal(waiting, waiting[0])
            fine = found & together
        with tf.control_dependencies([self._unless(
                tf.reduce_all(fine), self._everywhere, lambda: [
                    checks.require(found, _NO_BATCH, got=tf.strings.join(
                        ['none in replica ', tf.strings.as_string(tf.argmin(
                            tf.cast(found, tf.int32)))])),
                    checks.require(together, _APART, got=tf.strings.reduce_join(
                        tf.strings.as_string(waiting), separator=', '))])]):
            packed = [[read(vector) for vector in own] for own in self._looked_up]
        with tf.control_dependencies([tensor for own in packed for tensor in own]):
            self._kept.assign([INFERENCE] * len(self._everywhere), read_value=False)
        return packed

    def _keep(self, replica: int, use: tf.Tensor, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        """Keeps a batch until its gradients come, in place of the one before."""
        for vector, tensor in zip(self._looked_up[replica], packed):
            tf.raw_ops.AssignVariableOp(resource=vector.handle, value=tensor)
        self._note_kept(replica, use)
        return tf.constant(0)

    def _keep_nothing(self, replica: int, use: tf.Tensor) -> tf.Tensor:
        """Keeps nothing of a batch, because it gets no gradients, or the one before must get some.

        In the second case both are given up. The result says so; it is `''` in the first case.
        """
        def give_up() -> tf.Tensor:
            with tf.control_dependencies([self._note_kept(replica, INFERENCE)]):
                return checks.first_message(lambda: checks.require(tf.constant(False), Problem(
                    'E555', f'dequeue in replica {replica}', 'a batch that is enqueued with '
                    'training=True needs one apply_gradients before the next one is dequeued',
                    remedy='Enqueue with training=False where apply_gradients is not called. If '
                    'it is, the step before failed in between: its batch and this one are given '
                    'up, and the next step goes on.'), got='none'))

        def note() -> tf.Tensor:
            with tf.control_dependencies([self._note_inference()] if replica == 0 else []):
                return tf.constant('')
        return tf.cond(tf.equal(use, INFERENCE), note, give_up)

    def _note_kept(self, replica: int, use: int | tf.Tensor) -> tf.Operation:
        """Notes the use of the batch that a replica keeps."""
        return tf.raw_ops.ResourceScatterUpdate(
            resource=self._kept.handle, indices=replica, updates=use)

    def _count_left(self, replicas: Sequence[int], more: Sequence[int] | tf.Tensor) -> None:
        """Adds numbers to `_left`."""
        tf.raw_ops.ResourceScatterAdd(
            resource=self._left.handle, indices=list(replicas), updates=more)

    def _sizes(self, replicas: Sequence[int]) -> tf.Tensor:
        """Returns how many batches of some replicas wait to be dequeued."""
        return tf.stack([self._queues[replica].size() for replica in replicas])

    def _unless(self, fine: tf.Tensor, replicas: Sequence[int],
                fail: Callable[[], list[tf.Operation]]) -> tf.Tensor:
        """Unless all is fine, gives up the batches of replicas, and fails if `fail` does."""
        def give_up() -> tf.Tensor:
            with tf.control_dependencies([self._give_up[replica]() for replica in replicas]):
                return checks.first_message(fail)
        return tf.cond(fine, lambda: tf.constant(0), lambda: _silent(not_inlined(give_up)()))

    def _empty(self, replica: int) -> tf.Tensor:
        """Gives up the batches of a replica."""
        queue = self._queues[replica]
        tf.while_loop(lambda _: queue.size() > 0,
                      lambda _: [tf.ensure_shape(queue.dequeue()[0], [])], [tf.constant(0)])
        left = tf.raw_ops.ResourceScatterUpdate(
            resource=self._left.handle, indices=replica, updates=0)
        with tf.control_dependencies([left, self._note_kept(replica, INFERENCE)]):
            return tf.constant(0)


def _silent(message: tf.Tensor) -> tf.Tensor:
    """Fails with a message unless it is empty: here, because its function is not inlined."""
    with tf.control_dependencies([checks.require_silence(message)]):
        return tf.constant(0)


def _numbers(values: list[int]) -> EagerTableVariable:
    """Creates a variable that outlives graphs and that no strategy replicates."""
    with on_host():
        return small_variable(values, tf.int32)


def _vector(kind: tf.DType) -> EagerTableVariable:
    """Creates such a variable for packed ids, of any number."""
    with on_host():
        return EagerTableVariable(initial_value=tf.zeros([0], kind), trainable=False, dtype=kind,
                                  shape=tf.TensorShape(None))


def _rows(variable: EagerTableVariable, replicas: int | Sequence[int]) -> tf.Tensor:
    """Returns the numbers of replicas, in the shape of `replicas`."""
    return tf.raw_ops.ResourceGather(
        resource=variable.handle, indices=tf.constant(replicas), dtype=variable.dtype)
