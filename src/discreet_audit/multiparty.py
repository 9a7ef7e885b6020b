"""The rows of `discreet.multiparty`, and what the papers print of it: what messages tell about one item of a party.

All inputs of a few items are encoded by the protocol itself. Protocols that add noise to a vector are run with noise
that the audit decides, which shows the vector and the scale that was asked for; the loss of two inputs is then the sum
of |difference|/scale, met by noise far out. Answers by randomised response are enumerated byte for byte. For the
separation of heavy and light items the law of the choice is enumerated; given it, the rest is noise on vectors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.multiparty import (
    GridHierarchy,
    HadamardResponse,
    HierarchicalStream,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
    Stream,
    Strings,
)
from discreet.multiparty.party_seam import (
    BlockStream,
    LevelProtocol,
    LocalProtocol,
    Packet,
    Protocol,
    Reports,
    StreamParty,
)
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.noise.response import keep_probability
from discreet.privacy import Budget, Guarantee, Replace
from discreet.published import MergedMisraGries, MergedMisraGriesStream, MergedSketch
from discreet_audit.closed_forms import NoiseLaw
from discreet_audit.core import (
    SLACK,
    Audit,
    Effort,
    Finding,
    Twin,
    altered,
    checked,
    claim,
    largest,
    never,
    register,
    twin,
)
from discreet_audit.exact import (
    Branches,
    EnumeratedSource,
    OutputLaw,
    ScriptedSource,
    WeakenedSource,
    apart,
    divergence,
    law_of,
    ratio_loss,
    worst_pair,
)
from discreet_audit.statistical import proved

# ---- exact laws ------------------------------------------------------------------------------------------------------

Input = tuple[int, ...]
Cells = npt.NDArray[np.int64]
Law = dict[Any, float]
UNIVERSE = 4
SMALL_SEPARATION: dict[str, Any] = {"items_per_column": 1.0, "items_per_entry": 2, "threshold": 1, "max_items": 64}


def tiny(protocol: Any, size: int = UNIVERSE, **changes: Any) -> Any:
    """The same protocol over a few items; a twin stays a twin."""
    return replace(protocol, universe=size, **changes)


def inputs(size: int, length: int) -> Iterator[Input]:
    """Every sequence of this many items."""
    return itertools.product(range(size), repeat=length)


def neighbours(size: int, length: int) -> Iterator[tuple[Input, Input]]:
    """Every pair of sequences that differ in one item."""
    for first in inputs(size, length):
        for place, item in itertools.product(range(length), range(size)):
            if item < first[place]:
                yield first, (*first[:place], item, *first[place + 1 :])


@dataclass(frozen=True)
class Transcript:
    """What a party sends: cells with Laplace noise of one scale each, and answers with their probabilities of 1.

    `public` is all the rest, which must be the same for neighbours.
    """

    public: Any
    cells: Cells
    scales: npt.NDArray[np.float64]
    chances: npt.NDArray[np.float64] = field(default_factory=partial(np.zeros, 0))


def loss_between(first: Transcript, second: Transcript) -> float:
    """The largest log-ratio of the probabilities of any transcript; infinite if something else tells them apart."""
    same = first.public == second.public and np.array_equal(first.scales, second.scales)
    if not same or len(first.cells) != len(first.scales):  # a cell without noise of its own
        return math.inf
    with np.errstate(divide="ignore"):
        ones = np.abs(np.log(first.chances) - np.log(second.chances))
        zeros = np.abs(np.log1p(-first.chances) - np.log1p(-second.chances))
    return float(np.sum(np.abs(first.cells - second.cells) / first.scales) + np.sum(np.maximum(ones, zeros)))


def cells_of(protocol: Protocol | LevelProtocol, message: bytes) -> Cells:
    """The numbers of a message in one row: of a sketch, of all reports, or of the sketches of all levels."""
    content = protocol.open(message)[1]
    if isinstance(protocol, LevelProtocol):
        return np.concatenate([sketch for _, sketch in content])
    return np.asarray(content.values if isinstance(content, Reports) else content, np.int64).ravel()


def shown(protocol: Any, items: Sequence[Any], noise: int | Sequence[int] = 0, number: int = 0) -> Transcript:
    """The numbers of a message whose noise is given, and the scales of the draws that were asked for."""
    source = ScriptedSource(each=noise)
    cells = cells_of(protocol, protocol.party(number, source=source).encode(list(items)))
    return Transcript(source.draws, cells, source.scales)


Pairs = Iterable[tuple[tuple[Any, ...], tuple[Any, ...]]]
"""Neighbouring inputs of a party: sequences of items."""


def vector_loss(protocol: Any, pairs: Pairs, number: int = 0) -> tuple[float, int]:
    """The largest loss of a vector with noise over pairs of neighbours, and how many there were."""
    return worst_pair(pairs, partial(shown, protocol, number=number), loss_between)


def message_loss(protocol: Any, pairs: Pairs, number: int = 0) -> tuple[float, int]:
    """The largest |log ratio| of the probabilities of a message, byte for byte, over pairs of neighbours."""

    def law(given: tuple[Any, ...]) -> OutputLaw:
        return law_of(lambda source: protocol.party(number, source=source).encode(list(given)))

    return worst_pair(pairs, law, ratio_loss)


def of_all(found: Iterable[tuple[float, int]]) -> tuple[float, int]:
    """The largest of some losses, and how many pairs there were in all."""
    losses, pairs = zip(*found, strict=True)
    return max(losses), sum(pairs)


def noise_is_added(protocol: Any, length: int) -> int:
    """How many inputs there are of which the message is not the vector plus the noise that was drawn, cell by cell."""
    wrong, noise = 0, (1, -2, 0, 3, -1)
    for given in inputs(UNIVERSE, length):
        plain, noisy = (shown(protocol, given, each) for each in (0, noise))
        right = len(plain.scales) == len(plain.cells) == len(noisy.cells)
        wrong += not (right and np.array_equal(noisy.cells - plain.cells, np.resize(noise, len(plain.cells))))
    return wrong


# ---- separation ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _grouped_laplace(scale: Fraction, low: int, high: int) -> Branches:
    """Discrete Laplace noise of which all below `low` is taken for low and all above `high` for high. Exact."""
    noise, values = NoiseLaw("laplace", scale), tuple(range(low, high + 1))
    masses = [noise.hidden(low + 1), *map(noise.at, values[1:-1]), noise.shown(high)]
    return values, tuple(masses), tuple([1.0] * len(values))


class _GroupedSource(EnumeratedSource):
    """Every branch of noise that is only compared with a cut."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(0.0)
        self._range = low, high

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        return self._take(_grouped_laplace(Fraction(scale), *self._range), size)


