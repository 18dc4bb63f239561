"""A diagnosis for programs, as the members of a JSON object."""

from __future__ import annotations

from typing import Any

from ...doctor.facts import Diagnosis, Finding
from ..rules import SEVERITIES
from .places import of_severity


def data_of(diagnosis: Diagnosis) -> dict[str, Any]:
    """Returns the members that `cli/doctor.py` documents."""
    return {
        'environment': [{'what': what, 'state': state} for what, state in diagnosis.environment],
        'findings': [finding_data(finding) for finding in diagnosis.findings],
        'programs': [{'path': one.path, 'command': one.command, 'reasons': list(one.reasons),
                      'stops': [finding_data(finding) for finding in one.stops]}
                     for one in diagnosis.prescriptions],
        'not_scanned': [{'path': path, 'reason': reason} for path, reason in diagnosis.left_out],
        'verdicts': dict(diagnosis.verdicts), 'ignored': dict(diagnosis.ignored),
        'files': diagnosis.files, 'lines': diagnosis.lines,
        **{name: len(of_severity(diagnosis.findings, letter)) for letter, name in
           (('E', 'errors'), ('W', 'warnings'), ('I', 'information'))}}


def finding_data(finding: Finding) -> dict[str, Any]:
    """Returns one of the objects in `findings`."""
    place = None if finding.place is None else finding.place._asdict()
    return {'code': finding.code, 'severity': SEVERITIES[finding.code[0]], 'place': place,
            'subject': finding.subject, 'written': finding.written, 'message': finding.message,
            'verdict': finding.verdict, 'successor': finding.successor}
