"""Encodes profiles of tables as bytes, and decodes bytes that a stranger may have written."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from ..core import limits
from ..core.partition import STRATEGIES
from ..core.specs import Topology
from ..core.table_profile import FeatureUse, HostLoad, Subject, TableProfile
from . import files
from .table_profile_pb2 import TableProfile as Message
from .wire import LENGTH, VARINT, Malformed, Wire

FORMAT = 1
MAX_BYTES = 2**21
"""Bytes of one profile at most.

A profile with the largest counts takes an eighth of it, without its features.
"""

_TABLE, _FEATURES = 3, 14
_ATTRIBUTES = ('first_step', 'last_step', 'steps', 'sampled_steps', 'unique_ids', 'undercount')


def encode(profile: TableProfile, created_by: str) -> bytes:
    """Returns the content of a profile's file; `created_by` has the writer's name and version."""
    subject = profile.subject
    message = Message(
        format=FORMAT, created_by=created_by, table=subject.table,
        vocabulary_size=subject.vocabulary_size, dimension=subject.dimension,
        num_hosts=subject.topology.num_hosts, cores_per_host=subject.topology.cores_per_host,
        batch_size=subject.batch_size, strategy=subject.strategy,
        heavy_ids=sorted(profile.heavy), ranges=profile.ranges, remainders=profile.remainders,
        heavy_counts=[profile.heavy[id] for id in sorted(profile.heavy)],
        registers=profile.registers, **{name: getattr(profile, name) for name in _ATTRIBUTES})
    for (name, length), use in zip(subject.features, profile.features):
        message.features.add(name=name, max_sequence_length=length, ids=use.ids,
                             max_ids_per_example=use.most, histogram=use.histogram)
    for strategy in STRATEGIES:
        load = getattr(message, strategy)
        load.ids.extend(profile.loads[strategy].ids)
        load.unique_ids.extend(profile.loads[strategy].unique_ids)
    return message.SerializeToString(deterministic=True)


def decode(content: bytes | bytearray) -> TableProfile:
    """Returns the profile that `encode` was given.

    Raises:
      Malformed: if the content is no profile, or contradicts itself.
    """
    message = _message(content)
    if message.format != FORMAT:
        raise Malformed(f'format {message.format}; this version reads format {FORMAT}')
    if len(message.heavy_ids) != len(message.heavy_counts) or (
            list(message.heavy_ids) != sorted(set(message.heavy_ids))):
        raise Malformed('the heavy ids are not ascending with a count each')
    profile = TableProfile(
        subject=_subject(message), heavy=dict(zip(message.heavy_ids, message.heavy_counts)),
        ranges=tuple(message.ranges), remainders=tuple(message.remainders),
        registers=message.registers,
        features=tuple(FeatureUse(one.ids, one.max_ids_per_example, tuple(one.histogram))
                       for one in message.features),
        loads={strategy: HostLoad(tuple(getattr(message, strategy).ids),
                                  tuple(getattr(message, strategy).unique_ids))
               for strategy in STRATEGIES},
        **{name: getattr(message, name) for name in _ATTRIBUTES})
    for fault in profile.faults():
        raise Malformed(fault)
    return profile


def read(path: str) -> tuple[TableProfile, int]:
    """Returns the profile in a file, and the size of the file in bytes.

    Raises:
      OSError, ValueError: if there is none; a link is not followed.
    """
    with files.open_regular(path, follow=False) as file:
        content = files.read_at_most(file, MAX_BYTES + 1)
    return decode(content), len(content)


def _message(content: bytes | bytearray) -> Message:
    if len(content) > MAX_BYTES:
        raise Malformed(f'more than {MAX_BYTES:,} bytes')
    shape = Wire(content).shape()
    if any(kind not in (VARINT, LENGTH) for _, kind in shape) or (_TABLE, LENGTH) not in shape:
        raise Malformed('it is not the profile of a table')
    if shape[_FEATURES, LENGTH] > limits.MAX_FEATURES:
        raise Malformed(f'more than {limits.MAX_FEATURES:,} features')
    try:
        return Message.FromString(bytes(content))
    except (DecodeError, ValueError, RecursionError) as error:
        raise Malformed('it is not the profile of a table with names in UTF-8') from error


def _subject(message: Message) -> Subject:
    return Subject(
        table=message.table, vocabulary_size=message.vocabulary_size,
        dimension=message.dimension, batch_size=message.batch_size, strategy=message.strategy,
        features=tuple((one.name, one.max_sequence_length) for one in message.features),
        topology=Topology(num_hosts=message.num_hosts, cores_per_host=message.cores_per_host))
