"""What the grants and charges of one account add up to: running totals that stay small, whatever was charged.

A balance is a fold over the account's events, so that it can be kept beside them and made again from them: the ledger
does the first at every charge and compares the two when it is asked to `verify`.

A charge is about a period: all of time, or the spans (days) of an account of person-days. Two data sets that differ in
one person's rows of one day look the same to all charges that are not about the day. So charges are composed for each
day on its own, and a charge is paid if every day that it is about can pay it (docs/privacy/person-days.md). Days with
the same charges are kept as one piece: a job that spends the same every night has one, however many years it runs.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

from discreet._data_class import dataclass, field, replace
from discreet.errors import LedgerError
from discreet.privacy.accounting import SLACK, Charge, Tally
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import unit_from_dict
from discreet.privacy.rounding import rounded_down, rounded_up
from discreet.privacy.spans import ALWAYS, Calendar, Period
from discreet.privacy.zcdp_filter import ZcdpFilter

Accounting = Literal["tight", "basic", "zcdp"]
ACCOUNTINGS: tuple[Accounting, ...] = ("tight", "basic", "zcdp")
"""How the charges of an account are composed: tightly, for budgets that nobody chose by looking at earlier releases; or
for any budgets: epsilons and deltas add up, or rhos and deltas do."""

# Of a grant: its end, its renewal, who and why; where the account was moved to, and in which ledger it was begun.
_NOTES = ("until", "renews", "approver", "reason", "moved", "origin")

# A thousandth: how much more epsilon another way to say it must leave, to be preferred to plain sums.
_NOTABLY = 1.001


@dataclass(frozen=True)
class Amount:
    """An amount of privacy. Unlike a Budget it may be zero.

    It may be said in both scales: what remains of an account of rhos is a rho, or one epsilon that costs as much.

    As text it has six digits, rounded to the safe side: what was spent up, what remains down.
    """

    epsilon: float | None
    delta: float = 0.0
    rho: float | None = None
    rounded: Literal["up", "down"] = field(default="up", compare=False)

    def __str__(self) -> str:
        told = [] if self.epsilon is None else [f"epsilon={self._digits(self.epsilon)}"]
        told += [] if self.rho is None else [f"rho={self._digits(self.rho)} (zCDP)"]
        return " or ".join(told) + (f", delta={self._digits(self.delta)}" if self.delta else "")

    def _digits(self, value: float) -> str:
        # What accounting forgives is forgiven here: 0.1 + 0.2 spent is 0.3, not 0.300001.
        slack = Decimal(SLACK.numerator) / Decimal(SLACK.denominator)
        slack = -slack if self.rounded == "up" else slack
        six = Context(prec=6, rounding=ROUND_CEILING if self.rounded == "up" else ROUND_FLOOR)
        return f"{float(six.create_decimal(Decimal(value) * (1 + slack))):g}" if math.isfinite(value) else f"{value:g}"


@dataclass(frozen=True)
class Limit:
    """A grant: how much, whether it is for budgets that may be chosen by looking at earlier releases, and how.

    With a `filter` (and then it is adaptive), rhos and deltas add up under its totals; without, an adaptive account
    adds up epsilons and deltas.

    Attributes:
        until: The last day, in UTC, on which it can be charged; None: there is no end.
        renews: After which time a charge no longer counts, because the people are others by then; None: it counts for
            ever.
        approver: Who granted it.
        reason: Why.
        moved: Where the account is kept now: this one takes nothing more.
        origin: The identity of the ledger that it was moved from, the first of them.
    """

    budget: Budget
    adaptive: bool = False
    filter: ZcdpFilter | None = None
    until: str | None = None
    renews: str | None = None
    approver: str | None = None
    reason: str | None = None
    moved: str | None = None
    origin: str | None = None

    def __str__(self) -> str:
        return f"{self.budget}{f' ({self.how})' if self.adaptive else ''}"

    @property
    def accounting(self) -> Accounting:
        """How charges are composed. Rhos under a grant of rho just add up."""
        if self.filter is not None or self.budget.rho is not None:
            return "zcdp"
        return "basic" if self.adaptive else "tight"

    @property
    def how(self) -> str:
        """What an adaptive account may spend, in the scale in which it is added up."""
        if self.filter is None:
            return "adaptive"
        return f"adaptive, at most {Amount(None, self.filter.delta, self.filter.rho, 'down')}"

    def charge(self, budget: Budget, cost: Charge | None = None) -> Charge:
        """What a charge adds to the tally: `cost` is the rho and delta that a mechanism says it has, if it does."""
        charge = Charge.of(budget)
        return charge if self.filter is None else self.filter.cost(charge if cost is None else cost)

    def pays(self, tally: Tally) -> bool:
        """Whether the charges of a tally stay within it together."""
        return tally.fits(self.budget, adaptive=self.adaptive) if self.filter is None else self.filter.pays(tally)

    def to_dict(self) -> dict[str, Any]:
        """What a grant's event has beside the budget."""
        return {
            **({"adaptive": True} if self.adaptive else {}),
            **({} if self.filter is None else {"filter": self.filter.to_dict()}),
            **{name: value for name in _NOTES if (value := getattr(self, name)) is not None},
        }

    @classmethod
    def from_dict(cls, budget: dict[str, Any], values: dict[str, Any]) -> Limit:
        """The grant of this budget, with what `to_dict` told."""
        totals = values.get("filter")
        notes = {name: values.get(name) for name in _NOTES}
        totals = totals and ZcdpFilter.from_dict(totals)
        return cls(Budget.from_dict(budget), values.get("adaptive", False), totals, **notes)


