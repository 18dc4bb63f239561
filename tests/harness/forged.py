"""Makes checkpoints by hand: without TensorFlow, and as hostile as a test likes."""

import pathlib
import struct

import google_crc32c
import numpy as np
from harness.wire import field, varint

from estimator_tpu_embedding.checkpoint.sstable import masked
from estimator_tpu_embedding.checkpoint.tensors import KINDS, slice_key

MAGIC = bytes.fromhex('57fb808b247547db')
HEADER = b'\x08\x01\x1a\x02\x08\x01'
"""One data file, written by a writer of version 1."""
DTYPES = {np.dtype(code).str: number for number, (_, code) in reversed(KINDS.items()) if code}


def number(tag, value):
    """A field that is a number."""
    return varint(tag << 3) + varint(value)


def shape_of(*sizes):
    """A TensorShapeProto."""
    return b''.join(field(2, number(1, size)) for size in sizes)


def entry(dtype, shape, shard=0, offset=0, size=0, crc=0, slices=()):
    """A BundleEntryProto; slices are lists of (start, length)."""
    return (number(1, dtype) + field(2, shape_of(*shape)) + number(3, shard) + number(4, offset)
            + number(5, size) + b'\x35' + struct.pack('<I', crc) + b''.join(
                field(7, b''.join(field(1, number(1, start) + number(2, length))
                                  for start, length in one)) for one in slices))


def block(pairs):
    """Returns a block of entries; each entry is a restart."""
    content, restarts = b'', []
    parts = []
    at = 0
    for key, value in pairs:
        restarts.append(at)
        parts.append(varint(0) + varint(len(key)) + varint(len(value)) + key + value)
        at += len(parts[-1])
    restarts = restarts or [0]
    content = b''.join(parts) + struct.pack(f'<{len(restarts) + 1}I', *restarts, len(restarts))
    return content


def sealed(content):
    """A block with its trailer."""
    return content + b'\0' + struct.pack('<I', masked(google_crc32c.value(content + b'\0')))


def table(pairs, blocks=None):
    """The bytes of an index with these (key, value), in their order, in one block.

    Args:
      pairs: entries.
      blocks: contents of blocks to write instead, as (last key, content).
    """
    pairs = list(pairs)
    blocks = blocks or [(pairs[-1][0] if pairs else b'', block(pairs))]
    written, handles = b'', []
    for last, content in blocks:
        handles.append((last, varint(len(written)) + varint(len(content))))
        written += sealed(content)
    meta, index = block([]), block(handles)
    footer = b''.join(map(varint, (
        len(written), len(meta), len(written) + len(meta) + 5, len(index))))
    return written + sealed(meta) + sealed(index) + footer.ljust(40, b'\0') + MAGIC


def write_index(prefix, entries, data=b'', header=HEADER):
    """Writes an index of entries by key, and one data file."""
    pathlib.Path(f'{prefix}.index').write_bytes(table(sorted({b'': header, **entries}.items())))
    pathlib.Path(f'{prefix}.data-00000-of-00001').write_bytes(data)


def write(prefix, tensors):
    """Writes a checkpoint as TensorFlow would.

    Args:
      prefix: of it.
      tensors: by name, an array; or a list of arrays, which are slices of rows.
    """
    data, entries = b'', {}

    def stored(array):
        nonlocal data
        content = array.tobytes()
        data += content
        return dict(dtype=DTYPES[array.dtype.str], shape=array.shape, size=len(content),
                    offset=len(data) - len(content), crc=masked(google_crc32c.value(content)))

    for name, value in tensors.items():
        key = name.encode()
        if not isinstance(value, list):
            entries[key] = entry(**stored(np.asarray(value)))
            continue
        first, slices = 0, []
        for part in value:
            slices.append([(first, len(part)), *((0, size) for size in part.shape[1:])])
            entries[slice_key(key, slices[-1])] = entry(**stored(part))
            first += len(part)
        entries[key] = entry(DTYPES[value[0].dtype.str], (first, *value[0].shape[1:]),
                             slices=slices)
    write_index(prefix, entries, data)
    return str(prefix)
