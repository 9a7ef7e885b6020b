"""A published number as a ledger stores it."""

from __future__ import annotations

import json
import math

from discreet.errors import CorruptStateError
from discreet.privacy import Estimate, Guarantee
from discreet.privacy.guarantee import Asked


def estimate_payload(estimate: Estimate) -> bytes:
    """A number with its guarantee, as bytes."""
    assert estimate.guarantee is not None
    upper = None if math.isinf(estimate.upper) else estimate.upper
    fields = {"value": estimate.value, "lower": estimate.lower, "upper": upper}
    told = {"guarantee": estimate.guarantee.to_dict(), "asked": estimate.asked, **estimate.missing()}
    return json.dumps({"release": "estimate", "version": 1, **fields, **told}, allow_nan=False).encode()


def estimate_of_payload(payload: bytes) -> Estimate:
    """The inverse of `estimate_payload`."""
    try:
        fields = json.loads(payload)
        if fields["release"] != "estimate" or fields["version"] != 1:
            raise ValueError
        upper = math.inf if fields["upper"] is None else fields["upper"]
        asked = Asked.from_dict(fields["asked"]).to_dict()
        guarantee = Guarantee.from_dict(fields["guarantee"])
        lacks = fields.get("left_out")
        left_out = None if lacks is None else Estimate(lacks["value"], lacks["lower"], lacks["upper"], guarantee)
        notes = tuple(fields.get("notes", ()))
        return Estimate(fields["value"], fields["lower"], upper, guarantee, asked=asked, left_out=left_out, notes=notes)
    except (KeyError, TypeError, ValueError):
        raise CorruptStateError("the ledger holds something other than a count under this id") from None
