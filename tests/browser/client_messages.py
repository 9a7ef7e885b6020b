"""Messages that were made elsewhere, by a client in another language say, against the protocol's exact law.

    python -m tests.browser.client_messages FILE          from a checkout, for a client of your own

A file of JSON lines. The first one describes the round, the others have messages about an item, written as hexadecimal:

    {"round": {...}, "numbers": "random"}                 `protocol.to_dict()`; "numbers" if the client draws them
    {"item": "yes", "messages": ["646d01...", ...]}       as they were made
    {"item": "yes", "counts": {"646d01...": 731, ...}}    the same, with how often
    {"item": "yes", "law": {"646d01...": "p/q", ...}}     or the exact probability of each message of one number

What noise a message has follows from its item, its number and the public functions of the round. That noise has one
law, whatever the item and the number are: of a Hadamard response the bit is kept or not, of local hashing the bucket is
so many places further, of a local sketch every cell has discrete Laplace noise. So

- structure: every message is one report, in the only bytes that say it, and not marked as made for tests;
- law: how often each noise came, against its exact probability, by Clopper-Pearson intervals; by item, and by number
  where one came often, as noise that follows from the number hides nothing;
- epsilon: what the frequencies prove that a message tells about its item, whatever the law should have been;
- numbers: if they are drawn by the client, every bit of them is a fair coin for every item, and none comes twice.

Every row is wrong with a probability of at most twice `statistical.FALSE_ALARM`: once for each side of its bounds.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.cli.output import print_table
from discreet.errors import DataError, DiscreetError, MessageError
from discreet.multiparty import HadamardResponse, LocalHashing, LocalSketch, protocol_from_dict
from discreet.multiparty.party_seam import LocalProtocol
from discreet_audit.core import Finding
from discreet_audit.exact import ScriptedSource
from discreet_audit.statistical import FALSE_ALARM, clopper_pearson, epsilon_lower_bound

__all__ = ["LEAST", "audit_messages"]

LEAST = 1000
"""Messages about an item, at least: with fewer nothing would be noticed."""

_EXACT = Fraction(1, 2**60)  # of a law that was found by bisection of 64-bit words
_WRITTEN_OUT = 64  # categories of noise that are looked at one by one

Noise = Counter[int]


@dataclass
class _Told:
    """What the messages about one item say."""

    item: Any
    noises: Noise = field(default_factory=Counter)
    by_number: Counter[tuple[int, int]] = field(default_factory=Counter)
    numbers: Counter[int] = field(default_factory=Counter)
    laws: dict[int, dict[int, Fraction]] = field(default_factory=dict)
    refused: int = 0

    @property
    def count(self) -> int:
        return sum(self.numbers.values())


# ---- the laws --------------------------------------------------------------------------------------------------------


class _NoNoise(ScriptedSource):
    """Draws nothing; every answer is kept."""

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        return np.ones(size, np.int64)


def without_noise(protocol: LocalProtocol, item: Any, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """What reports with these numbers would say about an item if nothing were drawn."""
    return protocol._randomise(np.repeat(protocol.universe.words([item]), len(numbers)), numbers, _NoNoise())


def _noise_of(
    protocol: LocalProtocol, item: Any, numbers: npt.NDArray[np.uint64], values: Any
) -> npt.NDArray[np.int64]:
    """What was drawn for each report (of a sketch: a row), by what it says and what it would say without noise."""
    own = without_noise(protocol, item, numbers).astype(np.int64)
    away = values.astype(np.int64) - own
    places = _places(protocol)
    noise: npt.NDArray[np.int64] = away if places is None else away % places
    return noise


def _places(protocol: LocalProtocol) -> int | None:
    """How many values a report may have, where noise moves it round: 2 bits, or the buckets."""
    if isinstance(protocol, HadamardResponse):
        return 2
    return protocol.buckets if isinstance(protocol, LocalHashing) else None


def _response(protocol: HadamardResponse | LocalHashing) -> dict[int, Fraction]:
    """The exact law of a response: kept, or one of the others."""
    places = _places(protocol) or 2
    other = (1 - protocol.keep) / (places - 1)
    return {0: protocol.keep, **dict.fromkeys(range(1, places), other)}


def _law(protocol: LocalProtocol) -> dict[int, float]:
    """The exact probability of every noise that is looked at by itself."""
    if isinstance(protocol, (HadamardResponse, LocalHashing)):
        return {z: float(p) for z, p in itertools.islice(_response(protocol).items(), _WRITTEN_OUT)}
    assert isinstance(protocol, LocalSketch)
    q = math.exp(-1 / float(protocol.scale))
    return {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-_WRITTEN_OUT // 2, _WRITTEN_OUT // 2 + 1)}


def _tails(protocol: LocalProtocol, noises: Noise) -> Iterator[tuple[str, int, float]]:
    """(what, how often, its exact probability) for single noises, and for tails where noise is unbounded."""
    for z, p in _law(protocol).items():
        yield f"noise {z}", noises[z], p
    if isinstance(protocol, LocalSketch):
        q = math.exp(-1 / float(protocol.scale))
        for t in range(1, math.ceil(10 * float(protocol.scale)) + 1):  # P[Z >= t] = q^t/(1 + q)
            for sign in (1, -1):
                often = sum(count for z, count in noises.items() if sign * z >= t)
                yield f"noise of {sign * t} or more", often, q**t / (1 + q)


def _proved(protocol: LocalProtocol, first: Noise, second: Noise) -> float:
    """A lower bound on what a message tells apart: `first` are noises about one item, `second` about another.

    Where the two items differ without noise by d, what is seen with noise z about the first has noise z + d about the
    second.
    """
    n, m, places = sum(first.values()), sum(second.values()), _places(protocol)
    # (noises about the first, noises about the second that are seen alike, among how many of equal rank)
    events: list[tuple[list[int], list[int], int]]
    if places is None:  # a cell may move by 2
        reach = math.ceil(3 * float(getattr(protocol, "scale", 1)))
        tails = range(-reach, reach + 1)
        events = [([z for z in first if z >= t], [z for z in second if z >= t + 2], 1) for t in tails]
    else:
        # Of all that are not kept together, one has the average or less.
        events = [([0], [z for z in second if z != 0], places - 1)]
        events += [pair for z in range(1, min(places, _WRITTEN_OUT)) for pair in (([0], [z], 1), ([z], [0], 1))]
    error = FALSE_ALARM / len(events)
    bounds = [
        epsilon_lower_bound((sum(first[z] for z in ones), n), (sum(second[z] for z in others), m), 0.0, error)
        + math.log(among)
        for ones, others, among in events
    ]
    return max(bounds)


# ---- the findings ----------------------------------------------------------------------------------------------------


def _findings(protocol: LocalProtocol, told: list[_Told], random_numbers: bool) -> Iterator[Finding]:
    messages, refused = sum(each.count for each in told), sum(each.refused for each in told)
    yield Finding("structure", "messages that no honest client sends", "violations", 0, refused, messages + refused)
    sampled = [(place, each) for place, each in enumerate(told, 1) if each.count]
    for place, each in sampled:
        yield _law_finding(protocol, f"law of messages about item {place}", each.noises)
        often = [number for number, count in each.numbers.items() if count >= LEAST]
        for number in sorted(often) if len(each.numbers) > 1 else ():  # otherwise it is the law above
            noises = Counter({z: count for (n, z), count in each.by_number.items() if n == number})
            yield _law_finding(protocol, f"law of messages about item {place}, number {number}", noises)
    for (a, one), (b, two) in itertools.permutations(sampled, 2):
        bound = max(_proved(protocol, one.noises, two.noises), 0.0)
        yield Finding("statistical", f"item {a} told from item {b}", "epsilon", protocol.epsilon, bound, 1)
    if random_numbers:
        for place, each in sampled:
            yield _numbers_finding(place, each.numbers)
    yield from _exact_findings(protocol, told)


def _law_finding(protocol: LocalProtocol, check: str, noises: Noise) -> Finding:
    n, rows, tails = sum(noises.values()), [], list(_tails(protocol, noises))
    for what, often, p in tails:
        lower, upper = clopper_pearson(often, n, FALSE_ALARM / len(tails))
        off = abs(often / n - p) / math.sqrt(p * (1 - p) / n)
        text = f"{what}: {often / n:.4%}, by its law {p:.4%}, surely from {lower:.4%} to {upper:.4%}"
        rows.append((not lower <= p <= upper, off, text))
    return Finding("statistical", check, "violations", 0, sum(row[0] for row in rows), n, max(rows)[2])


def _numbers_finding(place: int, numbers: Counter[int]) -> Finding:
    """Each of 62 bits is a fair coin; no number comes twice."""
    n = len(numbers)
    values = np.fromiter(numbers, np.uint64, n)
    ones = [int(((values >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)]
    wrong = sum(count - 1 for count in numbers.values())
    for bit, often in enumerate(ones):
        lower, upper = clopper_pearson(often, n, FALSE_ALARM / len(ones))
        wrong += often > 0 if bit >= 62 else not lower <= 0.5 <= upper
    return Finding("statistical", f"random numbers of messages about item {place}", "violations", 0, wrong, n)


def _exact_findings(protocol: LocalProtocol, told: list[_Told]) -> Iterator[Finding]:
    for place, each in enumerate(told, 1):
        for number, law in each.laws.items():
            assert isinstance(protocol, (HadamardResponse, LocalHashing))
            exact = _response(protocol)
            off = max(abs(law.get(z, Fraction(0)) - p) for z, p in exact.items())
            what = f"law of item {place}, number {number}"
            yield Finding("exact", what, "probability off", float(_EXACT), float(off), len(law))
    for (a, one), (b, two) in itertools.permutations(enumerate(told, 1), 2):
        for number in one.laws.keys() & two.laws.keys():
            loss = _loss(protocol, number, one, two)
            claimed = protocol.epsilon + 1e-12  # of logarithms
            yield Finding("exact", f"item {a} told from item {b}, number {number}", "epsilon", claimed, loss, 1)


def _loss(protocol: LocalProtocol, number: int, one: _Told, two: _Told) -> float:
    """The largest log ratio of what is seen, which is noise beside what each would say without."""
    first, second = (
        {(own + z) % (_places(protocol) or 2): p for z, p in each.laws[number].items()}
        for each in (one, two)
        for own in (int(without_noise(protocol, each.item, np.array([number], np.uint64))[0]),)
    )
    losses = [math.log(p / second[v]) if second.get(v) else math.inf for v, p in first.items() if p > 0]
    return max(losses, default=0.0)


# ---- reading ---------------------------------------------------------------------------------------------------------


def audit_messages(path: Path) -> tuple[LocalProtocol, list[Finding]]:
    """The round that a file describes, and all findings about its messages."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [(place, line) for place, line in enumerate(file, 1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read as text: {type(error).__name__}") from None
    if not lines:
        raise DataError(f"{str(path)!r} is empty; its first line describes the round")
    head = _object(*lines[0])
    protocol = protocol_from_dict(head.get("round", head))
    if not isinstance(protocol, LocalProtocol):
        raise DataError(f"messages of {type(protocol).__name__} are not audited from a file: only local protocols are")
    told: dict[Any, _Told] = {}
    for place, line in lines[1:]:
        given = _object(place, line)
        item = given.get("item")
        try:
            if protocol.domain.kind == "binary":
                item = bytes.fromhex(str(item))
            key = int(protocol.domain.words([item])[0])
        except (DiscreetError, TypeError, ValueError):
            raise DataError(f"line {place}: no item of the round's universe") from None
        each = told.setdefault(key, _Told(item))
        each.refused += _read(protocol, each, given, place)
    found = list(told.values())
    if len(found) < 2 or any(not each.laws and each.count + each.refused < LEAST for each in found):
        raise DataError(f"an audit needs two items at least, with {LEAST} messages about each or the law of one number")
    random_numbers = head.get("numbers") == "random" or protocol.shuffled is not None
    return protocol, list(_findings(protocol, found, random_numbers))


