"""Enforces the shape of the code: sizes, docstrings, no asserts, and settings without leftovers."""

import ast
import configparser

from harness.source import NAME, PACKAGE, at, compare, sources, undocumented

# The verbs of engines and backends are documented once, in the protocols of hosts/backend.py.
UNDOCUMENTED = {f'hosts/{name}.py' for name in (
    'delayed', 'engine_backend', 'native', 'native_exchange', 'observed', 'owner', 'per_host',
    'pipelined', 'stock', 'wrapper')}

SEAMS = {'runner': (6, 13)}  # folder: most arguments of a function, most attributes of an object
WIDE = {'runner/async_saver.py'}  # a signature of TensorFlow

NARROWING = {'is not None', 'isinstance'}  # `assert`s that are for the type checker


def size_without_docstring(node):
    docstring = ast.get_docstring(node, clean=False)
    return node.end_lineno - node.lineno + 1 - (docstring.count('\n') + 1 if docstring else 0)


def test_files_and_functions_stay_below_their_ceilings():
    files = {source.file: len(source.text.splitlines()) for source in sources()}
    functions = {f'{source.file}:{node.lineno} {node.name}': size_without_docstring(node)
                 for source in sources() for node in ast.walk(source.tree)
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert [where for where, lines in files.items() if lines > 450] == []
    assert [where for where, lines in functions.items() if lines > 60] == []
    # The aim is 300 and 40; what lies between aim and ceiling stays rare.
    assert sum(lines > 300 for lines in files.values()) <= len(files) // 20
    assert sum(lines > 40 for lines in functions.values()) <= 5


def is_wide(node, most_arguments, most_attributes):
    if isinstance(node, ast.FunctionDef):
        taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return len({one.arg for one in taken} - {'self', 'cls'}) > most_arguments
    return isinstance(node, ast.ClassDef) and len({
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == 'self'}) > most_attributes


def test_values_that_belong_together_are_passed_and_kept_together():
    compare([at(source, node.lineno, node.name) for source in sources() if source.part in SEAMS
             for node in ast.walk(source.tree) if is_wide(node, *SEAMS[source.part])], WIDE)


def test_inner_layers_check_with_errors_not_with_assert():
    """`python -O` removes asserts: those left only narrow types for the type checker."""
    compare([(f'{source.file}:{node.lineno}',
              {each for each in NARROWING if each in ast.unparse(node.test)})
             for source in sources() for node in ast.walk(source.tree)
             if isinstance(node, ast.Assert)], NARROWING)


def test_public_functions_and_classes_have_docstrings():
    compare([at(source, line, name) for source in sources()
             for name, line in undocumented(source)], UNDOCUMENTED)


def test_settings_name_what_exists_and_each_extra_once():
    settings = configparser.ConfigParser()
    settings.read(PACKAGE.parent / 'setup.cfg')
    typed = [module.removesuffix('.*').replace('.', '/') for section in settings
             if section.startswith('mypy-') for module in section.removeprefix('mypy-').split(',')
             if module.startswith(NAME)]
    linted = [line.partition(':')[0] for line in settings['flake8']['per-file-ignores'].split('\n')
              if ':' in line]
    assert typed and linted
    assert [path for path in [*linted, *typed] if not any(
        (PACKAGE.parent / name).exists() for name in (path, f'{path}.py'))] == []
    extras = [sorted(each.split()) for each in settings['options.extras_require'].values()]
    assert not [each for each in extras if extras.count(each) > 1]
