"""Histograms at every tick: four settings, by whether the items and their number in an event are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.continual import one_shot
from discreet.continual._base import Continual
from discreet.continual._engines import Engine, Factored, Hidden, Meta, Sparse
from discreet.continual._factors import Buffered, Factor, Tree, best_factor, levels, optimal_base
from discreet.continual._state import items_of_plain, load_state, plain_items, save_state
from discreet.errors import CorruptStateError, DataError, ParameterError
from discreet.events.items import Item, is_arrow
from discreet.events.published import item_order, items_array
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet.privacy.calibration.composition import repeated_share
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Release

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from discreet.privacy.ledger import Account

__all__ = ["Histogram"]

Integers = npt.NDArray[np.int64]

FAMILY = 142
# By (domain known, items per event bounded); the first is the default.
MECHANISMS = {
    (True, True): ("factorised", "tree", "meta"),
    (True, False): ("meta", "sparse"),
    (False, True): ("factorised", "tree", "meta", "limit"),
    (False, False): ("meta",),
}
_NUMBERS = ("max_items_per_event", "k", "mechanism", "base", "limit", "keep_discovered", "switches", "margin")
_MOST_ITEMS = 2**63
_UNKNOWN = "a histogram of items that are not known in advance"
# What a run of AboveThreshold costs ("sparse"), in units of 1/(2 tau_1^2): now, and in states that do not say.
_RUN_COST, _FORMER_RUN_COST = 0.25, 1.0


class Histogram(Continual):
    """The counts of items over the events so far, at every tick.

    Unit: one event, which is a set of items: at most `max_items_per_event` = D, or any number of them.
    Guarantee: for all ticks together, rho-zCDP or (epsilon, delta) over a known domain, (epsilon, delta) otherwise.

    | domain | items | mechanisms (the first is the default) |
    |---|---|---|
    | known | at most D | "factorised": a `Counter` an item. "tree": KnownBase. "meta": a tree of KnownGauss |
    | known | any, top k | "meta": a tree of KnownGumb. "sparse": sparseGumb, k counters, `switches` new choices |
    | unknown | at most D | "factorised": UnkBase with factorised noise. "tree": UnkBase.
      "meta": a tree of UnkGauss. "limit": a tree of LimitDom with Laplace noise |
    | unknown | any, top k | "meta": a tree of UnkGumb |

    Half of delta pays for the conversion from zCDP and half for items that one event brought; `threshold` of a release
    is the cut that hides those. Arguments: docs/privacy/continual.md.

    Args:
        horizon: The number of ticks.
        budget: For all ticks together.
        domain: The items that may be published, known in advance; None if they come from the stream.
        max_items_per_event: D. Of an event the first D different items count.
        k: Publish the k largest; needed when the items of an event are not bounded.
        mechanism: See above; "auto" is the default of the setting.
        base: The base of the trees.
        limit: How many of the largest counts the mechanisms of unknown domains look at ("meta", "limit").
        keep_discovered: An item that passed the cut once stays visible ([CO] section 7); "factorised" and "tree".
        switches: s of sparseGumb. margin: eta of sparseGumb, a whole number.
        ledger, charge_id, source: As for `Counter`.
    """

    mechanism_name: ClassVar[str] = "continual histogram"
    reference: ClassVar[str] = "[CO] Algorithms 2, 3, 4, 7; docs/privacy/continual.md"

    def __init__(
        self,
        horizon: int,
        budget: Budget,
        domain: Iterable[Item] | None = None,
        max_items_per_event: int | None = None,
        k: int | None = None,
        *,
        mechanism: str = "auto",
        base: int | None = None,
        limit: int | None = None,
        keep_discovered: bool = False,
        switches: int = 1,
        margin: int = 0,
        ledger: Account | None = None,
        charge_id: str | None = None,
        source: RandomSource | None = None,
    ) -> None:
        super().__init__(whole_number("horizon", horizon), budget, ledger, charge_id, source)
        self._domain = None if domain is None else _checked_domain(domain)
        self.max_items_per_event = (
            None if max_items_per_event is None else whole_number("max_items_per_event", max_items_per_event)
        )
        self.k = None if k is None else whole_number("k", k)
        allowed = MECHANISMS[self._domain is not None, self.max_items_per_event is not None]
        self.mechanism = allowed[0] if mechanism == "auto" else mechanism
        if self.mechanism not in allowed:
            raise ParameterError(f"mechanism must be one of auto, {', '.join(allowed)} here, not {mechanism!r}")
        if self.k is None and self.max_items_per_event is None:
            raise ParameterError("events of any number of items need k: how many items to publish")
        self.base = optimal_base(horizon) if base is None else whole_number("base", base, 2, max(2, horizon))
        self.limit = None if limit is None else whole_number("limit", limit, self.k or 1)
        self.keep_discovered = bool(keep_discovered)
        self.switches = whole_number("switches", switches, 0, horizon)
        self.margin = whole_number("margin", margin, 0, 2**53)
        self._items: list[Item] = [] if self._domain is None else self._domain.to_pylist()
        self._index = {item: position for position, item in enumerate(self._items)}
        self._total = np.zeros(len(self._items), np.int64)
        self._run_cost = _RUN_COST
        self._engine = self.make_engine()
        self._last: Release | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that, with the horizon and the budget, make the same histogram again."""
        return {"domain": None if self._domain is None else self._domain.to_pylist(), **self._numbers()}

    def _numbers(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _NUMBERS}

    @property
    def domain_is_known(self) -> bool:
        """Whether the items that may be published were given in advance."""
        return self._domain is not None

    @property
    def engine(self) -> Engine:
        """What turns counts into what is published; see `discreet.continual.seam`."""
        return self._engine

    def not_private_counts(self) -> dict[Item, int]:
        """The counts so far, without noise: NOT PRIVATE."""
        return dict(zip(self._items, self._total.tolist(), strict=True))

    def make_engine(self) -> Engine:
        """An engine before its first tick."""
        assert self.horizon is not None
        known, most = self._domain is not None, self.max_items_per_event
        if known:
            rho = self.budget.as_zcdp("a continual histogram")
        else:
            delta = self.budget.approximate(_UNKNOWN)[1] / 2.0
            rho = self.budget.as_zcdp(_UNKNOWN, 0.5)
        if self.mechanism == "sparse":
            assert self.k is not None
            return Sparse(
                lambda each: (best_factor(self.horizon or 1, each), each),
                rho,
                self.k,
                self.switches,
                self.margin,
                self._run_cost,
            )
        if self.mechanism in ("meta", "limit"):
            return self._meta(rho, None if known else delta)
        assert most is not None
        tree: Factor = Tree(self.horizon, self.base)
        if known:
            best = tree if self.mechanism == "tree" else best_factor(self.horizon, rho, most)
            return Factored(best, rho, most, len(self._items))
        # Constant memory an item; see `best_factor` for how little that costs.
        return Hidden(
            tree if self.mechanism == "tree" else Buffered(self.horizon), rho, delta, most, self.keep_discovered
        )

    def _meta(self, rho: float, delta: float | None) -> Meta:
        """The one-shot mechanism of the setting, with its share of the budget: an event is in L nodes."""
        assert self.horizon is not None
        L = levels(self.horizon, self.base)
        k, limit, most = self.k, self.limit, self.max_items_per_event

        def node_sigma(items: int) -> Fraction:
            # L nodes, `items` Gaussian counts (or choices) each: rho = L items / (2 sigma^2).
            return max(Fraction(math.sqrt(L * items / (2.0 * rho)) * (1.0 + 1e-12)), Fraction(1))

        if most is None:
            assert k is not None
            top = k  # as the closures see it
            tau = node_sigma(2 * k)
            if delta is None:
                return self._tree(lambda h, rank, source: one_shot.known_gumbel(h, top, tau, source), float(tau), False)
            bar = 10 * k if limit is None else limit
            shift = one_shot.gumbel_shift(tau, delta / L, bar)
            return self._tree(
                lambda h, rank, source: one_shot.unknown_gumbel(h, top, tau, shift, bar, rank, source),
                float(tau),
                False,
            )
        sigma = node_sigma(most)
        if delta is None:
            return self._tree(lambda h, rank, source: one_shot.known_gauss(h, sigma, source), float(sigma), True)
        if self.mechanism == "limit":
            each_epsilon, each_delta = repeated_share(*self.budget.approximate(_UNKNOWN), L)
            scale = most / Fraction(each_epsilon)
            far = one_shot.laplace_shift(scale, each_delta / most)
            return self._tree(
                lambda h, rank, source: one_shot.unknown_laplace(h, scale, far, limit, rank, source),
                math.sqrt(2.0) * float(scale),
                False,
            )
        near = one_shot.gauss_shift(sigma, delta / (L * most))
        return self._tree(
            lambda h, rank, source: one_shot.unknown_gauss(h, sigma, near, limit, rank, source), float(sigma), False
        )

    def _tree(self, node: Any, sigma: float, complete: bool) -> Meta:
        assert self.horizon is not None
        return Meta(self.horizon, self.base, node, sigma, complete)

    @property
    def last(self) -> Release | None:
        """The latest release; None before the first tick."""
        return self._published()  # type: ignore[no-any-return]

    def _latest(self) -> Release | None:
        return self._last

    def _pack_latest(self) -> bytes:
        assert self._last is not None
        return self._last.to_payload()

    def _unpack_latest(self, data: bytes) -> None:
        self._last = Release.from_payload(data)

    def _renew(self) -> None:
        self._engine.renew(self.tick, self._source)

    def error(self, t: int) -> float:
        """The standard deviation of a published count at tick t."""
        return self._engine.error(whole_number("t", t, 1, self.horizon))

    def step(self, events: Any, tick: int | None = None, *, save: Callable[[Release], None] | None = None) -> Release:
        """Add the events of one tick and return the private histogram up to it.

        `events` is an Arrow list column or an iterable of iterables, one set of items an event; a plain column or an
        iterable of items holds events of one item each. With `tick`, its number from 1, a tick that was published is
        returned as it was, and `events` are ignored. `save` as for `Counter.step`.
        """
        from discreet.continual._events import event_counts

        if self._is_repeated(tick):
            assert self.last is not None
            return self.last
        domain = None if self._domain is None else self._index
        items, counts = event_counts(events, self.max_items_per_event, domain)
        return self._step(lambda: self._draw(items, counts), save)  # type: ignore[no-any-return]

    def _draw(self, items: pa.Array, counts: Integers) -> None:
        positions = self._register(items)
        added = np.zeros(len(self._items), np.int64)
        added[positions] = counts
        self._total = np.concatenate([self._total, np.zeros(len(added) - len(self._total), np.int64)]) + added
        where, noisy = self._engine.step(self._total, added, self.tick + 1, self._rank, self._source)
        self.tick += 1
        self._last = self._publish(where, noisy)

    def _register(self, items: pa.Array) -> Integers:
        """The positions of the items; new ones get the next."""
        values = items.to_pylist()
        for item in values:
            if item not in self._index:
                self._index[item] = len(self._items)
                self._items.append(item)
        return np.array([self._index[item] for item in values], np.int64)

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
        draws = len(self._items) if self._domain is not None else _MOST_ITEMS
        law = Noise("gaussian", Fraction(max(self.error(self.tick), 1e-3)), max(draws, 1))
        model = ErrorModel(
            law,
            summary_below=0.0 if self._engine.complete else math.inf,
            lowest=0 if self._domain is not None else 1,
        )
        result = Release(items, noisy, self.guarantee, model, threshold=self._engine.threshold)
        return result if self.k is None else result.head(self.k)

    def to_bytes(self) -> bytes:
        """The whole state. Not private: it holds the true counts and the noise."""
        kind, items = plain_items(self._items)
        header = {
            **self._saved(),
            **self._numbers(),
            **({"run_cost": self._run_cost} if self.mechanism == "sparse" and self._run_cost == _RUN_COST else {}),
            "known": self._domain is not None,
            "bytes": {"other": False, "bytes": True}.get(kind, kind),  # true and false since there was one kind only
            "items": items,
        }
        arrays = {"total": self._total, **{f"engine.{name}": array for name, array in self._engine.arrays().items()}}
        blobs = {} if self._last is None else {"last": self._last.to_payload()}
        return save_state(FAMILY, header, arrays, blobs)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        ledger: Account | None = None,
        source: RandomSource | None = None,
        restored: bool = False,
    ) -> Self:
        """Restore a state; the next tick is drawn as if nothing had happened. `ledger`, `restored` as for `Counter`."""
        header, arrays, blobs = load_state(data, FAMILY)
        try:
            kind = {False: "other", True: "bytes"}.get(header["bytes"], "mixed")
            items = items_of_plain(kind, header["items"])
            histogram = cls(
                header["horizon"],
                Budget.from_dict(header["budget"]),
                items if header["known"] else None,
                **{name: header[name] for name in _NUMBERS},
                ledger=ledger,
                source=source,
            )
            histogram._restore(header)
            histogram._run_cost = header.get("run_cost", _FORMER_RUN_COST)
            if histogram._run_cost not in (_RUN_COST, _FORMER_RUN_COST):
                raise CorruptStateError("the state has another accounting")
            if histogram._run_cost != _RUN_COST and histogram.mechanism == "sparse":
                histogram._engine = histogram.make_engine()  # goes on with the noise it was begun with
            if not header["known"]:
                histogram._items = items
                histogram._index = {item: position for position, item in enumerate(items)}
            histogram._total = arrays["total"]
            if histogram._total.shape != (len(items),):
                raise CorruptStateError("the state has arrays of another size")
            engine = {name.removeprefix("engine."): array for name, array in arrays.items() if name != "total"}
            histogram._engine.load(engine, len(items))
            histogram._last = Release.from_payload(blobs["last"]) if histogram.tick else None
        except (KeyError, TypeError, ValueError, IndexError):
            raise CorruptStateError("the state is not one of a continual histogram") from None
        histogram._resume(restored)
        return histogram

    def __repr__(self) -> str:
        setting = "unknown" if self._domain is None else "known"
        return f"Histogram(tick {self.tick} of {self.horizon}, {setting} domain, {self.mechanism}) [state NOT PRIVATE]"


def _checked_domain(domain: Iterable[Item]) -> pa.Array:
    from discreet.continual._events import flattened

    given = domain if is_arrow(domain) else list(domain)
    items, parents = flattened(given)
    if parents is not None or not len(items):
        raise ParameterError("the domain must be a column or an iterable of items, at least one")
    values = items if isinstance(items, list) else items.to_pylist()
    if isinstance(given, list) and (len(values) < len(given) or len({item_order(value)[0] for value in values}) > 1):
        raise DataError("items must be all text, all bytes or all whole numbers")
    if len(set(values)) != len(values):
        raise ParameterError("the domain has an item more than once")
    return items_array(values)
