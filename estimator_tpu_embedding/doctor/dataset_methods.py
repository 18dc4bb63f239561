"""Records methods of datasets that only TensorFlow 1 has.

Nobody knows the types of objects here. But no other class that scripts use has methods of these
names. A script that calls one means TensorFlow 1, even if nothing else in it says so. The library
is asked, as for every other name.
"""

from __future__ import annotations

import ast

from .facts import Question
from .lookups import chain_of, meaning_of
from .meanings import ATTRIBUTE, OTHERS
from .state import State

METHODS = frozenset({'make_initializable_iterator', 'make_one_shot_iterator'})
_V1, _V2 = 'tensorflow.compat.v1', 'tensorflow'


def record(state: State, node: ast.Attribute) -> None:
    """Records a use of the class of datasets, if an object of unknown kind gets such a method."""
    if state.is_shallow or meaning_of(state, node.value) is not OTHERS:
        return
    modules = {use.question.module for use in state.uses}
    if _V1 in modules or _V2 in modules:
        base, names = chain_of(node)
        first = f'{base.id}.' if isinstance(base, ast.Name) else '(...).'
        module = _V1 if _V1 in modules else _V2
        state.use(node, Question(module, f'data.Dataset.{node.attr}'), first + '.'.join(names),
                  ATTRIBUTE)
