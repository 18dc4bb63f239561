"""Says which names of libraries the expressions of one file mean."""

from __future__ import annotations

import ast

from .lookups import chain_of
from .meanings import Meaning, Meanings
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
        meanings: Meanings = self._state.meant.get(id(base), ())
        if names and any(one.owner is not None for one in meanings):
            inside: list[Meaning] = []
            for one in meanings:
                found = one.owner.get(names[0]) if one.owner is not None else None
                inside += (each for each in found or () if each.owner is None)
            meanings, names = tuple(inside), names[1:]
        return tuple(dict.fromkeys(
            one.question.path for one in self._state.final(meanings, '.'.join(names))
            if one.question is not None))
