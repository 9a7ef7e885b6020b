"""Pictures of releases. Everything drawn was published."""

from __future__ import annotations

import datetime
import functools
import os
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DiscreetError, ParameterError
from discreet.privacy.checks import numbered, whole_number
from discreet.releases.formats import none_passed
from discreet.releases.labels import cut, readable

if TYPE_CHECKING:
    from discreet.releases.group_list import GroupRelease
    from discreet.releases.release import Release

_BAR, _INK, _MUTED = "#4a86c5", "#222222", "#666666"
_LINES = ("#4477aa", "#cc6677", "#228833", "#aa7722", "#66ccee", "#aa3377", "#777777", "#224466")
_LONGEST = 40
_SHORT = 22  # below a line
_IN_PANEL = 28
_PANELS = 24  # groups that are drawn
_ROOM = 3.0  # inches beside the labels of a picture
_COUNTED = {
    "events": "count",
    "people": "number of people",
    "rows": "number of rows",
    "weights": "sum of weights",
    "sums": "sum of values",
}
_OF_EMOJI = "\ufe0e\ufe0f\u200d"  # say how their neighbours look, which are spelled
_NEVER = ("Last Resort", "STIX", "cm", "DejaVu Math")  # boxes, and mathematics under other names


def plot_histogram(
    histogram: Release,
    path: str | os.PathLike[str] | None,
    *,
    ax: Any = None,
    kind: str = "bars",
    confidence: float,
    most: int,
) -> Any:
    """The first `most` items with intervals, as bars or as a line with a band; the guarantee above."""
    if kind not in ("bars", "lines"):
        raise ParameterError(f"kind must be 'bars' or 'lines', not {kind!r}")
    if histogram.by:
        if ax is not None:
            raise ParameterError("ax cannot be used for a release with groups; leave it out, or plot one of `groups`")
        return _small_multiples(histogram, path, kind, confidence, whole_number("most", most))
    shown = histogram.head(whole_number("most", most))
    long = 0.28 * max(len(shown), 3)
    axes = _axes(ax, (8.0, 1.6 + long) if kind == "bars" else (min(max(4.0 + long, 6.0), 12.0), 4.8), path)
    counted = (
        f"private {_COUNTED[histogram.counted]}",
        f"intervals that hold together at {100 * confidence:g}% confidence",
    )
    if not len(shown):
        _sentence(axes, none_passed(histogram))
    elif kind == "bars":
        _bars(axes, shown, confidence, *_labels(shown.items))
        _below(axes, ax, ", with ".join(counted))
    else:
        _sorted_line(axes, shown, confidence, *_labels(shown.items, _SHORT))
        axes.set_ylabel(counted[0])
        _below(axes, ax, f"with {counted[1]}")
    rest = histogram.head(len(shown)).rest(confidence)
    if rest is not None:
        text = f"everything else: {rest.value:,.0f} ({rest.lower:,.0f} to {rest.upper:,.0f})"
        place = (1.0, 0.02, "bottom") if kind == "bars" else (1.0, 0.98, "top")
        drawn = axes.text(*place[:2], text, ha="right", va=place[2], fontsize=8, color=_MUTED, transform=axes.transAxes)
        drawn.set_in_layout(False)
    return _finished(axes, ax, path, histogram)


