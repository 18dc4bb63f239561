"""Makes one page about runs from their model_dirs: a file of HTML that needs no network. It shows
metrics, times, tables, ids, checkpoints and settings; of several runs what differs. What is not
there is said in a line.
"""

from __future__ import annotations

import argparse
import contextlib
import time

from . import run_facts
from .report import Line, Report, as_command, write_output


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('dirs', metavar='MODEL_DIR', nargs='+', help='of a run; several are '
                        'compared')
    parser.add_argument('-o', '--output', metavar='FILE', help='the page, which is replaced; '
                        'needed unless --format is json')
    parser.add_argument('--no-rows', action='store_true', help='read no rows of tables, whose '
                        'norms are those of the newest checkpoint')
    parser.add_argument('--watch', metavar='SECONDS', nargs='?', type=float, const=30.0,
                        help='write the page anew so often, 30 by default, until Ctrl-C')
    as_command(parser, _report)


def _report(parsed: argparse.Namespace) -> Report:
    if parsed.output is None and (parsed.report_format != 'json' or parsed.watch is not None):
        parsed.refuse('-o FILE says where the page goes; it is needed unless --format is json, '
                      'and with --watch')
    if parsed.watch is not None and not 1 <= parsed.watch <= 86_400:
        parsed.refuse('--watch SECONDS must be from 1 to 86400')
    runs = _written(parsed)
    with contextlib.suppress(KeyboardInterrupt):
        while parsed.watch is not None:
            time.sleep(parsed.watch)
            runs = _written(parsed)
    lines = [Line(one['sentence']) for one in runs]
    lines += [Line(warning, 'warn') for one in runs for warning in one['warnings']]
    if parsed.output is not None:
        lines.append(Line(f'{parsed.output}: written', 'good'))
    return Report(lines, {'runs': runs}, int(any(one['warnings'] for one in runs)))


def _written(parsed: argparse.Namespace) -> list[run_facts.Facts]:
    """Reads all runs, and writes the page; returns the facts."""
    runs = [run_facts.facts_of(path, not parsed.no_rows) for path in parsed.dirs]
    if parsed.output is not None:
        from .run_page import html_of
        write_output(parsed.output, html_of(runs, watched=parsed.watch).encode())
    return runs
