"""Makes sure that the tasks of a cluster can hold the tables of a job and see its files."""

from __future__ import annotations

from typing import Any

from ..core.plan import BYTES_PER_ELEMENT, Plan
from ..errors import bytes_text, counted
from .model import Cluster, Job


def admit(job: Job, cluster: Cluster, checkpoint: str | None) -> None:
    """Looks before a session is made, when the tasks are prepared.

    Args:
      job: the job.
      cluster: its cluster.
      checkpoint: the prefix of the one to restore, or `None`.

    Raises:
      ConfigError: E744 if tables do not fit into the memory of a task.
      SetupError: E741, E742 if the tasks and this process do not share a disk.
    """
    hosts = range(job.topology.num_hosts)
    cluster.admit([[] if job.plan is None else parts_on(job.plan, host) for host in hosts],
                  job.model_dir if job.verb == 'train' else '', checkpoint or '')


_MOST_NAMED = 8


def shares(plan: Plan) -> str:
    """Says how many rows and bytes each task has: each of a few, or the least and the most."""
    parts = [parts_on(plan, host) for host in range(plan.topology.num_hosts)]
    sizes = [(sum(one['bytes'] for one in part), sum(one['rows'] for one in part))
             for part in parts]
    if len(sizes) > _MOST_NAMED:
        return f'each host holds from {_size_text(min(sizes))} to {_size_text(max(sizes))}'
    return ', '.join(f'host {host} holds {_size_text(size)}' for host, size in enumerate(sizes))


def _size_text(size: tuple[int, int]) -> str:
    return f'{counted(size[1], "row")} of {bytes_text(size[0])}'


def parts_on(plan: Plan, host: int) -> list[dict[str, Any]]:
    """Returns name, rows, and bytes with slots of each table's part on a host."""
    rows = {table.name: plan.partition(table.name).rows_on(host) for table in plan.tables}
    return [{'name': table.name, 'rows': rows[table.name],
             'bytes': rows[table.name] * table.dimension * BYTES_PER_ELEMENT
             * (1 + len(plan.slots(table.name)))}
            for table in plan.tables if rows[table.name]]
