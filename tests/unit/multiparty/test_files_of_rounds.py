"""Messages and states in files: what is on disk before what, what is left as it was, and what every answer has."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

import pytest

import discreet as dc
from discreet.errors import DiscreetError, WordError
from discreet.multiparty import (
    GridHierarchy,
    HadamardResponse,
    HierarchicalStream,
    Hierarchy,
    IndependentSketches,
    Stream,
    post,
)
from discreet.multiparty.post import Questions, hear, last_message, next_message, protocol_of, round_of
from discreet.noise import seeded_source
from discreet.published import MergedMisraGriesStream

PURE = dc.Budget(4.0)
STREAM = Stream("s", PURE, 8, epoch_steps=1, horizon=16)
ROUND = HadamardResponse("r", PURE, 8)


class CrashError(Exception):
    pass


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("steps", dc.Budget(4.0))
    return ledger.account("steps")


def charges(account):
    return [event for event in account.history() if event.kind == "charge"]


# ---- a party ---------------------------------------------------------------------------------------------------------


def test_the_state_is_on_disk_before_the_charge_counts_as_used(tmp_path, account, monkeypatch):
    """After a crash in between the same call goes on, and nothing more is charged."""
    state, kept = tmp_path / "0.state", []

    def crash(self, charge_id, token):
        kept.append(state.exists())
        raise CrashError

    with monkeypatch.context() as broken:
        broken.setattr(type(account), "store", crash)
        with pytest.raises(CrashError):
            next_message(STREAM, 0, state, lambda: [1], ledger=account)
    assert kept == [True]
    message, first, last = next_message(STREAM, 0, state, lambda: [1], ledger=account)
    assert (first, last) == (1, 1)
    assert last_message(STREAM, 0, state, ledger=account) == message
    assert len(charges(account)) == 1


def test_a_party_whose_state_is_gone_does_not_begin_again(tmp_path, account):
    state = tmp_path / "0.state"
    next_message(STREAM, 0, state, lambda: [1], ledger=account)
    state.unlink()
    with pytest.raises(dc.ParameterError, match="already started the stream; continue from its state"):
        next_message(STREAM, 0, state, lambda: [1], ledger=account)
    assert len(charges(account)) == 1
    assert not state.exists()


def test_the_state_has_the_message_before_it_is_handed_out(tmp_path, monkeypatch):
    """A crash while it is written leaves the state of before, and no message."""
    state = tmp_path / "0.state"
    next_message(STREAM, 0, state, lambda: [1])
    before = state.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(post.StateFile, "replace", lambda self, data: (_ for _ in ()).throw(CrashError))
        with pytest.raises(CrashError):
            next_message(STREAM, 0, state, lambda: [2])
    assert state.read_bytes() == before
    message, first, _ = next_message(STREAM, 0, state, lambda: [2])
    assert first == 2
    assert last_message(STREAM, 0, state) == message
    assert STREAM.restore_party(state.read_bytes()).last_message == message


def test_items_are_read_while_the_state_is_locked_and_charged_after_that(tmp_path, account):
    """Two at once would read the same lines; and what cannot be read costs nothing."""
    state, seen = tmp_path / "0.state", []

    def read():
        seen.append(len(charges(account)))
        with pytest.raises(DiscreetError):
            next_message(STREAM, 0, state, lambda: [5])
        return [1]

    @contextmanager
    def undisturbed():
        seen.append("held off")
        yield
        seen.append("let go")

    next_message(STREAM, 0, state, read, ledger=account, undisturbed=undisturbed)
    assert seen == [0, "held off", "let go"]
    assert STREAM.restore_party(state.read_bytes(), ledger=account).time == 1


@pytest.mark.parametrize("ask", [next_message, last_message])
def test_a_state_of_another_party_is_left_as_it_was(tmp_path, ask):
    state = tmp_path / "0.state"
    next_message(STREAM, 0, state, lambda: [1])
    before = state.read_bytes()
    more = (lambda: [1],) if ask is next_message else ()
    with pytest.raises(dc.ParameterError, match="belongs to party 0; give that number, or the state of this party"):
        ask(STREAM, 1, state, *more)
    assert state.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_states_are_for_their_owner_alone(tmp_path):
    """That of a party holds raw items; that of an aggregator of a shuffled round which reports wait."""
    mine, heard = tmp_path / "0.state", tmp_path / "heard.state"
    next_message(STREAM, 0, mine, lambda: [1])
    hear(ROUND, [], heard)
    for state in (mine, heard):
        assert state.stat().st_mode & 0o077 == 0


# ---- an aggregator ---------------------------------------------------------------------------------------------------


def sent(folder, protocol, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        (folder / f"{number:03}").write_bytes(protocol.party(number, source=seeded_source(number)).encode([number % 3]))
    return folder


def test_what_was_heard_is_in_the_state_and_heard_once(tmp_path):
    folder, state = sent(tmp_path / "in", ROUND, range(4)), tmp_path / "state"
    aggregator, heard = hear(ROUND, [folder], state)
    assert (aggregator.parties, heard["accepted"], heard["rejected"]) == (4, 4, [])
    sent(folder, ROUND, [9])
    aggregator, heard = hear(ROUND, [folder], state)
    assert (aggregator.parties, heard["accepted"], heard["repeated"]) == (5, 1, 0)
    assert [row["reason"] for row in heard["rejected"]] == ["duplicate"] * 4
    assert ROUND.restore(state.read_bytes()).to_bytes() == aggregator.to_bytes()
    with pytest.raises(dc.DiscreetError):
        hear(HadamardResponse("other", PURE, 8), [folder], state)
    assert ROUND.restore(state.read_bytes()).parties == 5


def test_packets_of_a_stream_that_come_again_are_repeated(tmp_path):
    file, state = tmp_path / "packet", tmp_path / "state"
    file.write_bytes(STREAM.party(1).feed([1]))
    assert hear(STREAM, [file, file], state)[1] == {"accepted": 1, "repeated": 1, "rejected": []}
    assert hear(STREAM, [file], state)[1] == {"accepted": 0, "repeated": 1, "rejected": []}


def test_files_that_are_no_messages_are_named_with_a_reason(tmp_path, monkeypatch):
    """Each by itself; folders within, and what begins with a point, are no messages."""
    folder = sent(tmp_path / "in", ROUND, [0, 1])
    damaged = bytearray((folder / "000").read_bytes())
    damaged[-1] ^= 1
    (folder / "002").write_bytes(bytes(damaged))
    (folder / "003").write_bytes(b"x" * 400)
    (folder / ".part").write_bytes(b"half a message")
    (folder / "more").mkdir()
    monkeypatch.setattr(post, "MOST_BYTES", 300)
    _, heard = hear(ROUND, [folder, tmp_path / "nowhere"])
    assert heard["accepted"] == 2
    assert [(os.path.basename(row["file"]), row["reason"]) for row in heard["rejected"]] == [
        ("002", "checksum"), ("003", "file"), ("nowhere", "file"),
    ]  # fmt: skip
    assert all(row["text"] for row in heard["rejected"])
    with pytest.raises(dc.DataError, match="longer than any message or state"):
        post.bytes_of(folder / "003")
    with pytest.raises(DiscreetError, match="cannot be read"):
        post.bytes_of(tmp_path / "nowhere")


def test_limits_are_for_rounds_and_shuffled_rounds_need_a_state(tmp_path):
    with pytest.raises(dc.ParameterError, match="limits work with rounds only"):
        hear(STREAM, [], limits={"minimum_reports": 3})
    shuffled = HadamardResponse("r", PURE, 8, shuffled=2)
    with pytest.raises(dc.ParameterError, match="needs a state file"):
        hear(shuffled, [])
    assert hear(shuffled, [], tmp_path / "state")[0].parties == 0
    folder = sent(tmp_path / "in", ROUND, range(3))
    for state in (None, tmp_path / "limited"):
        aggregator, _ = hear(ROUND, [folder], state, limits={"minimum_reports": 4})
        with pytest.raises(dc.DataError, match="before 4 reports"):
            aggregator.estimate([1])
    # A state does not keep limits: they are those of the call.
    assert len(hear(ROUND, [], tmp_path / "limited")[0].estimate([1])) == 1


def test_a_file_that_describes_no_round_is_refused(tmp_path):
    file = tmp_path / "round.json"
    for text in ("", "not JSON", "{"):
        file.write_text(text)
        with pytest.raises(dc.DataError, match="not the JSON that `discreet party round` writes"):
            protocol_of(file)
    for values in ([], 7, {}, {"protocol": "Nobody's"}):
        file.write_text(json.dumps(values))
        with pytest.raises(dc.ParameterError):
            protocol_of(file)
    file.write_text(json.dumps(ROUND.to_dict()))
    assert protocol_of(file) == ROUND


# ---- rounds by name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "universes", "given", "how", "wanted"),
    [
        ("HadamardResponse", [8], {}, {}, lambda: ROUND),
        ("Stream", [8], {"epoch_steps": 1, "horizon": 16}, {}, lambda: Stream("r", PURE, 8, 1, 16)),
        ("Stream", [64], {"horizon": 16}, {"levels": True, "branching": 4},
         lambda: HierarchicalStream("r", PURE, 64, 1, 16, branching=4)),
        ("IndependentSketches", [64], {"rows": 3}, {"levels": True},
         lambda: Hierarchy("r", PURE, 64, "IndependentSketches", None, {"rows": 3})),
        ("HadamardResponse", [8, 4], {}, {"levels": True, "branching": 2},
         lambda: GridHierarchy("r", PURE, (8, 4), "HadamardResponse", 2)),
    ],
)  # fmt: skip
def test_a_round_by_its_name(name, universes, given, how, wanted):
    made = round_of(name, "r", PURE, universes, given, **how)
    assert type(made) is type(wanted())
    assert made.digest == wanted().digest


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.parametrize("name", ["IndependentSketches", "Stream"])
def test_a_parameter_that_a_protocol_does_not_have_is_named_as_such(name, levels):
    with pytest.raises((WordError, dc.ParameterError), match=r"does not take|names no parameter"):
        round_of(name, "r", PURE, [64], {"colour": 3}, levels=levels)


# ---- questions and answers -------------------------------------------------------------------------------------------


def test_questions_in_text_are_read_as_the_universe_has_them(tmp_path):
    levels = Hierarchy("r", PURE, 64, branching=4)
    listed = tmp_path / "items"
    listed.write_text("7\n9\n")
    asked = Questions.of(levels, ["3"], listed, ["2:5", "0:63"], liars=0.1)
    assert (asked.items, asked.ranges, asked.liars) == ((3, 7, 9), ((2, 5), (0, 63)), 0.1)
    words = Questions.of(HadamardResponse("r", PURE, ["a", "b:c"]), ["b:c"], None, [])
    assert words.items == ("b:c",)
    with pytest.raises(WordError, match="LOW:HIGH"):
        Questions.of(levels, [], None, ["25"])
    with pytest.raises(dc.ParameterError, match="not both"):
        Questions.of(levels, ["3"], None, [], top=2)


def heard_by(protocol, items=((1,),) * 30):
    aggregator = protocol.aggregator()
    for number, each in enumerate(items):
        party = protocol.party(number, source=seeded_source(number))
        aggregator.receive(party.feed(list(each)) if hasattr(protocol, "restore_party") else party.encode(list(each)))
    return aggregator


PLENTY = dc.Budget(1e4)
EACH_ROW = {"count", "lower", "upper"}


def test_every_answer_has_what_was_asked_and_nothing_else():
    levels = Hierarchy("r", PLENTY, 64, branching=4, options={"items_per_column": 1 / 2**14, "max_items": 9})
    aggregator = heard_by(levels, [(1,)] * 20 + [(40,)] * 10)
    asked = Questions((1, 5), share=0.2, quantiles=(0.1, 0.9), ranges=((0, 7), (8, 63)), liars=0.1, consistent=True)
    asked.check(levels)
    found = asked.answered(levels, aggregator, 0.95)
    json.dumps(found)
    assert found.keys() == {
        "estimates", "liars", "consistent", "heavy_hitters", "complete", "quantiles", "ranges", "guarantee", "version",
    }  # fmt: skip
    assert [row["item"] for row in found["estimates"]] == [1, 5]
    assert found["estimates"][0].keys() == {"item", *EACH_ROW, "too_high", "too_low"}
    assert {row["item"] for row in found["heavy_hitters"]} == {1, 40}
    assert found["complete"] is True
    assert [(row["share"], row["value"]) for row in found["quantiles"]] == [(0.1, 1), (0.9, 40)]
    assert [(row["low"], row["high"], round(row["count"])) for row in found["ranges"]] == [(0, 7, 20), (8, 63, 10)]
    assert all(row["lower"] <= row["count"] <= row["upper"] for row in found["ranges"])
    assert found["guarantee"]["epsilon"] == 1e4
    assert found["version"] == dc.__version__
    none = Questions().answered(levels, aggregator, 0.95)
    assert none.keys() == {"guarantee", "version"}


@pytest.mark.parametrize("kind", [Stream, HierarchicalStream, MergedMisraGriesStream])
def test_answers_of_a_stream_say_which_steps_they_are_of(kind):
    columns = {} if kind is MergedMisraGriesStream else {"columns": 512}
    stream = kind("s", PLENTY, 16, epoch_steps=1, horizon=16, **columns)
    aggregator = stream.aggregator([7])
    for number in range(3):
        aggregator.receive(stream.party(number, source=seeded_source(number)).feed([1, 1, 2, 3][: 4 - number]))
    found = Questions(items=(1, 2), time=3).answered(stream, aggregator, 0.95)
    assert (found["since"], found["time"]) == (0, 3)
    assert found["coverage"] == {"0": 1.0, "1": 1.0, "2": pytest.approx(2 / 3), "7": 0.0}
    assert [round(row["count"]) for row in found["estimates"]] == [6, 2]
    if kind is not Stream:
        heavy = Questions(share=0.4, time=2).answered(stream, aggregator, 0.95)
        assert (heavy["time"], [row["item"] for row in heavy["heavy_hitters"]]) == (2, [1])
        assert "estimates" not in heavy


@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.999])
def test_intervals_of_all_answers_have_the_confidence_that_was_asked(confidence):
    levels = Hierarchy("r", PURE, 64, branching=4)
    aggregator = heard_by(levels)
    asked = Questions((1,), share=0.5, quantiles=(0.5,), ranges=((0, 7),))
    found = asked.answered(levels, aggregator, confidence)
    lower, upper = aggregator.estimate([1]).bounds(confidence)
    assert (found["estimates"][0]["lower"], found["estimates"][0]["upper"]) == (lower[0], upper[0])
    of_range = aggregator.range_count(0, 7, confidence)
    assert (found["ranges"][0]["lower"], found["ranges"][0]["upper"]) == (of_range.lower, of_range.upper)
    of_share = aggregator.quantile(0.5, confidence)
    assert (found["quantiles"][0]["lower"], found["quantiles"][0]["upper"]) == (of_share.lower, of_share.upper)


def test_a_report_says_of_what_and_of_how_much():
    aggregator = heard_by(ROUND)
    heard = {"accepted": 30, "repeated": 0, "rejected": []}
    report = Questions(items=(1,)).report(ROUND, aggregator, heard, 0.95)
    assert (report["round_id"], report["protocol"], report["parties"]) == ("r", "HadamardResponse", 30)
    assert (report["bytes"], report["messages"]) == (aggregator.bytes_received, heard)
    assert "shown" not in report
    shuffled = HadamardResponse("r", PURE, 8, shuffled=2)
    some = shuffled.aggregator()
    for seed in range(3):
        some.receive(shuffled.party(source=seeded_source(seed)).encode([1]))
    assert Questions(items=(1,)).report(shuffled, some, heard, 0.95)["shown"] == 2


def test_nothing_is_answered_of_nobody():
    for protocol in (ROUND, STREAM, IndependentSketches("r", PURE, 8)):
        with pytest.raises(dc.DataError, match="no message was accepted"):
            Questions(items=(1,)).answered(protocol, protocol.aggregator(), 0.95)
