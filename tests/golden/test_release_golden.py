"""Releases that were stored or written once stay readable. `make_releases.py` made them."""

import json
from pathlib import Path

import pytest

import discreet as dc

HERE = Path(__file__).with_name("releases")


@pytest.mark.parametrize("path", sorted(HERE.glob("*.payload")), ids=lambda path: path.stem)
def test_a_stored_payload_is_read_and_written_as_it_was(path):
    payload = path.read_bytes()
    release = dc.Release.from_payload(payload)
    assert release.to_payload() == payload
    assert release.asked is not None
    assert dc.Release.from_json(release.to_json()).to_payload() == payload


@pytest.mark.parametrize("path", sorted(HERE.glob("*.json")), ids=lambda path: path.stem)
def test_json_is_read_and_written_as_it_was(path):
    text = path.read_text(encoding="utf-8")
    release = dc.Release.from_json(text)
    assert release.to_json() == text
    assert release.explain()
    assert release._repr_html_()
    assert [row.count for row in release] == [row["count"] for row in json.loads(text)["items"]]
