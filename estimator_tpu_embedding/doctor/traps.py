"""Judges the constructs of a program: what runs, and does something else than its author thinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from . import emulated
from .constructs import READERS
from .facts import Fact, Finding, Place, ScannedFile
from .reached import Reached
from .values import Known, Linked
from .verdicts import Flags

_COLUMNS = ('embedding_column', 'shared_embedding_columns')
_SET_TRUE = 'this package emulates the TPU on the CPU'
_MOST_NAMED = 3
_CALLS = {'train_batch_size': (), 'eval_batch_size': ('evaluate', 'train_and_evaluate'),
          'predict_batch_size': ('predict',)}
"""The batch sizes, and the methods without which they do not matter."""
_EXPORTS = frozenset({
    'export_saved_model', 'export_savedmodel', 'experimental_export_all_saved_models'})
CORES_PER_HOST = 8
"""Cores of a host where `num_shards` sizes the system, as `estimator/system.py` does."""
_REPLICA_SIZES = (None, 1, 2, 4, 8, 16, 32, 64, 128)


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
        for each in (emulated.findings_of(group.files, needs_tf1), _without_tpu(group), _mod(group),
                     _rates(group), _no_sums(group), _batches(group), _sizes(group),
                     _refused(group), () if needs_tf1 else _old_arguments(group)):
            found.update(dict.fromkeys(each))
    return list(found)


def _without_tpu(group: Linked) -> Iterator[Finding]:
    """W211: `use_tpu=False` with tables."""
    specs = group.calls('EmbeddingConfigSpec')
    for call in group.calls('TPUEstimator') if specs or group.calls(*_COLUMNS) else ():
        known = group.known(call, 'use_tpu')
        if known is None or known.value is not False:
            continue
        declared = (_named((spec.values['optimizer'], spec.place) for spec in specs)
                    or 'the optimizer of an EmbeddingConfigSpec')
        model = _named((fact.values['name'], fact.place) for fact in group.facts('optimizer'))
        trains = f'{model} of model_fn' if model else 'the optimizer of model_fn'
        remedy = f'give {known.option}' if known.option else 'set use_tpu=True'
        yield Finding('W211', known.place, 'use_tpu', 'use_tpu',
                      f'use_tpu is False{known.source}: then {trains} trains the embedding tables, '
                      f'and not {declared}. To train as a TPU does, {remedy}: {_SET_TRUE}')


def _named(names: Iterable[tuple[str, Place]]) -> str:
    """Returns names with their first places, such as `'AdamOptimizer (train.py:9)'`.

    It is `''` if there are none, or too many to tell which one is meant.
    """
    found: dict[str, Place] = {}
    for name, place in names:
        if name:
            found.setdefault(name, place)
    return '' if len(found) > _MOST_NAMED else ' or '.join(
        f'{name} ({place.path}:{place.line})' for name, place in found.items())


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


def _refused(group: Linked) -> Iterator[Finding]:
    """E104: an argument that refuses what the program asks for later."""
    if any(fact.values['name'] in _EXPORTS for fact in group.facts('method')):
        for call in group.calls('TPUEstimator'):
            known = group.known(call, 'export_to_cpu', True)
            if known is not None and known.value is False and not known.source:
                yield Finding('E104', known.place, 'TPUEstimator.export_to_cpu', 'export_to_cpu',
                              'export_to_cpu=False refuses every export (E915): only graphs for '
                              'the CPU are written; leave it out')


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
    """Returns the options for hosts and cores that a program needs, and why; or why it does not."""
    configs = [(shards, each) for call in group.calls('TPUConfig')
               if (shards := group.known(call, 'num_shards', None))
               and (each := group.known(call, 'num_cores_per_replica', None))]
    for shards, each in configs:
        of_replica = each.size or 1
        if shards.value is None and of_replica > 1:
            options = sizes_for(of_replica)
            return options, (f'{options}: a replica takes {of_replica} cores, as '
                             f'num_cores_per_replica says{each.origin}')
        if not shards.size:
            continue
        cores = shards.size * of_replica
        if hosts_for(cores, of_replica) is not None and len(configs) == 1:
            options = sizes_for(cores, of_replica)
            return options, (f'{options}: num_shards is {shards.value}{shards.origin}, and no '
                             'number of hosts with 8 cores each has so many')
        size = sizes_for(cores).replace('--hosts ', '').replace(' --cores ', ' x ')
        return '', (f'no --hosts, no --cores: num_shards is {shards.value}{shards.origin}, and '
                    f'sets the size to {size.replace("--cores", "1 x")} (hosts x cores)')
    # Nobody else states the cores of a loop with a raw `TPUEmbedding`.
    for call in group.calls('shard', 'batch_parallel') if group.calls('TPUEmbedding') else ():
        known = group.known(call, 'num_shards')
        if known is not None and known.size > 1:
            options = sizes_for(known.size)
            return options, (f'{options}: {call.values["written"]} makes {known.value} replicas'
                             f'{known.origin}, and a TPUEmbedding has as many cores as the system')
    return '', ''


def _sizes(group: Linked) -> Iterator[Finding]:
    """Yields W216: numbers of shards that no system of eight cores per host has, or two sizes."""
    seen: dict[tuple[str, str], Known] = {}
    for call in group.calls('TPUConfig'):
        shards, each = (group.known(call, name, None) for name in (
            'num_shards', 'num_cores_per_replica'))
        for known, name, message in _of_config(shards, each):
            yield Finding('W216', known.place, name, name, f'{name} is {known.value}'
                          f'{known.source}{message}')
        if call.values['scope'] != '?' and shards is not None and shards.size:
            first = seen.setdefault((call.place.path, call.values['scope']), shards)
            if first.value != shards.value:
                yield Finding(
                    'W216', shards.place, 'num_shards', 'num_shards',
                    f'num_shards is {shards.value}{shards.source}, and {first.value}{first.origin}:'
                    ' no TPU has both sizes. Here each job gets its own, as long as etpe run gets '
                    'neither --hosts nor --cores')


def _of_config(shards: Known | None, each: Known | None) -> Iterator[tuple[Known, str, str]]:
    if each is not None and each.value not in _REPLICA_SIZES:
        yield each, 'num_cores_per_replica', (
            ': it must be 1, 2, 4, 8, 16, 32, 64 or 128 (ValueError)')
    elif shards is not None and type(shards.value) is int and each is not None:
        of_replica = each.size or 1
        cores = shards.size * of_replica
        if not cores:
            yield shards, 'num_shards', ': it must be positive (ValueError)'
        elif hosts_for(cores, of_replica) is not None:
            yield shards, 'num_shards', (
                f': {cores} cores are no number of hosts with {CORES_PER_HOST} each (E410), unless '
                f'etpe run gets a size, as {sizes_for(cores, of_replica)}')