def _choice_law(protocol: Separation, given: Input) -> Law:
    found, counts = np.unique(np.array(given, np.int64), return_counts=True)
    assert protocol.threshold is not None
    branches = _GroupedSource(protocol.threshold - len(given), protocol.threshold + 1)
    law = law_of(lambda source: tuple(protocol.choose(found, counts, source).tolist()), source=branches)
    return {chosen: p for chosen, p in law.mass.items() if p}


def separation_loss(protocol: Separation, pairs: Iterable[tuple[Input, Input]]) -> float:
    """The largest loss of (choice, heavy counts, cells), of which a message is a function, over pairs of neighbours.

    Given the choice, the heavy counts and the cells (for any width) are vectors with independent noise. That a message
    is no more than a function of the three is what `separation_messages` checks.
    """

    def loss(one: tuple[Input, Law], other: tuple[Input, Law]) -> float:
        (first, p), (second, q), worst = one, other, 0.0
        for chosen in p.keys() | q.keys():
            if not p.get(chosen) or not q.get(chosen):
                return math.inf
            heavy = sum(abs(first.count(x) - second.count(x)) for x in chosen)
            given_choice = heavy / protocol.heavy_scale + _light_loss(protocol, first, second, chosen)
            worst = max(worst, abs(math.log(p[chosen] / q[chosen])) + float(given_choice))
        return worst

    return worst_pair(pairs, lambda given: (given, _choice_law(protocol, given)), loss)[0]


def _light_loss(protocol: Separation, first: Input, second: Input, chosen: tuple[int, ...]) -> Fraction:
    heavy = np.array(chosen, np.int64)
    worst = 0
    for number, width in itertools.product((0, 1), range(1, protocol.width(len(first)) + 1)):
        one, other = (
            protocol.light_cells(np.array(given, np.uint64), heavy, width, number) for given in (first, second)
        )
        worst = max(worst, int(np.abs(one - other).sum()))
    return worst / protocol.light_scale


def separation_messages(protocol: Any, pairs: Sequence[tuple[Input, Input]]) -> int:
    """Pairs of neighbours whose messages differ although choice, noisy heavy counts and noisy cells are the same.

    The noise makes up for what the two inputs differ in. Then all fields of a message must be the same, byte for byte:
    the width of the sketch, say, must follow the noisy counts and not the true ones.
    """
    wrong = 0
    for (first, second), shift in itertools.product(pairs, (-2, 1)):
        heavy = sorted(set(first) & set(second))
        target = np.arange(1, len(heavy) + 1) + shift
        width = protocol.width(min(max(len(first) - int(target.sum()), 0), len(first)))
        messages = set()
        for given in (first, second):
            found = sorted(set(given))
            light = protocol.light_cells(np.array(given, np.uint64), np.array(heavy, np.int64), width, 0)
            chosen = [1000 if item in heavy else -1000 for item in found]
            counts = np.array([given.count(item) for item in heavy], np.int64)
            source = ScriptedSource(turns=(chosen, target - counts, np.arange(len(light)) % 3 - light))
            messages.add(protocol.party(0, source=source).encode(list(given)))
            # A single draw for the items that are not there.
            wrong += [draw.size for draw in source.draws] != [len(found), None, len(heavy), len(light)]
        wrong += len(messages) > 1
    return wrong


def other_scales(protocol: Any) -> int:
    """Draws of the code that are not of the three scales that the law is written with."""
    small, source = tiny(protocol, 4, **SMALL_SEPARATION), ScriptedSource()
    small.party(0, source=source).encode([0, 0, 0, 1, 2])
    allowed = [small.separation_scale] * 2 + [small.heavy_scale, small.light_scale]
    return sum(draw.scale != scale for draw, scale in zip(source.draws, allowed, strict=True))