def _small_multiples(
    histogram: Release, path: str | os.PathLike[str] | None, kind: str, confidence: float, most: int
) -> Any:
    """A picture for each of the first groups, all on one scale."""
    groups = list(histogram.groups.items())
    shown = [(group, found.head(most)) for group, found in groups[:_PANELS]]
    across = min(len(shown), 3) or 1
    down = -(-len(shown) // across) or 1
    rows = max([3, *(len(found) for _, found in shown)])
    high = 1.3 + 0.24 * rows if kind == "bars" else 3.8
    axes = _axes(None, (max(4.2 * across, 6.0), 1.2 + high * down), path)
    figure = axes.figure
    if not shown:
        _sentence(axes, none_passed(histogram))
        return _finished(axes, None, path, histogram)
    axes.remove()
    every = figure.subplots(down, across, squeeze=False).ravel()
    names = cut([readable(group) for group, _ in shown], _LONGEST)
    ends = [_ends(found.counts, *found.bounds(confidence))[0] for _, found in shown if len(found)]
    families = _fonts(frozenset("".join(names)))
    # An item has one label, in whichever group it is.
    by = len(histogram.by)
    items = [[item[by] if len(item) == by + 1 else item[by:] for item in found.items] for _, found in shown]
    different = {repr(item): item for own in items for item in own}  # 1 and True are not the same
    texts, fonts = _labels([*different.values()], _IN_PANEL if kind == "bars" else _SHORT)
    label_of = dict(zip(different, texts, strict=True))
    for panel, (_, found), name, own in zip(every, shown, names, items, strict=False):
        labels = [label_of[repr(item)] for item in own]
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
        if not len(found):
            _sentence(panel, "no item passed")
        elif kind == "bars":
            _bars(panel, found, confidence, labels, fonts)
            panel.set_ylim(len(found) - rows - 0.7, len(found) - 0.3)
            panel.set_xlim(0, max(ends))
            panel.tick_params(axis="x", labelsize=7)
        else:
            _sorted_line(panel, found, confidence, labels, fonts)
            panel.set_ylim(0, max(ends))
        panel.set_title(_spelled(name, families[1]), fontsize=9, fontfamily=families[0], parse_math=False)
    for panel in every[len(shown) :]:
        panel.set_axis_off()
    told = f"private {_COUNTED[histogram.counted]}, intervals that hold together at {100 * confidence:g}% confidence"
    if len(groups) > len(shown):
        told += f"; {len(groups) - len(shown):,} more groups are not drawn"
    _below(every[0], None, told)
    return _finished(every[0], None, path, histogram)


def plot_groups(answer: GroupRelease, path: str | os.PathLike[str] | None, *, ax: Any = None, most: int = 60) -> Any:
    """The estimates of groups with their intervals: a line where the groups are times, else bars."""
    rows = answer.cells
    values, lower, upper = (np.array([_as_number(row[place]) for row in rows], float) for place in (-3, -2, -1))
    over_time = len(answer.names) == 1 and all(isinstance(row[0], datetime.date) for row in rows)
    told = f"private {answer.of}, intervals that hold together at {100 * answer.confidence:g}% confidence"
    axes = _axes(ax, (8.0, 4.8 if over_time else 1.6 + 0.28 * max(min(len(rows), most), 3)), path)
    if not rows:
        _sentence(axes, "No group passed the threshold.")
    elif over_time:
        _band(axes, [row[0] for row in rows], values, np.where(np.isinf(lower), values, lower), upper, _LINES[0], None)
        _below(axes, ax, told)
        axes.figure.autofmt_xdate()
    else:
        shown = slice(most)
        places = np.arange(len(rows[shown]))[::-1]
        ends = [np.where(np.isinf(end), values, end)[shown] for end in (lower, upper)]
        axes.hlines(places, *ends, color=_INK, linewidth=1)
        axes.plot(values[shown], places, "o", color=_BAR, markersize=6)
        labels, families = _labels([row[:-3] if len(answer.names) > 1 else row[0] for row in rows[shown]])
        axes.set_yticks(places, labels, fontfamily=families, parse_math=False)
        more = f"; {len(rows) - most:,} more groups are not drawn" if len(rows) > most else ""
        _below(axes, ax, told + more)
    return _finished(axes, ax, path, answer)


def _as_number(value: Any) -> float:
    """A date or a time as seconds."""
    if not isinstance(value, datetime.date):
        return float(value)
    moment = value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)
    return moment.timestamp()


