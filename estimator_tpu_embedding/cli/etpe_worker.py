"""Holds the shards of one host of a job, until SIGTERM or Ctrl-C: etpe run --workers ... finds it.
With "ls" it shows which workers answer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Any

from ..errors import EteError, bytes_text
from .report import Grid, Line, Report, as_command

_SECURITY = ('a stranger who reaches this port can run programs as this user: keep it in a private '
             'network')


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('--listen', metavar='HOST:PORT', help='where clients and other workers '
                        'reach it')
    parser.add_argument('--expose', action='store_true', help='listen although other machines can '
                        'reach this one; ' + _SECURITY)
    parser.add_argument('--lease', type=float, metavar='SECONDS', help=argparse.SUPPRESS)
    parser.add_argument('--parent', type=int, metavar='PID', help=argparse.SUPPRESS)
    parser.set_defaults(command=_serve, refuse=parser.error)
    commands = parser.add_subparsers(title='commands', metavar='COMMAND')
    ls = commands.add_parser('ls', help='show which workers answer, and what they hold',
                             allow_abbrev=False)
    ls.add_argument('addresses', metavar='ADDRESSES', help='such as 10.0.0.3:8470,10.0.0.4:8470')
    ls.add_argument('--deadline', type=float, default=5.0, metavar='SECONDS', help='for an answer; '
                    '5 by default')
    as_command(ls, _report)


def _serve(parsed: argparse.Namespace) -> int:
    """Is a worker until it is ended."""
    if parsed.listen is None:
        parsed.refuse('the following arguments are required: --listen')
    from ..cluster import addresses
    address = addresses.parsed(parsed.listen, lowest_port=0 if parsed.parent is not None else 1)
    if address is None:
        return parsed.refuse('--listen must have a machine, a colon and a port, such as '
                             f'10.0.0.3:8470, not {parsed.listen!r}')
    from ..compat import console, environment
    environment.hide_warnings_of_tensorflow()
    with console.quiet_start():
        from ..cluster import worker
    lease = worker.LEASE_SECONDS if parsed.lease is None else parsed.lease
    tell = _tell if parsed.parent is None else _tell_parent
    try:
        return worker.serve(address, tell, expose=parsed.expose, lease_seconds=lease,
                            parent=parsed.parent)
    except EteError as error:
        sys.stderr.write(''.join(f'etpe worker: {one}\n' for one in error.problems))
        return 2


def _tell(server: Any, versions: dict[str, str]) -> None:
    """Says what runs here and who can reach it."""
    from ..cluster import listening
    own = ', '.join(f'{name} {version}' for name, version in versions.items())
    others = listening.interfaces_text()
    lines = [f'worker at {server.address}: {own}',
             f'it really listens on {", ".join(server.listens)}; other machines reach it by '
             f'{others or "no interface"}']
    if others:
        lines.append(_SECURITY)
    _write(''.join(f'[etpe] {line}\n' for line in lines))


def _tell_parent(server: Any, versions: dict[str, str]) -> None:
    """Tells the client that started this process where it listens."""
    _write(json.dumps({'address': str(server.address), 'versions': versions}) + '\n')


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # The reader went away; the work goes on.
        sys.stdout.write(text)
        sys.stdout.flush()


def _report(parsed: argparse.Namespace) -> Report:
    """Returns the report about workers, each asked at the same time."""
    from ..compat import console
    with console.quiet_start():
        from ..cluster import claims
    found = claims.look_at(parsed.addresses, parsed.deadline)
    silent = [one for one in found if one['why_not']]
    blocks: list[Line | Grid] = [Grid(
        ('address', 'process', 'versions', '>used', '>available', 'listens on', 'tables', 'claim'),
        [_cells(one) for one in found], ['bad' if one['why_not'] else '' for one in found])]
    blocks += [Line(f'{one["address"]}: {one["why_not"]}', 'bad') for one in silent]
    return Report(blocks, {'workers': found}, status=1 if silent else 0)


def _cells(one: dict[str, Any]) -> list[str]:
    if one['why_not']:
        return [one['address'], 'no answer', *[''] * 6]
    try:
        tables, claim, memory = one['tables'], one['claim'], one['memory']
        total = sum(table['bytes'] for table in tables)
        return [
            one['address'], str(one['pid']),
            ', '.join(f'{name} {version}' for name, version in one['versions'].items()),
            bytes_text(memory['used']), bytes_text(memory['available']), ', '.join(one['listens']),
            f'{len(tables)}: {bytes_text(total)}' if tables else 'none',
            f'{claim["client"]}, silent for {claim["silent_seconds"]} s' if claim else 'free']
    except (AttributeError, KeyError, TypeError):  # A stranger may have answered anything.
        return [one['address'], 'no answer of a worker', *[''] * 6]
