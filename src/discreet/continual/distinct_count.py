"""How many different people so far, or in the last ticks: a private number at every tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.continual._base import State
from discreet.continual._factors import Factor, changes_of_a_window, window_factor
from discreet.continual._people import Again, PeopleSeen, assumed_of_visits, checked_window
from discreet.continual.counter import Counter
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy import Budget, Unit, User
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account


class DistinctCount(Counter):
    """The number of different people up to every tick or, with a window, in the last ticks.

    Unit: one person, with all of their rows, however many and at whatever ticks.
    Guarantee: rho-zCDP for all ticks together, or the (epsilon, delta) that it converts to.
    Noise: that of `Counter`. A person adds 1 at the tick of their first row and nothing later: one event of a running
        total, and every person has one, whatever the others do. In a window a person adds 1 when they come and takes it
        away when their last row leaves it: each time they change it costs as much (`_factors.window_factor`).
    Error: `error(t)` is the standard deviation at tick t.
    State: it holds the id of everybody who came, as it is: hashes that collide would let one person decide whether
        another counts. 3 bytes and the id a person, with a window 24 bytes more.
    Argument: docs/privacy/people-over-time.md.

    Args:
        horizon: The number of ticks; None if it is not known.
        budget: For all ticks together.
        window: Count the people of the last this many ticks; None for all since the first.
        max_visits: Of a person the first N visits count; a visit ends when a whole window has no row. None for all of
            them, which needs a horizon.
        method, base, remember, ledger, charge_id, source: As for `Counter`.
    """

    family: ClassVar[int] = 143
    _arguments: ClassVar[tuple[str, ...]] = ("method", "base")
    _optional: ClassVar[tuple[str, ...]] = ("remember", "window", "max_visits")
    unit: Unit = User()
    mechanism_name: ClassVar[str] = "continual distinct count"
    reference: ClassVar[str] = "[CO] Algorithm 1; docs/privacy/people-over-time.md"

    def __init__(
        self,
        horizon: int | None,
        budget: Budget,
        *,
        window: int | None = None,
        max_visits: int | None = None,
        method: str = "auto",
        base: int | None = None,
        remember: int = 0,
        ledger: Account | None = None,
        charge_id: str | None = None,
        source: RandomSource | None = None,
    ) -> None:
        self.window, self.max_visits = checked_window(window, max_visits, horizon)
        self.changes = changes_of_a_window(self.window, self.max_visits, horizon)
        super().__init__(
            horizon,
            budget,
            method=method,
            base=base,
            remember=remember,
            ledger=ledger,
            charge_id=charge_id,
            source=source,
        )
        self._people = self.new_people()
        self.assumptions = assumed_of_visits(self.max_visits)
        self._added = 0  # people who begin to count in the open tick

    def new_people(self) -> PeopleSeen:
        """Whose rows count, before anybody came."""
        return PeopleSeen(1, self.window, self.max_visits)

    def factor_for(self, horizon: int, share: float) -> Factor:
        factor = super().factor_for(horizon, share)
        # Noise anew in every epoch would be paid for in every epoch: where their number is not known it cannot be.
        if self.horizon is None or self._asked["method"] != "auto":
            return factor
        return window_factor(factor, self._rho * share, 1, self.changes)

    def add(self, users: Any, *, nulls: str = "error") -> None:
        """Take rows of the tick that `step` will publish next, as they come."""
        self._is_repeated(None)
        self._take(self._new(users, nulls))

    def step(
        self,
        users: Any = (),
        tick: int | None = None,
        *,
        nulls: str = "error",
        save: Callable[[Any], None] | None = None,
    ) -> int:
        """Add the people of one tick, after those of `add`, and return the private number of different ones.

        `users` is a column or an iterable of ids, one a row: texts, bytes or whole numbers. What is no id is left out,
        a null only with `nulls="skip"`. `tick` and `save` as for `Counter.step`.
        """
        if self._is_repeated(tick):
            return int(self.last)
        new = self._new(users, nulls)

        def draw() -> None:
            self._take(new)
            added, self._added = self._added - len(self._people.left(self.tick + 1)), 0
            self._draw(np.array([added], np.int64))

        return int(self._step(draw, save))

    def _possible(self, end: float) -> float:
        return max(float(end), 0.0) if self.window is None else float(end)  # without a window people only come

    def _new(self, users: Any, nulls: str) -> tuple[Integers, Integers, Again]:
        people = self._people.number(users, nulls)
        rows = people, np.zeros(len(people), np.int64)
        return (*self._people.fresh(*rows), self._people.again(*rows, self.tick + 1))

    def _take(self, new: tuple[Integers, Integers, Again]) -> None:
        people, items, again = new
        self._people.take(people, items)
        self._people.came(again, self.tick + 1)
        self._added += len(people) + len(again.items)

    def _state(self) -> State:
        header, arrays, blobs = super()._state()
        people, more, pieces = self._people.saved()
        return State({**header, "people": people, "added": self._added}, {**arrays, **more}, {**blobs, **pieces})

    def _load(self, state: State) -> None:
        super()._load(state)
        header = state.header
        self._people.load(State(header["people"], state.arrays, state.blobs), 1, self.tick)
        self._added = whole_number("added", header["added"], 0, header["people"]["number"])

    def __repr__(self) -> str:
        ticks = "unknown" if self.horizon is None else str(self.horizon)
        return (
            f"DistinctCount(tick {self.tick} of {ticks}, {self.method}; {self.guarantee.sentence()}) "
            f"[state NOT PRIVATE: {self._people.size}]"
        )
