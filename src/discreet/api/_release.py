"""release: a summary goes in, a private histogram with its guarantee comes out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.api._choose import choose
from discreet.central import Mechanism
from discreet.central._base import snapshot
from discreet.central.paying import check_noise, release_request
from discreet.errors import ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.privacy.ledger import Account
from discreet.releases.error_model import Noise
from discreet.releases.paying import Bill, check_payer, pay_for_release
from discreet.releases.release import Release
from discreet.summaries import Summary

__all__ = ["Prepared", "prepare", "release"]


def release(
    summary: Summary | Sequence[Summary],
    budget: Budget,
    mechanism: str | Mechanism | type[Mechanism] = "auto",
    unit: Unit | None = None,
    ledger: Account | None = None,
    *,
    charge_id: str | None = None,
    total_share: float | None = None,
    stream_length: int | None = None,
    parts_per_user: int | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """Publish a summary as a private histogram.

    Every item well above the threshold is listed with high probability; an item that did not occur is never listed
    (except by a mechanism over a known universe). `guarantee` of the result says what it hides and what it cost.

    The guarantee covers one release. A summary may be released again, and each release spends its own budget: with a
    `ledger` they are added up, without one that is up to the caller.

    Order: everything is checked, the ledger is charged durably, noise is drawn, the release is stored in the ledger,
    and then it is returned. A crash may waste budget; it never publishes anything uncharged. An error in the
    parameters charges nothing.

    Args:
        summary: What to publish, or a list of `MisraGries`, one for each of several streams. It is copied first
            (`ExactCounts` is read in one go), so other threads may go on updating it.
        budget: What the whole release may spend.
        mechanism: "auto", a name of `discreet.api.MECHANISMS`, a class of `discreet.central` or an instance of one
            (made with the same budget). "auto" picks by the kind of summary, the unit and the budget, and
            `guarantee.chosen_because` says why.
        unit: Whose presence is hidden; `Event()` by default, or the unit of a mechanism given as an instance.
        ledger: The account that pays: `Ledger(path).account(name)`.
        charge_id: Names the charge. Repeating an id returns the release stored under it, bit for bit, and charges
            nothing; by default every release has a new one. An id stands for one request: with other parameters it is
            a LedgerError. `payment` of the result says which it was: "charged", "charged before" or "replayed".
        total_share: A fraction of the budget for the stream's length: the release then has `total` and
            `everything_else`. epsilons add: the mechanism gets the rest, and the guarantee states the sum.
        stream_length: For mechanisms that use it: a public number of at least as many events as there are. See
            docs/privacy/units.md.
        parts_per_user: For merged sketches of users' sets: in how many of the parts one user may be, with a list in
            each; 1 by default, which the guarantee states. The noise grows in proportion.
        request: What else the charge id stands for, in words that are public: the name of the file, the day. It must
            not depend on the data. A repetition must say the same; the ledger keeps a digest of it.
        source: For tests and audits only. A release made with a seeded source is NOT private and says so.
    """
    parts = summary if isinstance(summary, (list, tuple)) and summary else [summary]
    for part in parts:
        if not isinstance(part, Summary):
            raise ParameterError(f"summary must be one of discreet's summaries, not {type(part).__name__}")
    summary = snapshot(summary)
    prepared = prepare(
        summary, budget, mechanism, unit, ledger, charge_id, total_share, stream_length, source, parts_per_user
    )
    asked = release_request(summary, stream_length, request, parts_per_user)
    bill = Bill(budget, prepared.description, prepared.mechanism.unit, asked)
    return pay_for_release(ledger, charge_id, bill, lambda: prepared.draw(summary, source))


def _total(summary: Summary | Sequence[Summary]) -> int:
    return summary.total if isinstance(summary, Summary) else sum(part.total for part in summary)


@dataclass(frozen=True)
class Prepared:
    """A release that was checked and not yet paid: nothing random has happened."""

    budget: Budget
    mechanism: Mechanism
    because: str
    total_share: float | None
    total_noise: Noise | None

    @property
    def description(self) -> str:
        """What the ledger writes down; a charge id stands for one description."""
        if self.total_share is None:
            return self.mechanism.name
        return f"{self.mechanism.name}, and the total for a share of {self.total_share:g}"

    def draw(self, summary: Summary | Sequence[Summary], source: RandomSource | None) -> Release:
        """Draw the noise."""
        source = system_source() if source is None else source
        histogram = self.mechanism.of_snapshot(summary, source)
        guarantee = dataclasses.replace(histogram.guarantee, chosen_because=self.because)
        if self.total_noise is None:
            return histogram._with(guarantee=guarantee)
        return histogram._with(
            guarantee=self._with_total(guarantee),
            total=_total(summary) + draw_noise(self.total_noise, source),
            total_noise=self.total_noise,
        )

    def _with_total(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of both parts together: epsilons (or rhos) add, and the total's noise needs no delta."""
        note = f"a share of {self.total_share:g} of the budget was spent on the stream's length"
        return dataclasses.replace(
            guarantee,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rho=self.budget.rho,
            assumptions=(*guarantee.assumptions, note),
        )


