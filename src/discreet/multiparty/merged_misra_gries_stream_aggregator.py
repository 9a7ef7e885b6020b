"""The aggregator of noisy Misra-Gries sketches over time: it knows which items were sent, and lists the heavy ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.multiparty.interval_questions import HeavyItems
from discreet.multiparty.stream_aggregator import StreamAggregator
from discreet.privacy.checks import probability

if TYPE_CHECKING:
    from discreet.multiparty.merged_misra_gries_stream import MergedMisraGriesStream

__all__ = ["MergedMisraGriesStreamAggregator"]


class MergedMisraGriesStreamAggregator(StreamAggregator):
    """Receives packets as that of a `Stream` does; `heavy_hitters` needs no list of items."""

    stream: MergedMisraGriesStream

    def heavy_hitters(self, share: float, time: int | None = None, *, confidence: float = 0.95) -> HeavyItems:
        """The items that make up at least this share of the steps told about, of those that a block told of.

        How many steps had an item nobody says, so the share is one of all steps in the window that ends with step
        `time`, or since the beginning. `complete` is False if an item that is not listed may have as much: what it
        lacks was below cuts, lost by all counters, or in steps without a block, whose samples name no items.
        """
        share = probability("share", share)
        since, time = self._span(time)
        told, unsure, sent = 0, 0, [np.zeros(0, np.int64)]
        for voice in self._voices.values():
            blocks, spans = self._parts(voice, since, time)
            told += voice.spans.count(since, time)
            unsure += self._unsure(voice, spans)
            sent += [voice.blocks[block].blocks[block][0] for block in blocks]
        words = np.unique(np.concatenate(sent)).astype(np.uint64)
        # Of all items alike as much may be missing: the last is asked for to know it where nobody sent any.
        counts = self._counts(0, np.append(words, np.uint64(0)), since, time)
        most = counts.bounds(confidence)[1]
        # Nobody asked for the samples of an item that nobody sent: it may have had all of their steps.
        most[-1] += (unsure if self.stream.samples else 0) - counts.values[-1]
        threshold = share * told
        order = np.argsort(-counts.values[:-1], kind="stable")
        order = order[counts.values[order] >= max(threshold, 1)]
        chosen = replace(counts, values=counts.values[order], variances=counts.variances[order])
        complete = bool((np.delete(most, order) < threshold).all())
        return HeavyItems(self.stream.domain.items(words[order]), chosen, threshold, complete)
