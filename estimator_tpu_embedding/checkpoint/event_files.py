"""Reads the numbers over steps in TensorFlow's event files, without TensorFlow.

A job may be writing them, may have been killed, or the files may be anybody's. So whatever is wrong
with a file is a text for the reader, and what can be read is kept. Memory has a bound: of many
points of a series every second one is forgotten, again and again, but never the last.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c
from google.protobuf.message import DecodeError

from ..errors import counted, shown
from ..proto import files
from ..proto.event_file_pb2 import Event
from ..proto.files import Malformed
from .sstable import masked

MAX_POINTS, MAX_TAGS = 512, 20_000
_MAX_RECORD = 2**25
"""Larger records are graphs, which no number is in; they are passed over."""
_MAX_TAG = 500
_HEAD, _CHECKSUM = struct.Struct('<QI'), struct.Struct('<I')
_TENSORS = {1: struct.Struct('<f'), 2: struct.Struct('<d')}
"""The numbers that a tensor of a summary holds as bytes, by its `DataType`."""


@dataclasses.dataclass(slots=True)
class Series:
    """The values of one tag over steps.

    Attributes:
      steps: global steps, ascending; int64.
      values: float64, of the same length; may be NaN or infinite.
      count: how many points there were. Every `stride`-th of them is kept, and the last.
    """

    steps: array.array[int] = dataclasses.field(default_factory=lambda: array.array('q'))
    values: array.array[float] = dataclasses.field(default_factory=lambda: array.array('d'))
    count: int = 0
    stride: int = 1

    def add(self, step: int, value: float) -> None:
        """Adds a point; a step that ran again, after a restart, replaces what came from it on.

        >>> series = Series()
        >>> for step, value in [(0, 3.0), (5, 2.0), (9, 1.5), (5, 1.0)]: series.add(step, value)
        >>> list(series.steps), list(series.values)
        ([0, 5], [3.0, 1.0])
        """
        was_kept_as_last = len(self.steps) > 1 and (self.count - 1) % self.stride
        while self.steps and (self.steps[-1] >= step or was_kept_as_last):
            del self.steps[-1], self.values[-1]
            was_kept_as_last = False
        self.steps.append(step)
        self.values.append(value)
        self.count += 1
        if len(self.steps) > MAX_POINTS:
            self.stride *= 2
            self.steps, self.values = self.steps[::2], self.values[::2]


@dataclasses.dataclass(slots=True)
class Events:
    """All series of a directory by tag, and what was wrong with its files."""

    series: dict[str, Series] = dataclasses.field(default_factory=dict)
    problems: list[str] = dataclasses.field(default_factory=list)


def directories(model_dir: str) -> list[str]:
    """Returns the directories directly below a model_dir that have event files, by name."""
    with os.scandir(model_dir) as entries:
        below = sorted(one.path for one in entries if one.is_dir(follow_symlinks=False))
    return [path for path in below if _names(path)]


def read(directory: str) -> Events:
    """Reads all event files of a directory, in the order of their names, which begin with a time.

    No content of a file raises an error.
    """
    found = Events()
    for name in _names(directory):
        said = f'event file {shown(name, 200)}:'
        left_out: collections.Counter[str] = collections.Counter()
        try:
            with files.open_regular(os.path.join(directory, name), follow=False) as file:
                for content in _records(file, left_out):
                    _add(content, found.series, left_out)
        except (OSError, Malformed) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            found.problems.append(f'{said} {shown(reason, 200)}')
        found.problems += [f'{said} left out {what} ({counted(count, "time")})'
                           for what, count in left_out.items()]
    return found


def _names(directory: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(directory) if '.tfevents.' in name)
    except OSError:  # Deleted since it was listed, or not ours to read.
        return []


def _add(content: bytes, series: dict[str, Series], left_out: collections.Counter[str]) -> None:
    """Adds the numbers of an event, and counts what is left out."""
    try:
        event = Event.FromString(content)
    except DecodeError:
        left_out['a record that is no event'] += 1
        return
    for value in event.summary.value:
        if (number := _number(value)) is None:
            continue
        if value.tag not in series:
            if len(series) >= MAX_TAGS or len(value.tag) > _MAX_TAG:
                left_out[f'a tag beyond {MAX_TAGS:,}, or of more than {_MAX_TAG} characters'] += 1
                continue
            series[value.tag] = Series()
        series[value.tag].add(event.step, number)


def _records(file: BinaryIO, left_out: collections.Counter[str]) -> Iterator[bytes]:
    """Yields the records of a file; `Malformed` where one is damaged, or does not end."""
    size, at = files.size_of(file), 0
    while head := file.read(_HEAD.size):
        length, checksum = _HEAD.unpack(head) if len(head) == _HEAD.size else (size, 0)
        end = at + _HEAD.size + length + _CHECKSUM.size
        is_whole = len(head) < _HEAD.size or masked(google_crc32c.value(head[:8])) == checksum
        if is_whole and end > size:
            raise Malformed('it ends within a record: a job is writing it, or was killed')
        if is_whole and length > _MAX_RECORD:
            left_out[f'a record of more than {_MAX_RECORD:,} bytes'] += 1
            file.seek(end)
        else:
            content = file.read(length) if is_whole else b''
            if not is_whole or file.read(_CHECKSUM.size) != _CHECKSUM.pack(
                    masked(google_crc32c.value(content))):
                raise Malformed(f'damaged at byte {at:,}; what follows was not read')
            yield content
        at = end


def _number(value: Event.Value) -> float | None:
    """Returns the number that a value is, or `None`."""
    if value.HasField('simple_value'):
        return value.simple_value
    tensor, form = value.tensor, _TENSORS.get(value.tensor.dtype)
    if form is not None and len(tensor.tensor_content) == form.size:
        return float(form.unpack(tensor.tensor_content)[0])
    numbers = [*tensor.float_val, *tensor.double_val]
    return float(numbers[0]) if form is not None and len(numbers) == 1 else None