def prepare(
    summary: Summary | Sequence[Summary],
    budget: Budget,
    mechanism: str | Mechanism | type[Mechanism],
    unit: Unit | None,
    ledger: Account | None,
    charge_id: str | None,
    total_share: float | None,
    stream_length: int | None,
    source: RandomSource | None,
    parts_per_user: int | None = None,
) -> Prepared:
    """Check all arguments of a release, and calibrate. Whatever can be refused is refused here."""
    as_budget(budget)
    if unit is None:
        unit = mechanism.unit if isinstance(mechanism, Mechanism) else Event()
    _check_unit(unit, mechanism)
    check_payer(ledger, charge_id, source)
    if isinstance(mechanism, Mechanism) and mechanism.budget != budget:
        raise ParameterError(f"the mechanism was made for {mechanism.budget}, the release is to spend {budget}")
    rest, total_noise = budget, None
    if total_share is not None:
        lists = getattr(mechanism, "parts_per_user", None) if isinstance(mechanism, Mechanism) else parts_per_user
        rest, total_noise = split(budget, total_share, unit, lists or 1)
    choice = choose(summary, rest, mechanism, unit, stream_length, parts_per_user)
    chosen = choice.mechanism
    chosen.check(summary)
    check_noise(chosen, total_noise)
    return Prepared(budget, chosen, choice.because, total_share, total_noise)


def split(budget: Budget, share: float, unit: Unit, lists: int = 1) -> tuple[Budget, Noise]:
    """What is left for the histogram, and the noise of the stream's length for the given share.

    The length moves by at most m when a unit of m events (of all its `lists` together) comes or goes. Discrete Laplace
    noise of scale m/epsilon_n makes it epsilon_n-DP, and by composition the release costs (epsilon_n + rest, delta).
    Of a zCDP budget: discrete Gaussian noise with sigma^2 = m^2/(2 rho_n), and rhos add. The two parts never sum to
    more than the budget.
    """
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.0 < share < 1.0:
        raise ParameterError(f"total_share must be greater than 0 and less than 1, not {share!r}")
    if not isinstance(unit, (Event, User)):
        raise ParameterError(f"total_share needs the unit dc.Event() or dc.User(m), not {type(unit).__name__}")
    m = unit.limit * whole_number("parts_per_user", lists) if isinstance(unit, User) else 1
    if budget.rho is not None:
        rho = budget.rho * share
        return Budget.zcdp(_remainder(budget.rho, rho)), Noise("gaussian", _sigma(m, rho))
    assert budget.epsilon is not None
    epsilon = budget.epsilon * share
    return Budget(_remainder(budget.epsilon, epsilon), budget.delta), Noise("laplace", m / Fraction(epsilon))


def _remainder(whole: float, part: float) -> float:
    """The largest float that added to part, exactly, is not more than the whole."""
    rest = whole - part
    while Fraction(rest) + Fraction(part) > Fraction(whole):
        rest = math.nextafter(rest, 0.0)
    return rest


def _sigma(m: int, rho: float) -> Fraction:
    """A float sigma with sigma^2 >= m^2/(2 rho), exactly."""
    sigma = m / math.sqrt(2.0 * rho)
    while Fraction(sigma) ** 2 * 2 * Fraction(rho) < m * m:
        sigma = math.nextafter(sigma, math.inf)
    return Fraction(sigma)


def draw_noise(noise: Noise, source: RandomSource) -> int:
    """One draw of a noise of step 1."""
    if noise.law == "laplace":
        return source.discrete_laplace(noise.scale)
    return source.discrete_gaussian(noise.scale)


def _check_unit(unit: object, mechanism: object) -> None:
    if not isinstance(unit, Unit):
        raise ParameterError(f"unit must be one of discreet's units, such as dc.Event(), not {type(unit).__name__}")
    if isinstance(mechanism, Mechanism) and mechanism.unit != unit:
        raise ParameterError(f"the mechanism protects {mechanism.unit}, the release is to protect {unit}")
