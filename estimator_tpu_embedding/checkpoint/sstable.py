"""Reads and writes the format of a checkpoint's index: sorted keys with values, in blocks.

TensorFlow took the format from leveldb's tables. A file holds blocks of entries, an empty block, a
block that lists where the others begin, and a footer of 48 bytes. An entry omits the beginning
that its key shares with the key before. Some entries omit nothing; a block ends with their
positions.

TensorFlow overlooks damage in places that it does not need. Here every byte is checked, so that no
change of a byte passes unnoticed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

import google_crc32c

from ..proto.files import Malformed, Span, Wire

MAX_BYTES = 2**28
MAX_KEYS = 250_000
"""The most keys. Each takes some 400 bytes and 10 microseconds. A job of 10,000 tables with two
slots each on 6 hosts has fewer."""
_MAX_KEY_BYTES = 2**26
"""The most bytes of all keys together: a few bytes of an entry can stand for a long key."""

_MAGIC = struct.pack('<Q', 0xdb4775248b80fb57)
_FOOTER = 48
_TRAILER = 5
_NOT_COMPRESSED = 0
_BLOCK_BYTES = 2**18
_RESTART_EVERY = 16
"""TensorFlow's sizes: bytes of a block that is written, and entries between two that share nothing.
"""


def masked(crc: int) -> int:
    """Returns a CRC32C as files hold it.

    A plain CRC of bytes that contain their own CRC would be a weak one.

    >>> hex(masked(0))
    '0xa282ead8'
    """
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields (key, value) of a table, in the order of keys.

    Malformed if the content is not exactly such a table. Entries that were yielded before may be
    damaged in ways that no checksum shows.
    """
    wire, end = Wire(content), len(content) - _FOOTER
    if end < 0 or content[-len(_MAGIC):] != _MAGIC:
        raise Malformed('its end is not that of an index')
    meta, at = _handle(wire, end, len(content))
    index, at = _handle(wire, at, len(content))
    if content[at:-len(_MAGIC)].strip(b'\0') or index[1] + _TRAILER != end or (
            index[0] != meta[1] + _TRAILER):
        raise Malformed('its footer does not say where its blocks are')
    _check_block(content, index, end)
    _check_block(content, meta, end)
    before, keys, key_bytes = 0, 0, 0
    previous: bytes | None = None
    for last, (start, stop) in _in_block(wire, index, None):
        block, at = _handle(wire, start, stop)
        # Blocks that must follow each other also cannot be read many times.
        if at != stop or block[0] != before or block[1] + _TRAILER > meta[0]:
            raise Malformed(f'no block where one must be, at byte {before}')
        _check_block(content, block, meta[0])
        for key, (start, stop) in _in_block(wire, block, previous):
            keys, key_bytes = keys + 1, key_bytes + len(key)
            if keys > MAX_KEYS or key_bytes > _MAX_KEY_BYTES:
                raise Malformed(f'more than {MAX_KEYS:,} keys, or {_MAX_KEY_BYTES:,} bytes of them')
            if key > last:
                raise Malformed(f'a key is behind the last of its block, at byte {start}')
            yield key, content[start:stop]
        before, previous = block[1] + _TRAILER, last
    if before != meta[0] or any(True for _ in _in_block(wire, meta, None)):
        raise Malformed(f'unknown content at byte {before}')


