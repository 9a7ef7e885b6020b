"""Protocols of many parties: what they state, messages and aggregates from seeded parties, plans, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests import recorded
from tests.conftest import repeat_from
from tests.recorded import asked

from discreet import Budget
from discreet.errors import DiscreetError
from discreet.multiparty import (
    GridHierarchy,
    HadamardResponse,
    HierarchicalStream,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
    Stream,
    estimates,
    grid,
    levels,
    packets,
    party_sketches,
    plan,
    protocol_from_dict,
    wire,
)
from discreet.noise import seeded_source

MADE = {
    "hadamard": lambda b: HadamardResponse("r", b, 50),
    "hadamard of texts": lambda b: HadamardResponse("r", b, "strings"),
    "hadamard, shuffled": lambda b: HadamardResponse("r", b, 50, shuffled=12),
    "hashing": lambda b: LocalHashing("r", b, 50),
    "hashing, shuffled": lambda b: LocalHashing("r", b, ["a", "b", "ß", "zz"], shuffled=6),
    "local sketch": lambda b: LocalSketch("r", b, range(-20, 30), columns=3),
    "local sketch by itself": lambda b: LocalSketch("r", b, 50),
    "independent": lambda b: IndependentSketches("r", b, 50, items_per_column=3.0, rows=3),
    "independent by itself": lambda b: IndependentSketches("r", b, 50),
    "separation": lambda b: Separation("r", b, 50, items_per_column=4.0, threshold=5, rows=3),
    "separation by itself": lambda b: Separation("r", b, 50),
    "separation, share": lambda b: Separation("r", b, 50, items_per_entry=4, separation_share=0.25),
    "hierarchy": lambda b: Hierarchy("r", b, 50, branching=4, options={"items_per_column": 3.0}),
    "hierarchy of local": lambda b: Hierarchy("r", b, 50, "HadamardResponse"),
    "hierarchy of texts": lambda b: Hierarchy("r", b, levels.Strings("abc", 3), options={"rows": 3}),
    "grid": lambda b: GridHierarchy("r", b, (12, ["a", "b", "ß"]), branching=4, options={"items_per_column": 3.0}),
    "grid of local": lambda b: GridHierarchy("r", b, (range(-2, 20), 5), "HadamardResponse", 4),
}
STREAMS = {
    "stream": lambda b: Stream("r", b, 9, epoch_steps=2, horizon=30, columns=4),
    "window": lambda b: Stream("r", b, 9, epoch_steps=3, window=12, columns=8, rows=3),
    "endless": lambda b: Stream("r", b, 9, epoch_steps=2, sample_share=0),
    "samples": lambda b: Stream("r", b, 9, epoch_steps=4, columns=4, sample_share=0.25),
    "hierarchical": lambda b: HierarchicalStream("r", b, 9, epoch_steps=2, horizon=30, columns=8, branching=3),
    "hierarchical texts": lambda b: HierarchicalStream("r", b, levels.Strings("ab", 2), epoch_steps=3, columns=8),
}
BUDGETS = (Budget(0.1), Budget(1.0), Budget(4.0))
WITHOUT = {"charge_id", "options", "universe"}


def items_of(protocol, seed):
    """Of one party; the first items are most frequent."""
    known = (
        [protocol.universe.items([place])[0] for place in range(min(11, protocol.universe.size))]
        if bounded(protocol)
        else ["a", "ß", "zz"] * 4
    )
    if isinstance(protocol, (HadamardResponse, LocalHashing, LocalSketch)):
        return [known[seed * seed % 7 % len(known)]] * 4 + [known[seed % 3]] * 2
    return [known[n * n * seed % 11 % len(known)] for n in range(1, 25)] + [known[0]] * 10


def bounded(protocol):
    return getattr(protocol.universe, "size", None) is not None


def stated(make):
    found = {}
    for budget in BUDGETS:
        made = make(budget)
        said = recorded.members(made, without=WITHOUT)
        said["round"] = made.to_dict()
        said["digest"] = made.digest.hex()
        said["charge"] = [made.charge_id(7), recorded.told(made.bill.budget), str(made.bill.unit)]
        said["again"] = protocol_from_dict(made.to_dict()) == made
        for name, given in (("width", (1, 7, 1000)), ("shuffled_budget", (1e-8, 1e-4))):
            if hasattr(made, name):
                said[name] = [asked(getattr(made, name), each) for each in given]
        found[str(budget)] = said
    return found


def party(made, number, seed):
    """One of this number; a report of a shuffled round has a random one."""
    return made.party(None if getattr(made, "shuffled", None) else number, source=seeded_source(seed))


def counts(made):
    lower, upper = made.bounds(0.9)
    return [made.values, made.deviations, lower, upper, *made.bounds(0.999), made.shortfall, made.excess]


def whole(make):
    """What it states, and a round of twelve parties, one of whom repeats itself."""

    def case():
        found = stated(make)
        for budget, seed in ((Budget(0.7), 1), (Budget(4.0), 2)):
            made = make(budget)
            most = None if not made.local else 1 if getattr(made, "shuffled", None) else 5
            limits = {"max_reports": 5} if most == 5 else {}
            aggregator = made.aggregator(**limits)
            repeat_from(str(budget))  # whatever drew before, such as a library when it was loaded
            messages = [party(made, n, 100 * seed + n).encode(items_of(made, n)[:most]) for n in range(1, 13)]
            found[f"{budget} messages"] = messages
            if getattr(made, "shuffled", None) is not None:
                half = [made.bundle(messages[:5]), made.bundle(messages[5:])]
                found[f"{budget} bundles"] = [half, aggregator.receive_many(half)]
            found[f"{budget} heard"] = [
                aggregator.receive_many(messages),
                asked(aggregator.receive, messages[3]),
                asked(aggregator.receive, messages[0][:-1]),
                asked(aggregator.receive, b""),
            ]
            found[f"{budget} members"] = recorded.members(aggregator, without={"protocol", "limits"})
            found |= {
                f"{budget} {name}": said for name, said in answers(made, aggregator, items_of(made, 3)[:6]).items()
            }
            state = aggregator.to_bytes()
            again = made.restore(state, **limits)
            found[f"{budget} state"] = [
                state if not hasattr(made, "shuffled") or made.shuffled is None else len(state),
                again.to_bytes() == state,
                again.parties,
            ]
            other = made.aggregator(**limits)
            other.receive(party(made, 77, 9).encode(items_of(made, 5)[: most and 1]))
            found[f"{budget} merged"] = [
                asked(again.merge, other),
                asked(again.merge, other),
                asked(lambda a=again, m=made: counts(a.estimate(items_of(m, 3)[:6]))),
            ]
        return recorded.told(found)

    return case


def answers(made, aggregator, some):
    found = {
        "counts": asked(lambda: counts(aggregator.estimate(some))),
        "consistent": asked(lambda: counts(aggregator.estimate(some, consistent=True))),
        "liars": [asked(lambda s=s: vars(aggregator.liars(some, s))) for s in (0.01, 0.3, 0, 1)],
    }
    if isinstance(made, GridHierarchy):
        corners = [made.universe.items([place])[0] for place in (0, made.universe.size - 1, 7)]
        found["ranges"] = [
            asked(lambda a=a, b=b, c=c: ends(aggregator.range_count(a, b, c)))
            for a, b in product(corners, corners)
            for c in (0.5, 0.99)
        ]
    elif hasattr(aggregator, "range_count"):
        found |= of_intervals(aggregator, [made.universe.items([place])[0] for place in (0, 3, 8)])
    return found


def ends(made):
    return [made.value, made.lower, made.upper]


def of_intervals(aggregator, known):
    found = {
        "ranges": [
            asked(lambda a=a, b=b, c=c: ends(aggregator.range_count(a, b, c)))
            for a, b in product(known, known)
            for c in (0.5, 0.99)
        ]
    }
    found["quantiles"] = [
        asked(lambda s=s, c=c: ends(aggregator.quantile(s, c)))
        for s in (0, 0.1, 0.5, 0.9, 1, -0.1, 1.1, True)
        for c in (0.9, 0.999)
    ]
    found["heavy"] = [
        asked(lambda s=s, m=m, c=c: heavy(aggregator.heavy_hitters(s, max_candidates=m, confidence=c)))
        for s in (0.02, 0.2, 0.9, 0, 1)
        for m in (None, 1, 3)
        for c in (0.6, 0.99)
    ]
    return found


def heavy(made):
    return [made.items, counts(made.estimates), made.threshold, made.complete]


def streamed(make):
    """What it states, and thirty steps of three parties, one of whom joins late and one stops early."""

    def case():
        found = stated(make)
        for budget, seed in ((Budget(1.0), 1), (Budget(6.0), 2)):
            made = make(budget)
            known = [made.universe.items([place])[0] for place in range(min(6, made.universe.size))]
            parties = [made.party(n, start=6 * (n == 2), source=seeded_source(10 * seed + n)) for n in range(3)]
            aggregator = made.aggregator(expected=[0, 1, 2, 8])
            for time in range(1, 31):
                for number, party in enumerate(parties):
                    if (number == 2 and time <= 6) or (number == 1 and time > 20):
                        continue
                    said = party.feed(
                        [None if (time + number) % 5 == 0 else known[time * time * (number + 1) % len(known)]]
                    )
                    if said is not None:
                        found[f"{budget} message {number} at {time}"] = [
                            said,
                            asked(aggregator.receive, said),
                            asked(aggregator.receive, said),
                        ]
                if time == 15:
                    found[f"{budget} states"] = [len(party.to_bytes()) for party in parties]
                    aggregator = made.restore(aggregator.to_bytes())
                if time in (7, 15, 30):
                    found[f"{budget} counts at {time}"] = asked(lambda a=aggregator, k=known: moment(a.estimate(k)))
            found[f"{budget} advanced"] = [
                asked(parties[0].advance, 37),
                asked(parties[0].advance, 5),
                parties[0].time,
                asked(aggregator.advance, 40),
                aggregator.time,
            ]
            found[f"{budget} earlier"] = [
                asked(lambda a=aggregator, k=known, t=t: moment(a.estimate(k, t))) for t in (0, 3, 10, 22, 30, 40, 41)
            ]
            found[f"{budget} liars"] = [
                asked(lambda a=aggregator, k=known, s=s: vars(a.liars(k, s))) for s in (0.01, 0.5)
            ]
            if hasattr(aggregator, "at"):
                for time in (None, 10, 30):
                    found[f"{budget} intervals at {time}"] = asked(
                        lambda a=aggregator, k=known, t=time: of_intervals(a.at(t), k[:3])
                    )
            found[f"{budget} state"] = [len(aggregator.to_bytes()), recorded.members(aggregator, without={"protocol"})]
        return recorded.told(found)

    return case


def moment(made):
    return [*counts(made), made.since, made.time, made.coverage, made.absent]


def rows(made):
    return [str(made), made.to_dict()]


def plan_case():
    found = {}
    for given in [(100, 2000, 1.0), (3, 50, 4.0, 100.0)]:
        for more in ({}, {"branching": 4}, {"zipf": 2.0, "universe_size": 100}):
            found[f"{given} {more}"] = asked(lambda g=given, m=more: rows(plan(*g, **m)))
    for steps in (10, 300):
        for more in ({}, {"window": True}, {"branching": 3, "universe_size": 50, "bytes_per_party": 20.0}):
            found[f"{steps} {more}"] = asked(lambda s=steps, m=more: plan(50, None, 2.0, steps=s, **m).to_dict())
    words = {
        "parties": 100,
        "total": 10**4,
        "epsilon": 1.0,
        "bytes_per_party": 500.0,
        "universe_size": 1000,
        "zipf": 1.2,
        "branching": 4,
    }
    found["taken"] = recorded.taken(
        plan, words, {"total": None, "parties": (2**40 + 1,), "universe_size": (2**62 + 1,)}
    )
    found["together"] = [
        asked(plan, 5, epsilon=1.0),
        asked(plan, 5, 5, 1.0, steps=5),
        asked(plan, 5, 5, 1.0, window=True),
    ]
    return found


def part_case():
    """Levels, grids, packets, words on the wire."""
    some = np.array([0, 1, 7, 19])
    made = {
        "levels": [
            [
                f.widths,
                [f.count(level) for level in range(len(f))],
                [f.nodes(some, level) for level in range(len(f))],
                f.cover(2, 17),
                f.cover(0, 19),
                f.cover(5, 5),
                f.children(np.array([0, 1]), 0),
            ]
            for f in (levels.levels_of(levels.ordered_universe(20), b) for b in (None, 2, 3, 16))
        ],
        "texts": [
            [
                s.size,
                s.bounded,
                s.items(np.arange(6)),
                s.words(["a", "b", "", "ba"][:3]),
                s.levels(None).widths,
                s.to_dict(),
            ]
            for s in (levels.Strings("ab", 2), levels.Strings("abc", 4))
        ],
        "texts taken": recorded.taken(
            levels.Strings, {"alphabet": "abc", "max_length": 3}, {"alphabet": ("aa", "", "a"), "max_length": (64, 65)}
        ),
        "branching": [
            asked(levels.levels_of, levels.ordered_universe(20), b) for b in (0, 1, 2, 2**16, 2**16 + 1, 1.5, "x")
        ],
        "grids": [
            [
                g.size,
                g.sizes,
                g.bounded,
                g.to_dict(),
                g.items([0, 5, 11]),
                g.words([(1, "b"), (3, "a")]),
                asked(g.words, [(1,)]),
                asked(g.words, [(99, "a")]),
            ]
            for g in (grid.grid_universe((4, ["a", "b", "c"])),)
        ],
        "boxes": [
            [
                b.combinations,
                b.most,
                [b.counts(level) for level in range(b.most + 1) if level < len(b.combinations)],
                asked(b.cover, (0, 0), (3, 2)),
                asked(b.cover, (1, 1), (2, 1)),
            ]
            for b in (grid.boxes_of(grid.grid_universe((4, 3)), n) for n in (None, 2, 4))
        ],
        "grids taken": [
            asked(grid.grid_universe, given) for given in ((), (3,), (3, 4), 5, "x", [2, 2], (2**40, 2**40), (2, None))
        ],
        "most_of": [estimates.most_of(np.array([[1.0, -2.0], [3.0, 4.0], [-5.0, 0.5]]), n) for n in (0, 1, 2, 9)],
        "varints": [[wire.varint(n), wire.read_varint(wire.varint(n), 0)] for n in (0, 1, 127, 128, 2**40, 2**63 - 1)],
        "bad varints": [
            asked(wire.read_varint, data, at)
            for data, at in ((b"", 0), (b"\xff", 0), (b"\x80" * 12 + b"\x01", 0), (b"\x80\x00", 0), (b"\x01", 1))
        ],
        "parts": [
            [wire.pack_parts(p), [bytes(x) for x in wire.unpack_parts(wire.pack_parts(p), 3)]]
            for p in ([b"a"], [b"", b"bb", b"c"])
        ]
        + [asked(wire.unpack_parts, wire.pack_parts([b"a"] * 4), 3), asked(wire.unpack_parts, b"", 3)],
        "entries": [wire.write_entries(np.array([1, 5, 9]), np.array([3, -4, 10**6]))],
        "spans": spans(),
        "blocks": [
            [
                packets.Block(level, j).first,
                packets.Block(level, j).end,
                asked(lambda at=level, j=j: packets.Block(at, j).halves),
            ]
            for level in (1, 2, 3)
            for j in (1, 2, 5)
        ],
        "levels_for": [packets.levels_for(n) for n in (1, 2, 3, 8, 9, 1000)],
        "scales": [asked(party_sketches.check_scales, Fraction(2) ** n) for n in (0, 30, 40, 50, 51, 60)]
        + [asked(party_sketches.check_rows, n) for n in (0, 1, 2, 3, 255, 256, 257)],
        "variances": [party_sketches.laplace_variance(s) for s in (0.1, Fraction(1), Fraction(50))]
        + [party_sketches.noise_reach(Fraction(s)) for s in (1, 9)]
        + [party_sketches.width_of(n, c) for n in (0, 1, 9, 1000) for c in (0.5, 3.0)],
        "cells": [
            party_sketches.sketch_cells(np.array([1, 2, 2, 9], np.uint64), 4, 3, 7),
            party_sketches.with_noise(np.array([0, 5, -9]), Fraction(3), 8, seeded_source(1)),
        ],
    }
    return recorded.told(made)


def spans():
    known, found = packets.Spans(), []
    for after, to in ((5, 9), (0, 2), (9, 12), (2, 4), (4, 5)):
        known.add(after, to)
        found.append(
            [
                known.count(0, 20),
                known.count(3, 10),
                known.overlaps(11, 12),
                known.overlaps(12, 13),
                known.overlaps(4, 5),
                str(vars(known)),
            ]
        )
    known.forget(8)
    return [*found, known.count(0, 20), known.overlaps(0, 8)]


def range_case():
    budget, kinds = {"budget": Budget(1.0)}, {}
    odd = {
        "budget": (Budget(1.0, 1e-6), Budget.zcdp(1.0), Budget(1e-17)),
        "round_id": ("", "x" * 200, "x" * 201),
        "universe": (0, 2**62, 2**62 + 1, [], ["a", "a"], "texts", "strings", "integers"),
    }
    for kind, own, more in [
        (HadamardResponse, {"shuffled": 20}, {"shuffled": (2, 2**24 + 1)}),
        (LocalHashing, {"shuffled": 20}, {}),
        (LocalSketch, {"columns": 3, "shuffled": None}, {"columns": (2, 2**31)}),
        (
            IndependentSketches,
            {"items_per_column": 2.0, "rows": 3, "max_items": 100},
            {"rows": (2, 255, 257), "max_items": (2**40 + 1, 2**62)},
        ),
        (
            Separation,
            {
                "items_per_column": 2.0,
                "items_per_entry": 3,
                "threshold": 5,
                "separation_share": 0.3,
                "rows": 3,
                "max_items": 100,
            },
            {"rows": (2,)},
        ),
        (
            Hierarchy,
            {"protocol": "IndependentSketches", "branching": 3, "options": {}},
            {
                "protocol": ("HadamardResponse", "LocalHashing", "LocalSketch", "Separation", "Hierarchy"),
                "branching": (2, 2**16 + 1),
                "options": ({"rows": 3}, {"x": 1}),
            },
        ),
        (
            Stream,
            {"epoch_steps": 2, "horizon": 20, "rows": 3, "columns": 4, "sample_share": 0.3},
            {"horizon": (3, 2**40 + 1), "rows": (2,)},
        ),
        (Stream, {"epoch_steps": 2, "window": 20, "columns": 4}, {"window": (2, 3)}),
        (HierarchicalStream, {"epoch_steps": 2, "branching": 3, "columns": 4}, {"branching": (2,)}),
    ]:
        made = recorded.taken(kind, {"round_id": "r", **budget, "universe": 9, **own}, {**odd, **more})
        kinds[f"{kind.__name__} {', '.join(own)}"] = made
    kinds["both"] = [asked(Stream, "r", Budget(1.0), 9, horizon=9, window=9)]
    sketches = MADE["independent"](Budget(1.0))
    kinds["aggregators"] = recorded.taken(
        sketches.aggregator, {"max_items": 5, "max_reports": 1, "minimum_reports": 0}, {"max_reports": (2,)}
    )
    kinds["local aggregators"] = recorded.taken(
        MADE["hashing"](Budget(1.0)).aggregator, {"max_reports": 5, "minimum_reports": 3}, {}
    )
    kinds["shuffled aggregators"] = recorded.taken(
        MADE["hashing, shuffled"](Budget(1.0)).aggregator, {"max_reports": 5, "minimum_reports": 3}, {}
    )
    kinds["parties"] = recorded.taken(sketches.party, {"number": 3}, {"number": (2**62, 2**63 - 1, 2**63, 2**64)})
    stream = STREAMS["stream"](Budget(1.0))
    kinds["stream parties"] = recorded.taken(
        stream.party, {"number": 3, "start": 2}, {"number": (2**62, 2**63, 2**64), "start": (29, 30, 31)}
    )
    kinds["fields"] = [
        asked(protocol_from_dict, given)
        for given in ({}, {"protocol": "x"}, {**sketches.to_dict(), "version": 9}, {**sketches.to_dict(), "y": 1}, 3)
    ]
    return kinds


def refused(question, *given, **named):
    try:
        return recorded.told(question(*given, **named))
    except DiscreetError as error:
        return recorded.refusal(error)


CASES = {name: whole(make) for name, make in MADE.items()}
CASES |= {name: streamed(make) for name, make in STREAMS.items()}
CASES |= {"plans": plan_case, "parts": part_case, "ranges": range_case}


SLOW = {"plans", "hierarchical texts"}  # tests/statistical/test_slow_numbers.py


@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_what_is_recorded(name):
    recorded.check("multiparty", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("multiparty")) == set(CASES)
