"""What was paid for before is had again by the same request: digests and descriptions of requests stay as they were."""

import shutil
from pathlib import Path

import pytest
from tests.golden import make_requests as made

import discreet as dc

GOLDEN = Path(__file__).with_name("requests-v2.db")


@pytest.fixture
def ledger(tmp_path):
    return dc.Ledger(shutil.copy(GOLDEN, tmp_path / "budgets.sqlite"))


def stored(ledger, account, charge_id):
    (event,) = (e for e in ledger.history(account) if (e.kind, e.charge_id) == ("release", charge_id))
    return ledger.release_payload(event)


@pytest.mark.parametrize(("account", "charge_id"), [(a, c) for a, asked in made.REQUESTS.items() for c in asked])
def test_a_release_that_was_paid_for_is_had_again(ledger, account, charge_id):
    release = made.REQUESTS[account][charge_id](ledger=ledger.account(account), charge_id=charge_id)
    assert release.payment == "replayed"
    kept = dc.Release.from_payload(stored(ledger, account, charge_id)).head(len(release))  # of top_k the first k
    assert release.to_payload() == kept.to_payload()


def test_a_message_that_was_paid_for_is_had_again(ledger):
    for protocol in made.protocols():
        party, before = protocol.party(7), len(ledger.history("parties"))
        message = party.encode([0, 1, 1, 3], ledger=ledger.account("parties"))
        assert (party.payment, message) == ("replayed", stored(ledger, "parties", party.charge_id))
        assert len(ledger.history("parties")) == before
