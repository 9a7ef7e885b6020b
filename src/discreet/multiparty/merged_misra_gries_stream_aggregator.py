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
        """The items that make up at least this share of the steps told about, of those that any party sent.

        How many steps had an item nobody says, so the share is one of all steps in the window that ends with step
        `time`, or since the beginning. `complete` is False if an item that nobody sent may have as much.
        """
        share = probability("share", share)
        since, time = self._span(time)
        told, sent = 0, [np.zeros(0, np.int64)]
        for voice in self._voices.values():
            told += voice.spans.count(since, time)
            sent += [voice.blocks[block].blocks[block][0] for block in self._cover(voice, since, time)]
        words = np.unique(np.concatenate(sent)).astype(np.uint64)
        # Of all items alike as much may be missing: the last is asked for to know it where nobody sent any.
        counts = self._counts(0, np.append(words, np.uint64(0)), since, time)
        missing = float(counts.bounds(confidence)[1][-1] - counts.values[-1])
        threshold = share * told
        order = np.argsort(-counts.values[:-1], kind="stable")
        order = order[counts.values[order] >= max(threshold, 1)]
        chosen = replace(counts, values=counts.values[order], variances=counts.variances[order])
        return HeavyItems(self.stream.domain.items(words[order]), chosen, threshold, missing < threshold)
