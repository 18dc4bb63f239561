"""Judges what trains the tables and the model: W211, W212, W213, W214."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .construct_names import READERS
from .facts import Fact, Finding, Place
from .linked import Linked

_COLUMNS = ('embedding_column', 'shared_embedding_columns')
_SET_TRUE = 'this package emulates the TPU on the CPU'
_MOST_NAMED = 3


def findings_of(group: Linked) -> Iterator[Finding]:
    """Yields the findings about files that belong together."""
    for call in group.calls('TPUEstimator'):
        yield from _without_tpu(group, call)
    yield from _mod(group)
    for file in group.files:
        yield from _rates([fact for fact in file.facts if fact.kind == 'rate'])
    if not group.facts('sum') and not any(file.problems for file in group.files):
        yield from _no_sums(group)


def _without_tpu(group: Linked, call: Fact) -> Iterator[Finding]:
    """W211: `use_tpu=False` with tables."""
    known = group.known(call, 'use_tpu')
    if known is None or known.value is not False:
        return
    specs = group.calls('EmbeddingConfigSpec')
    if not specs and not group.calls(*_COLUMNS):
        return
    declared = (_named((str(spec.values['optimizer']), spec.place) for spec in specs)
                or 'the optimizer of an EmbeddingConfigSpec')
    model = _named((str(fact.values['name']), fact.place) for fact in group.facts('optimizer'))
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
    if len(found) > _MOST_NAMED:
        return ''
    return ' or '.join(f'{name} ({place.path}:{place.line})' for name, place in found.items())


def _mod(group: Linked) -> Iterator[Finding]:
    """W212: rows in the order of `mod` that something else reads."""
    for spec in group.calls('EmbeddingConfigSpec'):
        strategy = group.known(spec, 'partition_strategy')
        if strategy is None or strategy.value != 'mod':
            continue
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


def _rates(facts: list[Fact]) -> Iterator[Finding]:
    """W213: functions of learning rates that are alike, and yet not one."""
    by_key: dict[object, list[Fact]] = {}
    for fact in facts:
        by_key.setdefault(fact.values['key'], []).append(fact)
    for alike in by_key.values():
        first = alike[0]
        if not (len(alike) > 1 or first.values['is_repeated']):
            continue
        lines = [str(each.place.line) for each in alike]
        where = ('at lines ' + ', '.join(lines[:-1]) + f' and {lines[-1]}' if len(alike) > 1
                 else 'each time')
        yield Finding('W213', first.place, 'learning_rate_fn', str(first.values['how']),
                      f'{first.values["how"]} makes another function {where}, though the rate is '
                      'the same: each table gets a tag of its own, and each function is computed '
                      'in each step (W424). Make one function, and give it to every table')


def _no_sums(group: Linked) -> Iterator[Finding]:
    """W214: a model that each core would train alone.

    Only a file that makes the optimizer itself counts: one of another package may sum.
    """
    makers = {fact.place.path for fact in group.facts('optimizer')}
    trained = next((fact for fact in group.facts('minimize') if fact.place.path in makers), None)
    estimators = [call for call in group.calls('TPUEstimator')
                  if (known := group.known(call, 'use_tpu', True)) is None
                  or known.value is not False]
    if trained is None or not estimators:
        return
    shards = [known for call in group.calls('TPUConfig')
              if (known := group.known(call, 'num_shards'))]
    if shards and all(known.value == 1 for known in shards):
        return
    several = next((known for known in shards if type(known.value) is int and known.value > 1),
                   None)
    cores = (f'num_shards is {several.value}{several.origin}, so training ends' if several
             else 'On one core that changes nothing; on several, training ends')
    written = str(trained.values['name'])
    yield Finding('W214', trained.place, 'CrossShardOptimizer', written,
                  f'no file has a CrossShardOptimizer, so each core would train a model of its '
                  f'own. {cores} with a ValueError that says so. Wrap the optimizer: '
                  'tf.tpu.CrossShardOptimizer(optimizer)')
