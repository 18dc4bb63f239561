"""A diagnosis as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import json
import os
import pathlib
import urllib.parse
from typing import Any

from ...doctor.facts import Diagnosis, Finding, Place
from ...version import VERSION
from ..codes import ENTRIES
from ..codes.examples import EXAMPLES
from ..report import printable

SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'
LEVELS = {'E': 'error', 'W': 'warning', 'I': 'note'}


def text_of(diagnosis: Diagnosis) -> str:
    """Returns the log: one run, with the rules that have results."""
    codes = sorted({finding.code for finding in diagnosis.findings})
    run = {
        'tool': {'driver': {'name': 'etpe doctor', 'version': VERSION,
                            'rules': [_rule(code) for code in codes]}},
        'columnKind': 'unicodeCodePoints',
        'invocations': [{
            'executionSuccessful': True,
            'toolExecutionNotifications': [
                {'level': 'warning',
                 'message': {'text': f'not scanned: {printable(path)}: {reason}'}}
                for path, reason in diagnosis.left_out]}],
        'results': [_result(finding, codes.index(finding.code)) for finding in diagnosis.findings]}
    return json.dumps({'$schema': SCHEMA, 'version': '2.1.0', 'runs': [run]}, indent=1) + '\n'


def _rule(code: str) -> dict[str, Any]:
    title, meaning, remedy = ENTRIES[code]
    before, after = EXAMPLES[code]
    return {'id': code, 'shortDescription': {'text': title}, 'fullDescription': {'text': meaning},
            'help': {'text': f'{meaning} {remedy}\nBefore:\n{before}\nAfter:\n{after}'},
            'defaultConfiguration': {'level': LEVELS[code[0]]}}


def _result(finding: Finding, index: int) -> dict[str, Any]:
    place = finding.place
    name = finding.written or finding.subject
    cell = f'code cell {place.cell}, line {place.line}: ' if place and place.cell else ''
    result = {'ruleId': finding.code, 'ruleIndex': index, 'level': LEVELS[finding.code[0]],
              'message': {'text': f'{cell}{name}: {finding.message}'}}
    if place is not None:
        result['locations'] = [{'physicalLocation': _location(place)}]
    return result


def _location(place: Place) -> dict[str, Any]:
    location: dict[str, Any] = {'artifactLocation': {'uri': _uri(place.path)}}
    if not place.cell:  # Lines of a cell are not those of the file.
        location['region'] = {'startLine': place.line, 'startColumn': place.column}
        if (place.end_line, place.end_column) > (place.line, place.column):
            location['region'] |= {'endLine': place.end_line, 'endColumn': place.end_column}
    return location


def _uri(path: str) -> str:
    """A relative reference for what is below the working directory, or an absolute URI."""
    below = os.path.relpath(path)
    if below.split(os.sep)[0] == os.pardir:
        return pathlib.Path(os.path.abspath(path)).as_uri()
    return urllib.parse.quote(os.fsencode(below))