@dataclass(frozen=True)
class Statement:
    """Where an account stands: its latest grant, what its charges cost together, a charge that still fits.

    Of an account of person-days `about` names the days that most was spent about, or the day that was asked for; the
    amounts are theirs.
    """

    account: str
    limit: Limit
    spent: Amount
    remaining: Amount
    charges: int
    unit: dict[str, Any] | None = None
    about: str = ""

    @property
    def granted(self) -> Budget:
        """The latest grant."""
        return self.limit.budget

    @property
    def adaptive(self) -> bool:
        """Whether budgets may be chosen by looking at earlier releases."""
        return self.limit.adaptive

    @property
    def accounting(self) -> Accounting:
        """How charges are composed."""
        return self.limit.accounting

    @property
    def terms(self) -> str:
        """The same with all else that was granted, in a few words."""
        limit = self.limit
        told = [limit.how] if limit.adaptive else []
        told += [f"until {limit.until}"] if limit.until else []
        told += [f"moved to {limit.moved}"] if limit.moved else []
        told += [f"renews after {limit.renews}"] if limit.renews else []
        return limit.accounting + (f" ({', '.join(told)})" if told else "")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        amounts: dict[str, Budget | Amount] = {
            "granted": self.granted,
            "spent": self.spent,
            "remaining": self.remaining,
        }
        return {
            "account": self.account,
            "charges": self.charges,
            "adaptive": self.adaptive,
            "accounting": self.accounting,
            **{name: value for name, value in self.limit.to_dict().items() if name != "adaptive"},
            **({} if self.unit is None else {"unit": self.unit}),
            **({"about": self.about} if self.about else {}),
            **{
                name: {"epsilon": amount.epsilon, "delta": amount.delta, "rho": amount.rho}
                for name, amount in amounts.items()
            },
        }


