"""Cases of `discreet.summaries`: sums of values and their bounds, people and their combinations, sketches, memory."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
from tests.golden.answers.pin import each, tried
from tests.golden.commands.tables import Numbers

import discreet as dc
from discreet.summaries.combinations import MOST_COMBINATIONS, Combinations, most_of
from discreet.summaries.counters import RawCounts, ValuesSeen, wrap_counters
from discreet.summaries.memory import COUNTERS, KEY_BYTES, SKETCH_MEMORY, Memory, counters_in
from discreet.summaries.moments import GroupSums, ValueMoment
from discreet.summaries.people import ListedPeople, ValueRange, by_person, discovery_weight, each_once, scaled

KINDS = ("count", "signed", "split", "sum", "mean", "variance")
RANGES = {
    "unit": (0.0, 1.0),
    "whole": (-3, 12),
    "below zero": (-9.5, -1.25),
    "wide": (0.0, 2.0**31),
    "mixed": (-2.0, 1.0),
}
VALUES = np.array([-100.0, -9.5, -3.0, -1.25, -0.3, 0.0, 0.1, 0.5, 1.0, 1.5, 7.0, 11.49, 12.0, 1e9, 1e300])


def moment(kind, ends):
    def ask():
        made = ValueMoment(kind, *ends)
        coarse = ValueMoment(kind, *ends, finest=100)
        entries = made.entries(VALUES)
        sums = np.array(
            [[0.0] * made.parts, [5.0] * made.parts, [2.0, 7.0, 1.0][: made.parts], [-1.0, 3.0, 9.0][: made.parts]]
        )
        lower = np.array(
            [
                [0.0] * made.parts,
                [1.0, 0.0, 3.0][: made.parts],
                [-4.0, 2.0, 1.0][: made.parts],
                [0.0, 0.0, 5.0][: made.parts],
            ]
        )
        upper = lower + np.array(
            [
                [1.0] * made.parts,
                [0.0, 2.0, 4.0][: made.parts],
                [9.0, 0.5, 1.0][: made.parts],
                [7.0, 6.0, 1.0][: made.parts],
            ]
        )
        return {
            "numbers": [made.parts, made.one, made.wide, made.largest, made.rounding],
            "coarse": [coarse.one, coarse.rounding, coarse.entries(VALUES).sum(axis=0)],
            "entries": entries[:9],
            "total": made.total(VALUES.copy()),
            "total of entries": entries.sum(axis=0),
            "answer": made.answer(sums),
            "within": made.within(lower, upper),
            "ends": made.ends(np.array([-1e9, -2.5, 0.0, 0.7, 60.0, 1e12])),
        }

    return ask


def chance_people(seed=5, number=30, items=9, most=7):
    chance = Numbers(seed)
    return [[f"i{chance.skewed(items)}" for _ in range(chance.below(most))] for _ in range(number)]


PEOPLE = [*chance_people(), [], ["lonely"], ["i0"] * 5, [f"j{n}" for n in range(12)]]


def people(**how):
    def ask():
        made = ListedPeople(PEOPLE, **how)
        weights = made.discovery_weights(4)
        all_places = np.arange(len(weights))
        chosen = np.array([3, 0, 5, 1])
        aims = 1 + all_places % 5
        return {
            "repr": repr(made),
            "items": made.items(chosen),
            "weights": weights,
            "weights of one": made.discovery_weights(1),
            "weights of all": made.discovery_weights(99),
            "aimed": made.aimed_weights(4, aims),
            "groups": made.groups(chosen),
            "holdings": [[np.asarray(part) for part in held] for held in made.holdings(chosen)],
            "lengths": made.lengths(all_places, np.ones(len(weights), np.int64)),
            "lengths of chosen": made.lengths(chosen, np.array([1, 2, 3, 4])),
            "large lengths": made.lengths(chosen, np.array([2**40, 1, 2**39, 3])),
            "scaled": made.scaled_sums(all_places, np.ones(len(weights), np.int64), 1.5),
            "scaled chosen": made.scaled_sums(chosen, np.array([1, 2, 3, 4]), 3.0),
        }

    return ask


def combinations(size, order):
    def ask():
        listed = ListedPeople(PEOPLE)
        places = np.array(order)
        made = listed.combinations(places, size)
        every = np.arange(made.total)
        return {
            "repr": repr(made),
            "total": made.total,
            "items": made.items(every[:12]),
            "last": made.items(every[-2:]),
            "none": made.items(every[:0]),
            "weights": made.discovery_weights(1),
            "aimed": made.aimed_weights(1, 1 + every % 3),
            "products": made.products(np.linspace(0.5, 2.0, len(places))),
            "lengths": made.lengths(every, np.ones(made.total, np.int64)),
            "lengths of some": made.lengths(every[1:4], np.array([1, 2, 3])),
            "scaled": made.scaled_sums(every[1:4], np.array([1, 2, 3]), 2.0),
        }

    return ask


STREAM = [f"k{Numbers(n).skewed(50)}" for n in range(60)] + ["a", "b", "a", "a"]


def sketch(make, **more):
    """A summary of a stream, what it says of items, and of another that is merged into it."""

    def ask():
        made, other = make(), make()
        made.update(STREAM)
        other.update(STREAM[:20])
        said = {
            "repr": repr(made),
            "length": [len(made), made.total, made.key_type, made.was_merged, made.max_key_bytes, made.seed],
            "estimates": [made.estimate(item) for item in ("a", "b", "k0", "never")],
            "memory": made.memory_bytes > 0,
            "counts": made.not_private_counts().to_dict() if hasattr(made._native, "counters") else None,
            "not private": {
                name: tried(getattr, made, name)
                for name in sorted(dir(made))
                if name.startswith("not_private")
                and name not in ("not_private_counts", "not_private_shards")
                and not callable(getattr(made, name))
            },
            "copy": made.copy().to_bytes() == made.to_bytes(),
            "again": pickle.loads(pickle.dumps(made)).to_bytes() == made.to_bytes(),
        }
        made.merge(other)
        said["merged"] = [made.total, made.was_merged, len(made.lineage), made.estimate("a"), made.estimate("k0")]
        for name, call in more.items():
            said[name] = tried(call, made)
        return said

    return ask


def columns(given):
    """What a summary makes of columns of every kind."""
    exact = dc.ExactCounts(seed=1)
    exact.update(given, nulls="skip")
    return [exact.key_type, exact.total, sorted(exact.not_private_counts().to_dict().items(), key=str)]


def seen(nulls):
    def ask():
        made = ValuesSeen("groups")
        found = [
            tried(made.of, column, nulls)
            for column in (
                ["b", None, "a", 1, "b", 2**70, 1.5, b"a"],
                pa.array(["a", None, "c"]),
                np.array([5, 1, 5]),
                pa.array([2**63], pa.uint64()),
                ["x" * 5000, "b"],
                pa.array([1.5]),
                iter(["b"]),
                7,
            )
        ]
        return [found, len(made), made.column(), made.raw()[0]]

    return ask


def bad_batches(summary):
    def ask():
        return each(
            lambda items: (summary.update(items), summary.total)[1],
            ["a", None],
            [1.5, 2.5],
            ["a", 1.5],
            ["a" * 5000],
            [2**64],
            [2**64 - 1],
            [-(2**63)],
            [-(2**63) - 1],
            "abc",
            5,
            [["a"]],
            [True],
            [None],
        )

    return ask


def repeated(items, counts):
    made = dc.MisraGries(4, seed=1)
    made.update_counts(items, counts)
    return [made.total, made.not_private_offset, made.not_private_counts().to_dict()]


COUNTS = {
    "plain": (["a", "b", "a"], [3, 4, 5]),
    "none": ([], []),
    "wide": (["a"], np.array([2**40])),
    "truths": (["a"], [True]),
    "halves": (["a"], [1.5]),
    "too few": (["a", "b"], [1]),
    "a table": (["a"], [[1]]),
    "negative": (["a"], [-1]),
    "none of it": (["a"], [0]),
    "unsigned": (["a"], np.array([3], np.uint64)),
    "small": (["a"], np.array([3], np.uint8)),
    "empty floats": ([], np.array([], np.float64)),
    "many": ([f"i{n}" for n in range(9)], list(range(1, 10))),
}


def group_sums():
    keys, others = pa.array(["b", "a"]), pa.array(["c", "b"])
    one, other = GroupSums(np.array([[1, 2], [3, 4]]), keys), GroupSums(np.array([[10, 20], [30, 40]]), others)
    bare = GroupSums(np.array([[5, 6]]))
    found = [one + other, bare + bare, bare + one, one + bare]
    return [*((each.sums, each.keys) for each in found), repr(one)]


CASES = {
    **{f"{kind} {name}": moment(kind, ends) for kind in KINDS for name, ends in RANGES.items()},
    "kinds": lambda: each(lambda kind: ValueMoment(kind).parts, *KINDS, "median", "", 1),
    "ranges": lambda: each(
        lambda ends: ValueMoment("sum", *ends).one,
        (0, 1),
        (1, 0),
        (1, 1),
        (0.0, math.inf),
        (math.nan, 1.0),
        (True, 2),
        ("0", 1),
        (0.0, 1e-150),
        (0.0, 1.01e-150),
        (0.0, 1e150),
        (0.0, 0.99e150),
        (-1e150, -0.9e150),
        (-1.01e150, -1e150),
        (-1e308, 1e308),
        (0.0, 2.0**30),
        (0.0, 2.0**30 + 1),
        (0, 3),
        (0.0, 0.5),
        (0, 0.999),
    ),
    "group sums": group_sums,
    # people
    "people": people(),
    "people by rows": people(rows=True),
    "people by values": people(
        values=[[0.25 * n for n in range(len(items))] for items in PEOPLE], value_range=ValueRange(0, 2)
    ),
    "people who choose otherwise": people(choice=7),
    "no people": lambda: [
        ListedPeople([]).discovery_weights(3),
        ListedPeople([[], []]).discovery_weights(3),
        ListedPeople([]).items(np.array([], np.int64)),
    ],
    "value ranges": lambda: each(
        lambda ends: ValueRange(*ends).steps(np.array([-1.0, 0.0, 0.4, 1.0, 3.0, 1e12])),
        (0, 1),
        (0.0, 2.0**32),
        (0, 2**32 + 1),
        (0, 0.99),
        (0, 1.0),
        (-1, 1),
        (1, 1),
        (2, 1),
        (0, math.inf),
        (math.nan, 1),
        (True, 2),
        ("0", 1),
        (0.5, 2),
    ),
    "weights": lambda: discovery_weight(np.array([1, 2, 3, 4, 9, 1000, 2**24])),
    "scaling": lambda: scaled(np.array([1, 2, 3]), np.array([1, 4, 16]), 2.0),
    "by person": lambda: by_person(np.array([3, 1, 1, 3, 2, 1]), np.array([0, 2, 1, 0, -1, 2])),
    "each once": lambda: [each_once(np.array(n)) for n in ([1, 2, 3], [3, 1, 1], [2, 2], [5], [0.5, 0.5])],
    "pairs": combinations(2, (4, 0, 2, 7, 1)),
    "triples": combinations(3, (4, 0, 2, 7, 1)),
    "pairs of one": combinations(2, (4,)),
    "most of": lambda: [[most_of(size), math.comb(most_of(size), size) <= MOST_COMBINATIONS] for size in (2, 3, 4)],
    "combinations of a person": lambda: Combinations(
        ListedPeople([[f"{n}" for n in range(140)], ["0", "1"]]), np.arange(140), 2
    ).lengths(np.arange(9730), np.ones(9730, np.int64)),
    # sketches
    "exact counts": sketch(lambda: dc.ExactCounts(seed=1)),
    "misra-gries": sketch(lambda: dc.MisraGries(6, seed=1)),
    "space saving": sketch(lambda: dc.SpaceSaving(6, seed=1)),
    "shards": sketch(
        lambda: dc.ShardedMisraGries(4, 3, seed=1),
        shards=lambda made: [each.to_dict() for each in made.not_private_shards()],
        shard_of=lambda made: [made.shard_of(item) for item in ("a", "b", 1)],
    ),
    "count-min": sketch(
        lambda: dc.CountMin(8, 3, tracked=4, seed=1),
        shape=lambda made: [made.width, made.depth, made.tracked, made.error_rate, made.failure_probability],
        many=lambda made: made.estimate_many(["a", "k0", "never"]),
        cells=lambda made: made.not_private_cells(),
        places=lambda made: made.places(["a", "k0"]),
    ),
    "count sketch": sketch(
        lambda: dc.CountSketch(16, 3, tracked=4, seed=1),
        shape=lambda made: [made.width, made.depth, made.tracked, made.error_rate, made.failure_probability],
        many=lambda made: made.estimate_many(["a", "k0", "never"]),
        cells=lambda made: made.not_private_cells(),
        places=lambda made: made.places(["a", "k0"]),
    ),
    "sketches of numbers": lambda: [
        [kind(9, 3, seed=2).error_rate, kind(9, 3, seed=2).failure_probability, repr(kind(9, 3, seed=2))]
        for kind in (dc.CountMin, dc.CountSketch)
    ],
    "estimates of small sketches": lambda: [
        (sketch_of.update([1, 2, 3, 3, 4, 5, 6, 7, 8, 9]), [sketch_of.estimate(n) for n in range(10)])[1]
        for sketch_of in (
            dc.CountMin(40, 2, seed=3),
            dc.CountMin(3, 2, seed=3),
            dc.CountSketch(90, 3, seed=3),
            dc.CountSketch(2, 1, seed=3),
        )
    ],
    "sketches for an error": lambda: [
        [made.width, made.depth, made.error_rate <= rate, made.failure_probability <= chance]
        for rate, chance in ((0.1, 0.1), (0.01, 1e-6), (0.3, 0.5), (math.e / 64, 0.9), (0.125, math.exp(-3)))
        for made in (kind.for_error(rate, chance, seed=1) for kind in (dc.CountMin, dc.CountSketch))
    ],
    "depths": lambda: each(lambda depth: dc.CountSketch(8, depth, seed=1).depth, 1, 2, 3, 254, 255, 256),
    "cells": lambda: each(lambda width: dc.CountMin(width, 255, seed=1).width, 10, 2**23 + 2**15, 2**31 // 255 + 1),
    "empty sketches": lambda: each(
        lambda most: dc.CountMin.from_bytes(dc.CountMin(1000, 3, seed=1).to_bytes(), max_bytes=most).width,
        None,
        24000,
        23999,
        -1,
        True,
    ),
    "bare classes": lambda: [
        tried(call)
        for call in (
            lambda: dc.CountMin(3, 1).merge(dc.CountSketch(3, 1)),
            lambda: dc.MisraGries.from_bytes("text"),
            lambda: dc.summaries.Summary().estimate("a"),
            lambda: dc.MisraGries(3).merge(dc.MisraGries(4)),
        )
    ],
    "people's sketch": lambda: [
        (
            made.update([["a", "b", "a"], [], ["b"], ["a", "b"]]),
            repr(made),
            made.not_private_users,
            made.samples,
            made.max_items_per_user,
            made.not_private_offset,
            made.estimate("a"),
            made.total,
        )[1:]
        for made in (dc.UserMisraGries(4, 2, seed=1), dc.UserMisraGries(2, 2, oversized="sample", seed=1))
    ],
    "oversized people": lambda: each(
        lambda how: dc.UserMisraGries(4, 2, oversized=how).update([["a", "b", "c"]]), "error", "sample", "drop"
    ),
    **{f"counts of {name}": lambda given=given: repeated(*given) for name, given in COUNTS.items()},
    "bad batches": bad_batches(dc.ExactCounts(seed=1)),
    "bad batches of shards": bad_batches(dc.ShardedMisraGries(4, 2, seed=1)),
    "bad items are errors": lambda: each(
        lambda items: dc.ExactCounts().update(items, bad_items="error"), ["a", 1.5], ["a" * 4096], ["a" * 4097], [2**64]
    ),
    "rules": lambda: each(lambda nulls: dc.ExactCounts().update(["a"], nulls=nulls), "skip", "error", "keep", None),
    "rules of bad items": lambda: each(lambda how: dc.ExactCounts().update(["a"], bad_items=how), "skip", "error", "x"),
    "columns": lambda: [
        columns(given)
        for given in (
            ["a", 1, b"a", 2**63, -1, None],
            pa.array([1, None, 2**40]),
            pa.array([2**63], pa.uint64()),
            pa.array([b"a", b""]),
            pa.array(["a", "b", "a"]).dictionary_encode(),
            np.array([1, 1, 3], np.int8),
            [],
        )
    ],
    "values seen": seen("skip"),
    "values seen, no nulls": seen("error"),
    "raw counts": lambda: [
        repr(raw := wrap_counters(("none", b"", b"", b"", b""))),
        len(raw),
        raw.items,
        raw.counts,
        repr(RawCounts(pa.array(["a"]), np.array([1]))),
        pickle.loads(pickle.dumps(RawCounts(pa.array(["a"]), np.array([1])))).to_dict(),
    ],
    # memory
    "sizes": lambda: each(
        lambda text: [Memory(text).bytes, Memory(text).room],
        "1KB",
        "2MB",
        "0.5GB",
        "1TB",
        "3KiB",
        "2MiB",
        "1.5gib",
        " 1 TiB ",
        "375MB",
        "374MB",
        "376MB",
        "1B",
        "MB",
        "1 PB",
        "-1MB",
        5,
    ),
    "least sizes": lambda: each(lambda text: Memory(text, SKETCH_MEMORY).bytes, "160MB", "159MB", "159999KB"),
    "of the machine": lambda: [0 < Memory().bytes <= 2**50, Memory().room <= Memory().bytes, Memory(None, 2**60).given],
    "counters": lambda: [
        [room, counters_in(room), counters_in(room, "SpaceSaving"), counters_in(room, "UserMisraGries")]
        for room in (0, 1, 10**4, 10**6, 10**8, 10**15)
    ],
    "counters and keys": lambda: [COUNTERS, KEY_BYTES, SKETCH_MEMORY],
    "shares of a stream": lambda: [Fraction(dc.CountMin(8, 1).error_rate) > Fraction(math.e) / 8],
}
