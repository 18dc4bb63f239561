"""One visit finds every node that matters, and what is around it."""

import ast
import pathlib

from harness.processes import ROOT

from estimator_tpu_embedding.doctor.syntax import Nodes

LEFT_OUT = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


def test_every_node_is_found_with_the_node_above_it():
    source = '\n'.join(path.read_text() for path in (
        pathlib.Path(__file__), ROOT / 'tests' / 'scripts' / 'absl_flags.py'))
    rest = 'x = [*a, -b, c < d <= e, f[1:g], h and i, (j := 1), f"{k!r:>{l}}"]'
    tree = ast.parse(f'{source}\n{rest}\n')
    nodes = Nodes(tree)
    every = [node for node in ast.walk(tree) if not isinstance(node, LEFT_OUT)]
    for node in every:
        assert node in nodes.of(type(node))
    above = {child: node for node in every for child in ast.iter_child_nodes(node)
             if not isinstance(child, LEFT_OUT)}
    for node, parent in above.items():
        assert nodes.parents[node] is parent
    assert list(nodes.above(tree.body[-1])) == [tree]
