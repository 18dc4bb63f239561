"""Judges the sizes that a program states: W215 and W216."""

from __future__ import annotations

from collections.abc import Iterator

from .facts import Finding, Place
from .linked import Known, Linked

CORES_PER_HOST = 8
"""Cores of a host where `num_shards` sizes the system, as `estimator/system.py` does."""

_CALLS = {'train_batch_size': (), 'eval_batch_size': ('evaluate', 'train_and_evaluate'),
          'predict_batch_size': ('predict',)}
"""The batch sizes, and the methods without which they do not matter."""

_BROADCAST = (4, 'BROADCAST')
_REPLICA_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


def findings_of(group: Linked) -> Iterator[Finding]:
    """Yields the findings about files that belong together."""
    yield from _batches(group)
    yield from _shards(group)
    yield from _different_shards(group)


def _batches(group: Linked) -> Iterator[Finding]:
    """W215: batches that the cores do not divide."""
    configs = group.calls('TPUConfig')
    shards = group.known(configs[0], 'num_shards') if len(configs) == 1 else None
    if shards is None or not _is_size(shards.value):
        return
    mode = group.known(configs[0], 'per_host_input_for_training', True)
    if mode is None or mode.value in _BROADCAST:
        return
    called = {fact.values['name'] for fact in group.facts('method')}
    for call in group.calls('TPUEstimator'):
        use_tpu = group.known(call, 'use_tpu', True)
        if use_tpu is None or use_tpu.value is False:
            continue
        for name, methods in _CALLS.items():
            size = group.known(call, name)
            if (size is not None and _is_size(size.value) and _int(size) % _int(shards) != 0
                    and (not methods or called.intersection(methods))):
                yield Finding(
                    'W215', size.place, name, name,
                    f'{name} is {size.value}{size.source}, and num_shards is {shards.value}'
                    f'{shards.origin}: {size.value} = {_quotient(size, shards)}. The '
                    'global batch must be a multiple of the cores (E411): change one of them')


def _quotient(size: Known, shards: Known) -> str:
    whole, rest = divmod(_int(size), _int(shards))
    return f'{whole} x {shards.value} + {rest}'


def _shards(group: Linked) -> Iterator[Finding]:
    """W216: a number of shards that no system of eight cores per host has."""
    for call in group.calls('TPUConfig'):
        shards, each = group.known(call, 'num_shards'), group.known(
            call, 'num_cores_per_replica', None)
        if each is not None and type(each.value) is int and each.value not in _REPLICA_SIZES:
            yield _finding(each.place, 'num_cores_per_replica',
                           f'num_cores_per_replica is {each.value}{each.source}: it must be 1, 2, '
                           '4, 8, 16, 32, 64 or 128 (ValueError)')
            continue
        if shards is None or type(shards.value) is not int or each is None:
            continue
        of_replica = _int(each) if each.value is not None else 1
        cores = shards.value * of_replica
        if shards.value < 1:
            yield _finding(shards.place, 'num_shards', f'num_shards is {shards.value}'
                           f'{shards.source}: it must be positive (ValueError)')
        elif hosts_for(cores, of_replica) is not None:
            yield _finding(
                shards.place, 'num_shards', f'num_shards is {shards.value}{shards.source}: {cores} '
                f'cores are no number of hosts with {CORES_PER_HOST} each (E410), unless etpe run '
                f'gets a size, as {sizes_for(cores, of_replica)}')


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


def _different_shards(group: Linked) -> Iterator[Finding]:
    """W216: two sizes in one function without a condition: no TPU has both."""
    seen: dict[tuple[str, object], Known] = {}
    for call in group.calls('TPUConfig'):
        shards = group.known(call, 'num_shards')
        if call.values['scope'] == '?' or shards is None or not _is_size(shards.value):
            continue
        first = seen.setdefault((call.place.path, call.values['scope']), shards)
        if first.value != shards.value:
            yield _finding(
                shards.place, 'num_shards',
                f'num_shards is {shards.value}{shards.source}, and {first.value}'
                f'{first.origin}: no TPU has both sizes. Here each job gets its own, as '
                'long as etpe run gets neither --hosts nor --cores')


def _finding(place: Place, name: str, message: str) -> Finding:
    return Finding('W216', place, name, name, message)


def _is_size(value: object) -> bool:
    return type(value) is int and value > 0


def _int(known: Known) -> int:
    assert isinstance(known.value, int)
    return known.value
