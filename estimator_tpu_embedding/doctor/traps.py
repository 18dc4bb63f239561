"""Judges the constructs of a program: what runs, and does something else than its author thinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .constructs import EMULATED, READERS
from .facts import Fact, Finding, ScannedFile
from .project import Reached
from .values import Linked
from .verdicts import Flags

_COLUMNS = ('embedding_column', 'shared_embedding_columns')
_SET_TRUE = 'this package emulates the TPU on the CPU'
_CALLS = {'train_batch_size': (), 'eval_batch_size': ('evaluate', 'train_and_evaluate'),
          'predict_batch_size': ('predict',)}
"""The batch sizes, and the methods without which they do not matter."""
CORES_PER_HOST = 8
"""Cores of a host where `num_shards` sizes the system, as `estimator/tpu_context.py` does."""

_NO_KERNEL = ('TensorFlow has this operation for TPUs only, and nothing emulates it: the session '
              'that runs it raises InvalidArgumentError')
_NO_FEED = ('there is no infeed and no outfeed here (E925): give tensors as inputs of '
            'tf.tpu.shard, and call session.run for each step')
REFUSED = {'InfeedQueue': _NO_FEED, 'feed operation': _NO_FEED, 'all_to_all': _NO_KERNEL,
           'collective_permute': _NO_KERNEL}
"""By the kind of a fact, why it raises an error when it is used."""
_EMULATED = 'it is for TPUs, and emulated here on the CPU'
_REPLICAS = '; its replicas are in the default graph, and the first alone changes variables'
_NEEDS_GRAPH = '; with eager execution on it raises E917, so build it in a tf.Graph()'
_IN_GRAPHS = frozenset({'batch_parallel', 'replicate', 'rewrite', 'shard'})
_SENTENCES = {
    **dict.fromkeys(_IN_GRAPHS, _EMULATED + _REPLICAS),
    **dict.fromkeys(('repeat', 'while_loop'), f'{_EMULATED}; to train on several cores in it is '
                    'refused (E926)'),
    'core': 'it names a device that is not here: sessions need allow_soft_placement=True, as those '
            'of Estimators have, and the CPU computes'}


def findings_of(files: Sequence[ScannedFile], flags: Mapping[str, Flags]) -> list[Finding]:
    """Returns the findings about constructs, each once: W211 to W216, W218, E104 and I311.

    Args:
      files: all files of the project.
      flags: by path of each file, what it needs with all files that it imports.
    """
    found: dict[Finding, None] = {}
    for files_of_program in Reached(files).groups():
        group = Linked(files_of_program)
        needs_tf1 = any(flags.get(file.path, Flags()).tf1 for file in group.files)
        for each in (emulated(group.files, needs_tf1), _without_tpu(group), _mod(group),
                     _rates(group), _no_sums(group), _batches(group), _sizes(group),
                     () if needs_tf1 else _old_arguments(group)):
            found.update(dict.fromkeys(each))
    return list(found)


def emulated(files: Sequence[ScannedFile], needs_tf1: bool) -> Iterator[Finding]:
    """Yields I311 for each emulated construct of files, and E104 for each that is refused.

    Args:
      files: of one program.
      needs_tf1: whether it runs with `--tf1`, which switches eager execution off.
    """
    for fact in (fact for file in files for fact in file.facts):
        if fact.kind in REFUSED or fact.kind in EMULATED:
            sentence = REFUSED.get(fact.kind) or _SENTENCES.get(fact.kind, _EMULATED)
            if fact.kind in _IN_GRAPHS and not needs_tf1:
                sentence += _NEEDS_GRAPH
            yield Finding('E104' if fact.kind in REFUSED else 'I311', fact.place,
                          fact.values['path'], fact.values['written'], sentence)


def _without_tpu(group: Linked) -> Iterator[Finding]:
    """W211: `use_tpu=False` with tables."""
    specs = group.calls('EmbeddingConfigSpec')
    for call in group.calls('TPUEstimator') if specs or group.calls(*_COLUMNS) else ():
        known = group.known(call, 'use_tpu')
        if known is None or known.value is not False:
            continue
        remedy = f'give {known.option}' if known.option else 'set use_tpu=True'
        yield Finding('W211', known.place, 'use_tpu', 'use_tpu',
                      f'use_tpu is False{known.source}: then the optimizer of model_fn trains the '
                      'embedding tables, and not that of the EmbeddingConfigSpec. To train as a '
                      f'TPU does, {remedy}: {_SET_TRUE}')


def _mod(group: Linked) -> Iterator[Finding]:
    """W212: rows in the order of `mod` that something else reads."""
    for spec in group.calls('EmbeddingConfigSpec'):
        strategy = group.known(spec, 'partition_strategy')
        if strategy is not None and strategy.value == 'mod':
            for why in (*_refusals_of_mod(group), *_readers_of_mod(group)):
                yield Finding('W212', strategy.place, 'partition_strategy', 'partition_strategy',
                              f"partition_strategy is 'mod'{strategy.source}: {why}")


def _refusals_of_mod(group: Linked) -> Iterator[str]:
    for call in group.calls('TPUEstimator'):
        for name in ('use_tpu', 'eval_on_tpu'):
            known = group.known(call, name, True)
            if known is not None and known.value is False:
                yield (f'a TPUEstimator with {name}=False{known.origin} refuses it '
                       f'("Mod sharding of embedding tables not supported on CPU"). Set {name}='
                       f"True, since {_SET_TRUE}; or 'div'")


def _readers_of_mod(group: Linked) -> Iterator[str]:
    """Says what reads the same `model_dir` without knowing of `mod`."""
    folders = {group.as_written(call, 'model_dir')
               for call in group.calls('TPUEstimator', 'RunConfig')}
    for call in group.calls('Estimator', *READERS):
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
                   for call in group.calls('TPUEstimator'))
    is_partial = any(one.code.startswith('E13') for file in group.files for one in file.problems)
    shards = [known for call in group.calls('TPUConfig')
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
    """W215: batches that the cores do not divide."""
    configs = group.calls('TPUConfig')
    shards = group.known(configs[0], 'num_shards') if len(configs) == 1 else None
    if shards is None or not shards.size:
        return
    mode = group.known(configs[0], 'per_host_input_for_training', True)
    if mode is None or mode.value in (4, 'BROADCAST'):
        return
    called = {fact.values['name'] for fact in group.facts('method')}
    for call in group.calls('TPUEstimator'):
        use_tpu = group.known(call, 'use_tpu', True)
        for name, methods in _CALLS.items() if use_tpu and use_tpu.value is not False else ():
            batch = group.known(call, name)
            if batch is not None and batch.size % shards.size and (
                    not methods or called.intersection(methods)):
                whole, rest = divmod(batch.size, shards.size)
                yield Finding(
                    'W215', batch.place, name, name,
                    f'{name} is {batch.value}{batch.source}, and num_shards is {shards.value}'
                    f'{shards.origin}: {batch.value} = {whole} x {shards.value} + {rest}. The '
                    'global batch must be a multiple of the cores (E411): change one of them')


def _old_arguments(group: Linked) -> Iterator[Finding]:
    """W218: an argument that decides alone that TensorFlow 1 is meant."""
    for fact in group.facts('old argument'):
        name, path = fact.values['name'], fact.values['path']
        yield Finding('W218', fact.place, f'{path}({name}=)', name,
                      f'{path} of TensorFlow 2 has no argument {name} (TypeError), and that of '
                      'TensorFlow 1 has it: etpe run --tf1')


def hosts_for(cores: int, of_replica: int = 1) -> int | None:
    """Returns hosts for a number of cores that must be stated; `None` if `etpe run` finds a size.

    Args:
      cores: of the system.
      of_replica: cores of each replica, which are on one host.

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
    configs = [(shards, each) for call in group.calls('TPUConfig')
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
    for call in group.calls('shard', 'batch_parallel') if not configs and group.calls(
            'TPUEmbedding') else ():
        known = group.known(call, 'num_shards')
        if known is not None and known.size > 1:
            options = sizes_for(known.size)
            return options, (f'{options}: {call.values["written"]} makes {known.value} replicas'
                             f'{known.origin}, and a TPUEmbedding has as many cores as the system')
    return '', ''


def _sizes(group: Linked) -> Iterator[Finding]:
    """Yields W216: numbers of shards that no system of eight cores per host has."""
    for call in group.calls('TPUConfig'):
        shards, each = (group.known(call, name, None) for name in (
            'num_shards', 'num_cores_per_replica'))
        of_replica = (each.size or 1) if each is not None else 0
        cores = shards.size * of_replica if shards is not None else 0
        if shards is not None and cores and hosts_for(cores, of_replica) is not None:
            yield Finding('W216', shards.place, 'num_shards', 'num_shards',
                          f'num_shards is {shards.value}{shards.source}: {cores} cores are no '
                          f'number of hosts with {CORES_PER_HOST} each (E410), unless etpe run '
                          f'gets a size, as {sizes_for(cores, of_replica)}')
