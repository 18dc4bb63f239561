"""Enforces the layers of ARCHITECTURE.md: who may import whom, and which module may do what.

The lists come first. A check reads the syntax trees of all modules and compares them with a list.
It fails for a place that the list does not name, and for an entry that no place matches any more.
"""

import ast
import itertools
import re

import pytest
from harness.source import (
    NAME,
    PACKAGE,
    Source,
    at,
    compare,
    found_by,
    imports,
    imports_in_functions,
    names,
    parts,
    private_names,
    remembered,
    searched,
    sources,
    strings,
    uses,
)

# folder or module: what of ours it may import besides itself
BELOW = {
    'errors': set(), '_process': {'errors'}, 'version': set(), '_tf': set(),
    '_distribution': {'errors', '_tf'}, '_legacy': {'errors', '_distribution'},
    'core': {'errors'}, 'native': {'errors', 'core', '_tf'}, 'proto': {'errors', 'core'},
    'ops': {'errors', 'core', '_tf'},
}
BELOW['columns'] = {'errors', 'version', '_tf', '_legacy', 'core', 'proto', 'ops'}
# What is saved must be read as the engine wants it.
BELOW['hosts'] = BELOW['checkpoint'] = BELOW['columns'] | {'native'}
BELOW['hosts'] = BELOW['hosts'] | {'_process'}
# The processes that hosts run in, and nothing about what hosts do there.
BELOW['cluster'] = {'errors', 'version', '_tf', 'core', 'proto', 'native', 'hosts', 'checkpoint',
                    '_process'}
BELOW['defaults'] = {'errors', 'core', 'checkpoint', 'cluster'}
BELOW['runner'] = BELOW['hosts'] | {'hosts', 'checkpoint', 'cluster'}
# The face of TF2, beside the runner and the estimator, of which it needs neither.
BELOW['midlevel'] = BELOW['hosts'] - {'_legacy'} | {'hosts', 'checkpoint', 'defaults'}
BELOW['estimator'] = BELOW['runner'] | {'runner', 'columns', 'defaults'}
BELOW['compat'] = BELOW['estimator'] | {'estimator', 'midlevel'}
BELOW['migration'] = {'errors', 'version', 'core', 'proto', 'checkpoint'}
BELOW['doctor'] = {'errors', 'proto', 'checkpoint', 'compat'}
BELOW['cli'] = BELOW['migration'] | {'migration', 'doctor'}
BELOW['__init__'], BELOW['__main__'] = {'version'}, {'cli'}
ARCHITECTURE = PACKAGE / 'ARCHITECTURE.md'

INSIDE_FUNCTIONS = {  # what they may import besides, where it waits until it is needed
    'cli': {'cluster', 'compat', 'runner'},
    'migration': {'compat', 'defaults'},
    '__init__': {'compat'}}

FOREIGN = {  # folder: top-level packages it must not import
    'defaults': {'tensorflow', 'numpy', 'os', 'threading'},
    'core': {'tensorflow', 'google', 'os', 'threading', 'time', 'absl'},
    'proto': {'tensorflow', 'os', 'threading'}, 'ops': {'os', 'threading'},
    'columns': {'os', 'threading'}, 'hosts': {'os', 'threading'}, 'checkpoint': {'threading'},
    'midlevel': {'os', 'threading'}, 'runner': {'os'}, 'cli': {'tensorflow', 'numpy'}}
FOREIGN_ALL_THE_SAME = {'proto/files.py'}