@dataclass(frozen=True)
class Standing:
    """The charges about some spans, which are the same for each of them, against the grant."""

    limit: Limit
    tally: Tally
    period: Period

    def pays(self, charge: Charge) -> bool:
        """Whether the grant pays one more charge, as `Limit.charge` made it."""
        return self.limit.pays(self.tally.plus(charge))

    def pays_by_sums(self, charge: Charge) -> bool:
        """Whether plain sums show it. If not, tight composition, which is slow to load, may say that it is paid."""
        limit, tally = self.limit, self.tally.plus(charge)
        if limit.filter is not None:
            return limit.filter.pays(tally)
        return tally.fits_by_sums(limit.budget, adaptive=limit.adaptive)

    @property
    def unspent_delta(self) -> float:
        """The delta that charges may still have."""
        if self.limit.filter is not None:
            return self.limit.filter.left(self.tally)[1]
        return rounded_down(Fraction(self.limit.budget.delta) - self.tally.total_delta)

    def spent(self) -> Amount:
        """What all charges cost together: see `Account.spent`."""
        limit, tally = self.limit, self.tally
        if limit.filter is not None:
            return Amount(None, rounded_up(tally.total_delta), rounded_up(tally.total_rho))
        if limit.budget.rho is not None:
            return Amount(None, 0.0, rounded_up(tally.total_rho))
        tight = tally.cost(limit.budget.delta, adaptive=limit.adaptive)
        if not tally.total_rho - tally.rho and rounded_up(tally.epsilon) <= _NOTABLY * tight:
            return Amount(rounded_up(tally.epsilon), rounded_up(tally.delta))
        return Amount(tight, limit.budget.delta)

    def remaining(self, delta: float) -> Amount:
        """A charge of this delta that still fits."""
        budget, totals = self.limit.budget, self.limit.filter
        if totals is not None:
            rho, unspent = totals.left(self.tally)
            fits = delta <= unspent
            return Amount(totals.largest_epsilon(rho) if fits else 0.0, delta, rho if fits else 0.0, "down")
        if budget.rho is not None:
            return Amount(None, 0.0, rounded_down(Fraction(budget.rho) - self.tally.total_rho), "down")
        return self._largest(delta)

    def _largest(self, delta: float) -> Amount:
        """The charge of this delta with the largest epsilon that fits, up to a thousandth of the grant."""
        limit = self.limit
        most = limit.budget.epsilon
        assert most is not None

        def seems_to_fit(epsilon: float) -> bool:
            return self.tally.fits(limit.budget, adaptive=limit.adaptive, more=Charge(epsilon, delta))

        # What plain addition leaves is exact and nearly always the answer; bisect only where composition gives more.
        low = rounded_down(Fraction(most) - self.tally.epsilon)
        if not (low and self.pays(Charge(low, delta))):
            low = 0.0
        high, tolerance, sums = most, 1e-3 * most, low
        if low < high and not seems_to_fit(low + tolerance):
            high = low
        while high - low > tolerance:
            middle = (low + high) / 2
            low, high = (middle, high) if seems_to_fit(middle) else (low, middle)
        while low > sums and not self.pays(Charge(low, delta)):  # what seemed to fit was computed on another grid
            low = max(sums, low - tolerance)
        return Amount(low, delta, None, "down")


