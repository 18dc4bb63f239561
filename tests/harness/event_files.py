"""Writes event files by hand, record by record, for tests that damage them."""

import struct

import google_crc32c

from estimator_tpu_embedding.checkpoint.sstable import masked
from estimator_tpu_embedding.proto.event_file_pb2 import Event

NAME = 'events.out.tfevents.1000.host'


def record(content):
    """One record of a file."""
    head = struct.pack('<Q', len(content))
    return (head + struct.pack('<I', masked(google_crc32c.value(head))) + content
            + struct.pack('<I', masked(google_crc32c.value(content))))


def event(step, **values):
    """The bytes of an event with a scalar per tag; `__` in a name is `/`."""
    found = Event(step=step, wall_time=1e9 + step)
    for tag, value in values.items():
        found.summary.value.add(tag=tag.replace('__', '/'), simple_value=value)
    return found.SerializeToString()


def write(directory, *events, name=NAME):
    """Writes an event file of these events; returns its path."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(b''.join(map(record, events)))
    return path
