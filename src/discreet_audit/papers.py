"""What the papers print: the rows of `discreet.published`, and the literal versions that are twins of them.

docs/privacy/corrections.md has the arguments, `discreet_audit.corrections` what the literal versions lose. They are
NOT PRIVATE: only the audit uses them, to be caught by it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.multiparty.party_seam import Packet
from discreet.noise import RandomSource
from discreet.pan.responses import ONE, Response
from discreet.privacy import Budget, User
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.published import (
    ChanMisraGries,
    GaussianSparseHistogram,
    InnerProductCounter,
    MergedMisraGries,
    MergedMisraGriesStream,
    MergedSketch,
    OracleHeavyHitters,
    PrivateMisraGries,
    PrivateSpaceSaving,
    TextbookMisraGries,
    TrackedOracle,
)
from discreet.published.private_misra_gries import pmg_threshold
from discreet_audit.central import (
    CellsAudit,
    CounterAudit,
    EntriesAudit,
    half_the_noise,
    leaked_order,
    public_length,
    several,
    shown_by,
)
from discreet_audit.closed_forms import NoiseLaw
from discreet_audit.core import SLACK, Audit, Effort, Finding, Twin, claim, register, twin
from discreet_audit.exact import OutputLaw, ScriptedSource, law_of, neighbouring_streams, ratio_loss, worst_pair
from discreet_audit.multiparty import (
    Input,
    MessageAudit,
    OnlyThere,
    StreamAudit,
    Transcript,
    additive,
    half_noise,
    message_finding,
    message_loss,
    neighbours,
    scaled,
    speaking,
    stream_transcript,
    tiny,
)
from discreet_audit.statistical import proved

# ---- sketches: Misra-Gries, SpaceSaving and Chan's baseline ----------------------------------------------------------


def threshold_of_algorithm_2(mechanism: Any) -> Sequence[Twin]:
    """[LT] Algorithm 2's threshold on a sketch that drops zero counters: k keys, not two, may be hidden at once.

    With few counters the two thresholds may agree; then there is nothing to catch.
    """
    cut = pmg_threshold(*claim(mechanism))
    if cut >= mechanism.threshold:
        return ()
    return (twin(mechanism, "Algorithm 2's threshold on a textbook sketch", threshold=cut),)


def length_of_the_data(mechanism: Any) -> Sequence[Twin]:
    """[SS] Algorithm 3 where |X| counts events: the cut is computed from their number, which is private."""
    if not isinstance(mechanism.stream_length, int):
        return ()

    def literal(total: int) -> Any:
        return dataclasses.replace(mechanism, stream_length=total)

    return (
        twin(
            mechanism,
            "cut from the private length (SS Alg 3)",
            not_private_cut=lambda self, total: int(literal(total).threshold),
            draw=lambda self, summary, source: literal(summary.total).draw(summary, source),
            of_snapshot=lambda self, summary, source=None: literal(summary.total).of_snapshot(summary, source),
        ),
    )


def noise_for_fewer_counters(mechanism: Any) -> Sequence[Twin]:
    """[LT] Lemmas 17 and 27 misread: an event as if it moved one counter, a user as if it moved m; all k may move."""
    items = mechanism.unit.limit if isinstance(mechanism.unit, User) else 1
    sigma, cut = gshm_calibration(*claim(mechanism), items)
    return (twin(mechanism, "noise for fewer than k counters", scale=Fraction(sigma), threshold=cut),)


# A large delta, so that a cut that is one too low is a large step, and the realistic one.
_LARGE, _SMALL = Budget(1.0, 0.02), Budget(1.0, 1e-9)
_ONE, _THREE = Budget(1.0), Budget(3.0)

register(
    PrivateMisraGries,
    lambda: (
        PrivateMisraGries(_LARGE, capacity=3),
        PrivateMisraGries(_SMALL, capacity=3, calibration="paper-geometric"),
    ),
    CounterAudit("misra-gries", zeros=True, shared="hidden"),
)
register(
    TextbookMisraGries,
    lambda: (TextbookMisraGries(_LARGE, capacity=8), TextbookMisraGries(_SMALL, capacity=3, unit=User(2))),
    CounterAudit("misra-gries", zeros=False, shared="hidden", literal=threshold_of_algorithm_2),
)
register(
    PrivateSpaceSaving,
    lambda: (
        PrivateSpaceSaving(_LARGE, capacity=3, stream_length=200),
        PrivateSpaceSaving(_LARGE, capacity=3, stream_length="noisy", length_share=0.3),
        PrivateSpaceSaving(_LARGE, capacity=2, stream_length="noisy", length_share=0.3, unit=User(2)),
        PrivateSpaceSaving(_LARGE, capacity=3, stream_length=200, calibration="paper"),
    ),
    CounterAudit("space-saving", zeros=True, literal=length_of_the_data),
)
_merged, _of_users = (CounterAudit(kind, literal=noise_for_fewer_counters) for kind in ("merged", "users"))
register(
    GaussianSparseHistogram,
    lambda: (
        GaussianSparseHistogram(_LARGE, capacity=3),
        GaussianSparseHistogram(_SMALL, capacity=64),
        GaussianSparseHistogram(_LARGE, capacity=3, unit=User(2)),
    ),
    lambda mechanism: _of_users if isinstance(mechanism.unit, User) else _merged,
)
register(
    ChanMisraGries,
    lambda: (ChanMisraGries(Budget(2.0), capacity=2, universe=range(3)), ChanMisraGries(_LARGE, capacity=3)),
    EntriesAudit(reduces=False),
)

# ---- heavy hitters from a frequency oracle that the user brings: whether it keeps to what it states, too -------------

Cells = npt.NDArray[np.int64]


class _ListedOracle:
    """The audit's own oracle: exact counts of 0 to size - 1, every one of them in two cells."""

    changes, height = 2, 1

    def __init__(self, size: int = 8) -> None:
        self.rows = np.zeros((2, size), np.int64)

    def update(self, items: Sequence[Any], counts: Cells) -> None:
        self.rows[:, np.asarray(items, np.int64)] += counts

    def cells(self) -> Cells:
        return self.rows

    def estimate(self, items: Sequence[Any], cells: Cells) -> Cells:
        smallest: Cells = cells[:, np.asarray(items, np.int64)].min(axis=0)
        return smallest

    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        return 0, 0


