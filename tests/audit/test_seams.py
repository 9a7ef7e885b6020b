"""The audit looks at mechanisms through what is public of them, and the seams say what they should."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
import discreet_audit
from discreet.continual import Counter, HeavyHitters, Histogram
from discreet.multiparty import HadamardResponse, Hierarchy, IndependentSketches, Separation, Stream
from discreet.noise import seeded_source
from discreet.pan import CroppedMean, Density, HeavyFraction, Incidence, ModularIncidence
from discreet_audit.continual import path_shifts
from discreet_audit.core import twin
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)
FILES = sorted(Path(discreet_audit.__file__).parent.glob("*.py"))


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def reaches(path):
    """Private attributes of anything but the object that a method is of, and private modules of the house."""
    tree = ast.parse(path.read_text())
    methods = {
        f for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body if isinstance(f, ast.FunctionDef)
    }
    own = {
        id(node)
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == next((a.arg for a in method.args.args), None)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and id(node) not in own:
            yield f"{path.name}:{node.lineno} {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom) and any(map(is_private, (node.module or "").split("."))):
            yield f"{path.name}:{node.lineno} {node.module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_private_is_used(path):
    assert list(reaches(path)) == []


def test_a_twin_differs_in_what_is_public():
    mechanism = dc.central.Offset(dc.Budget(1.0, 1e-3), capacity=3)
    broken = twin(mechanism, "half the noise", scale=mechanism.scale / 2).mechanism
    assert broken.scale == mechanism.scale / 2
    assert (broken.threshold, broken.capacity) == (mechanism.threshold, 3)
    assert type(broken).__name__ == "NotPrivateOffset"
    with pytest.raises(dc.ParameterError, match="public"):
        twin(mechanism, "", _publish=None)


@pytest.mark.parametrize("mechanism", [
    Counter(7, dc.Budget.zcdp(0.5), method="tree", base=2, size=4, max_items_per_event=2),
    Counter(None, BUDGET),
    Histogram(5, BUDGET, ["a", "b"], None, 1, mechanism="sparse", switches=2, margin=3),
    Histogram(5, BUDGET, None, 2, keep_discovered=True),
    HeavyHitters(9, BUDGET, 8, window=3, base=2),
], ids=repr)  # fmt: skip
def test_a_release_over_time_is_made_again_as_it_was(mechanism):
    made = mechanism.anew()
    assert type(made) is type(mechanism)
    assert made.parameters == mechanism.parameters
    assert made.guarantee == mechanism.guarantee
    assert made.error(2) == mechanism.error(2) if hasattr(made, "error") else made.scale == mechanism.scale
    assert made.tick == 0
    assert mechanism.anew(seeded_source(1)).guarantee.seeded


def test_the_noises_of_an_event_are_those_that_are_drawn():
    counter = Counter(6, dc.Budget.zcdp(0.5), method="tree", base=2)
    ((_, (noise,)),) = counter.noises_of_an_event()
    source = ScriptedSource()
    counter.anew(source).step(3)
    assert [(draw.law, draw.scale) for draw in source.draws] == [("gaussian", noise.sigma)]
    assert (
        np.linalg.norm(path_shifts(noise.factor, np.ones((6, 1), bool), [5, -3, 8, 1, 0, 2]))
        <= noise.factor.sensitivity
    )
    # Without a horizon an event is in its epoch and in one total of epochs before.
    assert [len(noises) for _, noises in Counter(None, dc.Budget.zcdp(0.5)).noises_of_an_event()] == [2] * 5


@pytest.mark.parametrize("estimator", [
    Density(3, budget=dc.Budget(1.0)),
    CroppedMean(3, 4, budget=dc.Budget(1.0)),
    HeavyFraction(4, 4, budget=dc.Budget(1.0)),
    HeavyFraction(4, 4, budget=dc.Budget(1.0), method="two_tables"),
    HeavyFraction(3, 2, budget=dc.Budget(1.0), method="ladder", max_count=2),
    HeavyFraction(4, 2, budget=dc.Budget(1.0), method="counters", max_count=4),
    ModularIncidence(3, 5, budget=dc.Budget(1.0)),
    Incidence(3, 2, budget=dc.Budget(1.0), max_count=6),
], ids=repr)  # fmt: skip
def test_the_law_of_an_element_has_the_cells_of_the_table(estimator):
    counters, bits = estimator.seen_by_intruder()[0]
    for law in estimator.element_laws():
        shifts = [cell for cell in law.cells if hasattr(cell, "shift")]
        assert len(law.cells) - len(shifts) == len(bits)
        assert not shifts or len(shifts) == len(counters)
        for cell in shifts:
            assert sum(cell.shift) == 1
        for cell in set(law.cells) - set(shifts):
            assert 0 < cell.unseen < cell.seen < 1
        values = ((0, 1) if law.pairs else 1,) * len(law.cells)
        assert len(law.statistic(values)) == len(law.scales)
        assert all(scale >= 1 / Fraction(estimator.epsilon_output) * Fraction(999, 1000) for scale in law.scales)
    assert type(estimator)(**{**estimator.options, **own(estimator)}).settings == estimator.settings


def own(estimator):
    names = ("t", "k", "rho", "method", "max_count")
    given = {name: value for name, value in estimator.parameters.items() if name in names and value is not None}
    return {"universe": 4 if "ladder" not in repr(estimator) and isinstance(estimator, HeavyFraction) else 3, **given}


@pytest.mark.parametrize("protocol", [
    HadamardResponse("r", dc.Budget(1.0), 9),
    IndependentSketches("r", dc.Budget(1.0), 9),
    Separation("r", dc.Budget(1.0), 9),
    Hierarchy("r", dc.Budget(1.0), 9, branching=3, options={"items_per_column": 1.0}),
], ids=lambda protocol: type(protocol).__name__)  # fmt: skip
def test_a_protocol_opens_its_own_messages_and_no_others(protocol):
    message = protocol.party(4).encode([1, 2, 2])
    opened, _ = protocol.open(message)
    assert (opened.number, opened.items) == (4, 3)
    for wrong in (message[:-1], b"", message[:4] + bytes([message[4] ^ 1]) + message[5:]):
        with pytest.raises(dc.DiscreetError):
            protocol.open(wrong)


def test_a_stream_opens_packets():
    stream = Stream("r", dc.Budget(1.0), 5, epoch_steps=2, horizon=9, columns=4)
    opened, packet = stream.open(stream.party(2).feed([1, None, 3, 4]))
    assert (opened.number, packet.after, packet.to) == (2, 0, 4)
    assert {block.level for block in packet.blocks} == {0, 1}
