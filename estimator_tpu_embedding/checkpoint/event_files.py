"""Reads the numbers over steps in TensorFlow's event files, without TensorFlow.

A job may be writing them, may have been killed, or the files may be anybody's. So whatever is wrong
with a file is a text for the reader, and what can be read is kept. Memory has a bound: of many
points of a series every second one is forgotten, again and again, but never the last.
"""

from __future__ import annotations

import array
import bisect
import collections
import glob
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import google_crc32c
from google.protobuf.message import DecodeError

from ..errors import counted, shown
from ..proto import files
from ..proto.event_file_pb2 import Event
from ..proto.files import Malformed
from .sstable import masked

MAX_POINTS, MAX_TAGS = 512, 20_000
_MAX_RECORD = 2**25  # Larger ones are graphs, which no number is in; they are passed over.
_MAX_TAG = 500
_LENGTH, _CHECKSUM = struct.Struct('<Q'), struct.Struct('<I')
_TENSORS = {1: struct.Struct('<f'), 2: struct.Struct('<d')}
"""The numbers that a tensor of a summary holds as bytes, by its `DataType`."""


class Series:
    """The values of one tag over steps.

    Attributes:
      steps: global steps, ascending; int64.
      values: float64, of the same length; may be NaN or infinite.
      count: how many points there were. Every `stride`-th of them is kept, and the last.
    """

    def __init__(self) -> None:
        self.steps, self.values = array.array('q'), array.array('d')
        self.count, self.stride = 0, 1

    def add(self, step: int, value: float) -> None:
        """Adds a point; a step that ran again, after a restart, replaces what came from it on.

        >>> series = Series()
        >>> for step, value in [(0, 3.0), (5, 2.0), (9, 1.5), (5, 1.0)]: series.add(step, value)
        >>> list(series.steps), list(series.values)
        ([0, 5], [3.0, 1.0])
        """
        end = bisect.bisect_left(self.steps, step)
        if (self.count - 1) % self.stride:  # The last was kept as the last only.
            end = min(end, max(len(self.steps) - 1, 1))
        del self.steps[end:], self.values[end:]
        self.steps.append(step)
        self.values.append(value)
        self.count += 1
        if len(self.steps) > MAX_POINTS:
            self.stride *= 2
            self.steps, self.values = self.steps[::2], self.values[::2]


class Events(NamedTuple):
    """All series of a directory by tag, and what was wrong with its files."""

    series: dict[str, Series]
    problems: list[str]


def directories(model_dir: str) -> list[str]:
    """Returns the names of the directories directly below a model_dir that have event files."""
    found = {os.path.dirname(one) for one in glob.glob('*/*.tfevents.*', root_dir=model_dir)}
    return sorted(one for one in found if not os.path.islink(os.path.join(model_dir, one)))


def read(directory: str) -> Events:
    """Reads all event files of a directory, in the order of their names, which begin with a time.

    No content of a file raises an error.
    """
    series, problems = collections.defaultdict[str, Series](Series), list[str]()
    for name in sorted(glob.glob('*.tfevents.*', root_dir=directory)):
        said = f'event file {shown(name, 200)}:'
        left_out: collections.Counter[str] = collections.Counter()
        try:
            with files.open_regular(os.path.join(directory, name), follow=False) as file:
                for content in _records(file, left_out):
                    _add(content, series, left_out)
        except (OSError, Malformed) as error:
            problems.append(f'{said} {shown(getattr(error, "strerror", error), 200)}')
        problems += [f'{said} left out {what} ({counted(count, "time")})'
                     for what, count in left_out.items()]
    return Events(series, problems)


def _add(content: bytes, series: dict[str, Series], left_out: collections.Counter[str]) -> None:
    """Adds the numbers of an event, and counts what is left out."""
    try:
        event = Event.FromString(content)
    except DecodeError:
        left_out['a record that is no event'] += 1
        return
    for value in event.summary.value:
        number, is_new = _number(value), value.tag not in series
        if number is not None and is_new and (
                len(series) >= MAX_TAGS or len(value.tag) > _MAX_TAG):
            left_out[f'a tag beyond {MAX_TAGS:,}, or of more than {_MAX_TAG} characters'] += 1
        elif number is not None:
            series[value.tag].add(event.step, number)


def _records(file: BinaryIO, left_out: collections.Counter[str]) -> Iterator[bytes]:
    """Yields the records of a file; `Malformed` where one is damaged, or does not end."""
    size = files.size_of(file)
    while file.tell() < size:
        length, = _LENGTH.unpack(_checked(file, _LENGTH.size, size))
        if _MAX_RECORD < length < size - file.tell():
            left_out[f'a record of more than {_MAX_RECORD:,} bytes'] += 1
            file.seek(length + _CHECKSUM.size, os.SEEK_CUR)
        else:
            yield _checked(file, length, size)


def _checked(file: BinaryIO, length: int, size: int) -> bytes:
    """Reads so many bytes and their checksum, which follows, in a file of this size."""
    at = file.tell()
    if at + length + _CHECKSUM.size > size:
        raise Malformed('it ends within a record: a job is writing it, or was killed')
    content = file.read(length)
    if file.read(_CHECKSUM.size) != _CHECKSUM.pack(masked(google_crc32c.value(content))):
        raise Malformed(f'damaged at byte {at:,}; what follows was not read')
    return content


def _number(value: Event.Value) -> float | None:
    """Returns the number that a value is, or `None`."""
    if value.HasField('simple_value'):
        return value.simple_value
    tensor, form = value.tensor, _TENSORS.get(value.tensor.dtype)
    if form is not None and len(tensor.tensor_content) == form.size:
        return float(form.unpack(tensor.tensor_content)[0])
    numbers = [*tensor.float_val, *tensor.double_val]
    return float(numbers[0]) if form is not None and len(numbers) == 1 else None
