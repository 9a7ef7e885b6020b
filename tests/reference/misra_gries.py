"""Algorithm 1 of Lebeda and Tetek (2023), line by line: the oracle for the sketch and for the proofs about it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Dummy:
    """One of the k keys outside the universe the sketch starts with."""

    number: int


@dataclass(frozen=True)
class Sketch:
    """The stored keys (dummies included) with their counters, and how often all counters were decremented."""

    counters: frozenset[tuple[Hashable, int]]
    decrements: int


def paper_order(key: Any) -> tuple[int, Any]:
    """The paper's order: the universe first, the dummies d+1, ..., d+k after it."""
    return (1, key.number) if isinstance(key, Dummy) else (0, key)


def empty_sketch(k: int) -> Sketch:
    return Sketch(frozenset((Dummy(number), 0) for number in range(k)), 0)


def update(sketch: Sketch, x: Hashable, order: Callable[[Any], Any] = paper_order) -> Sketch:
    """One pass of the loop. `order` sorts the keys; any order that does not depend on the stream will do."""
    c = dict(sketch.counters)
    decrements = sketch.decrements
    if x in c:  # Branch 1: increment the counter
        c[x] += 1
    elif all(count >= 1 for count in c.values()):  # Branch 2: decrement all counters
        c = {key: count - 1 for key, count in c.items()}
        decrements += 1
    else:  # Branch 3: replace the smallest key with counter 0
        y = min((key for key, count in c.items() if count == 0), key=order)
        del c[y]
        c[x] = 1
    return Sketch(frozenset(c.items()), decrements)


def misra_gries(
    stream: Iterable[Hashable], k: int, order: Callable[[Any], Any] = paper_order, start: Sketch | None = None
) -> Sketch:
    """Algorithm 1 on a whole stream, from the empty sketch or continuing one."""
    sketch = empty_sketch(k) if start is None else start
    for x in stream:
        sketch = update(sketch, x, order)
    return sketch


def merge(first: Sketch, second: Sketch, k: int) -> Sketch:
    """Section 7: zero counters are dropped, counters add up and lose the (k+1)-th largest; dummies fill up again."""
    sums: dict[Hashable, int] = {}
    for key, count in [*first.counters, *second.counters]:
        if count > 0:
            sums[key] = sums.get(key, 0) + count
    cut = sorted(sums.values(), reverse=True)[k] if len(sums) > k else 0
    kept = {key: count - cut for key, count in sums.items() if count > cut}
    dummies = {Dummy(number): 0 for number in range(k - len(kept))}
    return Sketch(frozenset({**kept, **dummies}.items()), first.decrements + second.decrements + cut)


def stored(sketch: Sketch) -> dict[Hashable, int]:
    """The counters of keys of the universe."""
    return {key: count for key, count in sketch.counters if not isinstance(key, Dummy)}
