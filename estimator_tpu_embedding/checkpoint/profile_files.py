"""The directory of profiles: one file per table and kind of run, each replaced as a whole.

The name of a file says which table it is of, and holds two hashes: of the parameters of the table
and of those of the run. So a job with another vocabulary, batch or topology writes other files,
and one that is the same goes on counting where it stopped. Of two jobs that are the same and run
at the same time, the one that writes last is heard.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator

from ..core.table_profile import Subject, TableProfile
from ..errors import CheckpointError, Problem, shown
from ..proto import profile_codec
from ..proto.reading import label, unreadable
from ..version import VERSION
from .files import make_writable, set_aside, write_atomically

SUFFIX = '.profile'
MAX_FILES = 10_000
MAX_BYTES = 64 * 2**20
"""Of all profiles of a directory."""

_READABLE_PART = 80


def file_name(subject: Subject) -> str:
    """The name of the file of a profile: `<table>-<hash of the table>-<hash of the run>.profile`.

    Whatever a table is called, the name is a plain one, and differs from those of all others.
    """
    readable = re.sub(r'[^A-Za-z0-9_.-]', '_', subject.table)[:_READABLE_PART].lstrip('.')
    table = [subject.table, subject.vocabulary_size, subject.dimension, subject.features]
    run = [dataclasses.astuple(subject.topology), subject.batch_size, subject.strategy]
    return '-'.join([readable, _hash(table), _hash(run)]) + SUFFIX


def _hash(parameters: list[object]) -> str:
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:16]


def open_directory(directory: str) -> None:
    """Makes the directory if it is not there, and sees that files can be made in it.

    Raises:
      CheckpointError: if not.
    """
    try:
        make_writable(directory)
    except OSError as error:
        raise _unwritable(directory, error) from error


def read_previous(directory: str, subject: Subject) -> tuple[TableProfile | None, Problem | None]:
    """What a run of the same kind has counted.

    Returns:
      Its profile, or `None`; and what was wrong with a file that is no profile of `subject`. That
      file is renamed, so nothing overwrites it.

    Raises:
      CheckpointError: if it cannot be renamed.
    """
    path = os.path.join(directory, file_name(subject))
    if not os.path.lexists(path):
        return None, None
    try:
        profile, _ = profile_codec.read(path)
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
    """Writes a profile, atomically; returns why that could not be, or `None`."""
    content = profile_codec.encode(profile, f'estimator_tpu_embedding {VERSION}')
    try:
        if len(content) > profile_codec.MAX_BYTES:
            raise ValueError(f'it has more than {profile_codec.MAX_BYTES:,} bytes')
        write_atomically(os.path.join(directory, file_name(profile.subject)), content)
    except (OSError, ValueError) as error:
        return Problem('W617', f'table "{profile.subject.table}"', 'its profile could not be '
                       f'written to {label(directory)}', _reason(error),
                       'Training is not affected; what is there stays as it was.')
    return None


def read_all(directory: str) -> Iterator[TableProfile]:
    """Yields the profiles in a directory, by file name; other files are passed over.

    Raises:
      UnreadableConfigError: if it is no directory, one of them cannot be read, or all together
        are too large.
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
            profile, read = profile_codec.read(path)
        except (OSError, ValueError) as error:
            raise unreadable(
                'E493', label(path), f'a file *{SUFFIX} must be the profile of a table',
                _reason(error), 'Remove it, or restore it from a copy.') from error
        size += read
        if size > MAX_BYTES or number >= MAX_FILES:
            raise unreadable('E493', label(directory), 'its profiles must be at most '
                             f'{MAX_FILES:,} with {MAX_BYTES:,} bytes', 'more')
        yield profile


def _unwritable(directory: str, error: OSError) -> CheckpointError:
    return CheckpointError(Problem(
        'E615', 'profile_data_directory', 'files must be writable there', f'{label(directory)}: '
        f'{_reason(error)}', 'Give a directory of this machine, or leave it out.'))


def _reason(error: OSError | ValueError) -> str:
    return shown(error.strerror if isinstance(error, OSError) else error, 200)
