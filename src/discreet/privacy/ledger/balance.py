"""What the grants and charges of one account add up to: a running total of one size, whatever was charged.

A balance is a fold over the account's events, so that it can be kept beside them and made again from them: the ledger
does the first at every charge and compares the two when it is asked to `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

from discreet.errors import LedgerError
from discreet.privacy.accounting import SLACK, Charge, Tally
from discreet.privacy.budget import Budget
from discreet.privacy.rounding import rounded_down, rounded_up
from discreet.privacy.zcdp_filter import ZcdpFilter

__all__ = ["ACCOUNTINGS", "Accounting", "Amount", "Balance", "Limit", "Statement"]

Accounting = Literal["tight", "basic", "zcdp"]
ACCOUNTINGS: tuple[Accounting, ...] = ("tight", "basic", "zcdp")
"""How the charges of an account are composed: tightly, for budgets that nobody chose by looking at earlier releases; or
for any budgets: epsilons and deltas add up, or rhos and deltas do."""

# A thousandth: how much more epsilon another way to say it must leave, to be preferred to plain sums.
_NOTABLY = 1.001


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Limit:
    """A grant: how much, whether it is for budgets that may be chosen by looking at earlier releases, and how.

    With a `filter` (and then it is adaptive), rhos and deltas add up under its totals; without, an adaptive account
    adds up epsilons and deltas.
    """

    budget: Budget
    adaptive: bool = False
    filter: ZcdpFilter | None = None

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
        }

    @classmethod
    def from_dict(cls, budget: dict[str, Any], values: dict[str, Any]) -> Limit:
        """The grant of this budget, with what `to_dict` told."""
        totals = values.get("filter")
        return cls(Budget.from_dict(budget), values.get("adaptive", False), totals and ZcdpFilter.from_dict(totals))


@dataclass(frozen=True, slots=True)
class Statement:
    """Where an account stands: its latest grant, what its charges cost together, a charge that still fits."""

    account: str
    limit: Limit
    spent: Amount
    remaining: Amount
    charges: int

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
            **({} if self.limit.filter is None else {"filter": self.limit.filter.to_dict()}),
            **{
                name: {"epsilon": amount.epsilon, "delta": amount.delta, "rho": amount.rho}
                for name, amount in amounts.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Balance:
    """One account: its latest grant, the unit of its charges, and their tally."""

    limit: Limit | None = None
    unit: dict[str, Any] | None = None
    charges: int = 0
    last: Budget | None = None
    tally: Tally = field(default_factory=Tally)

    def after(self, kind: str, details: dict[str, Any]) -> Balance:
        """With one more grant or charge. A charge under a filter adds what its event says that it cost."""
        if kind == "grant":
            return replace(self, limit=Limit.from_dict(details["budget"], details))
        budget, cost = Budget.from_dict(details["budget"]), details.get("cost")
        return replace(
            self,
            unit=details["unit"] if self.unit is None else self.unit,
            charges=self.charges + 1,
            last=budget,
            tally=self.tally.plus(Charge.of(budget) if cost is None else Charge(None, cost["delta"], cost["rho"])),
        )

    @property
    def granted(self) -> Limit:
        """The latest grant."""
        if self.limit is None:
            raise LedgerError("the account was never granted a budget")
        return self.limit

    def pays(self, charge: Charge) -> bool:
        """Whether the grant pays one more charge, as `Limit.charge` made it."""
        return self.granted.pays(self.tally.plus(charge))

    def pays_by_sums(self, charge: Charge) -> bool:
        """Whether plain sums show it. If not, tight composition, which is slow to load, may say that it is paid."""
        limit, tally = self.granted, self.tally.plus(charge)
        if limit.filter is not None:
            return limit.filter.pays(tally)
        return tally.fits_by_sums(limit.budget, adaptive=limit.adaptive)

    @property
    def is_sums_alone(self) -> bool:
        """Whether sums decide, so that nothing else has to be asked where they do not pay."""
        return self.granted.accounting != "tight"

    def spent(self) -> Amount:
        """What all charges cost together: see `Account.spent`."""
        limit, tally = self.granted, self.tally
        if limit.filter is not None:
            return Amount(None, rounded_up(tally.total_delta), rounded_up(tally.total_rho))
        if limit.budget.rho is not None:
            return Amount(None, 0.0, rounded_up(tally.total_rho))
        tight = tally.cost(limit.budget.delta, adaptive=limit.adaptive)
        if not tally.total_rho - tally.rho and rounded_up(tally.epsilon) <= _NOTABLY * tight:
            return Amount(rounded_up(tally.epsilon), rounded_up(tally.delta))
        return Amount(tight, limit.budget.delta)

    def remaining(self, delta: float | None = None) -> Amount:
        """A charge that still fits: see `Account.remaining`."""
        budget, totals = self.granted.budget, self.granted.filter
        if totals is not None:
            rho, unspent = totals.left(self.tally)
            delta = unspent if delta is None else Budget(1.0, delta).delta
            fits = delta <= unspent
            return Amount(totals.largest_epsilon(rho) if fits else 0.0, delta, rho if fits else 0.0, "down")
        if budget.rho is not None:
            rho = rounded_down(Fraction(budget.rho) - self.tally.total_rho)
            return Amount(None, 0.0, rho, "down")
        if delta is not None:
            return self._largest(Budget(1.0, delta).delta)
        unspent = rounded_down(Fraction(budget.delta) - self.tally.total_delta)
        everything = self._largest(unspent)
        if self.last is not None and self.last.delta < unspent:
            usual = self._largest(self.last.delta)
            assert usual.epsilon is not None
            assert everything.epsilon is not None
            if usual.epsilon > _NOTABLY * everything.epsilon:
                return usual
        return everything

    def statement(self, account: str) -> Statement:
        """All of these, for the account of this name."""
        return Statement(account, self.granted, self.spent(), self.remaining(), self.charges)

    def _largest(self, delta: float) -> Amount:
        """The charge of this delta with the largest epsilon that fits, up to a thousandth of the grant."""
        limit = self.granted
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

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form; sums as exact fractions."""
        tally = {
            one.name: str(value) if isinstance(value := getattr(self.tally, one.name), Fraction) else value
            for one in fields(Tally)
        }
        return {
            "granted": None if self.limit is None else self.limit.budget.to_dict(),
            **({} if self.limit is None else self.limit.to_dict()),
            "unit": self.unit,
            "charges": self.charges,
            "last": None if self.last is None else self.last.to_dict(),
            "tally": {**tally, "epsilons": [list(pair) for pair in self.tally.epsilons]},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Balance:
        """What `to_dict` described."""
        tally: dict[str, Any] = {
            name: Fraction(value) if isinstance(value, str) else value for name, value in values["tally"].items()
        }
        tally["epsilons"] = tuple((epsilon, times) for epsilon, times in tally["epsilons"])
        limit = None if values["granted"] is None else Limit.from_dict(values["granted"], values)
        last = None if values["last"] is None else Budget.from_dict(values["last"])
        return cls(limit, values["unit"], values["charges"], last, Tally(**tally))
