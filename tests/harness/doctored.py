"""Scans small files for tests of the doctor."""

import ast
import textwrap

from estimator_tpu_embedding.doctor import constructs
from estimator_tpu_embedding.doctor.facts import Place, ScannedFile


class Imports:
    """Resolves names by the import statements of a file."""

    def __init__(self, tree):
        self._paths = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    name = each.asname or each.name.partition('.')[0]
                    self._paths[name] = each.name if each.asname else name
            elif isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    self._paths[each.asname or each.name] = f'{node.module}.{each.name}'

    def resolve(self, node):
        if isinstance(node, ast.Name):
            return self._paths.get(node.id)
        if isinstance(node, ast.Attribute):
            path = self.resolve(node.value)
            return path and f'{path}.{node.attr}'
        return None


def scanned(source, path='train.py', imports=()):
    """Returns a `ScannedFile` of a source; it imports the modules by their line."""
    tree = ast.parse(textwrap.dedent(source))
    module = path.removesuffix('.py').replace('/', '.').removesuffix('.__init__')

    def place_of(node):
        return Place(path, node.lineno, node.col_offset + 1, node.end_lineno,
                     node.end_col_offset + 1)

    return ScannedFile(
        path=path, module=module, facts=constructs.facts_of(tree, Imports(tree), place_of),
        imports={name: Place(path, line) for line, name in enumerate(imports, 1)},
        is_program='__main__' in source, lines=source.count('\n') + 1)
