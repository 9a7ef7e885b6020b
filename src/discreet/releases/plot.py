"""Pictures of releases. Everything drawn was published."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DiscreetError, ParameterError
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from discreet.releases.release import Release

__all__ = ["plot_histogram"]


def plot_histogram(histogram: Release, path: str | os.PathLike[str] | None, *, confidence: float, most: int) -> Any:
    """Bars with intervals for the first `most` items, the guarantee below."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DiscreetError("plots need matplotlib: install discreet[plot]") from error

    shown = histogram.head(whole_number("most", most))
    lower, upper = shown.bounds(confidence)
    labels = [_label(item) for item in shown.items]
    places = np.arange(len(shown))[::-1]
    height = 1.6 + 0.28 * max(len(shown), 3)
    figure = Figure(figsize=(8.0, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.barh(places, shown.counts, color="#4477aa", height=0.7)
    below = np.clip(shown.counts - lower, 0.0, None)
    above = np.where(np.isfinite(upper), np.clip(upper - shown.counts, 0.0, None), 0.0)
    axes.errorbar(shown.counts, places, xerr=[below, above], fmt="none", ecolor="#222222", elinewidth=1, capsize=2)
    axes.set_yticks(places, labels)
    counted = {"events": "count", "people": "number of people", "rows": "number of rows", "sums": "sum of values"}[
        histogram.counted
    ]
    axes.set_xlabel(f"private {counted}, with intervals that hold together at {confidence:.0%} confidence")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(left=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if not len(shown):
        axes.text(0.5, 0.5, "no item passed the threshold", ha="center", va="center", transform=axes.transAxes)
    figure.suptitle(histogram.guarantee.sentence(), fontsize=8, wrap=True)
    rest = histogram.head(len(shown)).rest(confidence)
    if rest is not None:
        text = f"everything else: {rest.value:,.0f} ({rest.lower:,.0f} to {rest.upper:,.0f})"
        axes.text(1.0, 0.0, text, ha="right", va="bottom", fontsize=8, transform=axes.transAxes)
    if path is not None:
        suffix = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
        known = figure.canvas.get_supported_filetypes()
        if suffix not in known:
            raise ParameterError(f"a plot is written as {', '.join(sorted(known))}, not {suffix!r}")
        figure.savefig(os.fspath(path), dpi=150)
    return figure


def _label(item: Any) -> str:
    text = item.hex() if isinstance(item, bytes) else str(item)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    text = text if len(text) <= 40 else text[:39] + "…"
    return text.replace("$", r"\$")