# name of a thing: how to find it, and the files, folders and modules that may have it
HOMES = {
    'private TensorFlow': (
        imports, {'tensorflow.python', 'tensorflow.core', 'tf_keras.src'}, {'_tf'}),
    'private TensorFlow by attributes': (
        names, {'tf.python', 'tf._api', 'tf.__internal__', 'tensorflow.python'}, set()),
    # Where modules are put under names that scripts import, found there, or told of.
    'private modules by names': (
        strings, {'tensorflow.python', 'tensorflow._api', 'tensorflow_estimator.python',
                  'tensorflow_estimator._api'},
        {'_legacy.py', *(f'compat/{name}.py' for name in (
            'contrib/contrib_modules', 'deleted_modules', 'import_paths', 'old_names'))}),
    'the nightly': (imports, {'tensorflow_estimator'}, set()),  # `_legacy` imports it by name.
    'engines': (
        imports, {f'{NAME}.hosts.{name}' for name in ('native_engine', 'stock_engine')},
        {f'hosts/{name}.py' for name in ('engine_choice', 'per_host')}),
    'the compiled engine': (  # `install` only says why there is none.
        imports, {f'{NAME}.native.library', f'{NAME}.native.plan_attributes'},
        {'native', 'compat/install.py', *(f'hosts/{name}.py' for name in (
            'engine_choice', 'native_engine', 'per_host')),
         'cluster/process_facts.py'}),  # Graphs of other processes use it in a worker.
    'calls of a worker': (imports, {f'{NAME}.cluster.worker_calls'}, {'cluster'}),
    # The package `_tf` does not hand it out.
    'strategies': (imports, {f'{NAME}._tf.distribute'}, {'_distribution', 'compat', 'midlevel'}),
    'strategies through _tf': (names, {'_tf.distribute'}, set()),
    # `Partition.by_id(rows)`, and not the first of the strategies that happen to store so.
    'the order of ids': (
        names, {'STORED_BY_ID[]', 'partition.STORED_BY_ID[]'}, {'core/partition.py'}),
    'how messages call a checkpoint': (strings, {'checkpoint '}, {'checkpoint/file_names.py'}),
    'a manifest of another checkpoint': (
        strings, {'E614'}, {'checkpoint/recover.py'}),
    'environment': (
        uses, {'os.environ', 'os.getenv', 'os.putenv'},
        {'compat/environment.py', 'cluster/local_workers.py', 'cluster/server.py'}),
    'files that change': (
        uses,
        {'os.rename', 'os.replace', 'os.remove', 'os.unlink', 'shutil.rmtree', 'tf.train.Saver'},
        {f'checkpoint/{name}.py' for name in (
            'storage', 'saver', 'saver_builder', 'iterator_states', 'restore')}),
    'threads and signals': (
        uses, {'threading.Thread', 'threading.Timer', 'signal.signal', 'signal.set_wakeup_fd'},
        {f'runner/{name}.py' for name in (
            'signals_and_deadlines', 'infeed_threads', 'run_sessions', 'towers')}
        | {'migration/migrate_checkpoint.py'}  # SIGTERM ends a migration in order.
        | {'cluster/worker_calls.py', 'cluster/worker.py'}),
    'files that are opened': (
        uses, {'open', 'os.open', 'os.fdopen'},
        {'checkpoint/storage.py', 'checkpoint/model_dir.py', 'proto/files.py',
         'compat/old_imp.py'}),  # A module of Python opens what it is asked to.
    'code that is executed': (
        uses, {'eval', 'exec', 'io.open_code', 'runpy.run_path', 'os.chdir'},
        {'compat/script.py'}),
    'arguments of the process': (
        uses, {'sys.argv', 'sys.path'},
        {'compat/script.py', 'cli/main.py', 'cli/input_argument.py', 'migration/check_jobs.py',
         'doctor/oracle_process.py'}),  # Its own process must not import what is scanned.
    # P18: a graph is never run, and code is imported only where the user named it.
    'graphs of strangers': (
        uses, {'tf.import_graph_def', 'tf.saved_model.load', 'tf.train.import_meta_graph',
               'text_format.Merge', 'tf.io.parse_tensor'},
        {'runner/tower_copies.py'}),  # Of the graph itself.
    # `compat` and `_legacy` put modules there, `_process` and others ask what is loaded.
    'loaded modules': (
        uses, {'sys.modules', 'sys.meta_path'},
        {'_legacy.py', '_process.py', *(f'compat/{name}.py' for name in (
            'console', 'contrib/contrib_modules', 'deleted_modules', 'environment',
            'import_paths', 'old_imp', 'script', 'tf1')),
         'doctor/oracle_process.py'}),
    'imports by name': (
        uses, {'importlib.import_module'},
        {'__init__.py', '_legacy.py', 'cli/input_argument.py', 'cli/main.py',
         'compat/import_paths.py', 'compat/old_python.py',
         'midlevel/__init__.py',  # As in that of the package: names are imported when used.
         'migration/check_jobs.py',  # A side of a check, in a process of its own.
         'doctor/oracle_process.py'}),  # Installed libraries, and nothing of what is scanned.
}

