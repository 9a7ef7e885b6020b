"""Releases that a ledger keeps: what is read back is what was published, and anything else is refused."""

import json

import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import CorruptStateError, DataError, NotPublishedError

BUDGET = dc.Budget(5.0, 1e-6)
TABLE = pa.table({"g": ["x"] * 400 + ["y"] * 300, "v": [1.0] * 350 + [3.0] * 350, "u": [*range(700)]})

MADE = {
    "top": lambda: dc.top_k(TABLE, 5, BUDGET, column="g"),
    "top of people": lambda: dc.top_k(TABLE, 5, BUDGET, column="g", user="u"),
    "top of groups": lambda: dc.top_k(TABLE, 5, BUDGET, column="v", by="g"),
    "histogram": lambda: dc.histogram(TABLE, BUDGET, column="g", universe=["x", "y", "z"]),
    "count": lambda: dc.count(TABLE, BUDGET),
    "sum by group": lambda: dc.sum(TABLE, BUDGET, column="v", range=(0.0, 4.0), by="g"),
    "quantiles": lambda: dc.quantiles(TABLE, BUDGET, [0.25, 0.75], column="v", range=(0.0, 4.0)),
    "report": lambda: dc.Report([dc.Count(), dc.Top(column="g", k=3)], BUDGET).answer(TABLE),
}

OPTIONAL = ("asked", "counted", "steps", "left_out", "by", "groups", "in_list_order")  # of a list of items


@pytest.mark.parametrize("name", MADE)
def test_what_is_kept_is_what_was_published(name):
    made = MADE[name]()
    again = type(made).from_payload(made.to_payload())
    assert again.to_payload() == made.to_payload()
    if hasattr(made, "to_json"):
        assert again.to_json() == made.to_json()
    if hasattr(made, "from_json"):
        assert json.loads(type(made).from_json(made.to_json()).to_json()) == json.loads(made.to_json())


@pytest.mark.parametrize("name", MADE)
def test_anything_else_is_refused(name):
    made = MADE[name]()
    payload = made.to_payload()
    told, end = json.JSONDecoder().raw_decode(payload.decode("latin-1"))
    behind = payload[end:]
    others = {f"without {key}": {k: told[k] for k in told if k != key} for key in told}
    others |= {f"version {more:+}": {**told, "version": told["version"] + more} for more in (-9, 1)}
    others["another kind"] = {**told, "release": "another"}
    sealed = {what: json.dumps(other).encode() + behind for what, other in others.items()}
    for what, other in {"nothing": b"", "no text": b"\xff", "half": payload[: len(payload) // 2], **sealed}.items():
        if told["release"] == "histogram" and what.removeprefix("without ") in OPTIONAL:
            continue
        with pytest.raises(CorruptStateError) as refused:
            type(made).from_payload(other)
        assert "400" not in str(refused.value)  # nothing of what was published


@pytest.mark.parametrize("name", ["top", "sum by group", "quantiles"])
def test_json_that_is_no_release_is_refused(name):
    made = MADE[name]()
    told = json.loads(made.to_json())
    for other in ("", "{}", "[]", "1", made.to_json()[:-9], json.dumps({**told, "guarantee": None})):
        with pytest.raises(DataError):
            type(made).from_json(other)


def test_what_is_not_listed_is_not_told():
    release, groups = MADE["top"](), MADE["sum by group"]()
    for asked, wrong in ((release, "nobody"), (groups, "nobody")):
        with pytest.raises(NotPublishedError, match=r"does not list"):
            asked[wrong]
    assert groups["x"].lower <= 350 + 3 * 50 <= groups["x"].upper
    assert release["x"].lower <= 400 <= release["x"].upper
