"""A state whose header says something else, sealed anew, is refused wherever it contradicts itself or what may be.

Every field of every header takes other values. Those that may be anything are listed: a check that is lost makes the
list longer.
"""

import copy
import json
import struct

import pytest

import discreet as dc
from discreet import _native
from discreet.errors import CorruptStateError, ParameterError

over = dc.continual
PURE, BUDGET = dc.Budget(1.0), dc.Budget(1.0, 1e-6)


def stepped(made, *steps):
    for step in steps:
        made.step(*step)
    return made


def released(made, items):
    made.update(items)
    made.release()
    return made


MADE = {
    "pan.DistinctCount": lambda: released(dc.pan.DistinctCount(budget=PURE, buckets=256, releases=2), [1, 2]),
    "pan.Density": lambda: released(dc.pan.Density(20, budget=PURE, releases=2), [1, 2]),
    "pan.CroppedMean": lambda: released(dc.pan.CroppedMean(20, 3, budget=PURE, releases=2), [1, 1]),
    "pan.HeavyFraction": lambda: released(dc.pan.HeavyFraction(20, 2, budget=PURE, releases=2), [1, 1]),
    "pan.Incidence": lambda: released(dc.pan.Incidence(20, 2, budget=PURE, releases=2), [1, 1]),
    "pan.ModularIncidence": lambda: released(dc.pan.ModularIncidence(20, 3, budget=PURE, releases=2), [1, 1]),
    "pan.Occurrences": lambda: released(dc.pan.Occurrences(3, budget=PURE, buckets=256, releases=2), [1, 1]),
    "continual.Counter": lambda: stepped(over.Counter(8, BUDGET, remember=2), (3,), (4,), (5,)),
    "continual.Counter of several": lambda: stepped(over.Counter(8, BUDGET, size=2, remember=1), ([1, 2],), ([0, 2],)),
    "continual.DistinctCount": lambda: stepped(over.DistinctCount(8, BUDGET), (["a", "b"],), (["c"],)),
    "continual.Histogram": lambda: stepped(over.Histogram(8, BUDGET, ["a", "b"], 1), (["a"],), (["b"],)),
    "continual.Histogram of any": lambda: stepped(over.Histogram(8, BUDGET, max_items_per_event=1), (["a"] * 90,)),
    "continual.Histogram of the top": lambda: stepped(over.Histogram(8, BUDGET, ["a", "b"], k=1), (["a"] * 90,)),
    "continual.HeavyHitters": lambda: stepped(over.HeavyHitters(8, BUDGET, 4), (["a"] * 90,), (["a"] * 90,)),
    "continual.HeavyHitters by nodes": (
        lambda: stepped(over.HeavyHitters(8, BUDGET, 4, mechanism="offset"), (["a"] * 90,), (["a"] * 90,))
    ),
    "continual.HeavyHitters for ever": lambda: stepped(over.HeavyHitters(None, BUDGET, 4), (["a"] * 90,), (["b"],)),
}  # fmt: skip

