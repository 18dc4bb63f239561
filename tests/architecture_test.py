"""Who may import whom, who may touch what, and how large things may be: read from the AST.

It is the best documentation of the table in ARCHITECTURE.md, which it enforces.
"""

import ast
import re
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / 'estimator_tpu_embedding'
FILES = sorted(path for path in PACKAGE.rglob('*.py') if not path.name.endswith('_pb2.py'))
CPP = {path.name: path.read_text() for pattern in ('*.h', '*.cc')
       for path in sorted((PACKAGE / 'native' / 'src').glob(pattern))}
CPP_TESTS = {path.name: path.read_text() for pattern in ('*.h', '*.cc')
             for path in sorted((PACKAGE.parent / 'tests' / 'native').glob(pattern))}

# folder or module: what of ours it may import besides itself
BELOW = {
    'errors': set(), '_process': {'errors'}, 'version': set(), '_tf': set(),
    '_tf_distribute': set(),
    '_distribution': {'errors', '_tf_distribute'}, '_legacy': {'errors', '_distribution'},
    'core': {'errors'}, 'native': {'errors', 'core', '_tf'}, 'proto': {'errors', 'core'},
    'ops': {'errors', 'core', '_tf'},
}
BELOW['columns'] = {'errors', 'version', '_tf', '_legacy', 'core', 'proto', 'ops'}
# What is saved must be read as the engine wants it.
BELOW['hosts'] = BELOW['checkpoint'] = BELOW['columns'] | {'native'}
BELOW['hosts'] = BELOW['hosts'] | {'_process'}
BELOW['runner'] = BELOW['hosts'] | {'hosts', 'checkpoint'}
# The face of TF2, beside the runner and the estimator, of which it needs neither.
BELOW['midlevel'] = BELOW['hosts'] - {'_legacy'} | {'hosts', 'checkpoint', '_tf_distribute'}
BELOW['estimator'] = BELOW['runner'] | {'runner', 'columns'}
BELOW['compat'] = BELOW['estimator'] | {'estimator', 'midlevel', '_tf_distribute'}
BELOW['cli'] = {'errors', 'version', 'core', 'proto', 'checkpoint'}
INSIDE_FUNCTIONS = {'cli': {'compat', 'runner'}, '__init__': {'compat'}}
BELOW['__init__'], BELOW['__main__'] = {'version'}, {'cli'}

FOREIGN = {  # folder: top-level packages it must not import
    'core': {'tensorflow', 'google', 'os', 'threading', 'time', 'absl'},
    'proto': {'tensorflow', 'os', 'threading'}, 'ops': {'os', 'threading'},
    'columns': {'os', 'threading'}, 'hosts': {'os', 'threading'}, 'checkpoint': {'threading'},
    'midlevel': {'os', 'threading'}, 'runner': {'os'}, 'cli': {'tensorflow', 'numpy'}}


