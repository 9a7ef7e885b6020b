"""Reads states that claim to be large, and uses them, in little memory. Arguments: a seed and a number of rounds.

Run by test_large_states.py in a process of its own with a limit on its memory. Every state here is of a few KiB; it is
changed in the numbers that decide about sizes and sealed again. Prints the states that took more than the limit.
"""

import random
import re
import resource
import struct
import sys
from pathlib import Path

import numpy as np

import discreet as dc
from discreet import _native, continual, pan
from discreet.multiparty import Stream
from discreet.noise import seeded_source

ROOM = 400 << 20
GOLDEN = Path(__file__).parents[1] / "golden"
BIG = [
    2**12,
    2**16,
    2**20,
    2**24,
    2**28,
    2**30 - 1,
    2**30,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**47,
    2**62,
    2**63,
    2**64 - 1,
]
B = dc.Budget(1.0, 1e-6)


def summary(cls, items):
    def use(data):
        linear = cls in (dc.CountMin, dc.CountSketch)
        made = cls.from_bytes(data, max_bytes=64 << 20) if linear else cls.from_bytes(data)
        made.update(items)
        made.estimate(items[0] if not isinstance(items[0], list) else items[0][0])
        made.to_bytes()

    return use


def seeds():
    """Name, small state, what to do with a state."""
    words = ["a", "b", "a"]
    made = {
        "MisraGries": (dc.MisraGries(8), words),
        "SpaceSaving": (dc.SpaceSaving(8), words),
        "ShardedMisraGries": (dc.ShardedMisraGries(8, 2), words),
        "UserMisraGries": (dc.UserMisraGries(8, 2), [words]),
        "ExactCounts": (dc.ExactCounts(), words),
        "CountMin": (dc.CountMin(16, 3, tracked=4), words),
        "CountSketch": (dc.CountSketch(16, 3, tracked=4), words),
    }
    for name, (empty, items) in made.items():
        yield f"{name} empty", empty.to_bytes(), summary(type(empty), items)
        empty.update(items)
        yield name, empty.to_bytes(), summary(type(empty), items)

    def step(cls, events):
        def use(data):
            cls.from_bytes(data, source=seeded_source(1)).step(events)

        return use

    for method in ("blt", "tree", "square-root"):
        counter = continual.Counter(8, B, method=method, source=seeded_source(1))
        yield f"Counter {method} new", counter.to_bytes(), step(continual.Counter, 1)
        counter.step(1)
        yield f"Counter {method}", counter.to_bytes(), step(continual.Counter, 1)
    for cls, options in (
        (continual.HeavyHitters, {"capacity": 4}),
        (continual.HeavyHitters, {"capacity": 4, "window": 2}),
        (continual.Histogram, {"universe": ["a", "b"], "max_items_per_event": 2}),
        (continual.Histogram, {"k": 2, "max_items_per_event": 2}),
    ):
        made = cls(8, B, source=seeded_source(1), **options)
        yield f"{cls.__name__} new {options}", made.to_bytes(), step(cls, ["a"])
        made.step(["a"])
        yield f"{cls.__name__} {options}", made.to_bytes(), step(cls, ["a"])
    distinct = continual.DistinctCount(8, B, source=seeded_source(1))
    yield "DistinctCount new", distinct.to_bytes(), step(continual.DistinctCount, ["u"])
    distinct.step(["u", b"v", 3])
    yield "DistinctCount", distinct.to_bytes(), step(continual.DistinctCount, ["u"])
    for users in (["u", "v"], [1, 2], ["u", 2]):
        people = continual.Histogram(8, B, unit=dc.User(3), source=seeded_source(1))
        people.step(["a", "b"], users=users)
        people.add(["c"], users=users[:1])

        def use(data):
            continual.Histogram.from_bytes(data, source=seeded_source(1)).step(["a"], users=["w"])

        yield f"Histogram of people {users}", people.to_bytes(), use

    def estimate(cls, items):
        def use(data):
            made = cls.from_bytes(data)
            made.update(items)
            made.release()

        return use

    for name, cls in (
        ("density", pan.Density),
        ("density-strings", pan.Density),
        ("distinct-count", pan.DistinctCount),
        ("cropped-mean", pan.CroppedMean),
        ("heavy-fraction", pan.HeavyFraction),
        ("heavy-fraction-counters", pan.HeavyFraction),
        ("heavy-fraction-ladder", pan.HeavyFraction),
        ("incidence", pan.Incidence),
        ("incidence-primes", pan.Incidence),
        ("modular-incidence", pan.ModularIncidence),
        ("occurrences", pan.Occurrences),
    ):
        items = ["a"] if "strings" in name else np.arange(3)
        yield f"pan {name}", (GOLDEN / f"pan/{name}-v2.state").read_bytes(), estimate(cls, items)
    stream = Stream("golden", dc.Budget(2.0), 5, epoch_steps=3, window=20, columns=4)

    def party(data):
        stream.restore_party(data).feed([1] * 3)

    def aggregator(data):
        stream.restore(data).estimate(range(5))

    yield "stream party", (GOLDEN / "multiparty/stream-v1.party").read_bytes(), party
    yield "stream aggregator", (GOLDEN / "multiparty/stream-v1.state").read_bytes(), aggregator


def numbers_of(state):
    """Where numbers are in the JSON of a state, if it has one."""
    found = re.search(rb'\{".*\}', state[32:4000], re.DOTALL)
    if not found:
        return []
    return [
        match for match in re.finditer(rb"(?<![\w.\"-])\d+(?![\w.])", state[: 32 + found.end()]) if match.start() > 40
    ]


def changed(generator, state):
    """The state with some numbers made large, and a right length and checksum."""
    data = bytearray(state)
    numbers = numbers_of(state)
    if numbers and generator.random() < 0.8:
        place = generator.choice(numbers)
        new = str(generator.choice(BIG)).encode()
        data[place.start() : place.end()] = new
        for size in (8, 4, 2):  # of the length of the JSON, which stands before it
            length = int.from_bytes(state[32 : 32 + size], "little")
            if 10 < length < len(state) and state[32 + size : 33 + size] == b"{":
                length += len(new) - (place.end() - place.start())
                data[32 : 32 + size] = length.to_bytes(size, "little")
                break
    else:
        for _ in range(generator.choice([1, 1, 2, 3])):
            size = generator.choice([8, 8, 4])
            at = 32 + generator.randrange(min(len(data) - 32, 200))
            if generator.random() < 0.7:
                at = 32 + (at - 32) // size * size
            value = generator.choice(BIG) % (1 << 8 * size)
            data[at : at + size] = value.to_bytes(size, "little")
    data[16:24] = struct.pack("<Q", len(data) - 32)
    return _native.reseal_state(bytes(data))


def main():
    seed, rounds = int(sys.argv[1]), int(sys.argv[2])
    generator = random.Random(seed)
    cases = list(seeds())
    for name, state, use in cases:
        use(state)
        assert _native.reseal_state(state) == state, name
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, now + ROOM))
    for name, state, use in cases:
        for number in range(rounds):
            data = changed(generator, state)
            try:
                use(data)
            except dc.DiscreetError:
                pass
            except MemoryError:
                sys.stdout.write(f"{name} {number} {len(data)} bytes\n")
            except Exception as error:
                sys.stdout.write(f"{name} {number} raises {type(error).__name__} {error}\n")


if __name__ == "__main__":
    main()
