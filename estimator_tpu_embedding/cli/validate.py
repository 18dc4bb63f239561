"""`etpe validate`: prints the errors and doubtful choices of a config, each with its code.

JSON: `"errors"` and `"warnings"`, their numbers, and `"findings"`, a list of objects. Each has
`where` (the input), `code`, `severity`, `object`, `rule`, `got` and `remedy`.
"""

from __future__ import annotations

import argparse

from ..errors import ConfigError, Problem, UnsupportedError
from ..proto.codec import config_to_plan
from ..proto.reading import Source
from . import codes, inputs
from .advice import advise
from .config_view import view_of
from .report import Line, Report, as_command, printable
from .rules import SEVERITIES

_MOST_OBJECT, _MOST_GOT = 100, 160


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Finds errors in a config, and warns of choices that are legal but doubtful. A config '
        'holds less than a job, so training may refuse a config that passes. The exit status '
        'is 1 if there are errors; warnings count with --strict only.')
    parser.add_argument('--strict', action='store_true', help='warnings count for the exit '
                        'status')
    codes.add_selection(parser)
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    sources = inputs.load(parsed.input)
    found = [(source.where, problem) for source in sources for problem in _problems_of(source)
             if problem.code.startswith(parsed.select)
             and not problem.code.startswith(parsed.ignore)]
    errors = sum(problem.code[0] == 'E' for _, problem in found)
    warnings = len(found) - errors
    lines = [Line(_line(where, problem), 'bad' if problem.code[0] == 'E' else 'warn')
             for where, problem in found]
    lines.append(Line(f'{errors} errors, {warnings} warnings in {len(sources)} '
                      f'config{"s" if len(sources) != 1 else ""}', '' if found else 'good'))
    return Report(
        lines, {'findings': [
            {'where': where, 'code': problem.code, 'severity': SEVERITIES[problem.code[0]],
             'object': problem.where, 'rule': problem.rule, 'got': problem.got,
             'remedy': problem.remedy} for where, problem in found],
            'errors': errors, 'warnings': warnings},
        status=1 if errors or (parsed.strict and warnings) else 0)


def _problems_of(source: Source) -> list[Problem]:
    """The errors of an input, then its warnings."""
    try:
        config_to_plan(source.config)
        errors: tuple[Problem, ...] = ()
    except (ConfigError, UnsupportedError) as error:
        errors = error.problems
    return [*errors, *advise(view_of(source))]


def _line(where: str, problem: Problem) -> str:
    shown = Problem(problem.code, printable(problem.where, _MOST_OBJECT), problem.rule,
                    printable(problem.got, _MOST_GOT), problem.remedy)
    return f'{where}: {shown}  (etpe explain {problem.code})'