def part_of(path):
    """The folder of a file, or the name of a module at the top."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path, tree):
    """Yields (absolute module, line, whether inside a function) of every import."""
    inside = {id(node) for function in ast.walk(tree)
              if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
              for node in ast.walk(function)}
    package = ('estimator_tpu_embedding', *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) + 1 - node.level] if node.level else ()
            module = '.'.join((*base, *(node.module or '').split('.'))).rstrip('.')
            for alias in node.names:
                yield f'{module}.{alias.name}', node.lineno, id(node) in inside


def trees():
    for path in FILES:
        yield path, ast.parse(path.read_text()), part_of(path)


def where(path, line):
    return f'{path.relative_to(PACKAGE.parent)}:{line}'


def test_imports_point_downward():
    wrong = []
    for path, tree, part in trees():
        for module, line, inside in imports_of(path, tree):
            root, _, rest = module.partition('.')
            if root != 'estimator_tpu_embedding' or not rest:
                continue
            target = rest.split('.')[0]
            allowed = BELOW[part] | {part} | (INSIDE_FUNCTIONS.get(part, set()) if inside
                                              else set())
            if target not in allowed:
                wrong.append(f'{where(path, line)} {part} imports {target}')
    assert not wrong


def test_each_layer_leaves_alone_what_is_not_its_business():
    wrong = []
    for path, tree, part in trees():
        for module, line, _ in imports_of(path, tree):
            root = module.split('.')[0]
            if root in FOREIGN.get(part, set()) and not (
                    root == 'os' and path.relative_to(PACKAGE).as_posix() == 'proto/files.py'):
                wrong.append(f'{where(path, line)} {part} imports {root}')
    assert not wrong


@pytest.mark.parametrize('modules, names', [
    pytest.param({'pickle', 'marshal', 'shelve', 'cloudpickle', 'yaml', 'dill', 'joblib'},
                 {'np.load', 'allow_pickle', 'read_pickle'}, id='pickles'),
    pytest.param({'gzip', 'zlib', 'bz2', 'lzma', 'zipfile', 'tarfile'},
                 {'np.load', 'tf.io.decode_compressed', 'shutil.unpack_archive'}, id='bombs')])
def test_p16_p17_nothing_reads_what_could_execute_or_unfold(modules, names):
    """What executes text is listed below with its homes; a test of the readers gives a pickle."""
    wrong = [f'{where(path, line)} imports {module}' for path, tree, _ in trees()
             for module, line, _ in imports_of(path, tree) if module.split('.')[0] in modules]
    wrong += [f'{where(path, line)} {name}' for path, tree, _ in trees()
              for name, line in calls(tree) if name in names]
    wrong += [where(path, node.value.lineno) for path, tree, _ in trees() for node in ast.walk(tree)
              if isinstance(node, ast.keyword) and node.arg in names]
    assert not wrong


def test_private_tensorflow_is_borrowed_in_two_files_and_the_nightly_in_another():
    wrong = [f'{where(path, line)} imports {module}' for path, tree, part in trees()
             for module, line, _ in imports_of(path, tree)
             if (module.startswith('tensorflow.python')
                 and part not in ('_tf', '_tf_distribute'))
             or (module.startswith('tensorflow_estimator') and part != '_legacy')]
    assert not wrong


def calls(tree):
    """Yields (dotted name, line) of everything that is called or read as an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.lineno


@pytest.mark.parametrize('names, home', [
    ({'os.environ', 'os.getenv', 'os.putenv'}, {'compat/environment.py'}),
    ({'os.rename', 'os.replace', 'os.remove', 'os.unlink', 'shutil.rmtree', 'tf.train.Saver'},
     {'checkpoint/files.py', 'checkpoint/saver.py', 'checkpoint/restore.py'}),
    ({'threading.Thread', 'signal.signal', 'signal.set_wakeup_fd'},
     {f'runner/{name}.py' for name in (
         'background', 'blocked', 'feed_progress', 'feed_watch', 'session_creators',
         'session_feed', 'shutdown', 'signals',
         'towers')}),
    ({'open', 'os.open', 'os.fdopen'},
     {'checkpoint/files.py', 'checkpoint/lock.py', 'proto/files.py'}),
    ({'print'}, {'cli/run.py'}),
    ({'eval', 'exec', 'io.open_code'}, {'compat/script.py'}),
    ({'runpy.run_path', 'os.chdir'}, {'compat/script.py'}),
    ({'sys.argv', 'sys.path'}, {'compat/script.py', 'cli/main.py', 'cli/inputs.py'}),
    # P18: a graph is never run, and code is imported only where the user named it.
    ({'tf.import_graph_def', 'tf.saved_model.load', 'tf.train.import_meta_graph',
      'text_format.Merge', 'tf.io.parse_tensor'}, set()),
    ({'importlib.import_module'},
     {'__init__.py', '_legacy.py', 'cli/inputs.py', 'cli/main.py', 'compat/roads.py',
      'midlevel/__init__.py'})])  # As in that of the package: names are imported when used.
def test_each_dangerous_thing_has_its_home(names, home):
    wrong = [f'{where(path, line)} {name}' for path, tree, _ in trees()
             if str(path.relative_to(PACKAGE)) not in home
             for name, line in calls(tree) if name in names]
    assert not wrong


def test_div_and_mod_are_told_apart_in_one_place_only():
    allowed = {'core/partition.py', 'proto/codec.py',  # the arithmetic; the proto's enum
               'checkpoint/fits.py',  # what mod means for files
               'ops/ids.py',  # a policy for ids that is called mod too
               'estimator/estimator.py', 'estimator/embedding_spec.py', 'core/plan.py'}
    wrong = [where(path, node.lineno) for path, tree, _ in trees()
             if str(path.relative_to(PACKAGE)) not in allowed
             for node in ast.walk(tree) if isinstance(node, ast.Compare)
             for side in (node.left, *node.comparators)
             if isinstance(side, ast.Constant) and side.value in ('div', 'mod')]
    assert not wrong


