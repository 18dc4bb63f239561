"""Says which names of libraries the expressions of one file mean."""

from __future__ import annotations

import ast

from .lookups import chain_of
from .state import State


class Names:
    """The names of one file, after all its statements were followed."""

    def __init__(self, state: State):
        """Keeps what the names of the tree mean."""
        self._state = state

    def resolve(self, node: ast.expr) -> str | None:
        """Returns the whole path of an expression, or `None` if it is no name of a library.

        A name may have several meanings, as after `try: import a as x / except: import b as x`.
        Then it is the first. The result of a call has no path, and neither have its attributes.

        Args:
          node: a `Name` or an `Attribute` of the tree that was scanned, such as `tf.train.Saver`.

        Returns:
          A path such as `'tensorflow.train.Saver'` or `'builtins.xrange'`.
        """
        return next(iter(self.resolve_all(node)), None)

    def resolve_all(self, node: ast.expr) -> tuple[str, ...]:
        """Returns all paths that an expression may have; see `resolve`."""
        base, names = chain_of(node)
        return tuple(dict.fromkeys(
            one.question.path for one in self._state.final(
                self._state.meant.get(id(base), ()), '.'.join(names))
            if one.question is not None))