def content_of(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns the file that holds some entries.

    >>> list(entries(content_of([(b'', b'header'), (b'weights', b'entry')])))
    [(b'', b'header'), (b'weights', b'entry')]
    """
    out, index, block = bytearray(), _Block(restart_every=1), _Block()
    for key, value in entries:
        if block.size >= _BLOCK_BYTES:
            index.add(_between(block.last or b'', key), _written(block, out))
            block = _Block()
        block.add(key, value)
    if block.last is not None:
        index.add(_after(block.last), _written(block, out))
    footer = _written(_Block(), out) + _written(index, out)
    return bytes(out + footer.ljust(_FOOTER - len(_MAGIC), b'\0') + _MAGIC)


def _between(key: bytes, following: bytes) -> bytes:
    """Returns a short key from `key` on that sorts before the following one, as TensorFlow does."""
    shared = len(os.path.commonprefix([key, following]))
    # The last byte goes up by one, so the result is behind all keys that begin as `key` does.
    if shared < len(key) and key[shared] + 1 < following[shared]:
        return key[:shared] + bytes([key[shared] + 1])
    return key


def _after(key: bytes) -> bytes:
    """Returns a short key that sorts behind `key`; the same if there is no shorter one."""
    head = key[:len(key) - len(key.lstrip(b'\xff'))]
    return head + bytes([key[len(head)] + 1]) if len(head) < len(key) else key


class _Block:
    """A block that is being written."""

    def __init__(self, restart_every: int = _RESTART_EVERY) -> None:
        self.last: bytes | None = None
        self._content, self._restarts, self._count = bytearray(), [0], 0
        self._restart_every = restart_every

    @property
    def size(self) -> int:
        return len(self._content) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count % self._restart_every:
            shared = len(os.path.commonprefix([self.last or b'', key]))
        elif self._count:
            self._restarts.append(len(self._content))
        self._content += b''.join(map(varint, (shared, len(key) - shared, len(value))))
        self._content += key[shared:] + value
        self.last, self._count = key, self._count + 1

    def content(self) -> bytes:
        return bytes(self._content) + struct.pack(
            f'<{len(self._restarts) + 1}I', *self._restarts, len(self._restarts))


def _written(block: _Block, out: bytearray) -> bytes:
    """Appends a block to a file; returns the reference to it."""
    content = block.content() + bytes([_NOT_COMPRESSED])
    reference = varint(len(out)) + varint(len(content) - 1)
    out += content + struct.pack('<I', masked(google_crc32c.value(content)))
    return reference


def varint(number: int) -> bytes:
    """Returns a number >= 0 in the code of protos: 7 bits in each byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _number(wire: Wire, at: int, end: int) -> tuple[int, int]:
    """Returns a number, which has no more bytes than it needs, and its end."""
    value, stop = wire.varint(at, end)
    if stop - at > 1 and wire.content[stop - 1] == 0:
        raise Malformed(f'a number is too long at byte {at}')
    return value, stop


def _handle(wire: Wire, at: int, end: int) -> tuple[Span, int]:
    """Returns a reference to a block, as the span of its content, and the end of the reference."""
    start, at = _number(wire, at, end)
    size, at = _number(wire, at, end)
    return (start, start + size), at


def _check_block(content: bytes, span: Span, end: int) -> None:
    """Makes sure that there is a block, and that its checksum holds."""
    start, stop = span
    if stop + _TRAILER > end:
        raise Malformed(f'a block from byte {start} to {stop} ends behind it')
    kind, crc = struct.unpack_from('<BI', content, stop)
    if masked(google_crc32c.value(content[start:stop + 1])) != crc:
        raise Malformed(f'the checksum of the block at byte {start} does not hold')
    if kind != _NOT_COMPRESSED:
        raise Malformed(f'the block at byte {start} is compressed')


def _in_block(wire: Wire, span: Span, previous: bytes | None) -> Iterator[tuple[bytes, Span]]:
    """Yields (key, span of the value) of a block; each key must sort after `previous`."""
    start, stop = span
    if stop - start < 4:
        raise Malformed(f'the block at byte {start} is too short')
    restarts, = struct.unpack_from('<I', wire.content, stop - 4)
    end = stop - 4 - 4 * restarts
    if restarts < 1 or end < start:
        raise Malformed(f'the block at byte {start} has {restarts} restarts')
    key, at, passed = b'', start, 0
    while at < end:
        is_restart = passed < restarts and at - start == struct.unpack_from(
            '<I', wire.content, end + 4 * passed)[0]
        passed += is_restart
        shared, own_at = _number(wire, at, end)
        own, own_at = _number(wire, own_at, end)
        size, own_at = _number(wire, own_at, end)
        at = own_at + own + size
        if shared > (0 if is_restart else len(key)) or at > end:
            raise Malformed(f'no whole entry before byte {own_at}')
        key = key[:shared] + bytes(wire.content[own_at:own_at + own])
        if previous is not None and key <= previous:
            raise Malformed(f'a key is not behind the one before it at byte {own_at}')
        previous = key
        yield key, (own_at + own, at)
    # A block without entries has one restart, at its beginning.
    if passed != restarts and (start != end or wire.content[end:stop] != bytes([*bytes(4), 1, 0,
                                                                               0, 0])):
        raise Malformed(f'the block at byte {start} names entries that are not there')
