"""Reads the package's own Python files, finds imports, names and texts, and compares with lists."""

import ast
import dataclasses
import functools
import pathlib
import re

NAME = 'estimator_tpu_embedding'
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / NAME
_EMPTY = re.compile(r'\[\]|\{\}|(set|dict|list)\(\)|.*\b(Weak\w+|ContextVar)\(.*|'
                    r'(collections\.)?(defaultdict|OrderedDict|Counter|deque)\(.*')


@dataclasses.dataclass(frozen=True)
class Source:
    """One file of the package.

    Attributes:
      file: its path below the package, with `/`.
      text: its content.
      tree: the same, parsed.
    """

    file: str
    text: str
    tree: ast.Module

    @property
    def part(self):
        """The folder that the file is in, or the name of a module at the top."""
        first, slash, _ = self.file.partition('/')
        return first if slash else first.removesuffix('.py')


@functools.cache
def sources():
    """Every Python file of the package that was written by hand."""
    return tuple(Source(path.relative_to(PACKAGE).as_posix(), text, ast.parse(text))
                 for path in sorted(PACKAGE.rglob('*.py')) if not path.name.endswith('_pb2.py')
                 for text in [path.read_text()])


@functools.cache
def parts():
    """The folders of the package and the modules at its top."""
    return frozenset(source.part for source in sources())


@functools.cache
def imports(source):
    """(absolute name, line) of each import; the name ends with what is imported from a module."""
    return [(name, node.lineno) for node in ast.walk(source.tree)
            if isinstance(node, (ast.Import, ast.ImportFrom)) for name in _imported(source, node)]


@functools.cache
def imports_in_functions(source):
    """Returns the imports that wait until a function is called."""
    return [(name, node.lineno) for function in ast.walk(source.tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            for node in ast.walk(function) if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in _imported(source, node)]


def _imported(source, node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = (NAME, *source.file.split('/')[:-1])
    base = package[:len(package) + 1 - node.level] if node.level else ()
    module = '.'.join((*base, *filter(None, [node.module])))
    return [f'{module}.{alias.name}' for alias in node.names]


@functools.cache
def names(source):
    """(dotted name, line) of what is called, read as an attribute or given by keyword.

    A keyword is followed by `=`, and what is subscripted by `[]`.
    """
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            found.append((ast.unparse(node), node.lineno))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.append((node.func.id, node.lineno))
        elif isinstance(node, ast.Subscript):
            found.append((f'{ast.unparse(node.value)}[]', node.lineno))
        elif isinstance(node, ast.keyword) and node.arg:
            found.append((f'{node.arg}=', node.value.lineno))
    return found


def uses(source):
    """`names` and `imports` in one: a thing can be imported by its name and used without a dot."""
    return names(source) + imports(source)


def private_names(source):
    """(name, line) of each attribute `_x` of another object that the file itself gives to none."""
    own = {getattr(node, 'name', None) or getattr(node, 'attr', None) or node.id
           for node in ast.walk(source.tree)
           if isinstance(node, (ast.FunctionDef, ast.ClassDef))
           or isinstance(getattr(node, 'ctx', None), ast.Store) and (
               isinstance(node, ast.Name)
               or isinstance(node, ast.Attribute) and ast.unparse(node.value) == 'self')}
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            found.append((node.value, node.attr, node.lineno))
        elif isinstance(node, ast.Call) and len(node.args) > 1 and ast.unparse(node.func) in (
                'getattr', 'setattr', 'hasattr') and isinstance(node.args[1], ast.Constant):
            found.append((node.args[0], node.args[1].value, node.lineno))
    return [(name, line) for owner, name, line in found
            if re.match('_[a-z]', name) and name not in own
            and ast.unparse(owner) not in ('self', 'cls', 'super()')]


@functools.cache
def strings(source):
    """(text, line) of each string but docstrings; an f-string gives its constant pieces."""
    documentation = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    return [(node.value, node.lineno) for node in ast.walk(source.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and id(node) not in documentation]


def remembered(source):
    """(name, line) of what a module keeps for the process.

    That is each name of a `global` statement, and each container that the module makes empty for
    its functions to fill.
    """
    return [(name, node.lineno) for node in ast.walk(source.tree) if isinstance(node, ast.Global)
            for name in node.names] + [
        (ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target),
         node.lineno) for node in source.tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.value is not None and _EMPTY.fullmatch(ast.unparse(node.value))]


def searched(node):
    """The source of each value that a call or a comparison looks for something in."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
            node.func.attr in ('search', 'match', 'fullmatch', 'findall', 'finditer')):
        return [ast.unparse(argument) for argument in node.args]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return [ast.unparse(comparator) for comparator in node.comparators]
    return []


def compare(found, allowed):
    """Fails for a place that no entry of `allowed` covers, and for an entry that covers none.

    Args:
      found: pairs of a place, for the message, and the entries that would cover it.
      allowed: entries of a list.
    """
    found = [(place, allowed & set(entries)) for place, entries in found]
    strays = [place for place, covering in found if not covering]
    assert not strays, f'places that no entry covers: {strays}'
    stale = set(allowed).difference(*(covering for _, covering in found))
    assert not stale, f'entries that cover no place: {stale}'


def at(source, line, what=''):
    """A place as `compare` takes it, covered by the file and by the folder or module."""
    return f'{NAME}/{source.file}:{line} {what}'.rstrip(), (source.file, source.part)


def found_by(search, wanted):
    """The places where `search` gives one of the dotted names wanted, or one below it."""
    return [at(source, line, name) for source in sources() for name, line in search(source)
            if any(f'{name}.'.startswith(f'{each}.') for each in wanted)]


def size_without_docstring(node):
    """The lines of a function, without those of its docstring."""
    docstring = ast.get_docstring(node, clean=False)
    return node.end_lineno - node.lineno + 1 - (docstring.count('\n') + 1 if docstring else 0)
