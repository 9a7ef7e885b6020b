"""Files of messages against their exact law: honest ones pass, and each way to be wrong is seen."""

import json
from dataclasses import replace

import pytest
from tests.browser.client_messages import audit_messages, main, without_noise

import discreet as dc
from discreet.errors import DataError, ParameterError
from discreet.multiparty import HadamardResponse, LocalHashing, LocalSketch
from discreet.published import MergedSketch

BUDGET, MANY = dc.Budget(1.0), 2500
ROUNDS = {
    "hadamard": HadamardResponse("r", BUDGET, 4),
    "hashing": LocalHashing("r", BUDGET, ["a", "b", "c"]),
    "sketch": LocalSketch("r", BUDGET, "integers", columns=2),
    "shuffled": HadamardResponse("r", BUDGET, 4, shuffled=50),
}
every = pytest.mark.parametrize("name", ROUNDS)


def items_of(protocol):
    return ["a", "b"] if protocol.domain.kind == "string" else [0, 1]


def written(path, protocol, lines, **head):
    rows = [{"round": protocol.to_dict(), **head}, *lines]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return audit_messages(path)[1]


def failed(findings):
    return {finding.check for finding in findings if not finding.passed}


@every
def test_honest_messages_pass(name, tmp_path):
    protocol = ROUNDS[name]
    lines = [
        {"item": item, "messages": [protocol.party().encode([item]).hex() for _ in range(MANY)]}
        for item in items_of(protocol)
    ]
    findings = written(tmp_path / "m", protocol, lines, numbers="random")
    assert failed(findings) == set()
    assert {finding.kind for finding in findings} == {"structure", "statistical"}
    assert sum("random numbers" in finding.check for finding in findings) == 2
    proved = [finding.measured for finding in findings if finding.quantity == "epsilon"]
    assert name == "sketch" or max(proved) > 0.1


@every
def test_less_noise_is_seen(name, tmp_path):
    """The messages of a round with four times the epsilon, under the name of the round that claims one."""
    protocol = ROUNDS[name]
    loud = replace(protocol, budget=dc.Budget(4.0))
    if name == "hashing":  # over the same buckets
        loud.__dict__["buckets"] = protocol.buckets
        del loud.__dict__["keep"]
    lines = []
    for item in items_of(protocol):
        opened = [loud.open(loud.party().encode([item])) for _ in range(MANY)]
        messages = [protocol._pack(message).hex() for message, _ in opened]
        lines.append({"item": item, "messages": messages})
    assert {"law of messages about item 1", "item 1 told from item 2"} <= failed(
        written(tmp_path / "m", protocol, lines)
    )


def test_counts_are_messages(tmp_path):
    protocol = ROUNDS["hadamard"]
    lines = []
    for item in (0, 1):
        bits = [protocol._pack(protocol.open(protocol.party(9).encode([0]))[0])]
        while len(set(bits)) < 2:
            bits.append(protocol.party(9).encode([0]))
        own = without_noise(protocol, item, protocol.open(bits[0])[1].numbers)[0]
        shares = {m.hex(): 73_106 if protocol.open(m)[1].values[0] == own else 26_894 for m in set(bits)}
        lines.append({"item": item, "counts": shares})
    findings = written(tmp_path / "m", protocol, lines)
    assert failed(findings) == set()
    assert findings[1].pairs == 100_000
    lines[1]["counts"] = dict.fromkeys(lines[1]["counts"], 50000)
    assert "law of messages about item 2" in failed(written(tmp_path / "m", protocol, lines))


def test_an_exact_law_is_compared_exactly(tmp_path):
    for protocol in (HadamardResponse("r", BUDGET, 4), LocalHashing("r", BUDGET, ["a", "b", "c"])):
        for number in range(6):
            lines = []
            messages = {}
            while len(messages) < getattr(protocol, "buckets", 2):
                message = protocol.party(number).encode([items_of(protocol)[0]])
                messages[int(protocol.open(message)[1].values[0])] = message
            numbers = protocol.open(message)[1].numbers
            for item in items_of(protocol):
                own = int(without_noise(protocol, item, numbers)[0])
                other = (1 - protocol.keep) / (len(messages) - 1)
                law = {m.hex(): str(protocol.keep if value == own else other) for value, m in messages.items()}
                lines.append({"item": item, "law": law})
            assert failed(written(tmp_path / "m", protocol, lines)) == set()
            lines[0]["law"] = dict.fromkeys(lines[0]["law"], f"1/{len(messages)}")
            assert f"law of item 1, number {number}" in failed(written(tmp_path / "m", protocol, lines))