class OracleAudit(CellsAudit):
    """The four checks. Items are small numbers, which the oracle must be able to count."""

    beside = "cells, errors and noise beyond the cut"

    def filled(self, mechanism: OracleHeavyHitters, stream: Sequence[int]) -> TrackedOracle:
        """The oracle of a stream, with its candidates. All have one seed, that of the first."""
        tracked = TrackedOracle(copy.deepcopy(_first(mechanism)), mechanism.capacity)
        tracked.update(np.asarray(stream, np.int64))
        return tracked

    def structure(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """What the oracle states, on every pair of short streams, in one batch and in several."""
        told, tried = mechanism.statement, 0
        changed = height = broken = 0
        wrong = 0
        rng = np.random.default_rng(1)
        some = rng.integers(-50, 50, told.shape)
        for stream, shorter in neighbouring_streams(range(3), 3 + max(effort.length, 0)):
            longer, less = (self.filled(mechanism, one) for one in (stream, shorter))
            pieces = self.filled(mechanism, stream[:1])
            pieces.update(np.asarray(stream[1:], np.int64))
            for one in (longer, pieces):
                moved = np.abs(one.not_private_cells() - less.not_private_cells())
                changed, height = max(changed, int((moved > 0).sum())), max(height, int(moved.max()))
            # Estimates from given cells tell nothing of what was counted.
            first, second = (one.estimates_from([0, 1, 2], some) for one in (longer, less))
            broken += not np.array_equal(first, second)
            nudged = some + rng.integers(-3, 4, told.shape)
            broken += bool(np.abs(longer.estimates_from([0, 1, 2], nudged) - first).max() > 3 * told.gain)
            below, above = mechanism.errors(len(stream))
            estimates = longer.estimates_from([0, 1, 2], longer.not_private_cells())
            truth = np.array([stream.count(item) for item in range(3)])
            wrong += bool(((estimates < truth - below) | (estimates > truth + above)).any())
            tried += 1
        yield Finding("structure", "cells that one event changes", "sensitivity", told.changes, changed, tried)
        yield Finding("structure", "by how much", "sensitivity", told.height, height, tried)
        yield Finding("structure", "estimates are made from cells alone", "violations", 0, broken, tried)
        yield Finding("structure", "estimates err by no more than stated", "violations", 0, wrong, tried)

    def changes(self, mechanism: OracleHeavyHitters) -> tuple[int, int]:
        return mechanism.statement.changes, mechanism.statement.height

    def too_short(self, mechanism: OracleHeavyHitters, noise: NoiseLaw, length: NoiseLaw | None) -> float:
        assert length is not None
        return length.hidden(100 - mechanism.noisy_length(100, ScriptedSource()))

    def _cut(self, mechanism: OracleHeavyHitters, n: int) -> int:
        """The least that a noisy estimate must reach; a noisy length is no less than the true one, except with
        probability `short`."""
        return int(mechanism.threshold) + (0 if public_length(mechanism) is not None else int(mechanism.untracked(n)))

    def failing(self, mechanism: OracleHeavyHitters, noise: NoiseLaw, n: int) -> tuple[float, str]:
        """What the oracle fails by itself, and P[some noise lifts an item that may be untracked to the cut]."""
        below, above = mechanism.errors(n)
        k, told = mechanism.capacity, mechanism.statement
        largest = (n + k * (above + below)) // (k + 1) + above
        least = -(-(self._cut(mechanism, n) - largest) // told.gain)  # noise of a cell that an estimate needs
        passes = min(1.0, 2 * told.cells * noise.shown(max(least, 0)))
        failing = 2.0 * mechanism.deltas.hashing + (1.0 + math.exp(claim(mechanism)[0])) * passes
        return failing, f"noise beyond the cut {passes:.3g}"

    def conforms(self, mechanism: OracleHeavyHitters) -> int:
        wrong, told = 0, mechanism.statement
        summary = self.filled(mechanism, several(mechanism.capacity))
        items = summary.not_private_counts().items.to_pylist()
        for shift in range(3):
            cut = self._cut(mechanism, summary.total)
            noise = np.resize([cut - 3 + shift, cut + shift, cut - 2], told.cells)
            source = ScriptedSource(0, noise.tolist())
            release = mechanism(summary, source)
            estimates = summary.estimates_from(items, summary.not_private_cells() + noise.reshape(told.shape))
            at = mechanism.threshold + (release.offset or 0)
            wrong += shown_by(release) != {x: int(v) for x, v in zip(items, estimates, strict=True) if v >= at}
            first, *others = [(draw.law, draw.scale, draw.size) for draw in source.draws]
            wrong += first != (mechanism.noise, mechanism.scale, told.cells)
            wrong += len(others) != (mechanism.stream_length == "noisy") or at < cut
        return wrong

    def coupled(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """The distance of the cells on longer random streams, in batches."""
        told, worst, pairs = mechanism.statement, 0, max(20, effort.large_pairs // 50)
        rng = np.random.default_rng(2)
        for _ in range(pairs):
            stream = rng.integers(0, 8, 60)
            left_out = int(rng.integers(60))
            sides = []
            for events in (stream, np.delete(stream, left_out)):
                sides.append(self.filled(mechanism, events[:20].tolist()))
                sides[-1].update(events[20:])
            moved = np.abs(sides[0].not_private_cells() - sides[1].not_private_cells())
            worst = max(worst, int(moved.sum()))
        yield Finding("coupled", "l1-distance of the cells", "sensitivity", told.changes * told.height, worst, pairs)

    def twins(self, mechanism: Any) -> Sequence[Twin]:
        broken = [
            half_the_noise(mechanism),
            twin(mechanism, "no margin for noise", margin=1),
            twin(mechanism, "cut without the share of the untracked", untracked=lambda self, length: 0),
        ]
        if mechanism.stream_length == "noisy":

            def length(self: Any, total: int, source: Any) -> int:
                added = int(type(mechanism).noisy_length(self, total, ScriptedSource())) - total
                return max(0, int(type(mechanism).noisy_length(self, total, source)) - added)

            broken.append(twin(mechanism, "noisy length without its margin", noisy_length=length))
        else:
            broken.append(leaked_order(mechanism))
        return broken


def _first(mechanism: Any) -> Any:
    """One empty oracle for all streams of an audit."""
    made = vars(mechanism).get("audited")
    if made is None:
        made = mechanism.oracle()
        object.__setattr__(mechanism, "audited", made)
    return made


_BUDGET = Budget(8.0, 0.02)
_EXAMPLE = OracleHeavyHitters(_BUDGET, 50, _ListedOracle, 51, stream_length=400)  # k so large that n/k is not the cut

register(
    OracleHeavyHitters,
    lambda: (_EXAMPLE, replace(_EXAMPLE, noise="gaussian", stream_length="noisy")),
    OracleAudit(),
)


# ---- the inner-product counter: the law of its state at every moment, over all outcomes of its coins -----------------

_LENGTH = 2
# Three participants vote (the positions are public), then one brings a vector.
_POSITIONS = (0, 1, 1)
Inputs = tuple[Any, ...]
_INPUTS: list[Inputs] = list(product(*[(0, 1)] * len(_POSITIONS), product((0, 1), repeat=_LENGTH)))


def _small(counter: InnerProductCounter, source: RandomSource | None = None) -> InnerProductCounter:
    made = type(counter)(_LENGTH, budget=Budget(counter.epsilon), source=source)
    made.response = counter.response
    return made


def _seen(counter: InnerProductCounter, inputs: Inputs, source: RandomSource) -> tuple[Any, ...]:
    """What an adversary sees who looks at every moment, and the release."""
    made, seen = _small(counter, source), []
    for position, vote in zip(_POSITIONS, inputs, strict=False):
        made.vote([position], [vote])
        seen.append(made.to_bytes())
    made.update([inputs[-1]])
    return (*seen, made.to_bytes(), made.release().value)


class _InnerProductAudit(Audit):
    def structure(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """One participant has one answer, in one count."""
        wrong = 0
        for vote, coin in product((0, 1), (0, 1)):
            made = _small(counter, _Coins([coin]))
            made.vote([1], [vote])
            ones, votes, _ = made.answers
            wrong += votes != [0, 1] or ones[0] != 0
        yield Finding("structure", "counts moved by one vote, other than its own", "violations", 0, wrong, 4)

    def exact(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """Everything seen of three votes and a vector, for all inputs that differ in one participant."""
        pairs = [pair for pair in combinations(_INPUTS, 2) if sum(a != b for a, b in zip(*pair, strict=True)) == 1]
        worst, _ = worst_pair(pairs, lambda given: law_of(partial(_seen, counter, given), 0.0), ratio_loss)
        claimed = counter.epsilon * SLACK
        yield Finding("exact", "the state at every moment and the release", "epsilon", claimed, worst, len(pairs))

    def statistical(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """One vote and its answer."""

        def ones(bit: int) -> int:
            made = _small(counter)
            made.vote([0], [bit])
            return made.answers[0][0]

        yield proved("a vote of 1 or of 0", (counter.epsilon, 0.0), (1, 0), ones, float, effort.runs)

    def coupled(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """Equal coins: a vector replaced by another moves the count by one at most."""
        most, pairs, rng = 0, effort.released_pairs, np.random.default_rng(3)
        for _ in range(pairs):
            coins, vectors = rng.integers(0, 2, 20), rng.integers(0, 2, (20, _LENGTH))
            counts = []
            for last in ([1, 1], [0, 0]):
                made = _small(counter, _Coins(coins))
                made.update(np.vstack([vectors[:-1], [last]]))
                counts.append(made.answers[2])
            most = max(most, abs(counts[0] - counts[1]))
        yield Finding("coupled", "the count that one vector moves", "sensitivity", 1, most, pairs)

    def twins(self, counter: InnerProductCounter) -> Sequence[Twin]:
        return (
            twin(counter, "coins for twice epsilon", response=Response.of("tight", 2 * Fraction(counter.epsilon))),
            twin(counter, "votes counted as they are", answer=lambda self, bits: None),
            twin(counter, "coins that never flip", response=Response(1, ONE - 1)),
        )


class _Coins(ScriptedSource):
    """A source whose coins were written beforehand."""

    def __init__(self, coins: Any) -> None:
        super().__init__()
        self.coins = np.asarray(coins, np.int64)

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        taken, self.coins = self.coins[:size].copy(), self.coins[size:]
        return taken


register(
    InnerProductCounter,
    lambda: (InnerProductCounter(4, budget=Budget(1.0)),),
    _InnerProductAudit(),
)


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

    def apart(one: dict[int, int], other: dict[int, int]) -> int:
        return sum(abs(one.get(x, 0) - other.get(x, 0)) for x in {*one, *other})

    return int(worst_pair(pairs, counters, apart)[0])


def entries_loss(protocol: Any, capacity: int) -> tuple[float, int]:
    """The loss of a noisy Misra-Gries sketch: the l1-distance of its counters over the scale that the code asks for."""
    small = tiny(protocol, 4, capacity=capacity)
    pairs = list(neighbours(4, capacity + 1))
    source = ScriptedSource()
    small.party(0, source=source).encode([0] * 3)
    scales = {draw.scale for draw in source.draws}
    return float(counter_sensitivity(small, pairs) / min(scales)), len(pairs)


class _EntriesAudit(MessageAudit):
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
        yield Finding("coupled", "large neighbouring streams", "sensitivity", claimed, measured, len(pairs))


def _entries_laws(protocol: Any, effort: Effort) -> Iterator[Finding]:
    for capacity in range(1, 3 + max(0, effort.length)):
        yield message_finding(f"counters of {capacity}, all inputs", protocol, *entries_loss(protocol, capacity))
    # Every message with its probability: that the code is the law above, and not noise on fewer items.
    small = tiny(replace(protocol, budget=Budget(max(protocol.epsilon, 3.0))), 2, capacity=1)
    quantity = f"epsilon at {small.epsilon:g}"
    yield message_finding("messages of 2 items of a universe of 2", small, *message_loss(small, 2, 2), quantity)


def _entries_twins(protocol: Any) -> Sequence[Twin]:
    removed = scaled(protocol, "noise for an item removed", lambda made: Fraction(made.capacity, made.capacity + 1))
    what = "no noise on the other items of the universe"
    there = speaking(protocol, what, lambda self, items, source, speak: speak(items, OnlyThere(source)))
    return half_noise(protocol), removed, there


register(
    MergedSketch,
    lambda: (MergedSketch("audit", _ONE, 1000), MergedSketch("audit", _THREE, "strings", rows=1)),
    additive(3, columns=3),
)
register(
    MergedMisraGries,
    lambda: (MergedMisraGries("audit", _ONE, 1000, capacity=8),),
    _EntriesAudit(_entries_laws, _entries_twins, {"capacity": 1}),
)


# ---- Misra-Gries sketches over a stream: every short stream, and all that is told of its blocks together -------------


def block_message_loss(stream: Any, steps: int) -> tuple[float, int]:
    """The largest |log ratio| of the probabilities of all that is sent about this many steps, byte for byte."""

    def law(given: tuple[int, ...]) -> OutputLaw:
        items = [item - 1 if item else None for item in given]  # 0 stands for nothing: neighbours may lack an item
        return law_of(lambda source: stream.party(0, source=source).feed(items))

    return worst_pair(neighbours(1 + stream.universe.size, steps), law, ratio_loss)


class CounterStreamAudit(StreamAudit):
    """The four checks of a `MergedMisraGriesStream`."""

    def exact(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """All that is sent about one step; and every message of a block of two steps with its probability."""
        yield from super().exact(stream, effort)
        small = replace(
            stream,
            budget=Budget(max(stream.epsilon, 3.0)),
            universe=2,
            epoch_steps=2,
            horizon=2,
            window=None,
            capacity=1,
            sample_share=0.0,
        )
        loss, pairs = block_message_loss(small, 2)
        claimed = small.epsilon * SLACK
        yield Finding("exact", "messages of a block of 2 steps", f"epsilon at {small.epsilon:g}", claimed, loss, pairs)

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
        generator, most, pairs = np.random.default_rng(1), 0, effort.released_pairs
        steps = stream.epoch_steps << (stream.levels - 1 if not stream.doubling else 3)
        items = stream.universe.items(range(min(stream.universe.size, 2**10)))
        for _ in range(pairs):
            places = generator.integers(0, len(items), steps)
            other = places.copy()
            other[generator.integers(steps)] = generator.integers(0, len(items))
            laws = [stream_transcript(stream, [items[place] for place in given]) for given in (places, other)]
            most = max(most, int(np.abs(laws[0].cells - laws[1].cells).sum()))
        levels = stream.shape.levels(steps // stream.epoch_steps - 1)
        # What the noise that is drawn is for, a unit a level.
        claimed = float(sum(stream.shape.sensitivities[:levels])) * SLACK
        yield Finding("coupled", "counters that one step moves", "sensitivity", claimed, most, pairs)

    def twins(self, stream: Any) -> Sequence[Twin]:
        """Those of all streams, and noise for fewer counters or items than there are."""
        right, twins = MergedMisraGriesStream, [*super().twins(stream)]
        less_by_one = lambda self, level: right.sensitivity(self, level) - 1  # noqa: E731
        only_there = lambda self, kept, block, source: right.release(self, kept, block, OnlyThere(source))  # noqa: E731
        if max(stream.shape.sensitivities) > 2:
            twins.append(twin(stream, "noise for exact counters", sensitivity=lambda self, level: 2))
        twins.append(twin(stream, "noise for an item left out", sensitivity=less_by_one))
        twins.append(twin(stream, "no noise on the other items of the universe", release=only_there))
        return twins


@lru_cache(maxsize=1024)
def _log_below(cut: int, scale: float) -> float:
    """log P[Z < cut]."""
    q = math.exp(-1 / scale)
    return math.log1p(-(q**cut) / (1 + q)) if cut >= 1 else (1 - cut) * -1 / scale - math.log1p(q)


register(
    MergedMisraGriesStream,
    lambda: (
        MergedMisraGriesStream("audit", _ONE, 3, epoch_steps=2, horizon=6, capacity=1),
        MergedMisraGriesStream("audit", _THREE, 4, epoch_steps=1, window=3),
        MergedMisraGriesStream("audit", _ONE, 3, epoch_steps=2, capacity=1, sample_share=0.3),
    ),
    CounterStreamAudit(),
)
