"""Sessions whose calls and beginnings are seen by this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def pass_calls_through(session: Any, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
                       ) -> None:
    """Lets what `wrap` returns stand for the methods by which a session runs anything.

    There are two. `make_callable` uses only the second, and `fast_callable` only the first. Hooks
    of users get the session itself, so that no class around it would see all calls.
    Checked: 2.16-2.21.
    """
    session._do_call = wrap(session._do_call)
    session._call_tf_sessionrun = wrap(session._call_tf_sessionrun)


def ask_nothing(session: Any) -> None:
    """Lets the server of a session refuse a run that asks for nothing.

    The server does that in a thread of its own, so it answers while steps occupy all threads that
    run operations. `session.run` sends nothing if nothing is asked for, and `list_devices` keeps
    Python's lock while it waits. Checked: 2.16-2.21.

    Raises:
      tf.errors.InvalidArgumentError: if the server answers.
      tf.errors.AbortedError: if the server does not know the session: it is another process.
      tf.errors.OpError: if nobody answers.
    """
    session._call_tf_sessionrun(None, {}, [], [], None)


def leave_session(session: Any) -> None:
    """Lets nobody close a session, neither a caller nor the garbage collector.

    Closing waits for each process of a cluster, even for one that is gone. The collector calls
    `close`, too. The session is not marked as closed, for a call would then fail by that, and not
    by the loss that `pass_calls_through` may raise. Checked: 2.16-2.21.
    """
    session.close = lambda: None


def creator_that_tells(told: Callable[[Any], None], *arguments: Any, **named: Any) -> Any:
    """Returns a `ChiefSessionCreator` that tells of a session before it restores or runs anything.

    The public class makes the session inside of the method that restores. Checked: 2.16-2.21.

    Args:
      told: is given the session.
      *arguments: of `ChiefSessionCreator`.
      **named: as well.
    """
    import tensorflow.compat.v1 as tf
    creator = tf.train.ChiefSessionCreator(*arguments, **named)
    make_manager = creator._get_session_manager

    def manager_that_tells() -> Any:
        manager = make_manager()
        open_only = type(manager)._restore_checkpoint

        def restore(master: str, saver: Any = None, checkpoint_dir: str | None = None,
                    checkpoint_filename_with_path: str | None = None, config: Any = None,
                    **others: Any) -> tuple[Any, bool]:
            session, _ = open_only(manager, master, config=config)
            told(session)
            if saver is None or not checkpoint_filename_with_path:
                return session, False
            if found := tf.get_collection('saved_model_initializers'):
                session.run(found)
            saver.restore(session, checkpoint_filename_with_path)
            return session, True

        manager._restore_checkpoint = restore
        return manager

    creator._get_session_manager = manager_that_tells
    return creator
