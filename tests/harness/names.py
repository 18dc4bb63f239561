"""Finds the TensorFlow names that a script mentions."""

import ast
import re

ROOTS = ('tf', 'tf_estimator', 'tpu_embedding', 'tpu_embedding_gradient')


def tensorflow_names(source):
    """The dotted names in the source of a script that begin with one of `ROOTS`.

    Only whole chains count: of `tf.app.run` not `tf.app` too.

    Returns:
      Sorted, without duplicates.
    """
    tree = ast.parse(source)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    chains = {ast.unparse(node) for node in ast.walk(tree)
              if isinstance(node, ast.Attribute) and id(node) not in inner}
    return sorted(name for name in chains if re.fullmatch(rf'({"|".join(ROOTS)})\.[\w.]+', name))