@dataclass(frozen=True)
class Balance:
    """One account: its latest grant, its unit, and what was charged about which time.

    `pieces` are disjoint and in order. Neighbours differ, and of what is in none of them nothing was charged.
    """

    limit: Limit | None = None
    unit: dict[str, Any] | None = None
    charges: int = 0
    last: Budget | None = None
    pieces: tuple[tuple[Period, Tally], ...] = ()

    def after(self, kind: str, details: dict[str, Any]) -> Balance:
        """With one more grant or charge. A charge under a filter adds what its event says that it cost."""
        if kind == "grant":
            limit = Limit.from_dict(details["budget"], details)
            return replace(self, limit=limit, unit=details.get("unit", self.unit))
        budget, cost = Budget.from_dict(details["budget"]), details.get("cost")
        charge = Charge.of(budget) if cost is None else Charge(None, cost["delta"], cost["rho"])
        period = details.get("period", details.get("counts"))
        return replace(
            self,
            unit=details["unit"] if self.unit is None else self.unit,
            charges=self.charges + 1,
            last=budget,
            pieces=_plus(self.pieces, charge, ALWAYS if period is None else Period.from_dict(period)),
        )

    @property
    def granted(self) -> Limit:
        """The latest grant."""
        if self.limit is None:
            raise LedgerError("the account has no budget; grant it one first")
        return self.limit

    def check_open(self) -> None:
        """Refuse to add to an account that was moved."""
        if self.limit is not None and self.limit.moved is not None:
            raise LedgerError(f"the account was moved to {self.limit.moved}; use it there")

    @property
    def spans(self) -> Calendar:
        """What its periods are made of; days, where charges are forgotten after a time."""
        found = None if self.unit is None else unit_from_dict(self.unit).spans
        return Calendar("1d") if found is None else found

    def about(self, period: Period) -> list[Standing]:
        """How the account stands about the spans of a period: once for each tally that one of them has."""
        found: dict[Tally, Period] = {}
        begin = period.first
        for piece, tally in self.pieces:
            if piece.first >= period.after or piece.after <= begin:
                continue
            if begin < piece.first:
                found.setdefault(Tally(), Period(begin, piece.first))
            found.setdefault(tally, Period(max(begin, piece.first), min(piece.after, period.after)))
            begin = piece.after
        if begin < period.after:
            found.setdefault(Tally(), Period(begin, period.after))
        return [Standing(self.granted, tally, piece) for tally, piece in found.items()]

    def fullest(self, period: Period) -> tuple[Amount, Standing]:
        """The largest sum over the spans of a period, and of which of them it is."""
        each = [(standing.spent(), standing) for standing in self.about(period)]
        return max(each, key=lambda one: (one[0].epsilon or 0.0, one[0].rho or 0.0, one[0].delta))

    def remaining(self, period: Period, delta: float | None = None) -> Amount:
        """A charge about the whole period that still fits: see `Account.remaining`."""
        each = self.about(period)

        def least(delta: float) -> Amount:
            left = [standing.remaining(delta) for standing in each]
            return min(left, key=lambda amount: (amount.epsilon or 0.0, amount.rho or 0.0))

        if delta is not None:
            return least(Budget(1.0, delta).delta)
        unspent = min(standing.unspent_delta for standing in each)
        everything = least(unspent)
        if self.last is not None and self.last.delta < unspent:
            usual = least(self.last.delta)
            if (usual.epsilon or 0.0) > _NOTABLY * (everything.epsilon or 0.0):
                return usual
        return everything

    def statement(self, account: str, period: Period) -> Statement:
        """All of these, for the account of this name, about a period."""
        spent, fullest = self.fullest(period)
        charges = self.charges if period == ALWAYS else fullest.tally.charges
        about = self.spans.told(fullest.period) if self.charges or period != ALWAYS else ""
        return Statement(account, self.granted, spent, self.remaining(period), charges, self.unit, about)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form; sums as exact fractions."""
        pieces = [(piece.first, piece.after, tally.to_dict()) for piece, tally in self.pieces]
        plain = not pieces or [piece for piece, _ in self.pieces] == [ALWAYS]
        return {
            "granted": None if self.limit is None else self.limit.budget.to_dict(),
            **({} if self.limit is None else self.limit.to_dict()),
            "unit": self.unit,
            "charges": self.charges,
            "last": None if self.last is None else self.last.to_dict(),
            **({"tally": pieces[0][2] if pieces else Tally().to_dict()} if plain else {"pieces": pieces}),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Balance:
        """What `to_dict` described."""
        pieces = values.get("pieces") or [(ALWAYS.first, ALWAYS.after, values["tally"])]
        tallies = [(Period(first, after), Tally.from_dict(tally)) for first, after, tally in pieces]
        limit = None if values["granted"] is None else Limit.from_dict(values["granted"], values)
        last = None if values["last"] is None else Budget.from_dict(values["last"])
        known = tuple(each for each in tallies if each[1] != Tally())
        return cls(limit, values["unit"], values["charges"], last, known)


def _plus(pieces: tuple[tuple[Period, Tally], ...], charge: Charge, period: Period) -> tuple[tuple[Period, Tally], ...]:
    """The pieces with one more charge about the spans of a period."""
    edges = sorted({edge for piece in (period, *(piece for piece, _ in pieces)) for edge in (piece.first, piece.after)})
    known = {piece.first: (piece.after, tally) for piece, tally in pieces}
    made: list[tuple[Period, Tally]] = []
    after, tally = "", Tally()
    for first, next_edge in pairwise(edges):
        if first in known:
            after, tally = known[first]
        about = tally if first < after else Tally()
        about = about.plus(charge) if period.first <= first < period.after else about
        if made and made[-1] == (Period(made[-1][0].first, first), about):
            made[-1] = Period(made[-1][0].first, next_edge), about
        elif about != Tally():
            made.append((Period(first, next_edge), about))
    return tuple(made)
