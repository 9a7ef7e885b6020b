"""The order of a release: checked, charged durably, drawn, stored, returned."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence

from discreet.central._base import Mechanism
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.noise.source import MAX_SCALE
from discreet.privacy import Budget, Unit
from discreet.privacy.ledger import Account, new_charge_id
from discreet.releases.error_model import Noise
from discreet.releases.release import Release
from discreet.summaries import Summary

__all__ = ["check_noise", "check_payer", "is_stored", "pay_and_draw", "release_request", "top_k_request"]


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
    return ledger.is_stored(charge_id)


def pay_and_draw(
    ledger: Account | None,
    charge_id: str | None,
    budget: Budget,
    description: str,
    unit: Unit,
    draw: Callable[[], Release],
    request: Mapping[str, object],
) -> Release:
    """Charge, draw and store a release; or return the one that is stored under the charge id.

    `request` is everything public that was asked for and that makes the release another one: parameters, names of
    files and columns. A charge id stands for one request, so that nobody gets the release of other data under it; the
    ledger keeps its digest. It must hold nothing of the data.
    """
    if ledger is None:
        return draw()
    charge_id = new_charge_id() if charge_id is None else charge_id
    payment = ledger.pay(charge_id, budget, mechanism=description, unit=unit, request=_digest(request))
    stored = payment.payload
    if stored is None:
        try:
            stored = ledger.store(charge_id, draw().to_payload())
        except BaseException as error:
            if sys.version_info >= (3, 11):
                error.add_note(f"charged, nothing published: the charge id {charge_id!r} is good for one release")
            raise
    histogram = Release.from_payload(stored)
    if payment.charged:
        histogram.payment = "charged"
    else:
        histogram.payment = "charged before" if payment.payload is None else "replayed"
    return histogram


def release_request(
    summary: Summary | Sequence[Summary],
    stream_length: int | None,
    request: str | None,
    parts_per_user: int | None = None,
) -> dict[str, object]:
    """What is public of a release of summaries beside the mechanism, which is part of the charge anyway."""
    parts = [summary] if isinstance(summary, Summary) else summary
    sizes = [[type(part).__name__, getattr(part, "capacity", None)] for part in parts]
    lengths = {"stream_length": stream_length, "parts_per_user": parts_per_user}
    return {"summary": sizes, **lengths, "request": request}


def top_k_request(k: int, nulls: str, request: str | None, **more: object) -> str:
    """What a list of k items adds: a repetition may not ask for more or fewer, either."""
    return json.dumps([k, nulls, request, {name: value for name, value in more.items() if value is not None}])


def _digest(request: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=repr).encode()).hexdigest()
