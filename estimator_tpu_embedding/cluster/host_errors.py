"""Holds the errors about workers that do not answer."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import EteError, Problem


class HostUnavailableError(EteError):
    """E707, E711: hosts that did not answer by the deadline, though a job was told to use them.

    Attributes:
      hosts: their numbers.
    """

    hosts: tuple[int, ...] = ()

    def __init__(self, *problems: Any, hosts: tuple[int, ...] = ()):
        super().__init__(*problems)
        self.hosts = hosts


def no_answer(where: str, seconds: float, why: str) -> Problem:
    """Returns E707: a worker does not answer."""
    return Problem('E707', where, f'it must answer within {seconds:g} s', why,
                   'Look whether "etpe worker" runs there, with "etpe worker ls".')


class HostLostError(HostUnavailableError, tf.errors.UnavailableError):
    """A host that answered before and does so no longer, in the middle of a run.

    A `MonitoredSession` knows it by the second class: it makes a new session, and that restores the
    newest checkpoint. `HostUnavailableError` alone ends a run.
    """

    def __init__(self, *problems: Problem, hosts: tuple[int, ...] = ()):
        tf.errors.UnavailableError.__init__(self, None, None, '\n'.join(map(str, problems)))
        self.args = problems
        self.hosts = hosts

    @property
    def message(self) -> str:
        """The text, as every error of TensorFlow has it."""
        return str(self)