def test_noise_that_follows_from_the_number_is_seen(tmp_path):
    protocol = ROUNDS["hadamard"]
    same = protocol.party(7).encode([0]).hex()
    messages = [protocol.party().encode([0]).hex() for _ in range(MANY)]
    other = {"item": 1, "messages": [protocol.party().encode([1]).hex() for _ in range(MANY)]}
    lines = [{"item": 0, "messages": messages}, {"item": 0, "counts": {same: 1000}}, other]
    assert failed(written(tmp_path / "m", protocol, lines)) >= {"law of messages about item 1, number 7"}


def test_numbers_that_tell_are_seen(tmp_path):
    protocol = ROUNDS["hadamard"]
    lines = []
    for item in (0, 1):
        numbers = [protocol.party().number & ~1 | item for _ in range(MANY)]
        lines.append({"item": item, "messages": [protocol.party(n).encode([item]).hex() for n in numbers]})
    assert failed(written(tmp_path / "m", protocol, lines)) == set()  # numbers that somebody handed out
    telling = failed(written(tmp_path / "m", protocol, lines, numbers="random"))
    assert telling == {f"random numbers of messages about item {place}" for place in (1, 2)}


def test_what_no_honest_client_sends_is_counted(tmp_path):
    protocol = ROUNDS["hadamard"]
    good = [{"item": item, "messages": [protocol.party().encode([item]).hex() for _ in range(MANY)]} for item in (0, 1)]
    two = protocol.party(3).encode([0, 1]).hex()
    tests_only = protocol.party(3, source=dc.noise.seeded_source(1)).encode([0]).hex()
    elsewhere = HadamardResponse("other", BUDGET, 4).party(3).encode([0]).hex()
    good.append({"item": 0, "messages": [two, tests_only, elsewhere, "00"]})
    findings = written(tmp_path / "m", protocol, good)
    assert findings[0].measured == 4
    assert not findings[0].passed


def test_files_that_say_nothing_are_refused(tmp_path):
    protocol = ROUNDS["hadamard"]
    few = [{"item": item, "messages": [protocol.party().encode([item]).hex()] * 10} for item in (0, 1)]
    for lines in ([], few, [{"item": 77, "messages": []}], [{"item": 1}], [{"item": 1, "messages": ["zz"]}], [[1]]):
        with pytest.raises(DataError):
            written(tmp_path / "m", protocol, lines)
    with pytest.raises(DataError, match="send messages"):
        written(tmp_path / "m", ROUNDS["sketch"], [{"item": 1, "law": {"00": "1/2"}}])
    with pytest.raises(DataError, match="MergedSketch"):
        written(tmp_path / "m", MergedSketch("r", BUDGET, 4), [])
    for text in ("", "not json\n", "\xff"):
        (tmp_path / "m").write_bytes(text.encode("latin-1"))
        with pytest.raises(DataError):
            audit_messages(tmp_path / "m")
    with pytest.raises(DataError):
        audit_messages(tmp_path / "missing")
    (tmp_path / "m").write_text('{"round": {}}\n')
    with pytest.raises(ParameterError):
        audit_messages(tmp_path / "m")


def test_messages_of_another_client(capsys, tmp_path):
    """Counts that are exactly as the law says, and such that are not."""
    protocol = dc.multiparty.HadamardResponse("r", dc.Budget(1.0), ["yes", "no"])
    by_bit = {}
    while len(by_bit) < 2:
        message = protocol.party(4).encode(["yes"])
        by_bit[int(protocol.open(message)[1].values[0])] = message.hex()
    numbers = protocol.open(message)[1].numbers
    for often, code in ((7311, 0), (7700, 1)):
        lines = [{"round": protocol.to_dict()}]
        for item in ("yes", "no"):
            own = int(without_noise(protocol, item, numbers)[0])
            lines.append({"item": item, "counts": {by_bit[own]: often, by_bit[1 - own]: 10_000 - often}})
        (tmp_path / "m").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert main(tmp_path / "m") == code
        shown = capsys.readouterr().out
        assert ("FAILED" in shown) == bool(code)
        shares = (
            f"noise 0: {often / 100:.4f}%, by its law 73.1059%",
            f"noise 1: {100 - often / 100:.4f}%, by its law 26.8941%",
        )
        assert any(share in shown for share in shares)
