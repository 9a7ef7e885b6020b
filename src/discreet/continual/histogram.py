"""Histograms at every tick: four settings, by whether the items and their number in an event are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet._data_class import dataclass
from discreet.continual import one_shot
from discreet.continual._base import ListedOverTime, State, items_of_plain, part_of, plain_items, under
from discreet.continual._doubling import Doubling
from discreet.continual._factors import (
    MAX_HORIZON,
    Buffered,
    Factor,
    Tree,
    best_factor,
    changes_of_a_window,
    levels,
    optimal_base,
    window_factor,
)
from discreet.continual._people import Again, PeopleSeen, assumed_of_visits, checked_window
from discreet.continual._schemes import Factored, Hidden, Meta, Rank, Restarted, Scheme, Sparse
from discreet.continual.one_shot import Published
from discreet.errors import CorruptStateError, DataError, ParameterError
from discreet.events.items import Item, is_arrow
from discreet.events.values import item_order, items_array
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.calibration.composition import repeated_share
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.privacy.checks import whole_number, whole_or_none
from discreet.releases.error_model import MOST_ITEMS, ErrorModel
from discreet.releases.release import Release
from discreet.summaries.counters import ValuesSeen

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.privacy.ledger import Account


# By (domain known, items per event bounded); the first is the default.
MECHANISMS = {
    (True, True): ("factorised", "tree", "meta"),
    (True, False): ("meta", "sparse"),
    (False, True): ("factorised", "tree", "meta", "limit"),
    (False, False): ("meta", "factorised", "tree"),
}
# The nodes of the others may hold a person more than once.
OF_PEOPLE = ("factorised", "tree")
_UNKNOWN = "a histogram of items that are not known in advance"


@dataclass(frozen=True)
class _Counted:
    """What rows add to the counts. Nothing has changed yet."""

    new: list[Item]  # get the next positions
    positions: Integers
    counts: Integers
    pairs: tuple[Integers, Integers] | None = None  # of people and positions, that count for the first time
    again: Again | None = None  # those of before


class Histogram(ListedOverTime):
    """The counts of items over the events so far, or of the people who have them, at every tick.

    Unit: one event, which is a set of items: at most `max_items_per_event` = D, or any number of them. With
        `unit=dc.User(m)` a person with all of their rows: they count once an item in the whole horizon, and for the
        first m different items that they bring. Counts are then numbers of people.
    Guarantee: for all ticks together, rho-zCDP or (epsilon, delta) over a known domain, (epsilon, delta) otherwise.

    | domain | items | mechanisms (the first is the default) |
    |---|---|---|
    | known | at most D | "factorised": a `Counter` an item. "tree": KnownBase. "meta": a tree of KnownGauss |
    | known | any, top k | "meta": a tree of KnownGumb. "sparse": sparseGumb, k counters, `switches` new choices |
    | unknown | at most D | "factorised": UnkBase with factorised noise. "tree": UnkBase.
      "meta": a tree of UnkGauss. "limit": a tree of LimitDom with Laplace noise |
    | unknown | any, top k | "meta": a tree of UnkGumb. "factorised", "tree": as for at most k, and of an event
      the items that the last tick published come before the others |

    Half of delta pays for the conversion from zCDP and half for items that one event brought; `threshold` of a release
    is the cut that hides those. Arguments: docs/privacy/continual.md.

    Without a horizon: epochs of 1, 2, 4, ... ticks. "factorised" and "tree" double as `Counter` does; "meta" and
    "limit" begin a tree in every epoch, and add what the last ticks of earlier epochs published.

    People: "factorised" and "tree", with D = m. One person more is one event of up to m items, each of which may come
    at a tick of its own; to count once the state holds everybody's id. With a window each of their counts may also fall
    and rise again, once a visit. Argument: docs/privacy/people-over-time.md.

    Args:
        horizon: The number of ticks; None if it is not known ("sparse" needs one).
        budget: For all ticks together.
        universe: The items that may be published, known in advance; None if they come from the stream.
        max_items_per_event: D. Of an event the first D different items count.
        k: Publish the k largest; needed when the items of an event are not bounded.
        mechanism: See above; "auto" is the default of the setting.
        base: The base of the trees.
        limit: How many of the largest counts the mechanisms of unknown domains look at ("meta", "limit").
        keep_discovered: An item that passed the cut once stays visible ([CO] section 7); "factorised" and "tree".
        switches: s of sparseGumb.
        margin: eta of sparseGumb, a whole number: how much larger another count must be for a new choice. By default
            4 tau_1 ln(d T), for d items and T ticks, as its analysis wants it; 0 uses the choices up on noise.
        max_weight: The largest weight of an item in an event, where items have weights: an event then raises at most
            max_items_per_event counts, by at most this. Noise grows with it.
        unit: dc.Event(), or dc.User(m) to protect people; steps then say whose the rows are.
        window, max_visits: Count the people who had an item in the last `window` ticks, as for `DistinctCount`; visits
            are of a person and an item.
        remember, ledger, charge_id, source: As for `Counter`.
    """

    family: ClassVar[int] = 142
    _arguments: ClassVar[tuple[str, ...]] = (
        "max_items_per_event", "k", "mechanism", "base", "limit", "keep_discovered", "switches", "margin",
    )  # fmt: skip
    _optional: ClassVar[tuple[str, ...]] = ("window", "max_visits", "remember")
    mechanism_name: ClassVar[str] = "continual histogram"
    reference: ClassVar[str] = "[CO] Algorithms 2, 3, 4, 7; docs/privacy/continual.md"

    def __init__(
        self,
        horizon: int | None,
        budget: Budget,
        universe: Iterable[Item] | None = None,
        max_items_per_event: int | None = None,
        k: int | None = None,
        *,
        mechanism: str = "auto",
        base: int | None = None,
        limit: int | None = None,
        keep_discovered: bool = False,
        switches: int = 1,
        margin: int | None = None,
        unit: Unit | None = None,
        window: int | None = None,
        max_visits: int | None = None,
        max_weight: int = 1,
        remember: int = 0,
        ledger: Account | None = None,
        charge_id: str | None = None,
        source: RandomSource | None = None,
        domain: Iterable[Item] | None = None,
    ) -> None:
        super().__init__(horizon, budget, ledger, charge_id, source, remember)
        if universe is not None and domain is not None:
            raise ParameterError("universe and domain are two names of one argument; give universe alone")
        listed = domain if universe is None else universe  # `domain`: its name before 0.2
        self._domain = None if listed is None else _checked_domain(listed)
        self.max_items_per_event = whole_or_none("max_items_per_event", max_items_per_event)
        self.k = whole_or_none("k", k)
        self.unit = Event() if unit is None else unit
        self.window: int | None = None
        self.max_visits: int | None = None
        self.changes = 1  # how often an event or a person moves a count, up and down in turn
        self._people: PeopleSeen | None = None
        self._most = self.max_items_per_event
        allowed = MECHANISMS[self._domain is not None, self.max_items_per_event is not None]
        if isinstance(self.unit, User):
            for name, value in (("max_items_per_event", max_items_per_event), ("limit", limit)):
                if value is not None:
                    raise ParameterError(
                        f"{name} works with events only; unit=dc.User(m) counts the first m items of a person"
                    )
            self._most, allowed = self.unit.limit, OF_PEOPLE
            self.window, self.max_visits = checked_window(window, max_visits, horizon)
            self.changes = changes_of_a_window(self.window, self.max_visits, self.horizon)
            self._people = self.new_people()
        elif window is not None or max_visits is not None:
            raise ParameterError("window and max_visits are for people; make it with unit=dc.User(max_items)")
        elif self.unit != Event():
            raise ParameterError(f"unit must be dc.Event() or dc.User(max_items), not {unit!r}")
        self.mechanism = allowed[0] if mechanism == "auto" else mechanism
        if self.mechanism not in allowed:
            raise ParameterError(f"mechanism must be one of auto, {', '.join(allowed)} here, not {mechanism!r}")
        if self.horizon is None and self.mechanism == "sparse":
            raise ParameterError('mechanism "sparse" needs a horizon, because its choices cover all ticks together')
        self.max_weight = whole_number("max_weight", max_weight, 1, 2**20)
        if self.max_weight > 1 and (self.mechanism not in OF_PEOPLE or self._people is not None):
            raise ParameterError('weights need max_items_per_event, and mechanism "factorised" or "tree"')
        if self.k is None and self._most is None:
            raise ParameterError("without max_items_per_event, k is needed: how many items to publish")
        # Any number of unknown items: k of an event count, and what is public says which come first.
        self._listed_first = self._domain is None and self._most is None and self.mechanism in OF_PEOPLE
        if self._listed_first:
            self._most = self.k
            said = f"of an event {self._most} items count, those that the last tick published before others"
            self.assumptions = (said,)
        elif self._people is not None:
            first = f"the first {self._most} different items of a person count"
            once = ", each once in all ticks together" if self.window is None else ""
            said = f"people with more items are hidden, too: {first}{once}"
            self.assumptions = (said, *assumed_of_visits(self.max_visits))
        self.base = whole_or_none("base", base, 2, max(2, self.horizon or MAX_HORIZON))
        if self.base is None and self.horizon is not None:
            self.base = optimal_base(self.horizon)  # else the best of every epoch
        self.limit = whole_or_none("limit", limit, self.k or 1)
        self.keep_discovered = bool(keep_discovered)
        self.switches = whole_number("switches", switches, 0, horizon)
        self.margin = -1 if margin is None else whole_number("margin", margin, 0, 2**53)
        self._items: list[Item] = [] if self._domain is None else self._domain.to_pylist()
        self._index = {item: position for position, item in enumerate(self._items)}
        self._total = np.zeros(len(self._items), np.int64)
        self._added = np.zeros(0, np.int64)  # in the open tick
        self._scheme = self.make_scheme()
        if margin is None:
            self.margin = self._scheme.margin if isinstance(self._scheme, Sparse) else 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that, with the horizon and the budget, make the same histogram again."""
        people = {} if self._people is None else {"unit": self.unit}
        heavy = {} if self.max_weight == 1 else {"max_weight": self.max_weight}
        known = None if self._domain is None else self._domain.to_pylist()
        return {"universe": known, **super().parameters, **people, **heavy}

    @property
    def domain_is_known(self) -> bool:
        """Whether the items that may be published were given in advance."""
        return self._domain is not None

    @property
    def most_items(self) -> int | None:
        """How many counts one event, or one person in all ticks together, may raise; None for any number."""
        return self._most

    @property
    def scheme(self) -> Scheme:
        """What turns counts into what is published; see `discreet.continual.anatomy`."""
        return self._scheme

    def not_private_counts(self) -> dict[Item, int]:
        """The counts so far, without noise: NOT PRIVATE."""
        return dict(zip(self._items, self._total.tolist(), strict=True))

    def new_people(self) -> PeopleSeen:
        """Whose rows count, before anybody came."""
        return PeopleSeen(self._most or 1, self.window, self.max_visits)

    def make_scheme(self) -> Scheme:
        """A scheme before its first tick."""
        known, most = self._domain is not None, self._most
        if known:
            rho = self.budget.as_zcdp("a continual histogram")
        else:
            delta = self.budget.approximate(_UNKNOWN)[1] / 2.0
            rho = self.budget.as_zcdp(_UNKNOWN, 0.5)
        if self.mechanism == "sparse":
            assert self.k is not None
            assert self.horizon is not None
            return Sparse(
                lambda each: (best_factor(self.horizon or 1, each), each),
                rho,
                self.k,
                self.switches,
                None if self.margin < 0 else self.margin,
                len(self._items) * self.horizon,
            )
        if self.mechanism in ("meta", "limit"):
            meta = cache(lambda ticks: self._meta(ticks, rho, None if known else delta))
            # Trees of an epoch hold counts: each is made anew, with what was calibrated once.
            return Restarted(lambda ticks: copy(meta(ticks))) if self.horizon is None else meta(self.horizon)
        assert most is not None

        def factor(ticks: int, share: float = 1.0) -> Factor:
            # Constant memory an item; see `best_factor` for how little that costs.
            return Tree(ticks, self.base) if self.mechanism == "tree" else Buffered(ticks)

        made = Doubling(factor) if self.horizon is None else factor(self.horizon)
        if self.horizon is not None and self.mechanism == "factorised":
            made = best_factor(self.horizon, rho, most * self.max_weight**2) if known else made
            made = window_factor(made, rho, most * self.max_weight**2, self.changes)
        if not known:
            hidden = Hidden(made, rho, delta, most, self.keep_discovered, self.max_weight, self.changes)
            hidden.complete = not self._listed_first  # what is not listed yet may lack events of more items
            return hidden
        return Factored(made, rho, most, len(self._items), self.max_weight, self.changes)

    def _meta(self, horizon: int, rho: float, delta: float | None) -> Meta:
        """The one-shot mechanism of the setting, with its share of the budget: an event is in L nodes."""
        base = optimal_base(horizon) if self.base is None else self.base
        L = levels(horizon, base)
        k, limit, most = self.k, self.limit, self._most

        def node_sigma(items: int) -> Fraction:
            # L nodes, `items` Gaussian counts (or choices) each: rho = L items / (2 sigma^2).
            return max(Fraction(math.sqrt(L * items / (2.0 * rho)) * (1.0 + 1e-12)), Fraction(1))

        if most is None:
            assert k is not None
            top, tau = k, node_sigma(2 * k)  # as the closures see them
            if delta is None:
                return Meta(
                    horizon, base, lambda h, rank, src: one_shot.known_gumbel(h, top, tau, src), float(tau), False
                )
            bar = 10 * k if limit is None else limit
            shift = one_shot.gumbel_shift(tau, delta / L, bar)

            def chosen(h: Integers, rank: Rank, source: RandomSource) -> Published:
                return one_shot.unknown_gumbel(h, top, tau, shift, bar, rank, source)

            return Meta(horizon, base, chosen, float(tau), False)
        sigma = node_sigma(most)
        if delta is None:
            return Meta(horizon, base, lambda h, rank, src: one_shot.known_gauss(h, sigma, src), float(sigma), True)
        is_laplace = self.mechanism == "limit"
        if is_laplace:
            each_epsilon, each_delta = repeated_share(*self.budget.approximate(_UNKNOWN), L)
            scale = most / Fraction(each_epsilon)
            shift = one_shot.laplace_shift(scale, each_delta / most)
        else:
            scale, shift = sigma, one_shot.gauss_shift(sigma, delta / (L * most))

        def passed(h: Integers, rank: Rank, source: RandomSource) -> Published:
            draw = source.discrete_laplace if is_laplace else source.discrete_gaussian
            return one_shot.unknown_noisy(h, draw, scale, shift, limit, rank)

        deviation = math.sqrt(2.0) * float(scale) if is_laplace else float(scale)
        return Meta(horizon, base, passed, deviation, False, scale if is_laplace else None)

    def _renew(self) -> None:
        self._scheme.renew(self.tick, self._source)

    def error(self, t: int) -> float:
        """The standard deviation of a published count at tick t."""
        return self._scheme.error(whole_number("t", t, 1, self.horizon))

    def error_model(self, t: int, passed: int = 1) -> ErrorModel:
        """How far the counts of tick t may lie from the truth, all of them at once.

        Where a cut alone decides what is listed, the noises that count are those of the items that `passed` it, which
        is as private as the release (docs/privacy/continual.md, "Intervals of what is listed"). Else those of all items
        there may be.
        """
        listed = self._domain is None and self._scheme.cut_alone
        draws = len(self._items) if self._domain is not None else passed if listed else MOST_ITEMS
        return ErrorModel(
            self._scheme.noise(whole_number("t", t, 1, self.horizon), max(draws, 1)),
            summary_below=0.0 if self._scheme.complete else math.inf,
            # Weights may be 0, and people leave a window.
            lowest=0 if self._domain is not None or self.max_weight > 1 or self.window is not None else 1,
            of_published=listed,
        )

    def add(self, events: Any, *, users: Any = None, weights: Any = None, nulls: str = "error") -> None:
        """Take rows of the tick that `step` will publish next, as they come; only what they add is kept."""
        self._is_repeated(None)
        self._take(self._counted(events, users, nulls, weights))

    def step(
        self,
        events: Any = (),
        tick: int | None = None,
        *,
        users: Any = None,
        weights: Any = None,
        nulls: str = "error",
        save: Callable[[Release], None] | None = None,
    ) -> Release:
        """Add the events of one tick, after those of `add`, and return the private histogram up to it.

        `events` is an Arrow list column or an iterable of iterables, one set of items an event; a plain column or an
        iterable of items holds events of one item each. With `tick`, its number from 1, a tick that was published is
        returned as it was, and `events` are ignored. `save` as for `Counter.step`.

        With `max_weight` an item of an event counts for its weight, a whole number from 0 to that: `weights` has one
        for each event of one item, or a list for each set; without it every item counts for 1.

        For people `users` says whose every row is: ids that are texts, bytes or whole numbers. With `nulls="skip"`
        rows without an id or an item are left out, and so are rows with what is no id or no item.
        """
        if self._is_repeated(tick):
            return self.last  # type: ignore[no-any-return]
        if users is None and weights is None and isinstance(events, tuple) and not events:
            counted = _Counted([], np.zeros(0, np.int64), np.zeros(0, np.int64))  # all came by `add`
        else:
            counted = self._counted(events, users, nulls, weights)
        return self._step(lambda: self._draw(counted), save)  # type: ignore[no-any-return]

    def _counted(self, events: Any, users: Any, nulls: str, weights: Any) -> _Counted:
        if weights is not None and self.max_weight == 1:
            raise ParameterError("weights= needs max_weight: make it with Histogram(..., max_weight=w)")
        if self._people is None:
            if users is not None or nulls != "error":
                raise ParameterError("users= and nulls= need people; make it with unit=dc.User(max_items)")
            from discreet.continual._events import event_counts, weighted_counts

            most, within = self._most, None if self._domain is None else self._index
            if weights is None:
                items, counts = event_counts(events, most, within, self._public_items())
                named = items.to_pylist()
            else:
                named, counts = weighted_counts(events, weights, most, self.max_weight, within)
            positions, new = self._placed(named)
            return _Counted(new, positions, counts)
        if users is None:
            raise ParameterError("this histogram protects people; say whose the rows are with step(items, users=users)")
        from discreet.continual._events import person_rows

        column, parents, length = person_rows(events)
        numbers = ValuesSeen("items")
        rows, people = numbers.of(column, nulls), self._people.number(users, nulls)
        if len(people) != (len(rows) if length is None else length):
            raise DataError("items and users must have the same length: every row needs its user")
        positions, new = self._placed(numbers.column().to_pylist())
        # Items outside a domain count for nothing, and for nobody's m.
        items = np.where(rows >= 0, np.append(positions, -1)[rows], -1)
        owners = people if parents is None else people[parents]
        again = self._people.again(owners, items, self.tick + 1)
        owners, held = self._people.fresh(owners, items)
        # An item that nobody counts for is not there: only those that count get a place.
        there, counts = np.unique(np.concatenate([held, again.items]), return_counts=True)
        before = len(self._items)
        fresh = there[there >= before]
        final = np.concatenate([np.arange(before), np.zeros(len(new), np.int64)])
        final[fresh] = before + np.arange(len(fresh))
        named = [new[place - before] for place in fresh.tolist()]
        return _Counted(named, final[there], counts, (owners, final[held]), again)

    def _public_items(self) -> frozenset[Item]:
        """What the last tick published, where the items of an event that count are chosen by it."""
        return frozenset(self._last.items if self._listed_first and self._last is not None else ())

    def _placed(self, values: list[Item]) -> tuple[Integers, list[Item]]:
        """The positions of different items, and those that are new, which follow; -1 outside a known domain."""
        positions: list[int] = []
        new: list[Item] = []
        for item in values:
            place = self._index.get(item, -1)
            if place < 0 and self._domain is None:
                place = len(self._items) + len(new)
                new.append(item)
            positions.append(place)
        return np.array(positions, np.int64), new

    def _take(self, counted: _Counted) -> None:
        for item in counted.new:
            self._index[item] = len(self._items)
            self._items.append(item)
        added = np.zeros(len(self._items), np.int64)
        added[counted.positions] = counted.counts
        added[: len(self._added)] += self._added
        self._added = added
        if self._people is not None and counted.pairs is not None and counted.again is not None:
            self._people.take(*counted.pairs)
            self._people.came(counted.again, self.tick + 1)

    def _draw(self, counted: _Counted) -> None:
        self._take(counted)
        added, self._added = self._added, np.zeros(0, np.int64)
        if self._people is not None:
            added -= np.bincount(self._people.left(self.tick + 1), minlength=len(added))
        self._total = np.concatenate([self._total, np.zeros(len(added) - len(self._total), np.int64)]) + added
        where, noisy = self._scheme.step(self._total, added, self.tick + 1, self._rank, self._source)
        self.tick += 1
        self._last = self._publish(where, noisy)

    def _tick_noises(self, t: int) -> tuple[tuple[str, TickNoise, int], ...] | None:
        return self._scheme.tick_noises(t)

    def _rank(self) -> Integers:
        """The order of the items by value, which does not depend on the stream."""
        ranks = np.empty(len(self._items), np.int64)
        ranks[sorted(range(len(self._items)), key=lambda at: item_order(self._items[at]))] = np.arange(len(self._items))
        return ranks

    def _publish(self, where: Integers, noisy: Integers) -> Release:
        import pyarrow as pa

        if self._domain is not None:
            items = self._domain.take(pa.array(where))
        else:
            items = items_array(self._items[position] for position in where)
        result = Release(
            items,
            noisy,
            self.guarantee,
            self.error_model(self.tick, len(where)),
            threshold=self._scheme.threshold,
            counted="people" if self._people is not None else "weights" if self.max_weight > 1 else "events",
            over_time=self._over_time(self.tick),
        )
        return result if self.k is None else result.head(self.k)

    def _state(self) -> State:
        kind, items = plain_items(self._items)
        header = {
            **super().parameters,
            "known": self._domain is not None,
            "kind": kind,
            "items": items,
            "max_weight": self.max_weight,
        }
        arrays = {"total": self._total, **under("scheme", self._scheme.arrays())}
        blobs = self._saved_releases()
        if self._people is not None:
            people, more, pieces = self._people.saved()
            header |= {"people": people}
            arrays |= under("people", more)
            blobs |= under("people", pieces)
        if len(self._added):
            arrays["added"] = self._added
        return State(header, arrays, blobs)

    @classmethod
    def _given(cls, header: dict[str, Any]) -> dict[str, Any]:
        return {
            **super()._given(header),
            "universe": items_of_plain(header["kind"], header["items"]) if header["known"] else None,
            "max_weight": header["max_weight"],
            "unit": User(header["people"]["most"]) if "people" in header else None,
        }

    def _load(self, state: State) -> None:
        header, arrays, blobs = state
        items = items_of_plain(header["kind"], header["items"])
        if not header["known"]:
            self._items = items
            self._index = {item: position for position, item in enumerate(items)}
        self._total = arrays["total"]
        self._added = arrays.get("added", np.zeros(0, np.int64))
        # Items that came in the open tick have no totals yet.
        before = len(self._total) if len(self._added) else len(items)
        if self._total.shape != (before,) or before > len(items) or len(self._added) not in (0, len(items)):
            raise CorruptStateError("the state has arrays of another size")
        if self._people is not None:
            people = State(header["people"], part_of("people", arrays), part_of("people", blobs))
            self._people.load(people, len(items), self.tick)
        self._scheme.load(part_of("scheme", arrays), len(self._total), self.tick)
        self._load_releases(blobs)

    def __repr__(self) -> str:
        ticks = "any number" if self.horizon is None else self.horizon
        setting = f"{'unknown' if self._domain is None else 'known'} domain, {self.mechanism}"
        if self._people is None:
            return f"Histogram(tick {self.tick} of {ticks}, {setting}) [state NOT PRIVATE]"
        setting += f", at most {self._most} items a person"
        setting += "" if self.window is None else f", in the last {self.window} ticks"
        return f"Histogram(tick {self.tick} of {ticks}, {setting}) [state NOT PRIVATE: {self._people.size}]"


def _checked_domain(domain: Iterable[Item]) -> pa.Array:
    from discreet.continual._events import flattened

    given = domain if is_arrow(domain) else list(domain)
    items, parents, _ = flattened(given)
    if parents is not None or not len(items):
        raise ParameterError("the universe must be a column or an iterable of at least one item")
    listed = items if isinstance(items, list) else items.to_pylist()
    values: list[Item] = [value for value in listed if value is not None]
    if isinstance(given, list) and (len(values) < len(given) or len({item_order(value)[0] for value in values}) > 1):
        raise DataError("items must be all text, all bytes or all whole numbers")
    if len(set(values)) != len(values):
        raise ParameterError("the universe has an item more than once")
    return items_array(values)