# Fields that may have another value, and which: texts, what was drawn, and what no other field is told by.
OF_ALL = "charge_id x 7; paid 3 x; seeded 3 x; steps.charge_id x 7; steps.previous x; token x 7"
OF_PAN = "seeded 3 x; settings.2 +1"
OF_A_UNIVERSE = f"{OF_PAN}; parameters.universe.first -1 +1 huge none; parameters.universe.size +1 huge"
FREE = {
    "pan.DistinctCount": OF_PAN,
    "pan.Density": OF_A_UNIVERSE,
    "pan.CroppedMean": OF_A_UNIVERSE,
    "pan.HeavyFraction": OF_A_UNIVERSE,
    "pan.Incidence": (f"{OF_A_UNIVERSE}; parameters.primes +1; parameters.t +1 none; settings.3 +1"),
    "pan.ModularIncidence": (f"{OF_A_UNIVERSE}; settings.3 +1"),
    "pan.Occurrences": OF_PAN,
    "continual.Counter": (
        f"{OF_ALL}; horizon +1; budget.rho 7; tick +1; remember +1; has_release 3 x; runs.0 x 7; runs.1 x 7; runs.2 x 7"
    ),
    "continual.Counter of several": (
        f"{OF_ALL}; horizon +1; budget.rho 7; tick +1; remember +1; max_items_per_event +1; has_release 3 x; runs.0 x "
        "7; runs.1 x 7"
    ),
    "continual.DistinctCount": (f"{OF_ALL}; horizon +1; budget.rho 7; tick +1; has_release 3 x; added +1"),
    "continual.Histogram": (
        f"{OF_ALL}; horizon +1; budget.rho 7; tick +1; max_items_per_event +1 huge; k 7; base +1 none; limit 7; "
        "keep_discovered 3 x; switches +1; margin +1 huge none; known 3 x; kind x 7; items.0 x; items.1 x; "
        "max_weight +1"
    ),
    "continual.Histogram of any": (
        f"{OF_ALL}; horizon +1; tick +1; max_items_per_event +1 huge; k 7; base +1 none; limit 7; keep_discovered 3 x; "
        "switches +1; margin +1 huge none; known 3 x; kind x 7; items.0 x 7; max_weight +1"
    ),
    "continual.Histogram of the top": (
        f"{OF_ALL}; budget.rho 7; tick +1; max_items_per_event 7; k +1 huge; base +1 none; limit 7; keep_discovered 3 "
        "x; switches +1; margin +1 huge none; known 3 x; kind x 7; items.0 x; items.1 x"
    ),
    "continual.HeavyHitters": (
        f"{OF_ALL}; horizon +1; base +1 huge none; order 7; seed 7; nodes.0.2 -1 +1 huge; nodes.0.3 x 7; nodes.0.4.0 x "
        "7; nodes.0.5.0 -1 +1 huge; known.kind x 7; known.items.0 x 7; known.parts.0.0.0 -1 +1 huge; "
        "known.parts.0.0.1 -1 +1 huge; known.parts.0.0.2 -1 +1 huge; known.parts.0.0.3 -1 +1 huge; "
        "known.carried.0 - 0; known.carried.1 - 0"
    ),
    "continual.HeavyHitters by nodes": (
        f"{OF_ALL}; window 7; base +1 huge none; order 7; seed 7; nodes.0.2 -1 +1 huge; nodes.0.3 x 7; nodes.0.4.0 x "
        "7; nodes.0.5.0 -1 +1 huge; nodes.1.2 -1 +1 huge; nodes.1.3 x 7; nodes.1.4.0 x 7; nodes.1.5.0 -1 +1 "
        "huge"
    ),
    "continual.HeavyHitters for ever": (
        f"{OF_ALL}; base 7; order 7; seed 7; nodes.0.2 -1 +1 huge; nodes.0.3 x 7; nodes.0.4.0 x 7; nodes.0.5.0 -1 +1 "
        "huge; nodes.1.2 -1 +1 huge; nodes.1.3 x 7; nodes.1.4 []; nodes.1.5 []; known.kind x 7; "
        "known.items.0 x 7; known.parts.0.0.0 -1 +1 huge; known.parts.0.0.1 -1 +1 huge; known.parts.0.0.2 "
        "-1 +1 huge; known.parts.0.0.3 -1 +1 huge; known.carried.0 - 0; known.carried.1 - 0"
    ),
}


def parts(name, data):
    """(family, version, header, what follows it)."""
    family, version, payload = _native.open_state(data)
    form = "<I" if name.startswith("pan") else "<Q"
    start = struct.calcsize(form)
    (length,) = struct.unpack_from(form, payload)
    return family, version, json.loads(payload[start : start + length]), payload[start + length :], form


def others(value):
    """Other values of a field, of the same kind or of another, each with a name."""
    if isinstance(value, bool):
        return {"3": 3, "x": "x"}
    if isinstance(value, int):
        return {"-1": -1, "+1": value + 1, "huge": 2**40, "none": None, "x": "x"}
    if isinstance(value, float):
        return {"-": -1.0 - abs(value), "0": 0.0, "none": None, "x": "x"}
    if isinstance(value, str):
        return {"x": "x", "7": 7}
    if isinstance(value, list):
        return {"[]": [], "longer": [*value, *(value[-1:] or [7])], "7": 7}
    return {"x": "x", "7": 7}


def places(value, path=()):
    """Where the values of a header are."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from places(inside, (*path, key))
        return
    if path:
        yield path
    if isinstance(value, list):
        for at, inside in enumerate(value):
            yield from places(inside, (*path, at))


def with_other(header, path, value):
    changed = copy.deepcopy(header)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return changed


def at(header, path):
    for key in path:
        header = header[key]
    return header


@pytest.mark.parametrize("name", MADE)
def test_a_header_that_says_something_else_is_refused(name):
    made = MADE[name]()
    family, version, header, rest, form = parts(name, made.to_bytes())

    def sealed(said):
        text = json.dumps(said).encode()
        return _native.seal_state(family, version, [struct.pack(form, len(text)), text, rest])

    type(made).from_bytes(sealed(header))
    accepted, free = {}, {field.split()[0]: field.split()[1:] for field in FREE[name].split(";")}
    for path in places(header):
        if path[0] in ("last", "answered") and not isinstance(at(header, path), list):  # numbers that were drawn
            continue
        for called, value in others(at(header, path)).items():
            try:
                type(made).from_bytes(sealed(with_other(header, path, value)))
            except (CorruptStateError, ParameterError):  # ParameterError: it needs a ledger
                continue
            place = ".".join(map(str, path)).removeprefix("header.")
            place = ".".join(map(str, path)).removeprefix("header.")
            if called not in free.get(place, ""):
                accepted.setdefault(place, []).append(called)
    assert accepted == {}