UNSAFE = {  # modules and names that nothing may have
    'pickles': ({'pickle', 'marshal', 'shelve', 'cloudpickle', 'yaml', 'dill', 'joblib'},
                {'np.load', 'allow_pickle=', 'read_pickle'}),
    'bombs': ({'gzip', 'zlib', 'bz2', 'lzma', 'zipfile', 'tarfile'},
              {'np.load', 'tf.io.decode_compressed', 'shutil.unpack_archive'})}

STRATEGIES = {  # where something is compared with 'div' or 'mod'
    'core/partition.py',
    'checkpoint/restore_plan.py',  # the enum of a config
    'estimator/tpu_estimator.py',  # refuses mod without a TPU, as the original
    'doctor/traps.py'}  # reads what a script says

BORROWERS = {'_tf', '_legacy', '_distribution'}  # of private names of TensorFlow and the nightly
PUBLIC_ALL_THE_SAME = {'_replace', '_asdict', '_fields', '_make',  # of a NamedTuple
                       '_getframe', '_current_frames', '_exit'}  # of sys and os

STATE = {  # folder or module, and variable: why a process has to remember it
    'defaults._current': 'the choices of the process, for jobs that do not state them',
    'runner._sink': 'etpe run prints announcements, which are logged otherwise',
    'runner._reports': 'the last line of etpe run sums up all runs of the script',
    'runner._own_loops': 'that line names loops of the script, which no run reports',
    '_tf._stock': 'several threads may build towers at once, and the last one ends the bounds',
    'runner._current': 'what a model calls meets the other towers of the one that is built',
    'runner._captures': 'gradients are caught by the graph that a column looks up in',
    'hosts._records': 'that line counts and times the steps made in functions too',
    'checkpoint._open': 'locks that this process holds: a child that it forks drops them',
    'cluster._running': 'servers of TensorFlow, which end with their process',
    'cluster._of_client': 'a process has one server for all its jobs, since none can be ended',
    'cluster._begun': 'threads that wait for silent workers are awaited before Python ends',
    'cluster._clusters': 'claims on workers, and own workers, live as long as the process',
    'estimator._known': 'addresses of TPUs: a session at one of them is opened here',
    'estimator._of_graphs': 'a session of a graph with tables on workers is opened there',
    'midlevel._initialized': 'a TPU has one TPUEmbedding at a time until it is initialized again',
    'compat._backend': 'install() changes functions of TensorFlow for one backend',
    'compat._last': 'tf.config lists the cores of the system that was found last',
    'ops._gathered': 'while conditions are gathered, checks somewhere inside add theirs',
    'ops._said': 'while a first message is made, checks somewhere inside add theirs'}
FILE_NAME = re.compile(r'\.(index|meta|partial)\b|\.data-|tables\.json|\bckpt\b|ete-stage')
OWN_MESSAGE = re.compile(r'\bstr\((self|error)\)|\b(self|error)\.(message|msg|args)\b')


def foreign(name):
    return name.split('.')[0]


def ours(found):
    """(folder or module of ours, line) of those imports that are of this package."""
    return [(name.split('.')[1], line) for name, line in found
            if name.startswith(f'{NAME}.')]


@pytest.mark.parametrize('found, allowed, message', [
    ([('a:1', {'a'})], {'b'}, "'a:1'"), ([('a:1', {'a'})], {'a', 'b'}, "{'b'}")])
def test_strays_and_stale_entries_both_fail(found, allowed, message):
    with pytest.raises(AssertionError, match=message):
        compare(found, allowed)
    compare(found, {'a'})


def test_a_thing_that_is_imported_by_its_name_is_found_too():
    text = 'from os import environ\nfrom threading import Thread as T\nimport sys\nsys.argv\n'
    found = {name for name, _ in uses(Source('core/new.py', text, ast.parse(text)))}
    assert {'os.environ', 'threading.Thread', 'sys.argv'} <= found


@pytest.mark.parametrize('text', ['_x = {}', '_x: dict = dict()', '_x = Counter()',
                                  '_x = collections.defaultdict(list)'])
def test_a_container_that_functions_fill_is_remembered(text):
    assert remembered(Source('core/new.py', text, ast.parse(text))) == [('_x', 1)]