class MessageAudit(Audit):
    """What is checked of messages. A derived class has the exact laws and the twins of its protocols.

    Args:
        changes: What the protocol gets besides a tiny universe, so that its messages are small.
    """

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def small(self, protocol: Any) -> Any:
        """The protocol with small messages; a twin stays a twin."""
        return tiny(protocol, **self.changes)

    def structure(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """Everything around the noisy numbers is the same for all inputs of the same length."""
        small = self.small(protocol)
        envelopes = {small.party(5, source=seeded_source(1)).encode(list(x))[:22] for x in inputs(UNIVERSE, 3)}
        yield never("envelopes that tell inputs apart", len(envelopes) - 1, UNIVERSE**3)

    def statistical(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """A party whose public hash functions tell items 0 and 1 apart: with the same noise they differ."""
        small = self.small(protocol)

        def encode(items: list[int], number: int, source: RandomSource | None = None) -> bytes:
            message: bytes = small.party(number, source=source).encode(items)
            return message

        def score(message: bytes) -> float:
            aggregator = small.aggregator()
            aggregator.receive(message)
            values = aggregator.estimate([0, 1]).values
            return float(values[0] - values[1])

        apart = (n for n in range(64) if encode([0], n, seeded_source(1)) != encode([1], n, seeded_source(1)))
        number = next(apart, 0)
        run, claimed = lambda items: encode(items, number), (small.epsilon, 0.0)
        yield proved("an item replaced", claimed, ([0], [1]), run, score, effort.runs)

    def coupled(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """With equal randomness: items in another order give the same bytes; or one report changes, its own."""
        small, generator, local = self.small(protocol), np.random.default_rng(1), isinstance(protocol, LocalProtocol)

        def broken(seed: int) -> bool:
            items = generator.integers(0, UNIVERSE, 9).tolist()
            other = [*items[:4], (items[4] + 1) % UNIVERSE, *items[5:]] if local else generator.permutation(items)
            one, two = (small.party(1, source=seeded_source(seed)).encode(list(each)) for each in (items, other))
            if local:
                one, two = (np.delete(small.open(message)[1].values, 4, 0).tobytes() for message in (one, two))
            return bool(one != two)

        check = "other reports that an item changes" if local else "messages that show the order of the items"
        yield never(check, map(broken, range(effort.released_pairs)))


def message_finding(what: str, small: Any, loss: float, pairs: int, quantity: str = "epsilon") -> Finding:
    return checked(what, quantity, small.epsilon * SLACK, loss, pairs)


Speak = Callable[[Any, RandomSource], bytes]


def speaking(protocol: Any, name: str, encode: Callable[[Any, Any, RandomSource, Speak], bytes]) -> Twin:
    """A twin whose parties make their messages otherwise: `speak(items, source)` is how the right party would."""

    def party(right: Any, made: Any, number: int, *, source: RandomSource | None = None) -> Any:
        def speak(items: Any, drawn: RandomSource) -> bytes:
            message: bytes = right(number, source=drawn).encode(items)
            return message

        return SimpleNamespace(encode=lambda items: encode(made, items, source or system_source(), speak))

    return altered(protocol, name, party=party)


def _nonzero(self: Any, items: Any, source: RandomSource, speak: Speak) -> bytes:
    plain = cells_of(self, speak(items, ScriptedSource()))
    noise = source.discrete_laplace(self.scale, len(plain)) * (plain != 0)
    return speak(items, ScriptedSource(each=noise))


class OnlyThere(WeakenedSource):
    """No item passes a cut but those that are there."""

    def discrete_laplace_exceedances(self, trials: Any, scale: Any, minimum: Any, size: Any = None) -> Any:
        return 0


def scaled(protocol: Any, what: str, by: Callable[[Any], Fraction | float], name: str = "scale") -> Twin:
    """The right scale times this."""
    return altered(protocol, what, **{name: lambda right, made: right * Fraction(by(made))})


def half_noise(protocol: Any, name: str = "scale") -> Twin:
    return scaled(protocol, "half the noise", lambda made: 0.5, name)


def _sorted_reports(protocol: Any) -> Twin:
    what = "reports in the order of their items"
    return speaking(protocol, what, lambda self, items, source, speak: speak(sorted(items), source))


def _literal_cells(self: Any, words: Any, heavy: Any, width: int, number: int) -> Any:
    """The sketch and the number of light items, which [MDP] releases with e/4 where a cell of R rows has e/(8 R)."""
    light = words[~np.isin(words, heavy.astype(np.uint64))]
    cells = Separation.light_cells(self, words, heavy, width, number)
    return np.concatenate([cells, np.full(2 * self.rows, len(light), np.int64)])


def _literal_choice(self: Any, found: Any, counts: Any, source: RandomSource) -> Any:
    """[MDP] section 3.3, step 2: u - n_i zero entries, each with P[Z >= T]."""
    size, cut = self.domain.size, self.threshold + 1
    shown = found[counts + source.discrete_laplace(self.separation_scale, len(found)) >= cut]
    zeros = np.setdiff1d(np.arange(size), found)
    trials = max(0, size - int(counts.sum()))
    count = source.discrete_laplace_exceedances(trials, self.separation_scale, self.threshold)
    return np.sort(np.concatenate([shown, zeros[source.sample_without_replacement(len(zeros), count)]]))


class ResponseAudit(MessageAudit):
    """Reports by randomised response."""

    def exact(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """Every message of one item and of two, byte for byte."""
        small = self.small(protocol)
        for length, numbers in ((1, range(8)), (2, range(1 + max(0, effort.length)))):
            found = of_all(message_loss(small, neighbours(3, length), number) for number in numbers)
            yield message_finding(f"messages of {length} item(s)", small, *found)

    def twins(self, protocol: Protocol) -> Iterator[Twin]:
        twice = property(lambda self: keep_probability(getattr(self, "buckets", 2), 2 * Fraction(self.epsilon)))
        yield twin(protocol, "a response for twice epsilon", keep=twice)
        yield _sorted_reports(protocol)


class VectorAudit(MessageAudit):
    """Noise on a vector: of inputs of this many items."""

    def __init__(self, length: int, **changes: Any) -> None:
        super().__init__(**changes)
        self.length = length

    def exact(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """The noise is that of the law, which all inputs of a few items are held to."""
        small, longest = self.small(protocol), self.length + max(0, effort.length)
        wrong = noise_is_added(small, self.length)
        yield never("cells without the noise that was drawn", wrong, UNIVERSE**self.length)
        found = of_all(vector_loss(small, neighbours(UNIVERSE, longest), number) for number in range(4))
        yield message_finding("messages of a few items", small, *found)

    def twins(self, protocol: Any) -> Iterator[Twin]:
        yield half_noise(protocol)
        if isinstance(protocol, LocalSketch):
            yield _sorted_reports(protocol)
        yield speaking(protocol, "noise on the cells that are not zero", _nonzero)
        if not isinstance(protocol, LocalSketch) and protocol.rows > 1:
            yield scaled(protocol, "noise for one row", lambda made: Fraction(1, made.rows))


class SeparationAudit(MessageAudit):
    """Heavy items apart from light ones."""

    def __init__(self) -> None:
        super().__init__(**SMALL_SEPARATION)

    def exact(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        for threshold, length in ((0, 1), (0, 2), (1, 2), (1, 3))[: 4 if effort.length > 0 else 3]:
            small = tiny(protocol, 4, **{**SMALL_SEPARATION, "threshold": threshold})
            pairs = list(neighbours(4, length))
            lost = separation_loss(small, pairs)
            yield message_finding(f"{length} item(s), heavy above {threshold}", small, lost, len(pairs))
            if length > 1:
                wrong, what = separation_messages(small, pairs), "messages that follow more than the noisy numbers"
                yield never(f"{length} items: {what}", wrong, len(pairs))
        yield never("scales other than those of the law", other_scales(protocol), 1)

    def twins(self, protocol: Any) -> Iterator[Twin]:
        literal: dict[str, Any] = {
            "separation_epsilon": property(lambda self: Fraction(self.epsilon) / 2),
            "light_scale": property(lambda self: 2 * self.rows * self.heavy_scale),
            "light_cells": _literal_cells,
        }
        yield twin(protocol, "heavy and light in parallel, as printed", **literal)
        yield twin(protocol, "u - n zero entries, as printed", choose=_literal_choice)
        yield half_noise(protocol, "heavy_scale")
        yield half_noise(protocol, "separation_scale")


_ONE, _THREE = Budget(1.0), Budget(3.0)

register(HadamardResponse, lambda: (
    HadamardResponse("audit", _ONE, 1000), HadamardResponse("audit", _THREE, "strings"),
), ResponseAudit())  # fmt: skip
register(LocalHashing, lambda: (
    LocalHashing("audit", _ONE, 1000), LocalHashing("audit", _THREE, "strings"),
), ResponseAudit())  # fmt: skip
register(LocalSketch, lambda: (
    LocalSketch("audit", _ONE, 1000, columns=2), LocalSketch("audit", _THREE, "strings"),
), VectorAudit(2))  # fmt: skip
register(IndependentSketches, lambda: (
    IndependentSketches("audit", _ONE, 1000), IndependentSketches("audit", _THREE, "strings", rows=3),
), VectorAudit(3, items_per_column=1.0, max_items=64))  # fmt: skip
register(Separation, lambda: (
    Separation("audit", _ONE, 1000), Separation("audit", _THREE, 1000, separation_share=0.25, rows=3),
), SeparationAudit())  # fmt: skip


# ---- shuffled rounds: what whole batches tell about one report, and that nothing less is shown -----------------------
# A report about one of two items is seen as one of few cases. Often its public function tells the two items apart; then
# its value is that of the first (probability keep or other), that of the second (other or keep), or any of the rest,
# which is as likely for both. Else it says nothing. What a batch shows is how many of its reports are in each case, so
# its exact law is a sum over few counts, for every number of others with the second item.

BatchLaw = dict[Hashable, float]


@dataclass(frozen=True)
class ShuffledReports:
    """What somebody sees who sees what the aggregator of a shuffled round shows, and nothing else.

    Args:
        protocol: A round of two items.
        delta: At which the second promise is stated.
    """

    protocol: HadamardResponse | LocalHashing
    delta: float

    @property
    def budget(self) -> Budget:
        """The second promise."""
        return self.protocol.shuffled_budget(self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """The same, as what is claimed."""
        name = f"{self.protocol.name}, shuffled in batches of {self.protocol.shuffled}"
        return Guarantee(Replace(), self.budget.epsilon, self.delta, name, trust="multiparty")

    def listener(self) -> Any:
        """An aggregator."""
        return self.protocol.aggregator()

    def cases(self, item: int) -> tuple[float, ...]:
        """The probabilities of the cases of a report about an item."""
        places = self.protocol.buckets if isinstance(self.protocol, LocalHashing) else 2
        keep = float(self.protocol.keep)
        other, apart = (1 - keep) / (places - 1), 1 - 1 / places
        told = (keep, other) if item == 0 else (other, keep)
        return (*(apart * p for p in told), apart * (places - 2) * other, 1 - apart)


def _law(reports: Sequence[tuple[float, ...]]) -> BatchLaw:
    """How many reports are in each case."""
    law: dict[Any, float] = {(0,) * len(reports[0]): 1.0}
    for cases in reports:
        grown: dict[Any, float] = {}
        for counts, chance in law.items():
            for case, p in enumerate(cases):
                if p > 0:
                    more = (*counts[:case], counts[case] + 1, *counts[case + 1 :])
                    grown[more] = grown.get(more, 0.0) + chance * p
        law = grown
    return law


def batch_delta(shuffled: ShuffledReports, reports: int, epsilon: float) -> float:
    """The largest divergence between batches in which one report is about the one item or the other."""
    one, two = shuffled.cases(0), shuffled.cases(1)
    lost = 0.0
    for others in range(reports):
        rest = [one] * (reports - 1 - others) + [two] * others
        first, second = (OutputLaw(_law([report, *rest]), 0.0) for report in (one, two))
        lost = max(lost, divergence(first, second, epsilon).lower, divergence(second, first, epsilon).lower)
    return lost


class ShuffledAudit(Audit):
    def structure(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """A report's number is a random one, no matter who sends it."""
        numbers = [shuffled.protocol.open(shuffled.protocol.party().encode([i % 2]))[0].number for i in range(64)]
        alike = len(numbers) - len(set(numbers)) + (max(numbers) < 2**48)  # 2^-14 a report
        yield never("numbers that are not random", alike, len(numbers))

    def exact(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """The exact delta of a batch at the epsilon that is claimed, whatever the others answer."""
        batch, (epsilon, delta) = shuffled.protocol.shuffled or 0, claim(shuffled)
        lost = batch_delta(shuffled, batch, epsilon)
        yield checked(f"a batch of {batch}, whatever the others answer", "delta", delta, lost, 2 * batch)

    def statistical(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """Batches of the compiled code in which one report is about the one item or the other."""

        def seen(item: int) -> float:
            listener = shuffled.listener()
            for each in [item, *([0] * ((shuffled.protocol.shuffled or 0) - 1))]:
                listener.receive(shuffled.protocol.party().encode([each]))
            first, second = listener.estimate([0, 1]).values
            return float(first - second)

        yield proved("one report of a batch replaced", claim(shuffled), (0, 1), seen, float, effort.runs // 4)

    def coupled(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """The same reports in another order give the same state; between two looks there is nothing, or a batch."""
        batch, generator, wrong, small = shuffled.protocol.shuffled or 0, np.random.default_rng(1), 0, 0
        for _ in range(effort.released_pairs):
            parts = [[shuffled.protocol.party().encode([i % 2]) for i in range(n)] for n in (batch, batch // 2)]
            states = set()
            for _ in range(2):
                listener, before = shuffled.listener(), 0
                for message in (part[i] for part in parts for i in generator.permutation(len(part))):
                    listener.receive(message)
                    small += 0 < listener.shown - before < batch
                    before = listener.shown
                states.add(listener.to_bytes())
            wrong += len(states) - 1
        pairs = effort.released_pairs
        yield never("states that show the order", wrong, pairs)
        yield never("fewer reports than a batch between two looks", small, pairs)

    def twins(self, shuffled: ShuffledReports) -> Iterator[Twin]:
        right: Any = shuffled.protocol
        ten = type(right)(right.round_id, right.budget, 2, shuffled=10 * (right.shuffled or 0))
        promise = ShuffledReports(ten, shuffled.delta).budget

        def eager(self: Any) -> Any:
            every = property(lambda aggregator: int(aggregator.parties))
            return twin(self.protocol.aggregator(), "", shown=every).mechanism

        def logging(self: Any) -> Any:
            order = list[bytes]()

            def receive(right: Any, _: Any, message: bytes) -> None:
                right(message)
                order.append(message)

            state = lambda right, _: bytes(right()) + b"".join(order)  # noqa: E731
            return altered(self.protocol.aggregator(), "", receive=receive, to_bytes=state).mechanism

        yield twin(shuffled, "every report shown as it comes", "coupled", listener=eager)
        yield twin(shuffled, "the order kept in the state", "coupled", listener=logging)
        yield twin(shuffled, "the promise of ten batches", budget=property(lambda self: promise))


register(ShuffledReports, lambda: (
    ShuffledReports(HadamardResponse("audit", Budget(1.0), 2, shuffled=20), 0.02),
    ShuffledReports(LocalHashing("audit", Budget(2.0), 2, shuffled=16), 0.05),
), ShuffledAudit())  # fmt: skip

# ---- hierarchies and streams: all that a party sends about one item together, over levels, samples and blocks --------
# The law of a transcript is read from the code. It runs with noise that is zero, and what it drew is written down: the
# cells are then those without noise, and the scale of each is known. Discrete Laplace noise of scale s on a cell that
# two inputs move by d loses exactly d/s, answers lose what their probabilities say, and independent parts add up.

_WRITTEN_OUT = (IndependentSketches, MergedSketch, HadamardResponse)  # whose law is read from what the code draws
_LONGEST = 2**16  # steps of a stream that is run as it is


class _Chosen(ScriptedSource):
    """No noise; every step is sampled; answers are kept, or not, as told. Writes down what was asked for.

    Args:
        kept: Whether the answers are kept.
        uniform: As of `ScriptedSource`.
        rate: The probability of a sample, where that may be more than 1/2.
    """

    def __init__(self, kept: int, uniform: int, rate: Fraction) -> None:
        super().__init__(uniform=uniform)
        self.kept, self.keeps, self.rate = kept, list[float](), rate
        self.samples: list[tuple[Fraction, int]] = []

    def cells(self, stream: Any, packet: Packet) -> Cells:
        """Everything that noise was added to, without it."""
        return _cells(packet)

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        """Yes, for a probability of at most 1/2 (a sample); as told for a larger one (an answer that is kept)."""
        value = 1
        if Fraction(probability) > Fraction(1, 2) and Fraction(probability) != self.rate:
            value = self.kept
            self.keeps.append(float(probability))
        else:
            self.samples.append((Fraction(probability), 1 if size is None else size))
        return value if size is None else np.full(size, value, np.int64)


class _Lifted(_Chosen):
    """The same for counters above a cut: noise that lifts what is stored over it, and none of the other items."""

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """40 scales: above the cut of any universe, and below what is cut off."""
        self._given("laplace", scale, size)
        return np.full(size, math.ceil(40 * Fraction(scale)), np.int64)

    def discrete_laplace_exceedances(self, trials: Any, scale: Any, minimum: Any, size: Any = None) -> Any:
        """None; that this many had noise of this scale is written down."""
        self._given("laplace", scale, trials)
        return 0

    def cells(self, stream: Any, packet: Packet) -> npt.NDArray[np.int64]:
        """The counter of every item of the universe, block by block."""
        found = [np.zeros(0, np.int64)]
        for block, (places, counters) in packet.blocks.items():
            dense = np.zeros(stream.universe.size, np.int64)
            dense[places] = counters - math.ceil(40 * stream.shape.scale(block))
            found.append(dense)
        return np.concatenate(found)


# ---- streams ---------------------------------------------------------------------------------------------------------


def _steps(stream: BlockStream) -> int:
    """As many steps as the largest block has, so that a block of every level ends; or a phase of two levels has."""
    return stream.epoch_steps << (3 if stream.doubling else stream.levels - 1)


def _levels(stream: BlockStream, steps: int) -> int:
    """How many levels there are after this many."""
    return stream.shape.levels(steps // stream.epoch_steps - 1)


def _places(stream: BlockStream) -> tuple[int, int, int]:
    """Of three items that lie in different intervals of every level, if there are intervals."""
    size = stream.universe.size if stream.tracks > 1 else None
    return (0, 1, 2) if size is None else (0, size // 2, size - 1)


def _items(stream: BlockStream, places: Iterable[int]) -> list[Any]:
    """Items of the universe by numbers, which go round if it is small."""
    domain: Any = stream.domain
    if domain.size is not None:
        return list(domain.items([int(place) % domain.size for place in places]))
    made: Any = {"int64": int, "string": str, "binary": lambda place: str(place).encode()}[domain.kind]
    return [made(int(place)) for place in places]


def _sent(stream: BlockStream, items: Sequence[Any], source: RandomSource, number: int = 0) -> Packet:
    """What is told about these steps; nothing, if no message is sent."""
    message = stream.party(number, source=source).feed(list(items))
    if message is None:
        return Packet(0, 1, 0, np.zeros(0, np.uint64), np.zeros(0, np.uint8), {})
    return stream.open(message)[1]


def _cells(packet: Packet) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *packet.blocks.values()])


def stream_transcript(stream: BlockStream, items: Sequence[Any]) -> Transcript:
    """The law of everything that is sent about these steps, one item or None each."""
    chances, kind = np.zeros(0), _Lifted if isinstance(stream, MergedMisraGriesStream) else _Chosen
    for kept, coin in itertools.product((0, 1), (0, 1)) if stream.samples else ((1, 0),):
        source = kind(kept, coin, stream.sample_rate)
        packet = _sent(stream, items, source)
        keep = source.keeps[0] if source.keeps else 1.0
        weight = (keep if kept else 1 - keep) / 2
        chances = (chances if len(chances) else np.zeros(len(packet.answers))) + weight * packet.answers
    # Which steps are sampled has the same law if the same coins are tossed for all of them.
    public = (packet.after, packet.to, packet.steps.tolist(), [*packet.blocks], source.samples)
    return Transcript(public, source.cells(stream, packet), source.scales, chances)


def _neighbouring(stream: BlockStream, effort: Effort) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Streams that differ in one step: all of them if they are short, else changes of a few steps of two of them.

    What a step moves in the counters of Misra-Gries depends on all others: there all of up to 256, or random ones.
    """
    steps, values = _steps(stream), [None, *dict.fromkeys(_items(stream, _places(stream)))]
    counters = isinstance(stream, MergedMisraGriesStream)
    if len(values) ** steps <= 256 * 4**effort.length if counters else steps <= 2 + effort.length:
        for given in itertools.product(values, repeat=steps):
            for at, value in itertools.product(range(steps), values):
                if value != given[at]:
                    yield given, (*given[:at], value, *given[at + 1 :])
        return
    if counters:
        generator = np.random.default_rng(1)
        for _ in range(effort.released_pairs // 2):
            one = [values[place] for place in generator.integers(len(values), size=steps)]
            for value in values:
                two, at = list(one), int(generator.integers(steps))
                two[at] = value
                yield tuple(one), tuple(two)
    for rest, at in itertools.product(values[:2], sorted({0, steps // 2, steps - 1})):
        for one, two in itertools.permutations(values, 2):
            before, after = (rest,) * at, (rest,) * (steps - at - 1)
            yield (*before, one, *after), (*before, two, *after)


def stream_loss(stream: BlockStream, effort: Effort) -> tuple[float, int]:
    """The largest loss of all messages about one step, and how many pairs of streams were tried."""
    return worst_pair(_neighbouring(stream, effort), partial(stream_transcript, stream), loss_between)


class StreamAudit(Audit):
    def structure(self, stream: BlockStream, effort: Effort) -> Iterator[Finding]:
        """As many levels are sent as the budget is split over."""
        levels = {level for level, _ in self._copies(stream)}
        yield checked("levels that are sent", "levels", _levels(stream, self._run(stream)), len(levels), 1)

    @staticmethod
    def _run(stream: BlockStream) -> int:
        """How many steps are run through."""
        return min(2 * _steps(stream), stream.last_step)

    def _copies(self, stream: BlockStream) -> dict[tuple[int, int], int]:
        """In how many blocks of a level the steps of an epoch were sent, by a party that restarts each time."""
        if _steps(stream) > _LONGEST:
            raise ParameterError(f"the audit runs streams whose largest block has at most {_LONGEST} steps")
        often: dict[tuple[int, int], int] = {}
        party = stream.party(0, source=seeded_source(1))
        for _ in range(self._run(stream) // stream.epoch_steps):
            message = party.feed([None] * stream.epoch_steps)
            assert message is not None
            for block in stream.open(message)[1].blocks:
                for epoch in range(block.first, block.end):
                    often[block.level, epoch] = often.get((block.level, epoch), 0) + 1
            party = stream.restore_party(party.to_bytes())
        return often

    def exact(self, stream: BlockStream, effort: Effort) -> Iterator[Finding]:
        """All that is sent until a block of every level has ended, which each step is in once."""
        yield checked("blocks of a level that hold the same step", "blocks", 1, max(self._copies(stream).values()), 1)
        worst, pairs = stream_loss(stream, effort)
        yield checked("all messages about one step", "epsilon", stream.epsilon * SLACK, worst, pairs)

    def statistical(self, stream: BlockStream, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code, told apart by the cells and the answer of the first step."""
        rest = [None] * (min(_steps(stream), 64) - 1)
        one, two = ([item, *rest] for item in _items(stream, _places(stream)[:2]))
        laws = [stream_transcript(stream, given) for given in (one, two)]

        def score(packet: Packet) -> float:
            answer = 0.0
            if len(packet.steps) and packet.steps[0] == 1:
                chances = [law.chances[0] if packet.answers[0] else 1 - law.chances[0] for law in laws]
                answer = math.log(chances[0] / chances[1])
            return float(self.likelihood(stream, packet, laws[0]) - self.likelihood(stream, packet, laws[1])) + answer

        run = lambda given: _sent(stream, given, system_source())  # noqa: E731
        yield proved("an item replaced", (stream.epsilon, 0.0), (one, two), run, score, effort.runs)

    def likelihood(self, stream: Any, packet: Packet, law: Transcript) -> float:
        """The logarithm of the probability of what is told of blocks, up to what all laws share."""
        cells = _cells(packet)[: len(law.cells)]
        return -float(np.sum(np.abs(cells - law.cells[: len(cells)]) / law.scales[: len(cells)]))

    def coupled(self, stream: Stream, effort: Effort) -> Iterator[Finding]:
        """Equal randomness: how far one item moves the cells of all levels together."""
        generator, steps = np.random.default_rng(1), min(_steps(stream), 256)

        def moved(seed: int) -> int:
            places = generator.integers(0, 2**31, steps)
            other = places.copy()
            other[generator.integers(steps)] = generator.integers(0, 2**31)
            sent = [_cells(_sent(stream, _items(stream, x), seeded_source(seed), seed)) for x in (places, other)]
            return int(np.abs(sent[0] - sent[1]).sum())

        claimed = 2 * stream.rows * stream.tracks * _levels(stream, max(steps, stream.epoch_steps))
        yield largest("cells that one item moves", claimed, map(moved, range(effort.released_pairs)))

    def twins(self, stream: BlockStream) -> Iterator[Twin]:
        states: list[bytes] = []

        def older(right: Any, _: Any, data: bytes) -> Any:
            states.append(data)
            return right(states[max(0, len(states) - 2)])

        def less(name: str, epsilon_level: Any) -> Twin:
            return twin(stream, name, epsilon_level=property(epsilon_level))

        eager = {"party": lambda self, number, start=0, source=None: _EagerParty(self, number, start, source)}
        yield altered(stream, "half the noise on cells", scale=lambda right, _: right / 2)
        if stream.samples:
            yield twin(stream, "items sampled, not steps", **eager)
        yield altered(stream, "a restart from a state older than the last message", restore_party=older)
        left = Fraction(stream.epsilon) - stream.epsilon_sample
        if stream.doubling:
            first = property(lambda self: replace(shape, scales=shape.scales[:1] * len(shape.scales)))
            shape = stream.shape
            yield twin(stream, "the noise of the first phase in all of them", shape=first)
        elif stream.levels > 1:
            yield less("budget not split over the levels", lambda self: Fraction(self.epsilon))
            printed = math.log2(-(-(stream.horizon or stream.window or 1) // stream.epoch_steps))
            if printed < stream.levels:
                each = left / Fraction(printed) / stream.tracks
                yield less("log2 m levels, as printed", lambda self: each)
        if stream.tracks > 1:
            yield less("budget not split over the intervals", lambda self: left / self.levels)
        if stream.samples:
            whole = Fraction(stream.epsilon) / stream.tracks
            yield less("samples not counted", lambda self: whole / self.levels)


class _EagerParty(StreamParty):
    """NOT PRIVATE: samples only the steps at which something arrived."""

    def sample(self, words: Any, present: Any) -> Any:
        steps, answers = super().sample(words, present)
        there = present[(steps - np.uint64(self.time + 1)).astype(np.int64)]
        return steps[there], answers[there]


# ---- hierarchies -----------------------------------------------------------------------------------------------------


def _opened(hierarchy: LevelProtocol, items: Sequence[Any], number: int, source: RandomSource) -> list[Any]:
    """What a party says at each level: (message, content), or None where no report went."""
    opened: list[Any] = hierarchy.open(hierarchy.party(number, source=source).encode(list(items)))[1]
    return opened


class HierarchyAudit(Audit):
    """The four checks of a `Hierarchy` or `GridHierarchy`.

    What a level's protocol promises by itself is its own row's business.
    """

    def structure(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """Replacing an item replaces one interval a level at most, and levels have hash functions of their own."""
        generator, levels, size = np.random.default_rng(1), hierarchy.levels, hierarchy.universe.size

        def moved(_: int) -> int:
            words = generator.integers(0, size, 6).astype(np.uint64)
            other = words.copy()
            other[3] = generator.integers(0, size)
            return max(int((levels.nodes(words, at) != levels.nodes(other, at)).sum()) for at in range(len(levels)))

        yield largest("intervals of a level that an item changes", 1, map(moved, range(200)))
        same = len(levels) - len({protocol.round_id for protocol in hierarchy.by_level})
        yield never("levels with the randomness of another", same, 1)

    def exact(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """The law of a message of one or two items, for all or a few of the universe."""
        size = hierarchy.universe.size
        ends = {0, 1, size // 2, size - 1} | set(range(min(size, 5)))
        items = sorted(set(hierarchy.universe.items(sorted(ends & set(range(size))))))

        def pairs(*rest: Any) -> Pairs:
            return itertools.permutations([(item, *rest) for item in items], 2)

        if not isinstance(hierarchy.by_level[0], _WRITTEN_OUT):
            spent = [protocol.epsilon for protocol in hierarchy.by_level]
            found = [(max(spent) if hierarchy.local else math.fsum(spent), 1)]
            what = "levels together, each as its own row shows"
        elif hierarchy.local:  # parties whose public rows of the matrix tell different items apart
            found = [message_loss(hierarchy, pairs(), number) for number in range(8)]
            what = "the report of one item"
        else:
            found = [vector_loss(hierarchy, each, 3) for each in (pairs(), pairs(items[0]))]
            what = "messages of one and two items"
        yield message_finding(what, hierarchy, *of_all(found))

    def statistical(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code, told apart by the counts of all intervals of the two items."""
        items = hierarchy.universe.items([0, hierarchy.universe.size - 1])
        words = hierarchy.universe.words(items)

        def score(message: bytes) -> float:
            aggregator = hierarchy.aggregator()
            aggregator.receive(message)
            found = 0.0
            for level in range(len(hierarchy.levels)):
                first, second = aggregator.interval_counts(level, hierarchy.levels.nodes(words, level)).values
                found += float(first - second)
            return found

        run = lambda item: hierarchy.party(1).encode([item])  # noqa: E731
        yield proved("an item replaced", (hierarchy.epsilon, 0.0), (items[0], items[1]), run, score, effort.runs)

    def coupled(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """Equal randomness: whatever the items are, a report goes to the same level and a message has as many cells."""
        generator = np.random.default_rng(1)

        def shape(seed: int) -> tuple[Any, ...]:
            items = hierarchy.universe.items(generator.integers(0, hierarchy.universe.size, 4).tolist())
            opened = _opened(hierarchy, items, 1, seeded_source(seed))
            return tuple(None if part is None else (part[0].items, np.shape(part[1])) for part in opened)

        wrong = (shape(seed) != shape(seed) for seed in range(effort.released_pairs))
        yield never("levels or sizes that depend on items", wrong)

    def twins(self, hierarchy: LevelProtocol) -> Iterator[Twin]:
        levels = len(hierarchy.levels)
        if hierarchy.local:
            yield twin(hierarchy, "a response for twice epsilon", by_level=_unsplit(hierarchy, 0.5))
            if levels > 1 and isinstance(hierarchy.by_level[0], HadamardResponse):
                yield speaking(hierarchy, "a report to every level", _to_every_level)
            return
        yield twin(hierarchy, "noise for twice epsilon", by_level=_unsplit(hierarchy, levels / 2))
        if levels > 1:
            yield twin(hierarchy, "budget not split over the levels", by_level=_unsplit(hierarchy, 1))
            yield twin(hierarchy, "one level not counted", by_level=_unsplit(hierarchy, levels - 1))


def _unsplit(right: LevelProtocol, parts: float) -> property:
    """NOT PRIVATE: the levels share the budget as if there were only this many of them."""
    share = Budget(right.epsilon / parts)
    levels = tuple(type(level)(level.round_id, share, level.universe, **right.options) for level in right.by_level)
    return property(lambda self: levels)


class _ToLevel(ScriptedSource):
    """Reports go to this level; the answers are those of another source."""

    def __init__(self, level: int, source: RandomSource) -> None:
        super().__init__(uniform=level)
        self.source = source

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        return self.source.bernoulli(probability, size)


def _to_every_level(self: Any, items: Any, source: RandomSource, speak: Speak) -> bytes:
    """NOT PRIVATE: a report to every level, each with the whole budget."""
    return b"".join(speak(items, _ToLevel(level, source)) for level in range(len(self.levels)))


register(Hierarchy, lambda: (
    Hierarchy("audit", _ONE, 9, branching=3, options={"items_per_column": 1.0}),
    Hierarchy("audit", _THREE, Strings("abc", 3), options={"items_per_column": 0.5, "rows": 3, "max_items": 1000}),
    Hierarchy("audit", _ONE, 27, "HadamardResponse", 3),
), HierarchyAudit())  # fmt: skip
register(GridHierarchy, lambda: (
    GridHierarchy("audit", _ONE, (4, 4), branching=2, options={"items_per_column": 0.5, "max_items": 1000}),
    GridHierarchy("audit", _ONE, (9, Strings("ab", 2)), "HadamardResponse"),
), HierarchyAudit())  # fmt: skip
register(Stream, lambda: (
    Stream("audit", _ONE, 5, epoch_steps=2, horizon=9, columns=4),
    Stream("audit", _THREE, 5, epoch_steps=1, window=3, columns=8, rows=3),
    Stream("audit", _ONE, 5, epoch_steps=2, columns=4, sample_share=0),
), StreamAudit())  # fmt: skip
register(HierarchicalStream, lambda: (
    HierarchicalStream("audit", _ONE, 9, epoch_steps=2, horizon=9, columns=8, branching=3),
    HierarchicalStream("audit", _THREE, Strings("ab", 2), epoch_steps=3, columns=8),
), StreamAudit())  # fmt: skip


# ---- messages of sketches that are merged ----------------------------------------------------------------------------


def counter_sensitivity(protocol: MergedMisraGries, pairs: Iterable[tuple[Input, Input]]) -> int:
    """How far what neighbouring inputs send lies apart in l1, with equal noise that lets every counter pass.

    From the messages themselves, through the real kernel: whatever else were mixed into them counts, too.
    """
    level = protocol.cut

    def counters(items: Input) -> dict[int, int]:
        message = protocol.party(0, source=ScriptedSource(each=level)).encode(list(items))
        places, values = protocol.open(message)[1]
        return dict(zip(places.tolist(), (values - level).tolist(), strict=True))

    return int(worst_pair(pairs, counters, lambda one, other: sum(map(abs, apart(one, other))))[0])


def entries_loss(protocol: Any, capacity: int) -> tuple[float, int]:
    """The loss of a noisy Misra-Gries sketch: the l1-distance of its counters over the scale that the code asks for."""
    small = tiny(protocol, 4, capacity=capacity)
    pairs = list(neighbours(4, capacity + 1))
    source = ScriptedSource()
    small.party(0, source=source).encode([0] * 3)
    scales = {draw.scale for draw in source.draws}
    return float(counter_sensitivity(small, pairs) / min(scales)), len(pairs)


class NoisyEntriesAudit(MessageAudit):
    """A Misra-Gries sketch depends on the order of its items; what must not is how far neighbours lie apart."""

    def coupled(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """Counters of large neighbouring streams, with as many counters as the protocol has."""
        generator, pairs, size = np.random.default_rng(1), [], 2 * protocol.capacity + 2
        for _ in range(effort.released_pairs):
            items = generator.zipf(1.3, 400) % size
            other = items.copy()
            other[generator.integers(400)] = generator.integers(size)
            pairs.append((tuple(items.tolist()), tuple(other.tolist())))
        claimed = float(protocol.scale) * protocol.epsilon * SLACK
        measured = counter_sensitivity(protocol, pairs)
        yield checked("large neighbouring streams", "sensitivity", claimed, measured, len(pairs))

    def exact(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        for capacity in range(1, 3 + max(0, effort.length)):
            yield message_finding(f"counters of {capacity}, all inputs", protocol, *entries_loss(protocol, capacity))
        # Every message with its probability: that the code is the law above, and not noise on fewer items.
        small = tiny(replace(protocol, budget=Budget(max(protocol.epsilon, 3.0))), 2, capacity=1)
        found, quantity = message_loss(small, neighbours(2, 2)), f"epsilon at {small.epsilon:g}"
        yield message_finding("messages of 2 items of a universe of 2", small, *found, quantity)

    def twins(self, protocol: Any) -> Iterator[Twin]:
        yield half_noise(protocol)
        yield scaled(protocol, "noise for an item removed", lambda made: Fraction(made.capacity, made.capacity + 1))
        what = "no noise on the other items of the universe"
        yield speaking(protocol, what, lambda self, items, source, speak: speak(items, OnlyThere(source)))


register(MergedSketch, lambda: (
    MergedSketch("audit", _ONE, 1000), MergedSketch("audit", _THREE, "strings", rows=1),
), VectorAudit(3, columns=3))  # fmt: skip
register(
    MergedMisraGries,
    lambda: (MergedMisraGries("audit", _ONE, 1000, capacity=8),),
    NoisyEntriesAudit(capacity=1),
)


# ---- Misra-Gries sketches over a stream: every short stream, and all that is told of its blocks together -------------


class CounterStreamAudit(StreamAudit):
    def exact(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """All that is sent about one step; and every message of a block of two steps, byte for byte."""
        yield from super().exact(stream, effort)
        budget, shape = Budget(max(stream.epsilon, 3.0)), {"epoch_steps": 2, "horizon": 2, "window": None}
        small = replace(stream, budget=budget, universe=2, capacity=1, sample_share=0.0, **shape)

        def law(given: Input) -> OutputLaw:
            items = [item - 1 if item else None for item in given]  # 0 stands for nothing: neighbours may lack an item
            return law_of(lambda source: small.party(0, source=source).feed(items))

        loss, pairs = worst_pair(neighbours(3, 2), law, ratio_loss)
        claimed = small.epsilon * SLACK
        yield checked("messages of a block of 2 steps", f"epsilon at {small.epsilon:g}", claimed, loss, pairs)

    def likelihood(self, stream: Any, packet: Packet, law: Transcript) -> float:
        """Of counters that were sent |counter - c|/scale; of the others the chance to stay below the cut."""
        found, size = 0.0, stream.universe.size
        for at, (block, (places, counters)) in enumerate(packet.blocks.items()):
            here = slice(at * size, (at + 1) * size)
            counts, scales, cut = law.cells[here], law.scales[here], stream.shape.cut(block)
            found -= float(np.sum(np.abs(counters - counts[places]) / scales[places]))
            hidden = np.ones(size, np.bool_)
            hidden[places] = False
            found += sum(map(_log_below, (cut - counts[hidden]).tolist(), scales[hidden].tolist()))
        return found

    def coupled(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """How far one step moves the counters of all blocks that it is in, for longer random streams."""
        generator, steps = np.random.default_rng(1), _steps(stream)
        items = stream.universe.items(range(min(stream.universe.size, 2**10)))

        def moved(_: int) -> int:
            places = generator.integers(0, len(items), steps)
            other = places.copy()
            other[generator.integers(steps)] = generator.integers(0, len(items))
            laws = [stream_transcript(stream, [items[place] for place in given]) for given in (places, other)]
            return int(np.abs(laws[0].cells - laws[1].cells).sum())

        # What the noise that is drawn is for, a unit a level.
        claimed = float(sum(stream.shape.sensitivities[: _levels(stream, steps)])) * SLACK
        yield largest("counters that one step moves", claimed, map(moved, range(effort.released_pairs)))

    def twins(self, stream: Any) -> Iterator[Twin]:
        yield from super().twins(stream)
        less_by_one = lambda right, _, level: right(level) - 1  # noqa: E731
        only_there = lambda right, _, kept, block, source: right(kept, block, OnlyThere(source))  # noqa: E731
        if max(stream.shape.sensitivities) > 2:
            yield twin(stream, "noise for exact counters", sensitivity=lambda self, level: 2)
        yield altered(stream, "noise for an item left out", sensitivity=less_by_one)
        yield altered(stream, "no noise on the other items of the universe", release=only_there)


@lru_cache(maxsize=1024)
def _log_below(cut: int, scale: float) -> float:
    """log P[Z < cut]."""
    q = math.exp(-1 / scale)
    return math.log1p(-(q**cut) / (1 + q)) if cut >= 1 else (1 - cut) * -1 / scale - math.log1p(q)


register(MergedMisraGriesStream, lambda: (
    MergedMisraGriesStream("audit", _ONE, 3, epoch_steps=2, horizon=6, capacity=1),
    MergedMisraGriesStream("audit", _THREE, 4, epoch_steps=1, window=3),
    MergedMisraGriesStream("audit", _ONE, 3, epoch_steps=2, capacity=1, sample_share=0.3),
), CounterStreamAudit())  # fmt: skip