def test_no_fact_is_read_out_of_a_message_that_this_package_made():
    """Errors carry facts as fields; only messages of TensorFlow and Python are searched."""
    found = set()
    for path, tree, _ in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
                    node.func.attr in ('search', 'match', 'fullmatch', 'findall', 'finditer')):
                searched = node.args
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                searched = node.comparators
            else:
                continue
            if any(re.search(r'\bstr\((self|error)\)|\b(self|error)\.(message|msg|args)\b',
                             ast.unparse(one)) for one in searched):
                found.add(str(path.relative_to(PACKAGE)))
    assert found == {'columns/used.py', 'compat/hints.py', 'midlevel/replicas.py',
                     'runner/finite.py'}


def size_without_docstring(node):
    docstring = ast.get_docstring(node, clean=False)
    return node.end_lineno - node.lineno + 1 - (docstring.count('\n') + 1 if docstring else 0)


def test_files_and_functions_stay_below_their_ceilings():
    wrong, long_files, long_functions = [], 0, 0
    for path, tree, _ in trees():
        lines = len(path.read_text().splitlines())
        long_files += lines > 300
        if lines > 450:
            wrong.append(f'{where(path, 1)} {lines} lines')
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                size = size_without_docstring(node)
                long_functions += size > 40
                if size > 60:
                    wrong.append(f'{where(path, node.lineno)} {node.name}: {size} lines')
    assert not wrong
    # The aim is 300 and 40; what lies between aim and ceiling stays rare.
    assert long_files <= len(FILES) // 20 and long_functions <= 5


def test_inner_layers_check_with_errors_not_with_assert():
    """`python -O` removes asserts: those left only narrow types for the type checker."""
    wrong = [where(path, node.lineno) for path, tree, _ in trees()
             for node in ast.walk(tree) if isinstance(node, ast.Assert)
             and not re.search('is not None|isinstance', ast.unparse(node.test))]
    assert not wrong


def test_public_functions_and_classes_have_docstrings():
    wrong = []
    for path, tree, _ in trees():
        if ast.get_docstring(tree) is None:
            wrong.append(where(path, 1))
        for node in ast.walk(tree):
            for child in getattr(node, 'body', []) if isinstance(
                    node, (ast.Module, ast.ClassDef)) else []:
                if (isinstance(child, (ast.FunctionDef, ast.ClassDef))
                        and not child.name.startswith('_')
                        and not (isinstance(node, ast.ClassDef) and node.name.startswith('_'))
                        and ast.get_docstring(child) is None):
                    wrong.append(f'{where(path, child.lineno)} {child.name}')
    # The verbs of a backend are documented once, in its protocol.
    backends = tuple(f'estimator_tpu_embedding/hosts/{name}.py'
                     for name in ('backend', 'local', 'native', 'queued', 'pipelined', 'delayed'))
    assert [entry for entry in wrong if not entry.startswith(backends)] == []


def included_by(name):
    """What a C++ file includes: (the names in quotes, those in angle brackets)."""
    return tuple(re.findall(pattern, CPP[name], re.MULTILINE)
                 for pattern in (r'^#include "(.*)"', r'^#include <(.*)>'))


def test_cpp_files_stay_below_their_ceilings():
    files = {**CPP, **CPP_TESTS}
    assert [name for name, text in files.items() if len(text.splitlines()) > 300] == []
    assert [f'{name}:{number}' for name, text in files.items()
            for number, line in enumerate(text.splitlines(), 1) if len(line) > 100] == []


def test_only_operations_know_tensorflow():
    assert 'ops_common.h' in CPP
    assert [name for name in CPP if not name.startswith('ops_')
            and {'tf_api.h', 'ops_common.h'} & set(included_by(name)[0])] == []


def test_what_is_compiled_per_instruction_set_shares_no_inline_function():
    """The linker could keep that of the newest processor for all."""
    seen, left = set(), ['kernels_isa.cc']
    while left:
        name = left.pop()
        seen.add(name)
        own, of_system = included_by(name)
        assert set(of_system) <= {'stddef.h', 'stdint.h'}, name
        left += set(own) - seen
    assert seen == {'kernels_isa.cc', 'kernels.h', 'options.h', 'rules.h', 'lanes.h'}


def test_headers_of_cpp_do_not_include_each_other_in_circles():
    below, left = set(), {name for name in CPP if name.endswith('.h')}
    while left:
        free = {name for name in left if set(included_by(name)[0]) <= below}
        assert free, f'a circle among {left}'
        below |= free
        left -= free