def test_imports_point_downward():
    assert BELOW.keys() == parts() and set().union(*BELOW.values()) < parts()
    later = {(part, other) for part, others in INSIDE_FUNCTIONS.items() for other in others}
    upward = []
    for source in sources():
        inside = ours(imports_in_functions(source))
        upward += [
            (f'{source.file}:{line} imports {other}',
             {(source.part, other)} if (other, line) in inside else ())
            for other, line in ours(imports(source))
            if other not in BELOW[source.part] | {source.part}]
    compare(upward, later)


def picture():
    """The folders and who imports whom, without what follows from other arrows, as Mermaid.

    A thick arrow is a step of the path of one id, in the order of its table.
    """
    def below(part):
        return BELOW[part].union(*map(below, BELOW[part]))

    folders = {source.part for source in sources() if '/' in source.file}
    lines = [f'{part} --> {other}' for part in sorted(folders)
             for other in sorted(BELOW[part] & folders)
             if not any(other in below(between) for between in BELOW[part] & folders)]
    table = ARCHITECTURE.read_text().partition('## The path of one id')[2].partition('\n## ')[0]
    path = [part for part, _ in itertools.groupby(re.findall(r'^\| `(\w+)/', table, re.MULTILINE))]
    lines += [f'{one} == {step} ==> {other}'
              for step, (one, other) in enumerate(itertools.pairwise(path), 1)]
    return 'flowchart TD\n' + ''.join(f'    {line}\n' for line in lines)


def test_the_picture_shows_the_layers():
    """A picture of other layers is replaced by what this prints."""
    drawn = re.search(r'```mermaid\n(.*?)```', ARCHITECTURE.read_text(), re.DOTALL)
    assert drawn[1] == picture(), picture()


def test_each_layer_leaves_alone_what_is_not_its_business():
    compare([at(source, line, name) for source in sources() for name, line in imports(source)
             if foreign(name) in FOREIGN.get(source.part, ())], FOREIGN_ALL_THE_SAME)
    everywhere = {foreign(name) for source in sources() for name, _ in imports(source)}
    assert FOREIGN.keys() < parts() and set().union(*FOREIGN.values()) < everywhere


@pytest.mark.parametrize('what', UNSAFE)
def test_p16_p17_nothing_reads_what_could_execute_or_unfold(what):
    """What executes text is listed above with its homes; a test of the readers gives a pickle."""
    modules, functions = UNSAFE[what]
    compare(found_by(imports, modules) + found_by(uses, functions), set())


@pytest.mark.parametrize('what', HOMES)
def test_each_dangerous_thing_has_its_home(what):
    search, wanted, homes = HOMES[what]
    compare(found_by(search, wanted), homes)


def test_div_and_mod_are_told_apart_in_one_place_only():
    compare([at(source, node.lineno) for source in sources()
             for node in ast.walk(source.tree) if isinstance(node, ast.Compare)
             for word in ast.walk(node)
             if isinstance(word, ast.Constant) and word.value in ('div', 'mod')], STRATEGIES)


def test_the_names_of_checkpoint_files_have_one_grammar():
    """Texts for people, which have spaces, may show such names."""
    compare([at(source, line, text) for source in sources() for text, line in strings(source)
             if ' ' not in text and FILE_NAME.search(text.replace('\\', ''))],
            {'checkpoint/file_names.py'})


def test_private_attributes_are_used_in_the_module_that_defines_them():
    """`_tf` and `_legacy` lend those of TensorFlow and of the nightly under plain names.

    `_distribution` is a module of TensorFlow to the nightly, whose objects it completes. A subclass
    may use on itself what it inherits: that is the contract between the two.
    """
    compare([(f'{source.file}:{line} {name}', {source.file, source.part, name})
             for source in sources() for name, line in private_names(source)],
            BORROWERS | PUBLIC_ALL_THE_SAME)


def test_what_a_process_remembers_is_listed_with_its_reason():
    compare([(f'{source.file}:{line} {name}', {f'{source.part}.{name}'})
             for source in sources() for name, line in remembered(source)], set(STATE))


def test_no_fact_is_read_out_of_a_message_that_this_package_made():
    """Errors carry facts as fields; only messages of TensorFlow and Python are searched."""
    compare([at(source, node.lineno) for source in sources() for node in ast.walk(source.tree)
             if any(OWN_MESSAGE.search(text) for text in searched(node))],
            {'columns/embedding_columns.py', 'compat/hints.py', 'midlevel/replicas.py',
             'runner/finite_checks.py'})
