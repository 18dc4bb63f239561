"""Enforces the shape of the code: sizes, no asserts, and settings without leftovers."""

import ast
import configparser
import tomllib

from harness.source import NAME, PACKAGE, at, compare, size_without_docstring, sources

SEAMS = {'runner': (6, 13)}  # folder: most arguments of a function, most attributes of an object

NARROWING = {'is not None', 'isinstance'}  # `assert`s that are for the type checker


def test_files_and_functions_stay_below_their_ceilings():
    files = {source.file: len(source.text.splitlines()) for source in sources()}
    functions = {f'{source.file}:{node.lineno} {node.name}': size_without_docstring(node)
                 for source in sources() for node in ast.walk(source.tree)
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert [where for where, lines in files.items() if lines > 800] == []
    assert [where for where, lines in functions.items() if lines > 60] == []


def is_wide(node, most_arguments, most_attributes):
    if isinstance(node, ast.FunctionDef):
        taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return len({one.arg for one in taken} - {'self', 'cls'}) > most_arguments
    return isinstance(node, ast.ClassDef) and len({
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == 'self'}) > most_attributes


def test_values_that_belong_together_are_passed_and_kept_together():
    compare([at(source, node.lineno, node.name) for source in sources() if source.part in SEAMS
             for node in ast.walk(source.tree) if is_wide(node, *SEAMS[source.part])], set())


def test_inner_layers_check_with_errors_not_with_assert():
    """`python -O` removes asserts: those left only narrow types for the type checker."""
    compare([(f'{source.file}:{node.lineno}',
              {each for each in NARROWING if each in ast.unparse(node.test)})
             for source in sources() for node in ast.walk(source.tree)
             if isinstance(node, ast.Assert)], NARROWING)


def expanded(path):
    """The patterns that one with braces stands for."""
    before, _, rest = path.partition('{')
    inner, _, after = rest.partition('}')
    return [f'{before}{one}{after}' for one in inner.split(',')]


def test_settings_name_what_exists_and_each_extra_once():
    settings = configparser.ConfigParser()
    settings.read(PACKAGE.parent / 'setup.cfg')
    typed = [module.removesuffix('.*').replace('.', '/') for section in settings
             if section.startswith('mypy-') for module in section.removeprefix('mypy-').split(',')
             if module.startswith(NAME)]
    linted = tomllib.loads((PACKAGE.parent / 'pyproject.toml').read_text())['tool']['ruff']['lint']
    paths = [made for path in linted['per-file-ignores'] for made in expanded(path)]
    assert typed and paths
    assert [path for path in [*paths, *typed] if not any(
        any(PACKAGE.parent.glob(name)) for name in (path, f'{path}.py'))] == []
    extras = [sorted(each.split()) for each in settings['options.extras_require'].values()]
    assert not [each for each in extras if extras.count(each) > 1]
