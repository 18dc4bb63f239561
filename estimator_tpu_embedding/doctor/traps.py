"""Finds the calls for TPUs of a file, and judges those of a program: what runs, and does something
else than its author thinks.

Each name of a TPU construct gets one short form, by whatever path a script reaches it:
`tf.contrib.tpu.TPUConfig`, `tf.estimator.tpu.TPUConfig` and
`tensorflow.python.tpu.tpu_config.TPUConfig` are all facts of the kind `'TPUConfig'`. Other kinds:

| kind | what it is |
|---|---|
| `'flag'` | the definition of a flag of absl, `tf.flags` or argparse |
| `'rate'` | a function of a learning rate that may be made once and is made again and again |
| `'minimize'`, `'optimizer'` | a call that trains variables; one that makes an optimizer for them |
| `'sum'` | any mention of a sum over cores |
| `'fixed batch'` | a batch in an `input_fn` that does not come from its `params` |
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..compat.refused_names import FEED_OPERATIONS
from .findings import Fact, Finding, Place, ScannedFile
from .project import Reached
from .syntax import Nodes, called_name, last_name, text_of, written

PlaceOf = Callable[[ast.AST], Place]
PathsOf = Callable[[ast.expr], tuple[str, ...]]


class Flag(NamedTuple):
    """The value of a command-line flag, such as `FLAGS.use_tpu`, as the source has it."""

    name: str
    written: str


UNREAD = object()
"""A value that the source does not show."""
_FLAGS = frozenset('FLAGS flags args arguments opt opts options parsed parsed_args'.split())
"""What scripts call the object with the values of their flags."""
_ROOTS = frozenset({
    'tensorflow', 'tensorflow_core', 'tensorflow_estimator', 'estimator_tpu_embedding'})
_UNIQUE = frozenset('EmbeddingConfigSpec InfeedQueue TPUConfig TPUEstimator batch_parallel '
                    'collective_permute'.split())
"""Names that nothing else in TensorFlow has."""
_OF_TPU = frozenset(
    'RunConfig TPUEmbedding all_to_all embedding_column shard shared_embedding_columns'.split())
"""Names that mean a TPU below a module for TPUs only."""
_OF_TF2 = frozenset({
    'embedding', 'tpu_embedding_v1', 'tpu_embedding_v2', 'tpu_embedding_for_serving'})
"""Modules whose `TPUEmbedding` is that of TF2."""
READERS = frozenset({'NewCheckpointReader', 'load_checkpoint', 'load_variable'})
"""They read the tensors of a checkpoint as they are stored."""
_OPERATIONS = {name.lower() for name in FEED_OPERATIONS}
_WORDS = frozenset({*_UNIQUE, *_OF_TPU, *READERS, 'Estimator', 'embedding_column_v2',
                    'shared_embedding_columns_v2'})

POSITIONS = {  # parameters that may be given by position, in order
    'TPUConfig': ('iterations_per_loop', 'num_shards', 'num_cores_per_replica',
                  'per_host_input_for_training'),
    'TPUEstimator': ('model_fn', 'model_dir', 'config', 'params', 'use_tpu', 'train_batch_size'),
    'shard': ('computation', 'inputs', 'num_shards'),
    'Estimator': ('model_fn', 'model_dir'),
    **{name: ('checkpoint',) for name in READERS}}
_COLUMNS = frozenset({'embedding_column', 'shared_embedding_columns'})
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp,
          ast.GeneratorExp)
_SUMS = ('CrossShardOptimizer', 'cross_replica_sum')

CORES_PER_HOST = 8
"""Cores of a host where `num_shards` sizes the system, as `estimator/tpu_context.py` does."""

_NO_KERNEL = ('TensorFlow has this operation for TPUs only, and nothing emulates it: the session '
              'that runs it raises InvalidArgumentError')
_NO_FEED = ('there is no infeed and no outfeed here (E925): give tensors as inputs of '
            'tf.tpu.shard, and call session.run for each step')
REFUSED = {'InfeedQueue': _NO_FEED, 'feed operation': _NO_FEED, 'all_to_all': _NO_KERNEL,
           'collective_permute': _NO_KERNEL}
"""By the kind of a fact, why it raises an error when it is used."""


def construct_of(path: str) -> str | None:
    """Returns the short form of the path of a name; `None` for all other names.

    >>> construct_of('tensorflow.python.tpu.tpu_config.TPUConfig')
    'TPUConfig'
    >>> construct_of('tensorflow.tpu.experimental.embedding.TPUEmbedding') is None
    True
    """
    root, *modules = path.split('.')
    if root not in _ROOTS or not modules:
        return None
    name = modules.pop().removesuffix('_v2')
    if _is_operation(name):
        return 'feed operation'
    if name in _UNIQUE or name in READERS or name == 'Estimator' and 'estimator' in modules:
        return name
    is_of_tpu = (any(part.startswith('tpu') for part in modules)
                 or root == 'estimator_tpu_embedding' and not modules)
    return name if name in _OF_TPU and is_of_tpu and not _OF_TF2.intersection(modules) else None


def facts_of(nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf) -> list[Fact]:
    """Returns the facts of one file, in the order of the source."""
    found = list(_sums(nodes, place_of))
    for call in nodes.of(ast.Call):
        name = called_name(call)
        if name in ('minimize', 'apply_gradients') and isinstance(call.func, ast.Attribute):
            found.append(Fact('minimize', place_of(call.func), {'name': name}))
        elif name.endswith('Optimizer') and name not in _SUMS:
            found.append(Fact('optimizer', place_of(call.func), {'name': name}))
        elif name == 'batch' and call.args and _is_fixed(call, nodes):
            found.append(Fact('fixed batch', place_of(call), {
                'written': f'batch({written(call.args[0])})'}))
        elif name.startswith('DEFINE_') or name == 'add_argument' and call.args:
            found.append(_flag(call, place_of))
        elif isinstance(call.func, ast.Name) or name in _WORDS or _is_operation(name):
            path, kind = next(((path, kind) for path in paths_of(call.func)
                               if (kind := construct_of(path))), ('', ''))
            if kind:
                found += _construct(call, kind, path, nodes, place_of)
    return sorted(found, key=lambda fact: (fact.place.cell, fact.place[1:3]))


def _construct(call: ast.Call, kind: str, path: str, nodes: Nodes, place_of: PlaceOf
               ) -> Iterator[Fact]:
    """Yields the fact of a construct, and perhaps one of the function of a rate that it is given.
    """
    arguments = _arguments(call, kind)
    yield Fact(kind, place_of(call.func), {
        'path': path, 'written': written(call.func),
        'arguments': {name: _value(each) for name, each in arguments.items()},
        'places': {name: place_of(each) for name, each in arguments.items()},
        'is_open': any(isinstance(each, ast.Starred) for each in call.args)
        or any(each.arg is None for each in call.keywords)})
    rate = arguments.get('learning_rate_fn')
    if kind in _COLUMNS and rate is not None:
        yield from _rate(rate, nodes, place_of)


def _is_operation(name: str) -> bool:
    return name.replace('_', '').lower() in _OPERATIONS


def _arguments(call: ast.Call, kind: str) -> dict[str, ast.expr]:
    """Returns the arguments of a call by name, as far as they can be told."""
    found: dict[str, ast.expr] = {}
    for name, node in zip(POSITIONS.get(kind, ()), call.args):
        if isinstance(node, ast.Starred):
            break
        found[name] = node
    found.update({each.arg: each.value for each in call.keywords if each.arg})
    return found


def _value(node: ast.expr | None) -> object:
    """Returns what is written: a literal, a flag, or a member of `InputPipelineConfig`."""
    if node is None:
        return None
    if isinstance(node, ast.Attribute):
        owner = last_name(node.value)
        if owner == 'InputPipelineConfig':
            return node.attr
        return Flag(node.attr, f'{owner}.{node.attr}') if owner in _FLAGS else UNREAD
    return node.value if isinstance(node, ast.Constant) and (
        node.value is None or isinstance(node.value, (bool, int, float, str))) else UNREAD


def _rate(rate: ast.expr, nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields a fact if a function is made for one table, from nothing that differs for another."""
    if not isinstance(rate, ast.Lambda) and last_name(rate) != 'partial':
        return
    around = [above for above in nodes.above(rate) if not isinstance(above, ast.Module)]
    bound = {one.id for above in around for one in ast.walk(above)
             if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    bound.update(one.arg for above in around if isinstance(above, ast.FunctionDef)
                 for one in ast.walk(above.args) if isinstance(one, ast.arg))
    if bound.isdisjoint(one.id for one in ast.walk(rate) if isinstance(one, ast.Name)):
        yield Fact('rate', place_of(rate), {
            'key': ast.dump(rate), 'is_repeated': any(isinstance(one, _LOOPS) for one in around),
            'how': 'a lambda' if isinstance(rate, ast.Lambda) else 'a functools.partial'})


def _is_fixed(call: ast.Call, nodes: Nodes) -> bool:
    """Whether a function that gets `params` takes a number or a flag for the size of its batch."""
    value = _value(call.args[0])
    return (isinstance(value, Flag) or type(value) is int and value > 1) and any(
        each.arg == 'params' for above in nodes.above(call)
        if isinstance(above, ast.FunctionDef) for each in above.args.args)


def _flag(call: ast.Call, place_of: PlaceOf) -> Fact:
    """Returns the fact of a flag: its name, the option of the command line, and its default."""
    by_name = {each.arg: each.value for each in call.keywords}
    texts = [text_of(each) or '' for each in call.args]
    default = by_name.get('default')
    if called_name(call) == 'add_argument':
        option = next((each for each in texts if each.startswith('--')), texts[0])
        name = text_of(by_name.get('dest')) or option.lstrip('-').replace('-', '_')
    else:
        name = texts[0] if texts else text_of(by_name.get('name')) or ''
        option, default = f'--{name}', call.args[1] if len(call.args) > 1 else default
    action = text_of(by_name.get('action'))
    return Fact('flag', place_of(call), {
        'name': name, 'option': option, 'default': action == 'store_false'
        if default is None and action in ('store_true', 'store_false') else _value(default)})


def _sums(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields the first mention of a sum over cores, in whatever form."""
    words = ((node, str(getattr(node, name))) for kind, name in (
        (ast.Attribute, 'attr'), (ast.Name, 'id'), (ast.alias, 'name'), (ast.Constant, 'value'))
        for node in nodes.of(kind))
    yield from [Fact('sum', place_of(node), {}) for node, word in words if word.endswith(_SUMS)][:1]


class Known(NamedTuple):
    """The value of an argument, and where it comes from.

    Attributes:
      value: of the argument; of a flag its default.
      place: of the argument.
      source: `''` for a value that is written there; for a flag such as
        `', the default of FLAGS.use_tpu (train.py:7)'`.
      option: of a flag, as the command line has it: `'--use_tpu'`.
    """

    value: object
    place: Place
    source: str = ''
    option: str = ''

    @property
    def origin(self) -> str:
        """The flag, or the place of a value that is written there, for messages."""
        return self.source or f' ({self.place.path}:{self.place.line})'

    @property
    def size(self) -> int:
        """The value if it is a positive number, 0 otherwise."""
        return self.value if type(self.value) is int and self.value > 0 else 0


class Linked:
    """The files of one program, and the facts about them."""

    def __init__(self, files: Sequence[ScannedFile]):
        self.files = files
        self._facts: dict[str, list[Fact]] = {}
        for file in files:
            for fact in file.facts:
                self._facts.setdefault(fact.kind, []).append(fact)

    def facts(self, *kinds: str) -> list[Fact]:
        """Returns the facts of these kinds of all files, kind by kind."""
        return [fact for kind in kinds for fact in self._facts.get(kind, ())]

    def known(self, call: Fact, name: str, default: object = UNREAD) -> Known | None:
        """Returns the value of an argument of a call, or `None` if the source does not tell it.

        Where the call does not give the argument, the value is `default`.
        """
        if name not in call.values['arguments']:
            is_told = default is not UNREAD and not call.values['is_open']
            return Known(default, call.place) if is_told else None
        value, place = call.values['arguments'][name], call.values['places'][name]
        if not isinstance(value, Flag):
            return None if value is UNREAD else Known(value, place)
        found = [fact for fact in self.facts('flag') if fact.values['name'] == value.name]
        found = [fact for fact in found if fact.place.path == call.place.path] or found
        if len(found) != 1 or found[0].values['default'] is UNREAD:
            return None
        where = f'{found[0].place.path}:{found[0].place.line}'
        return Known(found[0].values['default'], place,
                     f', the default of {value.written} ({where})', found[0].values['option'])

    def as_written(self, call: Fact, name: str) -> object:
        """Returns a text or a flag that an argument is, which are equal if they are the same."""
        value = call.values['arguments'].get(name)
        return value if isinstance(value, (str, Flag)) and value else None


def findings_of(files: Sequence[ScannedFile]) -> list[Finding]:
    """Returns W211 to W215, W220 and E104 about all files, each once."""
    found: dict[Finding, None] = {}
    for files_of_program in Reached(files).groups():
        group = Linked(files_of_program)
        for each in (_refused(group), _without_tpu(group), _mod(group), _rates(group),
                     _no_sums(group), _batches(group), _fixed_batches(group)):
            found.update(dict.fromkeys(each))
    return list(found)


def _refused(group: Linked) -> Iterator[Finding]:
    """E104: calls for TPUs that nothing emulates."""
    for fact in group.facts(*REFUSED):
        yield Finding('E104', fact.place, fact.values['path'], fact.values['written'],
                      REFUSED[fact.kind])


def _without_tpu(group: Linked) -> Iterator[Finding]:
    """W211: `use_tpu=False` with tables."""
    has_tables = group.facts('EmbeddingConfigSpec', *_COLUMNS)
    for call in group.facts('TPUEstimator') if has_tables else ():
        known = group.known(call, 'use_tpu')
        if known is None or known.value is not False:
            continue
        remedy = f'give {known.option}' if known.option else 'set use_tpu=True'
        yield Finding('W211', known.place, 'use_tpu', 'use_tpu',
                      f'use_tpu is False{known.source}: then the optimizer of model_fn trains the '
                      'embedding tables, and not that of the EmbeddingConfigSpec. To train as a '
                      f'TPU does, {remedy}: this package emulates the TPU on the CPU')


def _mod(group: Linked) -> Iterator[Finding]:
    """W212: rows in the order of `mod` that something else reads."""
    for spec in group.facts('EmbeddingConfigSpec'):
        strategy = group.known(spec, 'partition_strategy')
        if strategy is not None and strategy.value == 'mod':
            for why in _readers_of_mod(group):
                yield Finding('W212', strategy.place, 'partition_strategy', 'partition_strategy',
                              f"partition_strategy is 'mod'{strategy.source}: {why}")


def _readers_of_mod(group: Linked) -> Iterator[str]:
    """Says what reads the same `model_dir` without knowing of `mod`."""
    folders = {group.as_written(call, 'model_dir')
               for call in group.facts('TPUEstimator', 'RunConfig')}
    for call in group.facts('Estimator', *READERS):
        is_reader = call.kind in READERS
        folder = group.as_written(call, 'checkpoint' if is_reader else 'model_dir')
        if folder is not None and folder in folders:
            remedy = ('Read them by "etpe checkpoint export", which writes them in the order of '
                      'ids' if is_reader else 'Evaluate with the TPUEstimator')
            yield (f'{call.values["written"]} ({call.place.path}:{call.place.line}) reads the rows '
                   f"in its model_dir as they are stored, where row i is not id i. {remedy}, or "
                   "say 'div'")


def _rates(group: Linked) -> Iterator[Finding]:
    """W213: functions of learning rates that are alike, and yet not one."""
    by_key: dict[object, list[Fact]] = {}
    for fact in group.facts('rate'):
        by_key.setdefault((fact.place.path, fact.values['key']), []).append(fact)
    for alike in by_key.values():
        first = alike[0]
        if len(alike) > 1 or first.values['is_repeated']:
            lines = [str(each.place.line) for each in alike]
            where = ('at lines ' + ', '.join(lines[:-1]) + f' and {lines[-1]}' if len(alike) > 1
                     else 'each time')
            how = first.values['how']
            yield Finding('W213', first.place, 'learning_rate_fn', how,
                          f'{how} makes another function {where}, though the rate is the same: '
                          'each table gets a tag of its own, and each function is computed in each '
                          'step (W424). Make one function, and give it to every table')


def _no_sums(group: Linked) -> Iterator[Finding]:
    """W214: a model that each core would train alone.

    Only a file that makes the optimizer itself counts: one of another package may sum.
    """
    makers = {fact.place.path for fact in group.facts('optimizer')}
    trained = next((fact for fact in group.facts('minimize') if fact.place.path in makers), None)
    uses_tpu = any((known := group.known(call, 'use_tpu', True)) is None or known.value is not False
                   for call in group.facts('TPUEstimator'))
    is_partial = any(one.code.startswith('E13') for file in group.files for one in file.problems)
    shards = [known for call in group.facts('TPUConfig')
              if (known := group.known(call, 'num_shards'))]
    if group.facts('sum') or is_partial or trained is None or not uses_tpu or (
            shards and all(known.value == 1 for known in shards)):
        return
    several = next((known for known in shards if known.size > 1), None)
    cores = (f'num_shards is {several.value}{several.origin}, so training ends' if several
             else 'On one core that changes nothing; on several, training ends')
    yield Finding('W214', trained.place, 'CrossShardOptimizer', trained.values['name'],
                  f'no file has a CrossShardOptimizer, so each core would train a model of its '
                  f'own. {cores} with a ValueError that says so. Wrap the optimizer: '
                  'tf.tpu.CrossShardOptimizer(optimizer)')


def _batches(group: Linked) -> Iterator[Finding]:
    """W215: training batches that the cores do not divide."""
    config, shards = _only_config(group)
    if config is None or shards is None or not shards.size:
        return
    mode = group.known(config, 'per_host_input_for_training', True)
    if mode is None or mode.value in (4, 'BROADCAST'):
        return
    for call in group.facts('TPUEstimator'):
        use_tpu = group.known(call, 'use_tpu', True)
        batch = group.known(call, 'train_batch_size')
        if use_tpu and use_tpu.value is not False and batch and batch.size % shards.size:
            whole, rest = divmod(batch.size, shards.size)
            yield Finding(
                'W215', batch.place, 'train_batch_size', 'train_batch_size',
                f'train_batch_size is {batch.value}{batch.source}, and num_shards is '
                f'{shards.value}{shards.origin}: {batch.value} = {whole} x {shards.value} + '
                f'{rest}. The global batch must be a multiple of the cores (E411): change one of '
                'them')


def _fixed_batches(group: Linked) -> Iterator[Finding]:
    """W220: an `input_fn` that is called per core, and has a batch size of its own."""
    config, shards = _only_config(group)
    mode = config and group.known(config, 'per_host_input_for_training')
    if mode and mode.value in (3, 'PER_HOST_V2', 'PER_SHARD_V1') and shards and shards.size > 1:
        for fact in group.facts('fixed batch'):
            yield Finding(
                'W220', fact.place, 'batch', fact.values['written'],
                f'each core takes such a batch, whatever train_batch_size says, and num_shards is '
                f'{shards.value}{shards.origin}: the global batch is {shards.value} times as '
                "large. Take params['batch_size'], or set num_shards to 1 and use --cores 1")


def _only_config(group: Linked) -> tuple[Fact | None, Known | None]:
    """Returns the `TPUConfig` if there is one alone, and its number of shards."""
    configs = group.facts('TPUConfig')
    if len(configs) != 1:
        return None, None
    return configs[0], group.known(configs[0], 'num_shards')


def hosts_for(cores: int, of_replica: int = 1) -> int | None:
    """Returns hosts for a number of cores that must be stated; `None` if `etpe run` finds a size.

    The cores of each replica are on one host.

    >>> hosts_for(4), hosts_for(32), hosts_for(12), hosts_for(12, 4)
    (None, None, 2, 3)
    """
    if cores <= CORES_PER_HOST or cores % CORES_PER_HOST == 0:
        return None
    return next(hosts for hosts in range(2, cores + 1) if cores % hosts == 0
                and cores // hosts <= CORES_PER_HOST and cores // hosts % of_replica == 0)


def sizes_for(cores: int, of_replica: int = 1) -> str:
    """Returns the options of `etpe run` for a number of cores.

    >>> sizes_for(12), sizes_for(16), sizes_for(4)
    ('--hosts 2 --cores 6', '--hosts 2 --cores 8', '--cores 4')
    """
    hosts = hosts_for(cores, of_replica) or max(cores // CORES_PER_HOST, 1)
    return f'--hosts {hosts} --cores {cores // hosts}' if hosts > 1 else f'--cores {cores}'


def options_of(group: Linked) -> tuple[str, str]:
    """Returns the options for hosts and cores that a program needs, and why; `''` for none."""
    configs = [(shards, each) for call in group.facts('TPUConfig')
               if (shards := group.known(call, 'num_shards', None))
               and (each := group.known(call, 'num_cores_per_replica', None))]
    for shards, each in configs:
        of_replica = each.size or 1
        if shards.value is None and of_replica > 1:
            options = sizes_for(of_replica)
            return options, (f'{options}: a replica takes {of_replica} cores, as '
                             f'num_cores_per_replica says{each.origin}')
        cores = shards.size * of_replica
        if cores and hosts_for(cores, of_replica) is not None and len(configs) == 1:
            options = sizes_for(cores, of_replica)
            return options, (f'{options}: num_shards is {shards.value}{shards.origin}, and no '
                             'number of hosts with 8 cores each has so many')
    # Nobody else states the cores of a loop with a raw `TPUEmbedding`.
    for call in group.facts('shard', 'batch_parallel') if not configs and group.facts(
            'TPUEmbedding') else ():
        known = group.known(call, 'num_shards')
        if known is not None and known.size > 1:
            options = sizes_for(known.size)
            return options, (f'{options}: {call.values["written"]} makes {known.value} replicas'
                             f'{known.origin}, and a TPUEmbedding has as many cores as the system')
    return '', ''
