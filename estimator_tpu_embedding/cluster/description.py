"""Describes a cluster for people: who was found, what they hold, and who can reach this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import bytes_text, counted, shown
from . import listening
from .opening import Opened
from .server import Server


def of(opened: Sequence[Opened], server: Server, tables: Sequence[Sequence[dict[str, Any]]]
       ) -> list[str]:
    """Returns lines for people.

    Args:
      opened: the worker of each host.
      server: of this process.
      tables: what each host holds, see `Cluster.tell_tables`; may be empty.
    """
    lines = [f'{counted(len(opened), "worker")}: ' + ', '.join(
        f'host {host} is {one.address} (process {one.status.get("pid")})'
        for host, one in enumerate(opened))]
    versions = dict(opened[0].status['versions'])
    lines.append('all have ' + ', '.join(
        f'{name} {shown(version)}' for name, version in versions.items() if name != 'Python'))
    others = listening.interfaces()
    if others:
        lines.append(
            f'this process listens on {", ".join(server.listens)}, which other machines reach by '
            + ', '.join(f'{name} ({address})' for name, address in sorted(others.items())))
    lines += [f'host {host} holds {counted(len(held), "table")}, '
              f'{bytes_text(sum(one["bytes"] for one in held))}'
              for host, held in enumerate(tables)]
    return lines
