"""Writes golden.json: rounds, items, recorded random words, and the messages that Python makes of them.

Run by hand when a case is added; tests/browser/test_client.py checks that Python still makes the same bytes.
"""

from __future__ import annotations

import json
import random
from decimal import Context, Decimal
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
        (m.HadamardResponse("texts", b(0.1), "strings"), ["", "a", "abc", "abcd", "1234567", "12345678", long, "日本"]),
        (m.HadamardResponse("bytes", b(1e-5), "bytes"), [b"", b"\x00", b"\xff" * 9]),
        (m.HadamardResponse("numbers", b(8.0), "integers"), [0, -1, 2**63 - 1, -(2**63)]),
        (m.LocalHashing("small", b(0.5), 10), [0, 9]),
        (m.LocalHashing("range", b(2.0), range(-5, 1_000_000)), [-5, 0, 999_999]),
        (m.LocalHashing("log 3", b(1.0986122886681098), "strings"), [long]),
        (m.LocalHashing("large", b(12.0), "strings"), ["x"]),
        (m.LocalHashing("listed numbers", b(4.0), [3, -7, 2**40]), [3, -7, 2**40]),
        (m.LocalHashing("listed bytes", b(1.0), [b"\x00", b"\x0f\xf0", b""]), [b"\x0f\xf0", b""]),
        (m.LocalSketch("row", b(4.0), 1000), [0, 999]),
        (m.LocalSketch("wide", b(8.0), "strings"), ["a", long]),
        (m.LocalSketch("tiny epsilon", b(0.01), 50), [7]),
        (m.LocalSketch("small blocks", b(0.1), ["yes", "no"]), ["no"]),
        (m.LocalSketch("tinier", b(1e-6), ["yes", "no"]), ["no"]),
        (m.LocalSketch("tiniest", b(5e-8), ["yes", "no"], columns=1), ["no"]),
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
    n, d = protocol.scale.numerator, protocol.scale.denominator
    bits = max(0, int(protocol.scale / 8).bit_length() - 1)  # of a place in a block of noise
    q = exp_minus(Fraction(d << bits, n))
    border = 2 * int((1 - q if bits else (1 - q) / (1 + q)) * 2**63)
    first = [
        [1, 0] * 3,
        *([2**64 - 1 - positive, *[2**64 - 1] * 5] for positive in (0, 1)),  # noise beyond the largest that is sent
        *([border + negative, 0, 0] for negative in (0, 1)),  # 0 and -0, which more words than one decide
        [border + 1, 2**64 - 1, 0],
    ]
    if bits:  # a place in the first block of which one word does not say whether it is taken, or only just does
        place, known = 2**bits - 1, min(62, 64 - bits if bits <= 20 else 62)
        taken = exp_minus(Fraction(d * place, n))
        close, closer = int(taken * 2**known), int(taken * 2 ** (known + 64)) % 2**64
        for away, more in ((0, []), (0, [closer]), (0, [closer + 1]), (60, []), (-60, []), (2**14, []), (-(2**14), [])):
            word = (close + away) << 64 - known | place
            first.append([0, *([word] if bits <= 20 else [place, word]), *more])
    return first


def exp_minus(x: Fraction) -> Fraction:
    precise = Context(80)
    return Fraction(precise.exp(precise.divide(Decimal(-x.numerator), Decimal(x.denominator))))


def seldom() -> list[tuple[Any, list[Any], int, list[int]]]:
    """Rounds, items, a number and words of which something is written in a way that seldom comes."""
    m, b = dc.multiparty, dc.Budget
    # Blocks of a digest that are full to the last byte, or nearly; numbers that JSON writes in another way.
    named = [m.HadamardResponse("r" * size, b(1.0), 2) for size in (119, 120, 121, 127, 128, 129, 248, 256)]
    named += [m.HadamardResponse("ends", b(epsilon), 2) for epsilon in (1e-4, 9e-5, 1e15, 1e16, 2.5e17)]
    sure = m.HadamardResponse("sure", b(800.0), 2)
    empty = m.LocalSketch("nothing", b(4.0), 50, columns=20)
    narrow = m.LocalSketch("columns", b(1.5), 50, columns=40)
    wide = m.LocalSketch("columns", b(1.8), 50, columns=450)
    far = [0xFD27F5F000000000, 0xFFFFFFFE36731396]
    return [
        *((protocol, [1] * 8, 1, words_of("named")) for protocol in named),
        (sure, [1], 1, [0, 0, 0]),  # where it says another thing than what is so
        (empty, [0], 1, [*[0] * 12, 0xDD5A000000000001, *[0] * 7]),  # nothing but zeros
        (narrow, [0], 781, words_of("columns 781")),  # all cells, or those that are not 0: as long in both ways
        (wide, [0], 4, [*[0] * 48, *far, *words_of("4")]),  # as many zeros as are not counted in ones any more
    ]


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


def case(protocol: Any, items: list[Any], number: int, words: list[int]) -> dict[str, Any]:
    words = words[: needed(protocol, items, number, words)]
    return {
        "description": json.dumps(protocol.to_dict()),
        "items": [plain(item) for item in items],
        "number": str(number),
        "words": [str(word) for word in words],
        "message": message(protocol, items, number, words).hex(),
    }


def cases() -> list[dict[str, Any]]:
    made = []
    for protocol, items in protocols():
        told = [([], [item]) for item in items] + [([], items * 3)]
        told += [(first, items[:1]) for first in beginnings(protocol)]
        for number, (first, some) in enumerate(told):
            place = 2**62 + number if number % 2 else number
            made.append(case(protocol, some, place, [*first, *words_of(f"{protocol.round_id} {number}")]))
    return made + [case(*each) for each in seldom()]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(cases(), indent=0) + "\n")