def _object(place: int, line: str) -> dict[str, Any]:
    try:
        given = json.loads(line)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise DataError(f"line {place}: not a JSON object")
    return given


def _read(protocol: LocalProtocol, told: _Told, given: dict[str, Any], place: int) -> int:
    """Adds what one line says; how many of its messages no honest client sends."""
    if "law" in given and isinstance(protocol, LocalSketch):
        raise DataError("a law that is written out is that of HadamardResponse or LocalHashing; send messages instead")
    try:
        if "law" in given:
            return _read_law(protocol, told, {bytes.fromhex(m): Fraction(p) for m, p in given["law"].items()})
        counts = given["counts"].items() if "counts" in given else ((message, 1) for message in given["messages"])
        often = [(bytes.fromhex(message), int(count)) for message, count in counts]
    except (KeyError, AttributeError, TypeError, ValueError, ZeroDivisionError):
        raise DataError(f'line {place}: expected "messages", "counts" or "law", with messages in hexadecimal') from None
    refused, numbers, values, times = 0, [], [], []
    for message, count in often:
        report = _report(protocol, message)
        if report is None or count < 0:
            refused += abs(count)
        else:
            numbers.append(report[0])
            values.append(report[1])
            times.append(count)
    if numbers:
        _add(protocol, told, np.array(numbers, np.uint64), np.array(values), times)
    return refused


