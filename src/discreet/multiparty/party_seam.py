"""What an audit, or anyone who extends the package, may look at in a multiparty protocol. All of it is public.

Every `Protocol` is a frozen dataclass of public parameters (`dataclasses.replace` makes another), and has

    party(number, source=source).encode(items)   the message, with noise that the caller decides
    open(message)                                the message and its parts, without the noise if the caller drew none
    epsilon, scale, keep, cut, ...               its numbers, as properties: what it claims, and what it draws with
    aggregator()                                 what is estimated from messages

A `LocalProtocol` has `written`, the only bytes that say what given reports say.

With a source that draws no noise, or every branch in turn, `party` gives the law of a message for given items, and
`open` says what differs for others. `Separation` also has its two steps by themselves: `choose`, the heavy items, and
`light_cells`, the sketch of the others. What a stream sends is a `Packet`; `StreamParty.sample` answers
for steps, and `BlockStream.release` tells of a block. A `LevelProtocol` has a protocol for each level (`by_level`), and
`pack_parts` writes their payloads as one.

A broken version for a test replaces a number, or `party`: whatever it does to items, noise or message happens there.
"""

from __future__ import annotations

from discreet.multiparty._base import Party, Protocol
from discreet.multiparty.block_stream import BlockStream
from discreet.multiparty.hierarchy import LevelProtocol
from discreet.multiparty.local_protocol import LocalProtocol, Reports
from discreet.multiparty.packets import Packet
from discreet.multiparty.stream_party import StreamParty
from discreet.multiparty.wire import Message, pack_parts, unpack_parts

__all__ = [
    "BlockStream",
    "LevelProtocol",
    "LocalProtocol",
    "Message",
    "Packet",
    "Party",
    "Protocol",
    "Reports",
    "StreamParty",
    "pack_parts",
    "unpack_parts",
]
