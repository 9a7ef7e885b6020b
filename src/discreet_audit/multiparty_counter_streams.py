"""The row for Misra-Gries sketches over a stream: every short stream, and all that is told of its blocks together.

As for other streams the law is read from the code: it runs with noise that lifts every counter over the cut, and says
of how many other items noise was drawn, so that every item of the universe has its counter and its scale. What is sent
is a function of these; that the code draws them so, is enumerated message by message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.multiparty.party_seam import Packet
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet.published import MergedMisraGriesStream
from discreet_audit.exact import OutputLaw, law_of, ratio_loss, worst_pair
from discreet_audit.findings import Finding
from discreet_audit.multiparty import OnlyThere
from discreet_audit.multiparty_laws import neighbours
from discreet_audit.multiparty_transcripts import StreamAudit, Transcript, stream_transcript
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import twin

__all__ = ["CounterStreamAudit", "block_message_loss"]

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly


def block_message_loss(stream: Any, steps: int) -> tuple[float, int]:
    """The largest |log ratio| of the probabilities of all that is sent about so many steps, byte for byte."""

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
        claimed = small.epsilon * _SLACK
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
        claimed = float(sum(stream.shape.sensitivities[:levels])) * _SLACK
        yield Finding("coupled", "counters that one step moves", "sensitivity", claimed, most, pairs)

    def twins(self, stream: Any) -> Sequence[Twin]:
        """Those of all streams, and noise for fewer counters or items than there are."""
        twins = [*super().twins(stream)]
        if max(stream.shape.sensitivities) > 2:
            twins.append(twin(stream, "noise for exact counters", sensitivity=lambda self, level: 2))
        twins.append(twin(stream, "noise for an item left out", sensitivity=_less_by_one))
        twins.append(twin(stream, "no noise on the other items of the universe", release=_only_there))
        return twins


def _less_by_one(self: Any, level: int) -> int:
    return MergedMisraGriesStream.sensitivity(self, level) - 1


def _only_there(self: Any, summaries: Any, block: Any, source: RandomSource) -> Any:
    return MergedMisraGriesStream.release(self, summaries, block, OnlyThere(source))


@lru_cache(maxsize=1024)
def _log_below(cut: int, scale: float) -> float:
    """log P[Z < cut]."""
    q = math.exp(-1 / scale)
    return math.log1p(-(q**cut) / (1 + q)) if cut >= 1 else (1 - cut) * -1 / scale - math.log1p(q)


_ONE, _THREE = Budget(1.0), Budget(3.0)
_audit = CounterStreamAudit()

row(
    MergedMisraGriesStream,
    lambda: (
        MergedMisraGriesStream("audit", _ONE, 3, epoch_steps=2, horizon=6, capacity=1),
        MergedMisraGriesStream("audit", _THREE, 4, epoch_steps=1, window=3),
        MergedMisraGriesStream("audit", _ONE, 3, epoch_steps=2, capacity=1, sample_share=0.3),
    ),
    _audit,
    _audit.twins,
)
