"""Checks tensors when a graph runs, and turns the failures into `Problem`s again.

A check is an assert op whose message carries the fields of a `Problem`. `message_to_problem` reads
them back from the error that the session raised, in any thread. In functions of TF2 nobody reads
them back, so there the message is plain text.

Every check takes its operations in every step, above all for its message. Where there are many
checks, `gathered` leaves one condition for all, and `first_message` checks again if it does not
hold. `require_gathered` does both in a graph of TF1.

A check that fails in a function that is not inlined ends its caller, too. If the caller waits for
another device, TensorFlow then reports the wait that was cancelled, instead of the check. So such a
function returns the `first_message`, and its caller fails by `require_silence`.
"""

from __future__ import annotations

import contextlib
import contextvars
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from ..errors import Problem

_BEGIN, _SEPARATOR, _END = '<<ete|', '|ete|', '|ete>>'


class Gathered:
    """The conditions of checks that were made in the context of `gathered`."""

    def __init__(self) -> None:
        self._conditions: list[tf.Tensor] = []
        self._limited: dict[Hashable, list[tuple[tf.Tensor, int]]] = {}

    def add(self, condition: tf.Tensor) -> tf.Operation:
        """Adds a condition, bool of any shape; returns its operation."""
        self._conditions.append(
            condition if condition.shape.rank == 0 else tf.reduce_all(condition))
        return self._conditions[-1].op

    def limit(self, numbers: tf.Tensor, bound: int) -> None:
        """Adds the condition that numbers, int64, are in `[0, bound)`."""
        shape = numbers.shape
        # Numbers of one shape share one comparison: most features have one id for each sample.
        alike = tuple(shape.as_list()) if shape.is_fully_defined() else object()
        self._limited.setdefault(alike, []).append((numbers, bound))

    def holds(self) -> tf.Tensor | None:
        """Returns whether all conditions hold, a bool scalar; `None` if there is no condition."""
        conditions = list(self._conditions)
        for alike in self._limited.values():
            numbers, bounds = zip(*alike)
            if len(alike) == 1:
                right = are_below(numbers[0], bounds[0])
            else:
                rank = numbers[0].shape.rank
                right = are_below(tf.stack(numbers), np.reshape(bounds, [-1] + [1] * rank))
            conditions.append(tf.reduce_all(right))
        if len(conditions) < 2:
            return conditions[0] if conditions else None
        return tf.reduce_all(tf.stack(conditions))


_gathered: contextvars.ContextVar[Gathered | None] = contextvars.ContextVar(
    'gathered', default=None)
_said: contextvars.ContextVar[list[tuple[tf.Tensor, tf.Tensor]] | None] = contextvars.ContextVar(
    'said', default=None)


@contextlib.contextmanager
def gathered() -> Iterator[Gathered]:
    """Yields an object, to which checks only add their conditions; nothing fails.

    Then the caller must use nothing that was made in this context unless all conditions hold. But
    its operations run, so they must not fail where a condition does not hold.
    """
    found = Gathered()
    token = _gathered.set(found)
    try:
        yield found
    finally:
        _gathered.reset(token)


def require_gathered(found: Gathered, explain: Callable[[], tf.Tensor]) -> tf.Operation | None:
    """Returns an op of a TF1 graph that fails unless all conditions hold; `None` without any.

    Args:
      found: the conditions.
      explain: returns the message, see `first_message`. It must be made by few operations: all
        of them are in the graph, but they run only where a condition does not hold.
    """
    holds = found.holds()
    if holds is None:
        return None
    # `tf.cond` would take an operation for each tensor that `explain` uses.
    wrong, right = tf.raw_ops.Switch(data=holds, pred=holds)
    with tf.control_dependencies([tf.identity(wrong)]):
        message = explain()
    with tf.control_dependencies([tf.identity(right)]):
        nothing = tf.constant('')
    # It fails whatever `explain` returns, even if that finds nothing.
    return tf.debugging.Assert(holds, [tf.raw_ops.Merge(inputs=[nothing, message]).output])


def first_message(make: Callable[[], object]) -> tf.Tensor:
    """Returns the message of the first check that fails, `''` if none does; nothing fails.

    `make` makes the checks, in a function of TF2 and outside of `gathered`.
    """
    said: list[tuple[tf.Tensor, tf.Tensor]] = []
    token = _said.set(said)
    try:
        make()
    finally:
        _said.reset(token)
    message = tf.constant('')
    for holds, text in reversed(said):
        message = tf.where(holds, message, text)
    return message


def require_silence(message: tf.Tensor) -> tf.Operation:
    """Returns an op that fails with a result of `first_message`, unless it is `''`."""
    return tf.debugging.Assert(tf.equal(message, ''), [message])


