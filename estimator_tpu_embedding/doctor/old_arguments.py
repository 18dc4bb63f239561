"""Finds arguments that functions of TensorFlow 1 have, and those of TensorFlow 2 lack.

The functions are there in both. So a script may run without `--tf1` up to such a call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .facts import Fact, Place
from .nodes import Nodes
from .old_methods import guards_around

_SUMS = frozenset({f'reduce_{name}' for name in 'all any max mean min prod sum'.split()})
ARGUMENTS = {
    'dim': frozenset({'expand_dims', 'nn.log_softmax', 'nn.softmax'}),
    'dimension': frozenset({'argmax', 'argmin'}),
    'filter': frozenset({'nn.conv2d', 'nn.conv2d_transpose', 'nn.conv3d'}),
    'fn1': frozenset({'cond'}), 'fn2': frozenset({'cond'}),
    'keep_dims': _SUMS | {'norm', 'nn.moments'},
    'keep_prob': frozenset({'nn.dropout'}),
    'partition_strategy': frozenset({'nn.embedding_lookup', 'nn.embedding_lookup_sparse',
                                     'nn.nce_loss', 'nn.sampled_softmax_loss'}),
    'reduction_indices': _SUMS, 'squeeze_dims': frozenset({'squeeze'})}
"""By argument, the functions below `tf`."""


def facts_of(nodes: Nodes, paths_of: Callable[[ast.expr], tuple[str, ...]],
             place_of: Callable[[ast.AST], Place]) -> Iterator[Fact]:
    """Yields a fact `'old argument'` per such argument of a call.

    What a `try` or a test of the version guards is left out.
    """
    for call in nodes.of(ast.Call):
        for each in call.keywords:
            functions = ARGUMENTS.get(each.arg or '')
            if functions is None:
                continue
            paths = paths_of(call.func)
            if (paths and all(path.removeprefix('tensorflow.') in functions for path in paths)
                    and not guards_around(call, nodes)):
                yield Fact('old argument', place_of(each), {
                    'name': each.arg, 'path': paths[0]})