def plot_over_time(
    releases: Iterable[Release],
    path: str | os.PathLike[str] | None = None,
    *,
    ax: Any = None,
    times: Sequence[Any] | None = None,
    confidence: float = 0.95,
    most: int = 5,
) -> Any:
    """Lines with bands for the items of several releases, one a tick, as `dc.continual` makes them.

    The items are the first `most` of the latest release. Where an item is not published its line has a gap: it says
    nothing of the item. Each tick's intervals hold together; those of different ticks do not.

    Args:
        releases: One a tick, oldest first.
        path: As for `Release.plot`.
        ax: As for `Release.plot`.
        times: What stands below the ticks, such as dates; 1, 2, 3 and so on by default.
        confidence: As for `Release.plot`.
        most: How many items to draw at most, up to 8.
    """
    ticks = list(releases)
    if not ticks:
        raise ParameterError("a plot over time needs at least one release")
    if len({release.counted for release in ticks}) > 1:
        raise ParameterError("the releases count different things; draw releases of one question")
    places = list(range(1, len(ticks) + 1)) if times is None else list(times)
    if len(places) != len(ticks):
        raise ParameterError(
            f"times has {len(places)} entries for {numbered(len(ticks), 'release')}; give one for each"
        )
    items = ticks[-1].head(min(whole_number("most", most), len(_LINES))).items
    axes = _axes(ax, (8.0, 4.8), path)
    rows = [{row.item: row for row in release.rows(confidence)} for release in ticks]
    missing = (None, np.nan, np.nan, np.nan)
    labels, families = _labels(items)
    for item, label, color in zip(items, labels, _LINES, strict=False):
        _, counts, lower, upper = zip(*(found.get(item, missing) for found in rows), strict=True)
        _band(axes, places, np.array(counts, float), np.array(lower), np.array(upper), color, label)
    if items:
        axes.set_ylabel(f"private {_COUNTED[ticks[-1].counted]}, intervals at {100 * confidence:g}%")
        if times is None:
            axes.set_xlabel("tick")
            axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(bottom=0)
        drawn = axes.legend(frameon=False, fontsize=9, prop={"family": families, "size": 9})
        for text in drawn.get_texts():
            text.set_parse_math(False)
    else:
        _sentence(axes, none_passed(ticks[-1]))
    return _finished(axes, ax, path, ticks[-1])


