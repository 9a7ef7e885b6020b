"""The order of a release: checked, charged durably, drawn, stored, returned."""

from __future__ import annotations

from collections.abc import Callable

from discreet.central._base import Mechanism
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.noise.source import MAX_SCALE
from discreet.privacy import Budget, Unit
from discreet.privacy.error_model import Noise
from discreet.privacy.histogram import Histogram
from discreet.privacy.ledger import Account, new_charge_id

__all__ = ["check_noise", "check_payer", "is_stored", "pay_and_draw"]


def check_payer(ledger: object, charge_id: object, source: object) -> None:
    """Refuse what no ledger could record."""
    if ledger is not None and not isinstance(ledger, Account):
        raise ParameterError(f"ledger must be an account, Ledger(path).account(name), not {type(ledger).__name__}")
    if charge_id is not None and ledger is None:
        raise ParameterError("charge_id names a charge in a ledger; give the ledger's account, too")
    if source is not None and not isinstance(source, RandomSource):
        raise ParameterError(f"source must be a random source of discreet.noise, not {type(source).__name__}")
    if isinstance(source, RandomSource) and source.seeded and ledger is not None:
        raise ParameterError("a ledger keeps private releases; one from a seeded source is not private")


def check_noise(mechanism: Mechanism, total_noise: Noise | None = None) -> None:
    """Calibrate now, so that nothing can fail for its parameters once the ledger is charged."""
    model = mechanism.error_model
    _ = mechanism.threshold
    for noise in (model.noise, model.shared, model.offset_noise, total_noise):
        if noise is not None and noise.scale > MAX_SCALE:
            raise ParameterError(f"the budget is too small: the noise would have a scale above 2**50, {mechanism.name}")


def is_stored(ledger: Account | None, charge_id: str | None) -> bool:
    """Whether a release was stored under this id, so that `pay_and_draw` would return it and draw nothing."""
    if ledger is None or charge_id is None:
        return False
    return any(event.kind == "release" and event.charge_id == charge_id for event in ledger.history())


def pay_and_draw(
    ledger: Account | None,
    charge_id: str | None,
    budget: Budget,
    description: str,
    unit: Unit,
    draw: Callable[[], Histogram],
) -> Histogram:
    """Charge, draw and store a release; or return the one that is stored under the charge id."""
    if ledger is None:
        return draw()
    charge_id = new_charge_id() if charge_id is None else charge_id
    stored = ledger.begin(charge_id, budget, mechanism=description, unit=unit)
    if stored is None:
        stored = ledger.store(charge_id, draw().to_payload())
    return Histogram.from_payload(stored)
