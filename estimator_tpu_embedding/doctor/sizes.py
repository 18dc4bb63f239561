"""Judges the size of the system that a program states (W216), and says what `etpe run` needs."""

from __future__ import annotations

from collections.abc import Iterator

from .facts import Finding
from .values import Known, Linked

CORES_PER_HOST = 8
"""Cores of a host where `num_shards` sizes the system, as `estimator/system.py` does."""
_REPLICA_SIZES = (None, 1, 2, 4, 8, 16, 32, 64, 128)


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


def findings_of(group: Linked) -> Iterator[Finding]:
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
