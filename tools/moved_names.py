"""Lists the private names of older TensorFlows that have another home in the installed one.

It reads `.py` files by `ast` and imports nothing. A name counts where a file defines it; what a
file only imports was never at home there. The home of today is the one file that defines a name of
the same kind. Names with several such files are left out. A person reads the list: a name that is
called as before may have got another meaning. The first table
of `OLD_NAMES.md` is what was left.

    python tools/moved_names.py tensorflow-1.15.5-*.whl tensorflow-2.4.4-*.whl ...

The wheels come from the package index, of which only the `.py` files are read:

    pip download --no-deps --only-binary=:all: --python-version 3.8 \\
        --platform manylinux2010_x86_64 tensorflow==2.8.4
"""

import ast
import collections
import functools
import importlib.util
import itertools
import pathlib
import re
import sys
import zipfile

SOURCE = re.compile(r'tensorflow(?:_core)?/python/(.*)\.py')
OTHERS = re.compile(r'_test$|\btest|(^|\.)keras\.|(^|\.)_')  # no business of scripts
EVERYWHERE = re.compile(r'_|.*(TypeVar|Func)|T|FLAGS|main$|logging|register|[A-Z]$')


def sources_of_wheel(path):
    """Yields the module, below `tensorflow.python`, and the text of each file of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if found := SOURCE.fullmatch(name):
                yield module_of(found[1]), wheel.read(name).decode()


def sources_of_installed():
    """Yields the same of the TensorFlow that is installed."""
    folder = pathlib.Path(importlib.util.find_spec('tensorflow').origin).parent / 'python'
    for path in folder.rglob('*.py'):
        yield module_of(path.relative_to(folder).with_suffix('').as_posix()), path.read_text()


def module_of(path):
    """The path of a module as `import` takes it."""
    return re.sub(r'\.?\b__init__$', '', path.replace('/', '.'))


def bound(body):
    """Yields each name that statements bind at the top of a module, and its kind."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, type(node).__name__
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for one in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(one, ast.Name):
                    yield one.id, 'value'
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                yield (one.asname or one.name).partition('.')[0], 'import'
        for part in ('body', 'orelse', 'handlers', 'finalbody'):
            if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                yield from bound(getattr(node, part, ()))


def names_of(sources):
    """The names of each module with their kinds; a definition counts before an import."""
    found = {}
    for module, text in sources:
        if not OTHERS.search(module):
            names = sorted(bound(ast.parse(text).body), key=lambda pair: pair[1] != 'import')
            found[module] = dict(names)
    return found


def nearness(one, other):
    """How many packages two modules have in common, and whether their names begin alike."""
    pairs = list(itertools.takewhile(
        lambda pair: pair[0] == pair[1], zip(one.split('.'), other.split('.'), strict=False)))
    return len(pairs), other.rpartition('.')[2].startswith(one.rpartition('.')[2])


def moved(old, new):
    """Yields each module and name that `new` lacks there, with its home in `new`."""
    homes = collections.defaultdict(list)
    for module, names in new.items():
        for name, kind in names.items():
            homes[name, kind].append(module)
            if kind in ('ClassDef', 'FunctionDef'):
                homes[name, 'value'].append(module)  # Such as `Tensor = tensor.Tensor` once.
    for module, names in old.items():
        for name, kind in names.items():
            if kind != 'import' and name not in new.get(module, ()) and not (
                    EVERYWHERE.fullmatch(name) or name.startswith('_')):
                if found := sorted(homes[name, kind], key=functools.partial(nearness, module),
                                   reverse=True):
                    is_clear = len(found) == 1 or nearness(module, found[0]) > nearness(
                        module, found[1])
                    yield module, '|'.join(found[:1 if is_clear else 3]), name


def main(wheels):
    """Prints a line per module and home: `old new: names`; `=` in front where `old` is gone."""
    new = names_of(sources_of_installed())
    found = collections.defaultdict(set)
    for wheel in wheels:
        for module, home, name in moved(names_of(sources_of_wheel(wheel)), new):
            found[module, home].add(name)
    for (module, home), names in sorted(found.items()):
        print(f'{"" if module in new else "="}{module} {home}:', *sorted(names))


if __name__ == '__main__':
    main(sys.argv[1:])
