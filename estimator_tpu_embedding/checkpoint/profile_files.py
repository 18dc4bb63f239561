"""Reads and writes the files of profiles: one per table and kind of run, each replaced as a whole.

The name of a file holds the name of its table and two hashes. One is of the parameters of the
table, the other of the parameters of the run. So a job with another vocabulary, batch or topology
writes other files, and an equal job goes on counting where the first stopped. If two equal jobs
run at the same time, the file of the one that writes last stays.

A file is a JSON object with the attributes of `core.table_profile.TableProfile`, `format` and
`created_by`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from ..core.table_profile import Subject, TableProfile
from ..errors import CheckpointError, Problem, shown
from ..proto import files
from ..proto.reading import label, unreadable
from ..version import VERSION
from .storage import make_writable, set_aside, write_atomically

SUFFIX = '.profile'
FORMAT = 3
MAX_FILES = 10_000
MAX_BYTES = 128 * 2**20
"""The most bytes of all profiles of a directory."""
MAX_BYTES_OF_ONE = 2**21
"""The most bytes of one profile; the largest counts take a tenth of it, without its features."""

_MAX_VALUES = 2**18
_MAX_COUNT = 2**53
_READABLE_PART = 80


def file_name(subject: Subject) -> str:
    """Returns the name of a profile: `<table>-<hash of the table>-<hash of the run>.profile`.

    It is a plain name for any name of a table, and no other profile has it.
    """
    readable = re.sub(r'[^A-Za-z0-9_.-]', '_', subject.table)[:_READABLE_PART].lstrip('.')
    return '-'.join([readable, _hash(subject[:4]), _hash(subject[4:])]) + SUFFIX


def _hash(parameters: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:16]


def open_directory(directory: str) -> None:
    """Makes the directory if it is missing; E615 if files cannot be made in it."""
    try:
        make_writable(directory)
    except OSError as error:
        raise _unwritable(directory, error) from error


def read_previous(directory: str, subject: Subject) -> tuple[TableProfile | None, Problem | None]:
    """Reads the counts of an earlier run of the same kind.

    Returns:
      `(profile, problem)`. The profile is `None` if there is none. The problem is about a file that
      is no profile of `subject`; it is renamed, or E615, so that nothing overwrites it.
    """
    path = os.path.join(directory, file_name(subject))
    if not os.path.lexists(path):
        return None, None
    try:
        profile, _ = _read(path)
        if profile.subject == subject:
            return profile, None
        reason = 'it is of another table or run than its name says'
    except (OSError, ValueError) as error:
        reason = _reason(error)
    try:
        aside = set_aside(path)
    except OSError as error:
        raise _unwritable(directory, error) from error
    return None, Problem(
        'W616', f'table "{subject.table}"', f'the profile {label(path)} must be readable', reason,
        f'It is now called {label(os.path.basename(aside))}, and counting begins anew.')


def write(directory: str, profile: TableProfile) -> Problem | None:
    """Writes a profile atomically; returns the reason if it could not, or `None`."""
    content = json.dumps({
        'format': FORMAT, 'created_by': f'estimator_tpu_embedding {VERSION}',
        **dataclasses.asdict(profile), 'subject': profile.subject._asdict()}).encode()
    try:
        if len(content) > MAX_BYTES_OF_ONE:
            raise ValueError(f'it has more than {MAX_BYTES_OF_ONE:,} bytes')
        write_atomically(os.path.join(directory, file_name(profile.subject)), content)
    except (OSError, ValueError) as error:
        return Problem('W617', f'table "{profile.subject.table}"', 'its profile could not be '
                       f'written to {label(directory)}', _reason(error),
                       'Training is not affected; what is there stays as it was.')
    return None


def read_all(directory: str) -> Iterator[TableProfile]:
    """Yields the profiles in a directory, in the order of file names; skips other files.

    E493 if it is no directory, one of them cannot be read, or all together are too large.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    except (OSError, ValueError) as error:
        raise unreadable('E493', label(directory), 'it must be a directory that can be read',
                         _reason(error)) from error
    size = 0
    for number, name in enumerate(names):
        path = os.path.join(directory, name)
        try:
            profile, read = _read(path)
        except (OSError, ValueError) as error:
            raise unreadable(
                'E493', label(path), f'a file *{SUFFIX} must be the profile of a table',
                _reason(error), 'Remove it, or restore it from a copy.') from error
        size += read
        if size > MAX_BYTES or number >= MAX_FILES:
            raise unreadable('E493', label(directory), 'its profiles must be at most '
                             f'{MAX_FILES:,} with {MAX_BYTES:,} bytes', 'more')
        yield profile


def _read(path: str) -> tuple[TableProfile, int]:
    """Returns the profile in a file, and its size; OSError or ValueError if there is none."""
    content = files.content_of(path, MAX_BYTES_OF_ONE, follow=False)
    return decoded(content), len(content)


def decoded(content: bytearray) -> TableProfile:
    """Returns the profile that the content of a file is.

    ValueError if it is none, or contradicts itself.
    """
    try:
        found = files.json_object(content, _MAX_VALUES)
        if (format := found.pop('format', None)) != FORMAT:
            raise ValueError(f'format {shown(format, 20)}; this version reads format {FORMAT}')
        del found['created_by']
        fields = _counts(found)
        subject = fields.pop('subject')
        profile = TableProfile(
            subject=Subject(**{**subject, 'table': str(subject['table']), 'features': tuple(
                (str(name), length) for name, length in subject['features'])}), **fields)
        possible = profile.is_possible()
    except (TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError('it is not the profile of a table') from error
    if not possible:
        raise ValueError('its numbers contradict each other')
    return profile


def _counts(value: Any) -> Any:
    """Returns a value of JSON with tuples for lists, in which all numbers are counts."""
    if isinstance(value, dict):
        return {name: _counts(one) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(map(_counts, value))
    if not isinstance(value, str) and not (type(value) is int and 0 <= value <= _MAX_COUNT):
        raise ValueError('a count or step is out of range')
    return value


def _unwritable(directory: str, error: OSError) -> CheckpointError:
    return CheckpointError(Problem(
        'E615', 'profile_data_directory', 'files must be writable there', f'{label(directory)}: '
        f'{_reason(error)}', 'Give a directory of this machine, or leave it out.'))


def _reason(error: OSError | ValueError) -> str:
    return shown(error.strerror if isinstance(error, OSError) else error, 200)
