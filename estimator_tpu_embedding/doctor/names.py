"""Says which names of libraries the expressions of one file mean."""

from __future__ import annotations

import ast


class Names:
    """The names of one file, after all its statements were followed."""

    def resolve(self, node: ast.expr) -> str | None:
        """Returns the whole path of an expression, or `None` if it is no name of a library.

        A name may have several meanings, as after `try: import a as x / except: import b as x`.
        Then it is the first. What a call returns, and what is looked up in it, has no path.

        Args:
          node: a `Name` or an `Attribute` of the tree that was scanned, such as `tf.train.Saver`.

        Returns:
          A path such as `'tensorflow.train.Saver'` or `'builtins.xrange'`.
        """
        raise NotImplementedError

    def resolve_all(self, node: ast.expr) -> tuple[str, ...]:
        """Returns all paths that an expression may have; see `resolve`."""
        raise NotImplementedError
