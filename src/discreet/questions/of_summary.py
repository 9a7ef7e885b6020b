"""release: a summary that somebody brings goes in, a private release with its guarantee comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.central import Mechanism
from discreet.central._base import snapshot
from discreet.errors import ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Unit
from discreet.privacy.budget import as_budget
from discreet.privacy.charge_terms import question_of
from discreet.questions.ask import current
from discreet.questions.choose import mechanism_told, prepare
from discreet.questions.question import spoken, way_of
from discreet.releases.payment import Bill, Payer
from discreet.releases.release import Release
from discreet.summaries import Summary

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account


def release(
    summary: Summary | Sequence[Summary],
    budget: Budget,
    mechanism: str | Mechanism | type[Mechanism] = "auto",
    unit: Unit | None = None,
    ledger: Account | None = None,
    *,
    charge_id: str | None = None,
    total_share: float | None = None,
    length: int | None = None,
    parts_per_user: int | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
    stream_length: int | None = None,
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
        mechanism: "auto", a name of `discreet.questions.MECHANISMS`, a class of `discreet.central` or one of its
            instances (made with the same budget). "auto" picks by the kind of summary, the unit and the budget, and
            `guarantee.chosen_because` says why.
        unit: Whose presence is hidden; `Event()` by default, or the unit of a mechanism given as an instance.
        ledger: The account that pays: `Ledger(path).account(name)`.
        charge_id: Names the charge. Repeating an id returns the release stored under it, bit for bit, and charges
            nothing; by default every release has a new one. An id stands for one request: with other parameters it is
            a LedgerError. `payment` of the result says which it was: "charged", "charged before" or "replayed".
        total_share: A fraction of the budget for the stream's length: the release then has `total` and
            `everything_else`. epsilons add: the mechanism gets the rest, and the guarantee states the sum.
        length: For mechanisms that use it: a public number of at least as many events as there are. See
            docs/privacy/units.md.
        parts_per_user: For merged sketches of users' sets: in how many of the parts one user may be, with a list in
            each; 1 by default, which the guarantee states. The noise grows in proportion.
        request: What else the charge id stands for, in words that are public: the name of the file, the day. It must
            not depend on the data. A repetition must say the same; the ledger keeps a digest of it.
        source: For tests and audits only. A release made with a seeded source is NOT private and says so.
    """
    if stream_length is not None:
        length = current("stream_length", "length", stream_length)
    parts = summary if isinstance(summary, (list, tuple)) and summary else [summary]
    for part in parts:
        if not isinstance(part, Summary):
            raise ParameterError(f"summary must be one of discreet's summaries, not {type(part).__name__}")
    summary, budget = snapshot(summary), as_budget(budget)
    payer = Payer(ledger, charge_id, source, request=request)
    prepared = prepare(summary, budget, mechanism, unit, total_share, length, parts_per_user)
    sizes = [[type(part).__name__, getattr(part, "capacity", None)] for part in parts]
    question = question_of(
        "release", summary=sizes, mechanism=mechanism_told(mechanism), unit=spoken(prepared.mechanism.unit),
        total_share=total_share, length=length, parts_per_user=parts_per_user, secret={"request": request},
    )  # fmt: skip
    way = way_of(prepared, lambda: summary)
    said = {**(way.chosen or {}), "parts_per_user": parts_per_user}
    bill = Bill(budget, way.description, way.unit, None, way.hides, question, way.costs())
    published: Release = payer.pay(bill, lambda: prepared.draw(summary, payer.source or system_source()), said)
    return published
