"""Algorithm 2 of Holland (SS), line by line, and the merge of mergeable summaries: the oracle for the kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Sketch:
    """Counters C of the tracked items, tau (when each was last seen, from 1), and the length of the stream."""

    C: dict[Hashable, int] = field(default_factory=dict)
    tau: dict[Hashable, int] = field(default_factory=dict)
    length: int = 0


def space_saving(stream: Iterable[Hashable], k: int, start: Sketch | None = None) -> Sketch:
    """Algorithm 2 on a stream, from an empty sketch or continuing one."""
    sketch = Sketch() if start is None else Sketch(dict(start.C), dict(start.tau), start.length)
    C, tau = sketch.C, sketch.tau
    for x in stream:
        sketch.length += 1
        if x in C:
            C[x] += 1
        elif len(C) < k:
            C[x] = 1
        else:
            smallest = min(C.values())
            S = [a for a in C if C[a] == smallest]
            y = max(S, key=tau.__getitem__)  # the most recently seen of the minimal items
            C[x] = C.pop(y) + 1
            del tau[y]
        tau[x] = sketch.length
    return sketch


def untracked_bound(sketch: Sketch, k: int) -> int:
    """The largest frequency of an item without a counter."""
    return min(sketch.C.values()) if len(sketch.C) == k else 0


def merge(first: Sketch, second: Sketch, k: int, order: Callable[[Any], Any]) -> Sketch:
    """Counts add up, an untracked item counts with its side's bound, the k largest stay (ties by `order`).

    The second stream comes after the first: that decides which of two items was seen more recently.
    """
    bounds = untracked_bound(first, k), untracked_bound(second, k)
    total = {x: first.C.get(x, bounds[0]) + second.C.get(x, bounds[1]) for x in {**first.C, **second.C}}
    kept = sorted(total, key=lambda x: (-total[x], order(x)))[:k]
    tau = {x: first.length + second.tau[x] if x in second.tau else first.tau[x] for x in kept}
    return Sketch({x: total[x] for x in kept}, tau, first.length + second.length)
