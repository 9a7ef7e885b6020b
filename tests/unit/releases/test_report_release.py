"""What a report publishes, as it is read and as it is kept."""

from __future__ import annotations

import html
import json
import re

import pytest

import discreet as dc
from discreet.errors import CorruptStateError
from discreet.releases.formats import notes_of
from discreet.releases.payment import answer_of
from discreet.releases.report_release import ReportRelease

PEOPLE = {
    "who": [f"w{n % 300}" for n in range(1200)],
    "page": [f"<p{n % 3}>" for n in range(1200)],
    "n": [5.0] * 1200,
    "day": [1_790_812_800 + 86_400 * (n // 300) for n in range(1200)],
}
ASKED = {
    "Pages <b>": dc.Top(column="page"),
    "Sum": dc.Sum(column="n", range=(0, 9)),
    "By page": dc.Sum(column="n", range=(0, 9), by="page"),
    "People": dc.Count(),
    "Days": dc.Count(every="1d", time="day"),
    "Middle": dc.Quantiles(column="n", range=(0, 9)),
}


@pytest.fixture(scope="module")
def report():
    return dc.Report(ASKED, dc.Budget(30.0, 1e-6), user="who", title="A & <b>").answer(PEOPLE)


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.mark.parametrize("way", ["to_table", "to_html", "_repr_html_"])
def test_what_is_missing_in_an_answer_is_said_wherever_people_read_it(report, way):
    told = words(getattr(report, way)())
    notes = [note for part in report.parts for note in notes_of(part.answer)]
    assert len(notes) >= 5
    for note in notes:
        assert " ".join(note.split()) in told


def test_a_table_says_the_promise_once(report):
    told = " ".join(report.to_table().split())
    assert told.count("Differentially private") == 1
    assert told.endswith("All intervals hold together with 95 %.")


def test_titles_and_items_are_text_on_the_page(report):
    for page in (report.to_html(), report._repr_html_()):
        assert "Pages <b>" not in page
        assert "A & <b>" not in page
        assert "<p0>" not in page


@pytest.mark.parametrize("title", [t for t in ASKED if t != "Middle"])
def test_intervals_on_the_page_are_those_of_one_question(report, title):
    """So that all of them hold together: not those of an answer by itself."""
    assert report.each_confidence == pytest.approx(1 - 0.05 / 6)
    told = {each["title"]: each["answer"] for each in report.to_dict()["questions"]}
    assert told[title]["confidence"] == pytest.approx(report.each_confidence)


def test_the_page_says_how_probably_all_of_its_intervals_hold_together(report):
    """The confidence of the report, and not the larger one that the intervals of one question have."""
    assert report.confidence == 0.95 < report.each_confidence
    told = words(report.to_html())
    assert "All intervals on this page hold together with a probability of 95 %." in told
    assert f"with {100 * report.each_confidence:.4g} %, all of the page with 95 %" in told


@pytest.mark.parametrize("wrong", [{"version": 2}, {"release": "groups"}, {"parts": None}, {"guarantee": {}}])
def test_a_payload_of_anything_else_is_refused(report, wrong):
    payload = json.loads(report.to_payload())
    assert answer_of(report.to_payload()).to_dict()["questions"] == report.to_dict()["questions"]
    with pytest.raises(CorruptStateError, match="something other than a report"):
        ReportRelease.from_payload(json.dumps({**payload, **wrong}).encode())