def _report(protocol: LocalProtocol, message: bytes) -> tuple[int, Any] | None:
    """The number and the value of a message of one report; None if no honest client sends it."""
    try:
        opened, reports = protocol.open(message)
    except MessageError:
        return None
    (again,) = protocol.written(reports, opened.seeded)
    if opened.items != 1 or opened.seeded or again.payload != opened.payload:
        return None
    return opened.number, reports.values[0]


def _add(protocol: LocalProtocol, told: _Told, numbers: npt.NDArray[np.uint64], values: Any, times: list[int]) -> None:
    noise = _noise_of(protocol, told.item, numbers, values)
    for number, row, count in zip(numbers.tolist(), noise.reshape(len(numbers), -1).tolist(), times, strict=True):
        told.numbers[number] += count
        for z in row:
            told.noises[z] += count
            told.by_number[number, z] += count


def _read_law(protocol: LocalProtocol, told: _Told, law: dict[bytes, Fraction]) -> int:
    refused = 0
    for message, p in law.items():
        report = _report(protocol, message)
        if report is None:
            refused += 1
            continue
        number, value = report
        noise = int(_noise_of(protocol, told.item, np.array([number], np.uint64), np.array([value]))[0])
        law_of = told.laws.setdefault(number, {})
        law_of[noise] = law_of.get(noise, Fraction(0)) + p
    return refused


def main(path: Path) -> int:
    """Prints all findings; 1 if one failed."""
    _, found = audit_messages(path)
    rows = []
    for one in found:
        figures = (f"{one.pairs:,}", one.quantity, f"{one.claimed:.4g}", f"{one.measured:.4g}")
        rows.append([one.kind, one.check, *figures, "ok" if one.passed else "FAILED", one.detail])
    print_table(["kind", "check", "of", "quantity", "allowed", "found", "result", "detail"], rows, right=(2, 4, 5))
    sys.stdout.write(f"each bound from frequencies is wrong with a probability of {FALSE_ALARM:g} at most\n")
    return int(not all(one.passed for one in found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
