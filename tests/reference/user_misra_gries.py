"""Algorithm 4 (PAMG) of Lebeda and Tetek, line by line: the oracle for the kernel over sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field


@dataclass
class Sketch:
    """Counters of the stored items, and how often all counters were decremented."""

    c: dict[Hashable, int] = field(default_factory=dict)
    decrements: int = 0


def user_misra_gries(users: Iterable[Iterable[Hashable]], k: int, start: Sketch | None = None) -> Sketch:
    """Algorithm 4 on a stream of sets, from an empty sketch or continuing one."""
    sketch = Sketch() if start is None else Sketch(dict(start.c), start.decrements)
    c = sketch.c
    for S in users:
        for x in set(S):  # increment the count of each element
            c[x] = c.get(x, 0) + 1
        if len(c) > k:  # decrement all counters and remove the keys of zero counters
            sketch.decrements += 1
            for x in list(c):
                c[x] -= 1
                if c[x] == 0:
                    del c[x]
    return sketch


def merge(first: Sketch, second: Sketch, k: int) -> Sketch:
    """Section 7: add the counters, subtract the (k+1)-th largest from all, keep the positive ones."""
    c = {x: first.c.get(x, 0) + second.c.get(x, 0) for x in {**first.c, **second.c}}
    cut = sorted(c.values(), reverse=True)[k] if len(c) > k else 0
    kept = {x: count - cut for x, count in c.items() if count > cut}
    return Sketch(kept, first.decrements + second.decrements + cut)
