"""Judges the constructs of a program: what runs, and does something else than its author thinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from . import emulated, sizes
from .constructs import READERS
from .facts import Fact, Finding, Place, ScannedFile
from .flags import Flags
from .reached import Reached
from .values import Linked

_COLUMNS = ('embedding_column', 'shared_embedding_columns')
_SET_TRUE = 'this package emulates the TPU on the CPU'
_MOST_NAMED = 3
_CALLS = {'train_batch_size': (), 'eval_batch_size': ('evaluate', 'train_and_evaluate'),
          'predict_batch_size': ('predict',)}
"""The batch sizes, and the methods without which they do not matter."""
_EXPORTS = frozenset({
    'export_saved_model', 'export_savedmodel', 'experimental_export_all_saved_models'})


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
                     _rates(group), _no_sums(group), _batches(group), sizes.findings_of(group),
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
