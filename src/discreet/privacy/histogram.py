"""A private histogram: what every release of counts returns."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.privacy.error_model import ErrorModel
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Histogram"]

Counts = npt.NDArray[np.int64]


class Histogram:
    """Published items with noisy counts, largest first, equal counts by item.

    Every item with a count well above the threshold is there with high probability; there may be fewer items than
    were asked for; an item that did not occur is never there. `guarantee` says what the release promises and hides.

    Attributes:
        items: The published items as Python values.
        counts: Their noisy counts, int64.
        threshold: The mechanism's cut. For the offset release an item is published iff count - offset >= threshold.
        offset: The noisy offset that the offset release publishes; None for the others.
        everything_else: The noisy number of events of all items not listed, when a share of the budget was spent on
            the stream's length; otherwise None.
    """

    def __init__(
        self,
        items: pa.Array,
        counts: Counts,
        guarantee: Guarantee,
        error_model: ErrorModel,
        *,
        threshold: int | float | None = None,
        offset: int | None = None,
        everything_else: Estimate | None = None,
    ) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(items) != len(counts):
            raise ParameterError("items and counts must have one length")
        counts = np.asarray(counts, dtype=np.int64)
        # The order is a function of what is published: noisy count, then item.
        order = pc.sort_indices(
            pa.table({"item": items, "count": counts}), sort_keys=[("count", "descending"), ("item", "ascending")]
        )
        self._items = items.take(order)
        self.counts: Counts = counts[np.asarray(order)]
        self.guarantee = guarantee
        self.error_model = error_model
        self.threshold = threshold
        self.offset = offset
        self.everything_else = everything_else

    @property
    def items(self) -> list[Any]:
        """The published items as Python values, in order."""
        values: list[Any] = self._items.to_pylist()
        return values

    def __len__(self) -> int:
        return len(self.counts)

    def head(self, k: int) -> Histogram:
        """The first k items: a function of the release, so it costs nothing."""
        return Histogram(
            self._items[:k],
            self.counts[:k],
            self.guarantee,
            self.error_model,
            threshold=self.threshold,
            offset=self.offset,
            everything_else=self.everything_else,
        )

    def bounds(self, confidence: float = 0.95) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(lower, upper) for every item: with probability `confidence` all of them hold at once.

        They combine the noise and the summary's error, use the published offset, and hold although the items were
        selected by their noisy counts. An upper bound is infinite where nothing finite can be published. An item that
        is listed occurred at least once.
        """
        below, above = self.error_model.distances(confidence, self.offset)
        lower = np.maximum(self.counts - below, 1.0)
        return lower, np.maximum(self.counts + above, lower)

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """A table with item, count, lower and upper."""
        import pyarrow as pa

        lower, upper = self.bounds(confidence)
        return pa.table({"item": self._items, "count": self.counts, "lower": lower, "upper": upper})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """A data frame with item, count, lower and upper."""
        return self.to_arrow(confidence).to_pandas()

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """A JSON-ready description. Bytes items are written as hexadecimal; an infinite bound as null."""
        lower, upper = self.bounds(confidence)
        items = [
            {
                "item": item.hex() if isinstance(item, bytes) else item,
                "count": int(count),
                "lower": _number(low),
                "upper": _number(high),
            }
            for item, count, low, high in zip(self.items, self.counts, lower, upper, strict=True)
        ]
        out: dict[str, Any] = {
            "guarantee": self.guarantee.to_dict(),
            "threshold": self.threshold,
            "offset": self.offset,
            "confidence": confidence,
            "items": items,
        }
        if self.everything_else is not None:
            rest = self.everything_else
            out["everything_else"] = {
                "count": int(rest.value),
                "lower": _number(rest.lower),
                "upper": _number(rest.upper),
            }
        return out

    def to_json(self, confidence: float = 0.95) -> str:
        """The description as JSON text."""
        return json.dumps(self.to_dict(confidence), ensure_ascii=False, allow_nan=False)

    def plot(self, path: str | os.PathLike[str] | None = None, *, confidence: float = 0.95, most: int = 30) -> Any:
        """Bars with intervals for the first `most` items; written to `path` (png, svg, pdf) when given.

        Returns the matplotlib figure. Needs the `plot` extra.
        """
        from discreet.privacy.plotting import plot_histogram

        return plot_histogram(self, path, confidence=confidence, most=most)

    def __repr__(self) -> str:
        return f"Histogram({len(self)} items; {self.guarantee.sentence()})"


def _number(value: float) -> int | float | None:
    if not np.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(value)
