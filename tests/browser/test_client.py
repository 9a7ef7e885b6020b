"""What the JavaScript client sends is what Python would send."""

import gzip
import json
import math
import re
import runpy
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.browser.client_messages import audit_messages

import discreet as dc


def test_its_own_tests_pass(node, client):
    done = subprocess.run([node, "--test", client / "test"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


def test_python_still_makes_the_golden_bytes(client):
    made = runpy.run_path(str(client / "test" / "make_golden.py"))["cases"]()
    assert made == json.loads((client / "test" / "golden.json").read_text())


def test_it_is_small(client):
    assert len(gzip.compress((client / "discreet.js").read_bytes(), 9)) < 12_000


@pytest.mark.parametrize("protocol", ["HadamardResponse", "LocalHashing", "LocalSketch"])
def test_a_third_of_a_million_messages_are_aggregated_with_the_stated_error(node, protocol):
    """All intervals hold together but for a probability of 1e-9."""
    count, most = 333_334, 40
    round_ = getattr(dc.multiparty, protocol)("many", dc.Budget(2.0), most)
    command = [node, Path(__file__).with_name("many.mjs"), json.dumps(round_.to_dict()), str(count), str(most)]
    data = subprocess.run(command, capture_output=True, check=True, timeout=600).stdout
    messages = messages_of(data)
    assert len(messages) == count
    aggregator = round_.aggregator()
    receipt = aggregator.receive_many(messages)
    assert (receipt.accepted, receipt.rejected) == (count, ())
    part = np.arange(count) / count
    truth = np.bincount((part * part * part * most).astype(int), minlength=most)
    lower, upper = aggregator.estimate(list(range(most))).bounds(1 - 1e-9 / most)
    assert np.all(lower <= truth)
    assert np.all(truth <= upper)
    assert np.max(upper - lower) < np.max(truth)  # and they say something


def test_a_shuffled_round_takes_its_reports(node):
    """Without numbers, as the client draws them; many.mjs leaves them out where the round is shuffled."""
    round_ = dc.multiparty.HadamardResponse("many", dc.Budget(2.0), 40, shuffled=500)
    command = [node, Path(__file__).with_name("many.mjs"), json.dumps(round_.to_dict()), "1200", "40"]
    aggregator = round_.aggregator()
    receipt = aggregator.receive_many(
        messages_of(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    )
    assert (receipt.accepted, receipt.rejected, aggregator.shown) == (1200, (), 1000)


def messages_of(data):
    """What many.mjs writes."""
    messages, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        messages.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    return messages


# ---- the audit of messages that the client made ------------------------------------------------------------------


def audited(node, tmp_path, kind, protocol="HadamardResponse", count=12_000):
    """The findings that fail of what `audited.mjs` writes. An honest one does with a probability of 2e-8 at most."""
    round_ = getattr(dc.multiparty, protocol)("audited", dc.Budget(0.5), ["yes", "no", "maybe"])
    command = [node, Path(__file__).with_name("audited.mjs"), json.dumps(round_.to_dict()), kind, str(count)]
    path = tmp_path / "messages.ndjson"
    path.write_bytes(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    _, found = audit_messages(path)
    assert found
    return {finding.check for finding in found if not finding.passed}


@pytest.mark.parametrize("kind", ["honest", "fixed", "law"])
def test_the_audit_believes_the_client(node, tmp_path, kind):
    assert audited(node, tmp_path, kind) == set()


@pytest.mark.parametrize("protocol", ["LocalHashing", "LocalSketch"])
def test_the_audit_believes_its_other_protocols(node, tmp_path, protocol):
    assert audited(node, tmp_path, "honest", protocol, 5000) == set()


@pytest.mark.parametrize(
    ("kind", "noticed"),
    [
        ("coin", {"law of messages about item 1", "item 1 told from item 2"}),  # 0.7 for 0.622: 17 standard deviations
        ("seeded", {"law of messages about item 1, number 5"}),
        ("leaking", {"random numbers of messages about item 1", "random numbers of messages about item 2"}),
        ("padded", {"messages that no honest client sends"}),
    ],
)
def test_the_audit_catches_its_twins(node, tmp_path, kind, noticed):
    assert noticed <= audited(node, tmp_path, kind)


# ---- the examples of the documentation -----------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/browser.md", "clients/js/README.md"])
def test_the_examples_of_the_documentation_run(node, client, tmp_path, page):
    """All blocks of a page as one module, in a browser that has a round and takes messages."""
    blocks = re.findall(r"^```js\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    round_ = dc.multiparty.LocalHashing("lunch survey 2026", dc.Budget(1.0), ["yes", "no", "maybe"])
    (tmp_path / "round.json").write_text(json.dumps(round_.to_dict()))
    (tmp_path / "discreet.js").write_text((client / "discreet.js").read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "fetch.js").write_text("""
        import { readFileSync, writeFileSync } from "node:fs";
        globalThis.fetch = async (name, { body } = {}) =>
          body ? writeFileSync(name, body) : { text: async () => readFileSync(name, "utf8") };
    """)
    (tmp_path / "example.js").write_text("\n".join(['import "./fetch.js";', *blocks]))
    done = subprocess.run([node, "example.js"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    message = (tmp_path / "messages").read_bytes()
    round_.aggregator().receive(message)
    if page == "docs/browser.md":
        shown, odds, refused = done.stdout.splitlines()
        assert bytes.fromhex(shown) == message
        assert odds == "2.7 null"
        assert refused == "true an item is outside the universe"


def test_the_odds_and_margins_that_are_stated():
    page = (ROOT / "docs/privacy/answers.md").read_text()
    rows = re.findall(r"^\| ([\d.]+) \| (.*) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 8
    for place, (text, cells) in enumerate(rows):
        grown = math.exp(float(text))
        if place < 4:
            sure = [100 * p * grown / (p * grown + 1 - p) for p in (0.5, 0.1, 0.01)]
            expected = [f"{grown:.1f}", f"{sure[0]:.0f}", f"{sure[1]:.0f}", f"{sure[2]:.1f}"]
        else:
            expected = [f"{196 * (grown + 1) / (grown - 1) / math.sqrt(n):.1f}" for n in (1000, 10_000, 100_000)]
        assert cells.split(" | ") == expected
    for kind, epsilon in (("LocalHashing", 0.353), ("HadamardResponse", 0.515), ("LocalSketch", 0.755)):
        round_ = getattr(dc.multiparty, kind)("r", dc.Budget(4.0), 3, shuffled=10_000)
        assert epsilon - 0.001 < round_.shuffled_budget(1e-8).epsilon <= epsilon
        assert str(epsilon) in page
