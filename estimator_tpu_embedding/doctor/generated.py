"""Recognizes code that an old protoc made, which the installed protobuf refuses when it runs."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator

from ..compat import environment
from .facts import Finding, Place
from .sources import Source

_OLD = re.compile(r'^(?:\w+ = | +)?(?P<name>_descriptor\.(?:Enum|EnumValue|Field|Service)?'
                  r'Descriptor)\(', re.MULTILINE)
_REFUSES = 4
"""The first version of protobuf whose descriptors only its own code may make."""


def findings_of(source: Source) -> Iterator[Finding]:
    """Yields E104 at the first descriptor that a `*_pb2.py` makes, if protobuf refuses that."""
    if not source.path.endswith('_pb2.py') or not source.cells:
        return
    found = _OLD.search(source.cells[0])
    version = _installed() if found else ''
    if found is None or not version or int(version.partition('.')[0]) < _REFUSES or (
            environment.has_protobuf_in_python()):
        return
    before, column = source.cells[0][:found.start('name')], len(found['name'])
    line, start = before.count('\n') + 1, len(before) - before.rfind('\n')
    yield Finding(
        'E104', Place(source.path, line, start, line, start + column),
        f'google.protobuf.{found["name"].removeprefix("_")}', found['name'],
        f'protobuf {version} refuses code that a protoc before 3.19 made; make the file again '
        f'with a newer protoc, or set {environment.PROTOBUF}=python, which is slower', 'lost')


def _installed() -> str:
    try:
        return importlib.metadata.version('protobuf')
    except importlib.metadata.PackageNotFoundError:
        return ''
