"""Holds `TPUInfeedOutfeedSessionHook`, which the `experimental_feed_hook` of a job extends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import Problem

_THREADS = ('_run_infeed', '_run_outfeed', '_create_infeed_controller')


class TPUInfeedOutfeedSessionHook(tf.train.SessionRunHook):
    """The hook that feeds the cores while a job trains.

    A subclass that is given to `TPUConfig(experimental_feed_hook=...)` stands in its place. It is
    made with the arguments below, and its methods of a `SessionRunHook` are called. A method that
    it overrides must call the method of this class.

    `self._dequeue_ops` holds the stopping signals of all cores under their name, joined along the
    first dimension. `before_run` may fetch them; `after_run` then has the values of the last step
    of the loop.

    The runner owns the threads that draw batches: methods for threads cannot be overridden.
    """

    def __init__(self, ctx: Any, enqueue_ops: Any, dequeue_ops: Mapping[str, Any],
                 tpu_compile_op: Any, run_infeed_loop_on_coordinator: bool = True,
                 rendezvous: Any = None, master: str | None = None, session_config: Any = None,
                 tpu_init_ops: Any = None, outfeed_every_n_steps: int = 1):
        """Stores the arguments that the runner hands over.

        Args:
          ctx: a `TPUContext`, as a model_fn gets it.
          enqueue_ops: feeds the cores, and must be handed on; here it is a hook.
          dequeue_ops: the stopping signals, by their name.
          tpu_compile_op: `None`, since nothing is compiled.
          run_infeed_loop_on_coordinator: not used.
          rendezvous: not used.
          master: of the RunConfig; not used.
          session_config: of the RunConfig; not used.
          tpu_init_ops: not used.
          outfeed_every_n_steps: `experimental_host_call_every_n_steps`; not used.
        """
        self._enqueue_ops = enqueue_ops
        self._dequeue_ops = dequeue_ops

    @staticmethod
    def get_stopping_signals_and_name(features: Any) -> tuple[Any, str | None]:
        """Returns tensors that tell of the end of data, by name, and a name for them; here none.

        Args:
          features: the features of one core, as model_fn gets them.
        """
        return None, None

    def begin(self) -> None:
        """Prepares to feed."""
        self._enqueue_ops.begin()

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Starts the threads that feed."""
        self._enqueue_ops.after_create_session(session, coord)

    def end(self, session: tf.Session) -> None:
        """Ends the threads that feed."""
        self._enqueue_ops.end(session)


def problems_of(cls: Any) -> Iterator[Problem]:
    """Yields every problem of an `experimental_feed_hook`."""
    if not (isinstance(cls, type) and issubclass(cls, TPUInfeedOutfeedSessionHook)):
        yield Problem('E907', 'TPUConfig.experimental_feed_hook', 'it must be a subclass of '
                      'TPUInfeedOutfeedSessionHook, without which nothing would feed', repr(cls))
        return
    changed = [name for name in _THREADS if hasattr(cls, name)]
    if changed:
        yield Problem(
            'E907', 'TPUConfig.experimental_feed_hook', 'the threads that feed are the '
            "runner's and cannot be replaced", f'{cls.__name__} defines {", ".join(changed)}',
            'Override methods of SessionRunHook instead; before_run may fetch '
            'self._dequeue_ops.')
