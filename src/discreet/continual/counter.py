"""Running counts: a private total at every tick."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import replace
from discreet.continual._base import Continual, State, part_of, under
from discreet.continual._doubling import Doubling, epoch_of
from discreet.continual._factors import METHODS, CorrelatedNoise, Factor, make_factor
from discreet.errors import CorruptStateError, DataError, LedgerError, ParameterError
from discreet.events.items import read
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy import Budget
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.privacy.checks import probability, whole_number, whole_or_none
from discreet.privacy.estimate import Estimate
from discreet.releases.over_time import Increase, reach_of_increase

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account


MAX_SIZE = 2**27
_MOST_PER_TICK = 2**53


class Counter(Continual):
    """The running total of a stream, published at every tick.

    Unit: one event, which adds at most 1 to at most `max_items_per_event` of the counters, at one tick.
    Guarantee: rho-zCDP for all ticks together, or the (epsilon, delta) that it converts to.
    Noise: N = A C^-1 z for independent discrete Gaussians z, on a lattice, rounded to whole counts (`_factors`). "tree"
        is Algorithm 1 of [CO]; "square-root" and "blt" have C = A^(1/2) and an approximation of it in constant memory.
    Error: `error(t)` is the standard deviation at tick t. Largest over T = 2^16 ticks, in units of a single release's:
        16.5 for the binary tree, 4.6 for the others.
    Without a horizon: epochs of 1, 2, 4, ... ticks have a counter each, and a counter over epochs adds up their totals.
        An event is in one epoch and one total: a quarter of rho pays for the totals, the rest for the epochs.
    Argument: docs/privacy/correlated-noise.md.

    Args:
        horizon: The number of ticks; None if it is not known.
        budget: For all ticks together.
        method: "tree", "square-root", "blt", or "auto" for the smallest worst error.
        base: The base of the tree; by default the best by equation (3) of [CO].
        size: The number of counters; None for one, whose steps take and return an int.
        max_items_per_event: How many of the counters one event may count for.
        remember: Keep what this many ticks published, for `increase(since=tick)`: public, and saved with the state.
        ledger: Who pays: the whole horizon at once, before the first tick; `charge_id` names the charge.
        source: For tests and audits. A seeded source makes the releases not private.
    """

    family: ClassVar[int] = 140
    _arguments: ClassVar[tuple[str, ...]] = ("method", "base", "size", "max_items_per_event")
    changes: int = 1  # how often an event moves a count, up and down in turn
    mechanism_name: ClassVar[str] = "continual counter"
    reference: ClassVar[str] = "[CO] Algorithm 1; docs/privacy/correlated-noise.md"

    def __init__(
        self,
        horizon: int | None,
        budget: Budget,
        *,
        method: str = "auto",
        base: int | None = None,
        size: int | None = None,
        max_items_per_event: int = 1,
        remember: int = 0,
        ledger: Account | None = None,
        charge_id: str | None = None,
        source: RandomSource | None = None,
    ) -> None:
        super().__init__(horizon, budget, ledger, charge_id, source, remember)
        self.size = whole_or_none("size", size, 1, MAX_SIZE)
        self.max_items_per_event = whole_number("max_items_per_event", max_items_per_event, 1, self.size or 1)
        self._rho = self.budget.as_zcdp("a continual counter")
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
        whole_or_none("base", base, 2, max(2, self.horizon or MAX_SIZE))
        self._asked: dict[str, Any] = {"method": method, "base": base}
        self._total = np.zeros(self.size or 1, np.int64)
        self._last: Integers | None = None
        self.factor, self.sigma = self._make_factor()
        self._noises = self.factor.start(self.size or 1)

    def _make_factor(self) -> tuple[Factor, Fraction]:
        if self.horizon is not None:
            factor = self.factor_for(self.horizon, 1.0)
            return factor, factor.sigma(self._rho, self.max_items_per_event, self.changes)

        def part(factor: Factor, share: float, sigma: Fraction) -> Fraction:
            # The changes of a person may be spread over epochs: each must be as cheap as its part of all of them.
            return factor.sigma(self._rho * share, self.max_items_per_event * self.changes)

        return Doubling(self.factor_for, part), Fraction(1)  # the parts have their own

    def factor_for(self, horizon: int, share: float) -> Factor:
        """The factorisation of this many ticks for this share of rho."""
        return make_factor(horizon=horizon, rho=self._rho * share, items=self.max_items_per_event, **self._asked)

    def _argument(self, name: str) -> Any:
        return self._asked[name] if name in self._asked else getattr(self, name)

    def noises_of_an_event(self) -> list[tuple[str, list[CorrelatedNoise]]]:
        """For every way in which an event can come, the noises that hide it; see `discreet.continual.anatomy`.

        Without a horizon those of the first five epochs: its epoch's, and once the totals of the epochs before.
        """
        if not isinstance(self.factor, Doubling):
            noise = CorrelatedNoise(self.factor, self.sigma, changes=self.changes)
            return [(f"{self.method}, {self.horizon} ticks", [noise])]
        return [(f"epoch of {2**epoch} ticks", list(self.factor.noises(epoch, self.sigma))) for epoch in range(5)]

    @property
    def method(self) -> str:
        """The factorisation in use."""
        if isinstance(self.factor, Doubling):
            return self.factor.of_epoch(epoch_of(max(self.tick, 1))[0]).name
        return self.factor.name

    def step(
        self, x: int | npt.ArrayLike, tick: int | None = None, *, save: Callable[[Any], None] | None = None
    ) -> Any:
        """Add what one tick counted and return the private total up to it.

        With `tick`, the number of the tick (from 1), a tick that was published is returned as it was and `x` is
        ignored: there is no second noise for it. Only the latest tick is kept.

        With a ledger the tick is registered there before it is returned, and a state from before is refused from then
        on. `save` is called in between, with the release: anyone who writes `to_bytes()` to disk there never loses a
        tick.
        """
        if self._is_repeated(tick):
            return self.last
        added = self._checked(x)
        return self._step(lambda: self._draw(added), save)

    def _draw(self, added: Integers) -> None:
        noise = self.factor.to_counts(self.factor.advance(self._noises, self.tick + 1, self.sigma, self._source))
        self._total = self._total + added
        self._last = self._total + noise
        self.tick += 1

    def _latest(self) -> Any:
        if self._last is None:
            return None
        return int(self._last[0]) if self.size is None else self._last.copy()

    def _remember(self) -> None:
        assert self._last is not None
        self._past[self.tick] = (self._run_of_last, self._last.copy())
        self._past = {tick: past for tick, past in self._past.items() if tick >= self.tick - self.remember}

    def _tick_noises(self, t: int) -> tuple[tuple[str, TickNoise, int], ...]:
        return self.factor.tick_noises(t, self.sigma)

    def increase(
        self, since: int, confidence: float = 0.95, *, before: int | npt.ArrayLike | None = None
    ) -> Estimate | Increase:
        """How much the total rose since an earlier tick, with an interval that holds with probability `confidence`.

        It is computed from the two published totals and costs nothing: the noise that they share cancels. For a vector
        of counters all intervals hold at once, and the items are their places.

        Args:
            since: The number of the earlier tick.
            confidence: Of the interval, or of all together.
            before: What was published then; not needed for a tick that the counter remembers (`remember`).
        """
        now = self.last
        since = whole_number("since", since, 1)
        if now is None or since >= self.tick:
            raise ParameterError(f"since must be a tick before the latest one, which is tick {self.tick}, not {since}")
        beta = 1.0 - probability("confidence", confidence)
        if before is not None:
            # Of a second run nobody knows which run had published it: taken for another, which is never too narrow.
            run, old = self.run_name if self._run_number == 1 else "", self._checked(before)
        elif since in self._past:
            run, old = self._past[since]
        else:
            raise ParameterError(
                f"tick {since} is not remembered: pass what was published then (before=...), or make the counter "
                "with remember=N to keep the last N ticks"
            )
        to = replace(self.over_time(self.tick), run=self._run_of_last)
        around = reach_of_increase(to, replace(self.over_time(since), run=run), beta, self.size or 1)
        values = np.atleast_1d(np.asarray(now)) - old
        if self.size is None:
            value = int(values[0])
            return Estimate(value, self._possible(value - around), self._possible(value + around), self.guarantee)
        ends = (np.array([self._possible(value + side) for value in values.tolist()]) for side in (-around, around))
        return Increase(
            list(range(self.size)),
            values,
            *ends,
            since=since,
            tick=self.tick,
            confidence=confidence,
            guarantee=self.guarantee,
            appeared=[],
        )

    def _possible(self, end: float) -> float:
        """An end of an interval of an increase; what is counted may be below 0."""
        return float(end)

    def _pack_latest(self) -> bytes:
        assert self._last is not None
        return self._last.astype("<i8").tobytes()

    def _unpack_latest(self, data: bytes) -> None:
        last = np.frombuffer(data, "<i8").astype(np.int64)
        if last.shape != self._total.shape:
            raise LedgerError("the ledger has a release of other counters under this charge")
        self._last = last

    def _renew(self) -> None:
        """All noise in use is drawn anew, as if another run had come as far."""
        self._noises = self.factor.join(self.size or 1, self.tick, self.sigma, self._source)

    def error(self, t: int) -> float:
        """The standard deviation of the release at tick t, to a relative 1e-3 (rounding on the lattice) or better.

        Noise is added to whole counts; once sigma is 1 or more, rounding adds the variance 1/12 that is included.
        """
        return self.factor.error(whole_number("t", t, 1, self.horizon), self.sigma)

    def _checked(self, x: Any) -> Integers:
        given = read(x, lambda: np.asarray(x))
        shape = () if self.size is None else (self.size,)
        if given.dtype.kind not in "iu" or given.shape != shape:
            raise DataError(f"a tick takes {'a whole number' if self.size is None else f'{self.size} whole numbers'}")
        if given.size and max(abs(int(given.max())), abs(int(given.min()))) > _MOST_PER_TICK:
            raise DataError("a tick can count at most 2**53 events")
        return np.atleast_1d(given).astype(np.int64)

    def _state(self) -> State:
        header = {**self.parameters, "has_release": self._last is not None}
        header |= {} if self._run_of_last == self.run_name else {"run_of_last": self._run_of_last}
        past = [(tick, run, values) for tick, (run, values) in sorted(self._past.items())]
        # Those of epochs have names of their own.
        arrays = {"total": self._total, **(self._noises if self.horizon is None else under("run", self._noises))}
        arrays.pop("noise", None)  # of epochs: the sum of the others
        if self._last is not None:
            arrays["last"] = self._last
        if past:
            header["runs"] = [run for _, run, _ in past]
            arrays["past"] = np.array([[tick, *values] for tick, _, values in past], np.int64)
        return State(header, arrays, {})

    def _load(self, state: State) -> None:
        header, arrays, _ = state
        noises = {"noise": np.zeros(self.size or 1, np.int64), **arrays}
        if self.horizon is not None:
            noises = part_of("run", arrays)
        self._noises = self.factor.loaded(noises, self.size or 1, self.tick)
        self._total = arrays["total"]
        self._last = arrays["last"] if header["has_release"] else None
        for array in (self._total, self._last):
            if array is not None and array.shape != (self.size or 1,):
                raise CorruptStateError("the state has arrays of another size")
        self._run_of_last = str(header.get("run_of_last", self.run_name))
        past = arrays.get("past", np.zeros((0, 1 + (self.size or 1)), np.int64))
        if past.ndim != 2 or past.shape[1] != 1 + (self.size or 1):
            raise CorruptStateError("the state has arrays of another size")
        for (tick, *values), run in zip(past.tolist(), header.get("runs", []), strict=True):
            self._past[whole_number("tick", tick, 1, self.tick)] = (str(run), np.array(values, np.int64))

    def __repr__(self) -> str:
        ticks = "unknown" if self.horizon is None else str(self.horizon)
        return f"Counter(tick {self.tick} of {ticks}, {self.method}; {self.guarantee.sentence()})"