def _axes(ax: Any, size: tuple[float, float], path: str | os.PathLike[str] | None) -> Any:
    """The axes to draw in. What cannot be written is refused before anything is drawn."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DiscreetError("plots need matplotlib; install it with pip install 'discreet[plot]'") from error
    if ax is None:
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
    if path is not None:
        suffix = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
        known = ax.figure.canvas.get_supported_filetypes()
        if suffix not in known:
            raise ParameterError(f"a plot must be one of {', '.join(sorted(known))}, not {suffix!r}")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _finished(axes: Any, given: Any, path: str | os.PathLike[str] | None, release: Release | GroupRelease) -> Any:
    """The guarantee above, room for all labels, and the file."""
    figure = axes.figure
    if given is None:
        _widen(figure)
    color = "#b00020" if release.guarantee.seeded else _MUTED
    if given is None:
        figure.suptitle(release.guarantee.sentence(), fontsize=8, wrap=True, color=color)
    else:
        axes.set_title(release.guarantee.sentence(), fontsize=7, wrap=True, color=color)
    if path is not None:
        figure.savefig(os.fspath(path), dpi=150)
    return figure


def _below(axes: Any, given: Any, text: str) -> None:
    """What the numbers are, below all that is drawn; in given axes, below those."""
    if given is None:
        axes.figure.supxlabel(textwrap.fill(text, 110), fontsize=8)
    else:
        axes.set_xlabel(text, fontsize=8, wrap=True)


def _widen(figure: Any) -> None:
    """Make a figure wide enough for the labels at the left of its axes, and some room to draw in."""
    renderer, across = figure.canvas.get_renderer(), 1
    widest = 0.0
    for axes in figure.axes:
        across = max(across, axes.get_subplotspec().get_gridspec().ncols)
        labels = [label for label in axes.get_yticklabels() if axes.axison and label.get_text()]
        widest = max([widest, *(label.get_window_extent(renderer).width / figure.dpi for label in labels)])
    wide, high = figure.get_size_inches()
    figure.set_size_inches(max(wide, across * (widest + _ROOM)), high)


def _sentence(axes: Any, text: str) -> None:
    axes.set_axis_off()
    told = textwrap.fill(text, 64)
    axes.text(0.5, 0.5, told, ha="center", va="center", fontsize=10, transform=axes.transAxes)


def _bars(axes: Any, shown: Release, confidence: float, labels: list[str], families: list[str]) -> None:
    lower, upper = shown.bounds(confidence)
    places = np.arange(len(shown))[::-1]
    axes.barh(places, shown.counts, color=_BAR, height=0.7)
    right, ends = _ends(shown.counts, lower, upper)
    axes.hlines(places, lower, ends, color=_INK, linewidth=1)
    axes.plot(lower, places, "|", color=_INK, markersize=6)
    known = np.isfinite(upper)
    axes.plot(ends[known], places[known], "|", color=_INK, markersize=6)
    if not known.all():  # what is empty and not clipped would be laid out as if it were anywhere
        axes.plot(ends[~known], places[~known], ">", color=_INK, markersize=6, clip_on=False)
    axes.set_yticks(places, labels, fontfamily=families, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_xlim(0, right)
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _sorted_line(axes: Any, shown: Release, confidence: float, labels: list[str], families: list[str]) -> None:
    lower, upper = shown.bounds(confidence)
    places = np.arange(len(shown))
    _band(axes, places, shown.counts.astype(float), lower, upper, _LINES[0], None)
    axes.set_xticks(
        places,
        labels,
        rotation=50,
        ha="right",
        rotation_mode="anchor",
        fontsize=9,
        fontfamily=families,
        parse_math=False,
    )
    top, _ = _ends(shown.counts, lower, upper)
    axes.set_ylim(0, top)
    axes.set_xlim(-0.5, len(shown) - 0.5)
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _band(axes: Any, places: Any, counts: Any, lower: Any, upper: Any, color: str, label: str | None) -> None:
    """A line and its band; from the line upwards an arrow stands where the upper bound is not known."""
    unknown = np.isinf(upper)
    axes.fill_between(places, lower, np.where(unknown, counts, upper), color=color, alpha=0.2, linewidth=0)
    # A label that begins with an underscore would not be in the legend.
    axes.plot(places, counts, color=color, marker="o", markersize=3, linewidth=1.5)
    if label is not None:
        axes.plot([], [], color=color, linewidth=3, label="\u200b" + label if label.startswith("_") else label)
    for place, count, above in zip(places, counts, unknown, strict=True):
        if above:
            axes.annotate(
                "", (place, count), (0, 16), textcoords="offset points",
                arrowprops={"arrowstyle": "<-", "color": color, "shrinkA": 0, "shrinkB": 2},
            )  # fmt: skip


def _ends(counts: Any, lower: Any, upper: Any) -> tuple[float, Any]:
    """Where the axis ends, and where each interval does: that of an unknown bound goes a little beyond its count."""
    known = np.isfinite(upper)
    most = max(float(np.max(np.concatenate([counts, lower, upper[known]]))), 1.0)
    return most * (1.04 if known.all() else 1.12), np.where(known, upper, np.maximum(counts, lower) + 0.07 * most)


# ---- labels that can be drawn ----------------------------------------------------------------------------------------


def _labels(items: Sequence[Any], most: int = _LONGEST) -> tuple[list[str], list[str]]:
    """Labels for the items, all different, of characters that there are fonts for; and the fonts."""
    texts = [readable(item) for item in items]
    families, drawable = _fonts(frozenset("".join(texts)))
    return cut([_spelled(text, drawable) for text in texts], most), families


def _spelled(text: str, drawable: frozenset[str]) -> str:
    """Characters that no font has by name (symbols) or by number (letters)."""
    runs = groupby(text, lambda c: c in drawable)
    return "".join("".join(run) if drawn else f"<{' '.join(filter(None, map(_spelling, run)))}>" for drawn, run in runs)


def _spelling(character: str) -> str:
    if character in _OF_EMOJI:
        return ""
    name = unicodedata.name(character, "")
    return name.lower() if unicodedata.category(character) == "So" and name else f"{ord(character):04X}"


@functools.lru_cache(maxsize=16)
def _fonts(characters: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """Fonts that have as many of the characters as can be had, matplotlib's own first; and the characters they have."""
    from matplotlib import font_manager

    default = font_manager.FontProperties()
    families = [default.get_name()]
    drawable = characters & _glyphs(font_manager.findfont(default))
    if missing := characters - drawable:
        others = {font.name: font.fname for font in font_manager.fontManager.ttflist if _is_plain(font)}
        for name, file in sorted(others.items()):
            if found := missing & _glyphs(file):
                families.append(name)
                missing -= found
                if not missing:
                    break
    return families, characters - missing


def _is_plain(font: Any) -> bool:
    upright = font.style == "normal" and font.weight in (400, "normal", "regular", "book", "roman")
    return upright and not font.name.startswith(_NEVER)


@functools.lru_cache(maxsize=256)
def _glyphs(file: str) -> frozenset[str]:
    """The characters of a font; none of one that has pictures only, which cannot be drawn at every size."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(file)
        return frozenset(map(chr, font.get_charmap())) if font.scalable else frozenset()
    except (OSError, RuntimeError, ValueError):
        return frozenset()
