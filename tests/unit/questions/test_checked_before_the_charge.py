"""What was counted is checked by its mechanism once, before it is paid for."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import Offset, UniverseHistogram
from discreet.central.person_pairs import PersonPairs
from discreet.central.person_vectors import PersonVectors
from discreet.errors import IncompatibleSummaryError

TABLE = pa.table({"q": ["a", "b", "a"], "u": ["x", "y", "z"]})
BUDGET = dc.Budget(1.0, 1e-6)


def _sketch():
    made = dc.MisraGries(64)
    made.update(TABLE["q"])
    return made


ASKED = {
    "rows": (Offset, lambda how: dc.top_k(TABLE["q"], 1, BUDGET, **how)),
    "people": (PersonVectors, lambda how: dc.top_k(TABLE, 1, BUDGET, column="q", user="u", **how)),
    "pairs": (PersonPairs, lambda how: dc.top_k(TABLE, 1, BUDGET, column="q", user="u", pairs=True, **how)),
    "histogram": (
        UniverseHistogram,
        lambda how: dc.histogram(TABLE, dc.Budget(1.0), column="q", universe=["a", "b"], **how),
    ),
    "summary": (Offset, lambda how: dc.release(_sketch(), BUDGET, **how)),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_the_proof_does_not_cover_is_refused_before_the_charge(asked, tmp_path, monkeypatch):
    mechanism, ask = ASKED[asked]
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("people", dc.Budget(10.0, 1e-3))
    seen = []

    def refuse(self, summary):
        seen.append(summary)
        raise IncompatibleSummaryError("another summary")

    monkeypatch.setattr(mechanism, "check", refuse)
    with pytest.raises(IncompatibleSummaryError, match="another summary"):
        ask({"ledger": ledger.account("people")})
    assert len(seen) == 1
    assert ledger.account("people").statement().charges == 0
