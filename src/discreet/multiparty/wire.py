"""What travels from a party to the aggregator: compact bytes that say which round, whose, and under which parameters.

    offset  bytes  what
    0       2      "dm"
    2       1      version 1; the top bit is set when the noise came from a seeded source (tests only)
    3       1      the protocol's family
    4       8      digest of the round id
    12      8      digest of the parameters
    20      1-9    the party's number (7 bits a byte, lowest first)
    ...     1-9    how many items it has, which is public
    ...            what the protocol says
    end-4   4      CRC-32 of everything before

The checksum finds accidents. It keeps nobody from sending a message that was made up: an aggregator that must know who
speaks has to authenticate the transport.

Many payloads have **entries**: places of the universe in their order, each with a whole number.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import MessageError
from discreet.noise.source import Integers

MAGIC = b"dm"
VERSION = 1
SEEDED = 0x80
HEADER_BYTES = 20
_CHECKSUM_BYTES = 4


MAX_NUMBER = 2**63 - 1
MAX_CELLS = 2**26
"""Most cells, entries or reports of one message: what an aggregator may have to hold before it has checked them."""


@dataclass(frozen=True)
class Message:
    """A message whose envelope is in order."""

    number: int
    items: int
    payload: bytes
    seeded: bool = False


Heard = Sequence[tuple[Message, Any]]
"""Messages, and what each of them says."""


def varint(value: int) -> bytes:
    """A whole number from 0 to 2^63 - 1, 7 bits a byte, lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number that starts at this byte, and where it ends. Only the shortest form is taken."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise MessageError("message ends within a number", "format")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 56:
            raise MessageError("message has a number of more than 63 bits", "format")
    if byte == 0 and shift:
        raise MessageError("message has a number that is not in its shortest form", "format")
    return value, at


def pack(family: int, round_digest: bytes, digest: bytes, message: Message) -> bytes:
    """The bytes of a message."""
    version = VERSION | (SEEDED if message.seeded else 0)
    head = MAGIC + bytes([version, family]) + round_digest + digest
    body = head + varint(message.number) + varint(message.items) + message.payload
    return body + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little")


def unpack(family: int, round_digest: bytes, digest: bytes, data: object) -> Message:
    """The message, if it is one of this protocol and round; `MessageError` if not."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise MessageError(f"a message is bytes, not {type(data).__name__}", "format")
    data = bytes(data)
    if len(data) < HEADER_BYTES + 2 + _CHECKSUM_BYTES:
        raise MessageError(f"message of {len(data)} bytes is too short", "format")
    if data[:2] != MAGIC:
        raise MessageError("not a message of discreet", "format")
    if zlib.crc32(data[:-_CHECKSUM_BYTES]) != int.from_bytes(data[-_CHECKSUM_BYTES:], "little"):
        raise MessageError("message was damaged in transit (checksum)", "checksum")
    version = data[2] & ~SEEDED
    if version != VERSION:
        raise MessageError(f"message has version {version}; version {VERSION} can be read", "format")
    if data[3] != family:
        raise MessageError(f"message is of protocol family {data[3]}, expected {family}", "family")
    if data[4:12] != round_digest:
        raise MessageError("message belongs to another round", "round")
    if data[12:20] != digest:
        raise MessageError("message was made with other parameters", "parameters")
    body = data[:-_CHECKSUM_BYTES]
    number, at = read_varint(body, HEADER_BYTES)
    items, at = read_varint(body, at)
    return Message(number, items, body[at:], bool(data[2] & SEEDED))


def pack_parts(parts: Iterable[bytes]) -> bytes:
    """Several byte strings as one."""
    parts = list(parts)
    return varint(len(parts)) + b"".join(varint(len(part)) + part for part in parts)


def unpack_parts(data: bytes, most: int) -> Sequence[bytes]:
    """The inverse of `pack_parts`; `MessageError` for more than `most` parts or anything left over."""
    count, at = read_varint(data, 0)
    if count > most:
        raise MessageError(f"message has {count} parts, expected at most {most}", "size")
    parts = []
    for _ in range(count):
        length, at = read_varint(data, at)
        if length > len(data) - at:
            raise MessageError("message ends within a part", "format")
        parts.append(data[at : at + length])
        at += length
    if at != len(data):
        raise MessageError("message continues after its last part", "format")
    return parts


# ---- entries ---------------------------------------------------------------------------------------------------------

Entries = tuple[Integers, Integers]
"""Places in their order, and their counters."""


def write_entries(places: Integers, numbers: Integers) -> bytes:
    """In the order of the places, whichever order they came in: how many, the gaps between them, the numbers."""
    if len(places) == 0:
        return varint(0)
    order = np.argsort(places)
    gaps = np.diff(places[order], prepend=-1) - 1
    # Written as 0, -1, 1, -2, ... a gap takes as many bits as a number of half its size with a sign.
    signed = np.where(gaps % 2 == 0, gaps // 2, -(gaps // 2) - 1)
    parts = [_native.write_integers(part) for part in (signed, numbers[order])]
    return varint(len(places)) + b"".join(varint(len(part)) + part for part in parts)


def read_entries(data: memoryview, size: int, bound: int) -> tuple[Integers, Integers, memoryview]:
    """Places below `size` in order, their numbers of at most `bound` in size, and what follows."""
    count, at = read_varint(data, 0)
    if count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), data[at:]
    if count > size or count > 8 * len(data):  # an entry takes two bits at least
        raise MessageError("message has more entries than allowed", "range")
    parts = []
    for limit in ((size + 1) // 2, bound):  # a gap below `size` is written as a number of half its size
        length, at = read_varint(data, at)
        if length > len(data) - at:
            raise MessageError("message ends within its entries", "format")
        parts.append(_native.read_integers(bytes(data[at : at + length]), count, limit))
        at += length
    signed, numbers = parts
    gaps = np.where(signed >= 0, 2 * signed, -2 * signed - 1)
    # A step is at most size + 1 <= 2^62 + 1, so the first sum above `size` is seen as such, or as one that has wrapped.
    sums = np.cumsum(gaps + 1)
    if (sums < 1).any() or (sums > size).any():
        raise MessageError("message has an entry outside the universe", "range")
    return sums - 1, numbers, data[at:]


def number_at(entries: Entries, places: Integers) -> Integers:
    """The number of each of these places; 0 where there is no entry."""
    there, numbers = entries
    if not len(there):
        return np.zeros(len(places), np.int64)
    at = np.minimum(np.searchsorted(there, places), len(there) - 1)
    return np.where(there[at] == places, numbers[at], 0)
