"""Judges the calls for TPUs of a program: what runs, but not as its author thinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .findings import Fact, Finding, ScannedFile
from .project import Reached
from .tpu_calls import COLUMNS, READERS, Flag, Program

_NO_KERNEL = ('TensorFlow has this operation for TPUs only, and nothing emulates it: the session '
              'that runs it raises InvalidArgumentError')
_NO_FEED = ('there is no infeed and no outfeed here (E925): give tensors as inputs of '
            'tf.tpu.shard, and call session.run for each step')
_REFUSED = {'InfeedQueue': _NO_FEED, 'feed operation': _NO_FEED, 'all_to_all': _NO_KERNEL,
            'collective_permute': _NO_KERNEL}
"""By the kind of a fact, why it raises an error when it is used."""


def findings_of(files: Sequence[ScannedFile]) -> list[Finding]:
    """Returns W211 to W215, W220 and E104 about all files, each once."""
    found: dict[Finding, None] = {}
    for of_program in Reached(files).groups():
        program = Program(of_program)
        for judge in (_refused, _without_tpu, _mod, _rates, _no_sums, _batches):
            found.update(dict.fromkeys(judge(program)))
    return list(found)


def _refused(program: Program) -> Iterator[Finding]:
    """E104: calls for TPUs that nothing emulates."""
    for fact in program.facts(*_REFUSED):
        yield Finding('E104', fact.place, fact.values['path'], fact.values['written'],
                      _REFUSED[fact.kind])


def _without_tpu(program: Program) -> Iterator[Finding]:
    """W211: `use_tpu=False` with tables."""
    has_tables = program.facts('EmbeddingConfigSpec', *COLUMNS)
    for call in program.facts('TPUEstimator') if has_tables else ():
        use_tpu = program.argument(call, 'use_tpu')
        if use_tpu is not None and use_tpu.value is False:
            remedy = f'give {use_tpu.option}' if use_tpu.option else 'set use_tpu=True'
            yield Finding(
                'W211', use_tpu.place, 'use_tpu', 'use_tpu', f'use_tpu is False{use_tpu.source}: '
                'then the optimizer of model_fn trains the embedding tables, and not that of the '
                f'EmbeddingConfigSpec. To train as a TPU does, {remedy}: this package emulates '
                'the TPU on the CPU')


def _mod(program: Program) -> Iterator[Finding]:
    """W212: rows in the order of `mod`, and a reader of the same `model_dir` that knows nothing of
    that order.
    """
    def folder_of(call: Fact, name: str) -> object:
        """A text or a flag, which are equal if they are the same."""
        value = call.values['arguments'].get(name)
        return value if isinstance(value, (str, Flag)) and value else None

    folders = {folder_of(call, 'model_dir') for call in program.facts('TPUEstimator', 'RunConfig')}
    for spec in program.facts('EmbeddingConfigSpec'):
        strategy = program.argument(spec, 'partition_strategy')
        if strategy is None or strategy.value != 'mod':
            continue
        for call in program.facts('Estimator', *READERS):
            is_reader = call.kind in READERS
            folder = folder_of(call, 'checkpoint' if is_reader else 'model_dir')
            if folder is not None and folder in folders:
                remedy = ('Read them by "etpe checkpoint export", which writes them in the order '
                          'of ids' if is_reader else 'Evaluate with the TPUEstimator')
                yield Finding(
                    'W212', strategy.place, 'partition_strategy', 'partition_strategy',
                    f"partition_strategy is 'mod'{strategy.source}: {call.values['written']} "
                    f'({call.place.path}:{call.place.line}) reads the rows in its model_dir as '
                    f'they are stored, where row i is not id i. {remedy}, or say \'div\'')


def _rates(program: Program) -> Iterator[Finding]:
    """W213: functions of learning rates that are alike, and yet not one."""
    by_key: dict[object, list[Fact]] = {}
    for fact in program.facts('rate'):
        by_key.setdefault((fact.place.path, fact.values['key']), []).append(fact)
    for first, *others in by_key.values():
        if others or first.values['is_repeated']:
            *lines, last = [each.place.line for each in (first, *others)]
            where = f'at lines {", ".join(map(str, lines))} and {last}' if others else 'each time'
            how = first.values['how']
            yield Finding('W213', first.place, 'learning_rate_fn', how,
                          f'{how} makes another function {where}, though the rate is the same: '
                          'each table gets a tag of its own, and each function is computed in each '
                          'step (W424). Make one function, and give it to every table')


def _no_sums(program: Program) -> Iterator[Finding]:
    """W214: a model that each core would train alone.

    Only a file that makes the optimizer itself counts: one of another package may sum.
    """
    makers = {fact.place.path for fact in program.facts('optimizer')}
    trained = next((fact for fact in program.facts('minimize') if fact.place.path in makers), None)
    uses_tpu = any(one is None or one.value is not False for one in (
        program.argument(call, 'use_tpu', True) for call in program.facts('TPUEstimator')))
    is_partial = any(one.code.startswith('E13') for file in program.files for one in file.problems)
    shards = [shards for call in program.facts('TPUConfig')
              if (shards := program.argument(call, 'num_shards'))]
    if program.facts('sum') or is_partial or trained is None or not uses_tpu or (
            shards and all(one.value == 1 for one in shards)):
        return
    several = next((one for one in shards if one.size > 1), None)
    cores = (f'num_shards is {several.value}{several.origin}, so training ends' if several
             else 'On one core that changes nothing; on several, training ends')
    yield Finding('W214', trained.place, 'CrossShardOptimizer', trained.values['name'],
                  f'no file has a CrossShardOptimizer, so each core would train a model of its '
                  f'own. {cores} with a ValueError that says so. Wrap the optimizer: '
                  'tf.tpu.CrossShardOptimizer(optimizer)')


def _batches(program: Program) -> Iterator[Finding]:
    """W215: training batches that the cores do not divide. W220: an `input_fn` that is called per
    core, and has a batch size of its own.
    """
    configs = program.facts('TPUConfig')
    shards = program.argument(configs[0], 'num_shards') if len(configs) == 1 else None
    mode = shards and program.argument(configs[0], 'per_host_input_for_training', True)
    if shards is None or not shards.size or mode is None:
        return
    for call in program.facts('TPUEstimator') if mode.value not in (4, 'BROADCAST') else ():
        use_tpu = program.argument(call, 'use_tpu', True)
        batch = program.argument(call, 'train_batch_size')
        if use_tpu and use_tpu.value is not False and batch and batch.size % shards.size:
            whole, rest = divmod(batch.size, shards.size)
            yield Finding(
                'W215', batch.place, 'train_batch_size', 'train_batch_size',
                f'train_batch_size is {batch.value}{batch.source}, and num_shards is '
                f'{shards.value}{shards.origin}: {batch.value} = {whole} x {shards.value} + '
                f'{rest}. The global batch must be a multiple of the cores (E411): change one of '
                'them')
    is_per_core = mode.value in (3, 'PER_HOST_V2', 'PER_SHARD_V1') and shards.size > 1
    for fact in program.facts('fixed batch') if is_per_core else ():
        yield Finding(
            'W220', fact.place, 'batch', fact.values['written'],
            f'each core takes such a batch, whatever train_batch_size says, and num_shards is '
            f'{shards.value}{shards.origin}: the global batch is {shards.value} times as '
            "large. Take params['batch_size'], or set num_shards to 1 and use --cores 1")
