"""Messages and states in files: what a party of a stream sends next, and what an aggregator heard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, DiscreetError, MessageError, ParameterError
from discreet.storage import locked

if TYPE_CHECKING:
    from discreet.multiparty._base import Protocol
    from discreet.multiparty._stream import BlockStream
    from discreet.privacy.ledger import Account

__all__ = ["bytes_of", "hear", "last_message", "next_message", "protocol_of"]

MOST_BYTES = 2**30
Undisturbed = Callable[[], AbstractContextManager[None]]


def next_message(
    stream: BlockStream,
    number: int,
    state: Path,
    read: Callable[[], Any],
    until: int | None = None,
    *,
    ledger: Account | None = None,
    undisturbed: Undisturbed = nullcontext,
) -> tuple[bytes | None, int, int]:
    """The party goes on from its state: its next message (None if there is nothing to send), the first and last step.

    The state is on disk before the charge counts as used, so that after a crash the same call goes on; and before the
    message is handed out, so that noise is not drawn twice. All is told in one message, so that the state never holds
    one that was not handed on.

    Args:
        stream: What all parties know.
        number: The party.
        state: Its file, made or continued. NOT private.
        read: Reads the items of the next steps; called when the state is locked.
        until: Nothing arrives from the last item to this step.
        ledger: The account that pays, once for all that the party will ever send.
        undisturbed: Holds off interrupts from the charge on.
    """
    with locked(state) as kept:
        items = read()
        if kept.exists:
            party = stream.restore_party(kept.read(), ledger=ledger)
            if party.number != number:
                raise ParameterError(f"the state is that of party {party.number}")
        else:
            party = stream.party(number, ledger=ledger)

        def save() -> None:
            kept.replace(party.to_bytes())

        with undisturbed():
            if ledger is not None and not kept.exists:
                party.begin(save=save)
            before = party.time
            return party.feed_until(items, until, save=save), before + 1, party.time


def last_message(stream: BlockStream, number: int, state: Path, *, ledger: Account | None = None) -> bytes | None:
    """What the party sent last, once more."""
    with locked(state) as kept:
        if not kept.exists:
            raise ParameterError(f"there is no state {str(state)!r}, so nothing was sent")
        party = stream.restore_party(kept.read(), ledger=ledger)
        if party.number != number:
            raise ParameterError(f"the state is that of party {party.number}")
        return party.last_message


def hear(
    protocol: Protocol,
    messages: Iterable[Path],
    state: Path | None = None,
    *,
    limits: dict[str, int] | None = None,
    wait_seconds: float = 0.0,
    undisturbed: Undisturbed = nullcontext,
) -> tuple[Any, dict[str, Any]]:
    """The aggregator after these message files, or directories of them, and what became of every one, JSON-ready.

    What cannot be verified, or speaks of more than it may, is left out and the rest goes on. With a state the
    aggregator goes on from it. `limits` are those of `Protocol.aggregator`. A shuffled round needs a state: what it
    shows are batches, and only what remembers them shows the same ones when another message has come.
    """
    from discreet.multiparty._stream import BlockStream

    aggregator: Any
    limits = limits or {}
    if limits and isinstance(protocol, BlockStream):
        raise ParameterError("limits are for rounds; a packet of a stream has one item a step")
    if state is None and getattr(protocol, "shuffled", None) is not None:
        raise ParameterError(
            "a shuffled round needs a state file, which remembers the batches that were shown; without one the answers "
            "before and after a single report show that report"
        )
    if state is None:
        aggregator = protocol.aggregator(**limits)
        return aggregator, _hear(aggregator, messages)
    with locked(state, wait_seconds=wait_seconds) as kept:
        aggregator = protocol.restore(kept.read(), **limits) if kept.exists else protocol.aggregator(**limits)
        heard = _hear(aggregator, messages)
        with undisturbed():
            kept.replace(aggregator.to_bytes())
    return aggregator, heard


def _hear(aggregator: Any, messages: Iterable[Path]) -> dict[str, Any]:
    heard: dict[str, Any] = {"accepted": 0, "repeated": 0, "rejected": []}
    for path in _files(messages):
        try:
            taken = aggregator.receive(bytes_of(path))
            heard["repeated" if taken is False else "accepted"] += 1
        except DiscreetError as error:  # not a message, or a file that cannot be read
            reason = error.reason if isinstance(error, MessageError) else "file"
            heard["rejected"].append({"file": str(path), "reason": reason, "text": str(error)})
    return heard


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        else:
            yield path


def protocol_of(round_file: Path) -> Protocol:
    """The protocol that a round's file describes."""
    from discreet.multiparty import protocol_from_dict

    try:
        values = json.loads(bytes_of(round_file))
    except ValueError:
        raise DataError(f"{str(round_file)!r} is not the JSON that `discreet party round` writes") from None
    return protocol_from_dict(values)


def bytes_of(path: Path) -> bytes:
    """All of a file, unless it is longer than any message or state."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DiscreetError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise DataError(f"{str(path)!r} is longer than any message or state")
    return data