def require(condition: tf.Tensor, problem: Problem, *,
            got: tf.Tensor | str | Callable[[], tf.Tensor],
            where: tf.Tensor | str | None = None, step: tf.Tensor | None = None) -> tf.Operation:
    """Returns an op that fails with `problem` unless all of `condition` holds.

    Args:
      condition: bool, any shape.
      problem: the error; `got` replaces its `got`.
      got: scalar string, built from the offending values, or a function that builds it.
      where: scalar string that replaces the `where` of `problem`, if it is known only at run time.
      step: integer scalar that replaces the `step` of `problem`, or `None`.
    """
    found = _gathered.get()
    if found is not None:
        return found.add(condition)
    got = got() if callable(got) else got
    where = problem.where if where is None else where
    if tf.executing_eagerly_outside_functions():
        message = _joined([
            f'{problem.code} ', where, f': {problem.rule}; got ', got, f'.  {problem.remedy}'])
    else:
        end = f'{problem.remedy}{_END}'
        # An empty step takes no operation of its own: there is a check per feature and core.
        last = [f'{_SEPARATOR}{end}'] if step is None else [tf.strings.as_string(step), end]
        message = _joined([f'{_BEGIN}{problem.code}', where, problem.rule, got, *last],
                          separator=_SEPARATOR)
    holds, said = tf.reduce_all(condition), _said.get()
    if said is not None:
        said.append((holds, message))
        return holds.op
    return tf.debugging.Assert(holds, [message])


def limited(numbers: tf.Tensor, bound: int, problem: Problem, *,
            got: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Returns int64 numbers that fail to evaluate with `problem` unless all are in `[0, bound)`.

    `got` returns a scalar string of the wrong numbers, which its argument, a mask, tells.
    """
    found = _gathered.get()
    if found is not None:
        found.limit(numbers, bound)
        return numbers
    right = are_below(numbers, bound)
    with tf.control_dependencies([require(right, problem, got=lambda: got(~right))]):
        return tf.identity(numbers)


def are_below(numbers: tf.Tensor, bound: int | np.ndarray) -> tf.Tensor:
    """Returns which numbers, int64, are in `[0, bound)`, with a single comparison."""
    return tf.bitcast(numbers, tf.uint64) < tf.constant(bound, tf.uint64)


def require_of_tables(tables: Sequence[str], fails: tf.Tensor, problem: Problem, *,
                      got: Callable[[tf.Tensor], tf.Tensor], step: tf.Tensor | None = None
                      ) -> tf.Operation:
    """Returns an op that fails with `problem`, about the first table for which `fails` holds.

    `got` returns a scalar string for the position of that table.
    """
    first = tf.argmax(tf.cast(fails, tf.int32))
    names = tf.constant([f'table "{name}"' for name in tables])
    return require(~fails, problem, got=got(first), where=names[first], step=step)


def first_values(values: tf.Tensor, most: int = 3) -> tf.Tensor:
    """Returns the first few values of a vector as one scalar string: `12, 13, 14`."""
    return tf.strings.reduce_join(tf.strings.as_string(values[:most]), separator=', ')


def masked(values: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Returns the elements for which `kept`, bool of the shape of `values`, holds, as a vector.

    It replaces `tf.boolean_mask`, with 4 operations instead of 29. Each core of each job has some
    of these per feature, and building them took a good part of the start of a job.
    """
    return tf.gather_nd(values, tf.where(kept))


def not_inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of TF2 that is traced once and not inlined into its callers.

    TensorFlow visits every operation of a branch that is not taken. So a rare branch is cheaper as
    one call. A frequent one is not: a call takes the time of some small operations.
    """
    return tf.function(function, autograph=False, experimental_attributes={'_noinline': True})


def _joined(parts: Sequence[tf.Tensor | str], separator: str = '') -> tf.Tensor | str:
    """Joins scalar strings, without an operation if all are known."""
    if all(isinstance(part, str) for part in parts):
        return separator.join(parts)
    return tf.strings.join(parts, separator=separator)


def message_to_problem(message: str) -> Problem | None:
    """Returns the problem that the message of a failed `require` carries, or `None`.

    >>> message_to_problem(
    ...     'assertion failed: [<<ete|E501|ete|feature "a"|ete|be small|ete|7|ete|12|ete||ete>>]')
    Problem(code='E501', where='feature "a"', rule='be small', got='7', remedy='', step=12)
    """
    found = re.search(re.escape(_BEGIN) + '(.*?)' + re.escape(_END), message, re.DOTALL)
    if found is None:
        return None
    # The assert op escapes the bytes of its strings as C does.
    text = found.group(1).encode().decode('unicode_escape')
    fields = text.encode('latin-1', 'replace').decode('utf-8', 'replace').split(_SEPARATOR)
    if len(fields) != 6:
        return None
    code, where, rule, got, step, remedy = fields
    return Problem(code, where, rule, got, remedy, int(step) if step else None)
