"""Writes golden.json: rounds, items, recorded random words, and the messages that Python makes of them.

Run by hand when a case is added; tests/browser/test_client.py checks that Python still makes the same bytes.
"""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dc
from discreet import _native
from discreet.noise import RandomSource

GOLDEN = Path(__file__).with_name("golden.json")
MOST_WORDS = 4096
COUNTRIES = ["Deutschland", "Österreich", "Schweiz", "日本", "🌍 elsewhere", 'quo"te\\s', "new\nline", "\x7f"]


def protocols() -> list[tuple[Any, list[Any]]]:
    """Rounds and the items that are told in them."""
    m, b = dc.multiparty, dc.Budget
    long = "a long text, of more than eight bytes"
    return [
        (m.HadamardResponse("yes or no", b(1.0), ["yes", "no"]), ["yes", "no"]),
        (m.HadamardResponse("Länder 2026", b(2.5), COUNTRIES), COUNTRIES),
        (m.HadamardResponse("one", b(3.0), 1), [0]),
        (m.HadamardResponse("texts", b(0.1), "strings"), ["", "a", "abcd", "1234567", "12345678", long, "日本"]),
        (m.HadamardResponse("bytes", b(1e-5), "bytes"), [b"", b"\x00", b"\xff" * 9]),
        (m.HadamardResponse("numbers", b(8.0), "integers"), [0, -1, 2**63 - 1, -(2**63)]),
        (m.LocalHashing("small", b(0.5), 10), [0, 9]),
        (m.LocalHashing("range", b(2.0), range(-5, 1_000_000)), [-5, 0, 999_999]),
        (m.LocalHashing("log 3", b(1.0986122886681098), "strings"), [long]),
        (m.LocalHashing("large", b(12.0), "strings"), ["x"]),
        (m.LocalHashing("listed numbers", b(4.0), [3, -7, 2**40]), [3, -7, 2**40]),
        (m.LocalSketch("row", b(4.0), 1000), [0, 999]),
        (m.LocalSketch("wide", b(8.0), "strings"), ["a", long]),
        (m.LocalSketch("tiny epsilon", b(0.01), 50), [7]),
        (m.LocalSketch("tinier", b(1e-6), ["yes", "no"]), ["no"]),
        (m.LocalSketch("columns", b(1.0), 50, columns=300), [49]),
    ]


def words_of(name: str) -> list[int]:
    """Random words to record."""
    chance = random.Random(name)
    return [chance.getrandbits(64) for _ in range(MOST_WORDS)]


def edge(keep: Fraction) -> int:
    """A word whose 63 bits lie on the border of a response: more of them are needed."""
    return int(2**63 * (1 - keep)) << 1


def beginnings(protocol: Any) -> list[list[int]]:
    """Words that seldom come: on a border, those that a range without bias draws again, the sign of -1 before a 0."""
    if hasattr(protocol, "keep"):
        return [[edge(protocol.keep)], [2**64 - 1, 0], [0, 0]]
    return [[1, 0] * 3]


def message(protocol: Any, items: list[Any], number: int, words: list[int]) -> bytes:
    source = RandomSource(_native.RandomSource(replay=words))
    return bytes(protocol.party(number, source=source).encode(items))


def plain(item: Any) -> Any:
    """An item as JSON has it."""
    if isinstance(item, int):
        return {"integer": str(item)}
    return {"bytes": item.hex()} if isinstance(item, bytes) else {"string": item}


def needed(protocol: Any, items: list[Any], number: int, words: list[int]) -> int:
    """How many of the words the message takes."""
    low, high = 0, len(words)
    while low < high:
        middle = (low + high) // 2
        try:
            message(protocol, items, number, words[:middle])
            high = middle
        except IndexError:
            low = middle + 1
    return low


def cases() -> list[dict[str, Any]]:
    made = []
    for protocol, items in protocols():
        told = [([], [item]) for item in items] + [([], items * 3)]
        told += [(first, items[:1]) for first in beginnings(protocol)]
        for number, (first, some) in enumerate(told):
            place = 2**62 + number if number % 2 else number
            words = [*first, *words_of(f"{protocol.round_id} {number}")]
            words = words[: needed(protocol, some, place, words)]
            made.append(
                {
                    "description": json.dumps(protocol.to_dict()),
                    "items": [plain(item) for item in some],
                    "number": str(place),
                    "words": [str(word) for word in words],
                    "message": message(protocol, some, place, words).hex(),
                }
            )
    return made


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(cases(), indent=0) + "\n")
