"""How much counts rose between two ticks: computed from what was published, so that it costs nothing.

The noises of two ticks of one run share most of what they are made of, and that cancels in a difference. What is left
has a known law (`privacy.calibration.tick_noise`). Noise of a second run is its own: then the variances add up. Where
no law of a difference is known, the intervals of both ticks are added. Argument: docs/privacy/continual.md,
"Increases".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import NotPublishedError, ParameterError
from discreet.events.values import plain_items
from discreet.privacy.calibration.tick_noise import Change, TickNoise, difference_reach
from discreet.privacy.checks import probability
from discreet.privacy.plain_form import PlainForm
from discreet.releases.error_model import chance_of_each
from discreet.releases.release import Release, numbers

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from discreet.privacy.guarantee import Guarantee

_OF_DIFFERENCE = 0.9  # of the chance to fail, where the intervals of both ticks are needed as well


class Term(NamedTuple):
    """A noise in a published count: its name in its run, its law, and how many of its ticks have passed."""

    name: str
    noise: TickNoise
    tick: int


@dataclass(frozen=True)
class OverTime(PlainForm):
    """Where in a stream a release is, and of what its noise is made. All of it is public.

    Attributes:
        tick: The number of the tick, from 1.
        run: Which run drew it. Releases of one run share noise, those of two runs share none. Empty where it is not
            known, which is taken for a run of its own.
        terms: The noises that add up in every count; None where the law of a difference is not known.
        rises: Whether true counts never fall: they are of all ticks so far, and nothing is taken away.
    """

    tick: int
    run: str
    terms: tuple[Term, ...] | None = None
    rises: bool = True

    def alone(self) -> list[Change]:
        """Its noise, from before the first tick to now."""
        return [(noise, 0, tick) for _, noise, tick in self.terms or ()]

    def shares(self, other: OverTime) -> bool:
        """Whether the two are of one run."""
        return self.run == other.run != ""

    def since(self, earlier: OverTime) -> list[Change] | None:
        """What is left of both noises in a difference; None where that is not known."""
        if self.terms is None or earlier.terms is None:
            return None
        if not self.shares(earlier):
            return [*self.alone(), *earlier.alone()]
        before = {(name, noise): tick for name, noise, tick in earlier.terms}
        changes = [(noise, before.pop((name, noise), 0), tick) for name, noise, tick in self.terms]
        return [*changes, *((noise, 0, tick) for (_, noise), tick in before.items())]


def reach_of_increase(later: OverTime, earlier: OverTime, beta: float, draws: int = 1) -> int:
    """With probability 1 - beta none of this many differences of published totals is off by more than this."""
    changes = later.since(earlier)
    assert changes is not None
    return difference_reach(changes, chance_of_each(beta, draws) / 2.0)


class IncreaseRow(NamedTuple):
    """An item, how much its count rose, and bounds that hold together with those of all other rows."""

    item: Any
    increase: int
    lower: float
    upper: float


class Increase:
    """How much counts rose between two ticks of a stream, largest first. It is computed from two releases: free.

    Rows are of the items that both ticks list. Of an item that was not listed at the earlier tick nobody knows where
    it stood then; those that came since are in `appeared`, and the release itself says what there is to say of them.

    Attributes:
        items: The items that both ticks list.
        values: The differences of published counts, int64. They add up over spans of time, and may be below 0.
        lower, upper: With probability `confidence` all true increases lie between them, at once.
        since, tick: From which tick to which.
        confidence: Of all intervals together.
        appeared: Items that only the later tick lists.
        counted: What a count is of, as in a release.
        guarantee: That of the stream, which covers whatever is computed from its releases.
    """

    def __init__(
        self,
        items: list[Any],
        values: npt.NDArray[np.int64],
        lower: npt.NDArray[np.float64],
        upper: npt.NDArray[np.float64],
        *,
        since: int,
        tick: int,
        confidence: float,
        guarantee: Guarantee,
        appeared: list[Any],
        counted: str = "events",
    ) -> None:
        order = np.argsort(-values, kind="stable")
        self.items = [items[place] for place in order]
        self.values, self.lower, self.upper = values[order], lower[order], upper[order]
        for array in (self.values, self.lower, self.upper):
            array.setflags(write=False)
        self.since, self.tick, self.confidence = since, tick, confidence
        self.guarantee, self.appeared, self.counted = guarantee, appeared, counted

    def rows(self) -> list[IncreaseRow]:
        """(item, increase, lower, upper), the largest first."""
        columns = (self.items, self.values.tolist(), self.lower.tolist(), self.upper.tolist())
        return [IncreaseRow(*row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[IncreaseRow]:
        return iter(self.rows())

    def __getitem__(self, item: Any) -> IncreaseRow:
        """The row of an item; `NotPublishedError`, a KeyError, for one that the two ticks do not both list."""
        if item not in self.items:
            raise NotPublishedError("that item is not listed at both ticks; it may or may not have occurred")
        place = self.items.index(item)
        return IncreaseRow(item, int(self.values[place]), float(self.lower[place]), float(self.upper[place]))

    def to_arrow(self) -> pa.Table:
        """A table with the columns item, increase, lower and upper."""
        from discreet.events.values import items_array

        return pa.table(
            {"item": items_array(self.items), "increase": self.values, "lower": self.lower, "upper": self.upper}
        )

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with the columns of `to_arrow`."""
        return self.to_arrow().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description. Bytes are written as hexadecimal; an infinite bound is null."""
        ends = (numbers(self.lower.tolist()), numbers(self.upper.tolist()))
        rows = zip(plain_items(self.items), self.values.tolist(), *ends, strict=True)
        return {
            "since": self.since,
            "tick": self.tick,
            "confidence": self.confidence,
            "items": [dict(zip(IncreaseRow._fields, row, strict=True)) for row in rows],
            "appeared": plain_items(self.appeared),
        }

    def to_json(self) -> str:
        """The description as JSON text, with the guarantee."""
        told = {**self.to_dict(), "guarantee": self.guarantee.to_dict()}
        return json.dumps(told, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        from discreet.releases.formats import intervals, table_text
        from discreet.releases.labels import printable

        first = f"Increase({len(self):,} items, from tick {self.since} to {self.tick}; {self.guarantee.sentence()})"
        shown = self.rows()[:10]
        between = intervals([row.lower for row in shown], [row.upper for row in shown])
        cells = [(printable(row.item), f"{row.increase:,}", ends) for row, ends in zip(shown, between, strict=True)]
        table = table_text(["item", "increase", f"{self.confidence:.0%} interval"], cells, (1, 2)) if cells else ""
        more = f"... and {len(self) - 10:,} more" if len(self) > 10 else ""
        return f"{first}\n{table}{more}".rstrip("\n")


def increase_of(later: Release, earlier: Release, confidence: float = 0.95) -> Increase:
    """How much the counts of the items rose that both releases list; see `Release.increase`."""
    to, since = _moments(later, earlier)
    beta = 1.0 - probability("confidence", confidence)
    before = {item: place for place, item in enumerate(earlier.items)}
    there = [place for place, item in enumerate(later.items) if item in before]
    items = [later.items[place] for place in there]
    then = np.array([before[item] for item in items], np.int64)
    now = np.array(there, np.int64)
    changes = to.since(since)
    # What heavy hitters counted after an item was found, which is all that came between two ticks that list it.
    of_found = later.followed is not None and earlier.followed is not None and to.shares(since)
    if later.followed is not None and not of_found:
        changes = None
    if later.error_model.of_published and changes is not None and _falls(to, since):
        changes = None
    if of_found:
        assert later.followed is not None
        assert earlier.followed is not None
        values = later.followed[now] - earlier.followed[then]
    else:
        values = later.counts[now] - earlier.counts[then]
    lower, upper = np.full(len(items), -math.inf), np.full(len(items), math.inf)
    if changes is None or later.error_model.of_published:
        share = beta / 2.0 if changes is None else beta * (1.0 - _OF_DIFFERENCE) / 2.0
        (low, high), (old_low, old_high) = (release.bounds(1.0 - share) for release in (later, earlier))
        lower, upper = low[now] - old_high[then], high[now] - old_low[then]
    if changes is not None:
        sure, around = np.ones(len(items), bool), 0
        draws = (earlier.error_model.noise.draws, later.error_model.noise.draws)
        if later.error_model.of_published:
            each = chance_of_each(_OF_DIFFERENCE * beta, min(draws))
            around = difference_reach(changes, each / 8.0)
            for release, places in ((later, now), (earlier, then)):
                assert release.over_time is not None
                assert release.threshold is not None
                far = release.threshold + difference_reach(release.over_time.alone(), each / 4.0)
                sure &= release.counts[places] > far
        else:
            around = difference_reach(changes, chance_of_each(beta, draws[0] if of_found else max(draws)) / 2.0)
        lower = np.where(sure, np.maximum(lower, values - around), lower)
        upper = np.where(sure, np.minimum(upper, values + around), upper)
    if to.rises:
        lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
    return Increase(
        items,
        values,
        lower,
        upper,
        since=since.tick,
        tick=to.tick,
        confidence=confidence,
        guarantee=later.guarantee,
        appeared=[item for item in later.items if item not in before],
        counted=later.counted,
    )


def _moments(later: Release, earlier: Release) -> tuple[OverTime, OverTime]:
    to, since = later.over_time, earlier.over_time
    if to is None or since is None:
        raise ParameterError("increase works with releases over time, from discreet.continual or a watch")
    if since.tick >= to.tick:
        raise ParameterError(f"since must be a tick before this one, which is tick {to.tick}, not {since.tick}")
    one, other = later.guarantee, earlier.guarantee
    if (one.mechanism, one.unit, later.counted) != (other.mechanism, other.unit, earlier.counted):
        raise ParameterError("since must be an earlier release of the same stream")
    return to, since


def _falls(to: OverTime, since: OverTime) -> bool:
    """Whether the noises of the two ticks tend to opposite sides, which no counter of ours has."""
    before = {(name, noise): tick for name, noise, tick in since.terms or ()} if to.shares(since) else {}
    both = [(noise, before[name, noise], tick) for name, noise, tick in to.terms or () if (name, noise) in before]
    return any(noise.covariance(earlier, later) < 0.0 for noise, earlier, later in both)
