"""Groups: pairs of a group and an item are counted once, and cut down only after the noise.

The law of what a release of groups shows is written out for short streams: rows go through the tables and keys that
`top_k` uses, the sketch and the mechanism are the real ones, and the top k of every group is taken of each output.
"""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.central import Offset
from discreet.events.keys import Keys, Layout
from discreet.events.tables import events_of
from discreet.noise import fresh_source, seeded_source
from discreet.privacy import Budget, Guarantee
from discreet.releases.release import Release
from discreet.summaries import MisraGries
from discreet_audit.central import SEED
from discreet_audit.central_questions import often
from discreet_audit.core import Audit, AuditCase, Effort, Finding, Twin, checked, largest, never, twin
from discreet_audit.exact import Divergence, OutputLaw, divergence, neighbouring_streams, release_law

Row = tuple[str, str]
Rows = tuple[Row, ...]

PAIRS: Rows = (("g", "x"), ("g", "y"), ("h", "x"))
CLOSE: tuple[Rows, Rows] = (
    (*[PAIRS[0]] * 7, *[PAIRS[1]] * 7),
    (*[PAIRS[0]] * 7, *[PAIRS[1]] * 8),
)
"""Two items of one group that change places with one row."""


@dataclass(frozen=True)
class GroupedTop:
    """The top k of every group, as `top_k(table, k, budget, column="item", by="group")` has it; for audits only.

    Args:
        budget: What it spends.
        k: How many items of a group are listed.
        listed: The public list of groups, or None.
        capacity: The number of counters.
    """

    budget: Budget
    k: int = 1
    listed: tuple[str, ...] | None = None
    capacity: int = 2

    @cached_property
    def mechanism(self) -> Offset:
        """What draws the noise."""
        return Offset(self.budget, self.capacity)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised: that of one release."""
        return self.mechanism.guarantee

    def counted(self, rows: Rows) -> Rows:
        """The rows that are counted: each once."""
        return rows

    def named(self, rows: Rows) -> tuple[str, ...] | None:
        """The groups that are named whether or not they have an item: those of the list."""
        return self.listed

    def summary(self, rows: Rows) -> tuple[MisraGries, Keys]:
        """The sketch of the rows, and what makes groups and items of its keys again."""
        counted, names = self.counted(rows), ["group", "item"]
        table = {name: pa.array([row[place] for row in counted], pa.string()) for place, name in enumerate(names)}
        found = events_of(table).rows("item", by=("group",), groups=self.listed)
        sketch = MisraGries(self.capacity, seed=SEED)
        found.feed(sketch)
        assert found.keys is not None
        return sketch, found.keys

    def release(self, rows: Rows, source: Any) -> Release:
        """The release of some rows."""
        sketch, keys = self.summary(rows)
        drawn = self.mechanism.of_snapshot(sketch, source)
        return drawn.with_items(keys.items(drawn.item_column), keys.by, keys.groups()).head(self.k)


def law_of_groups(top: GroupedTop, rows: Rows, cutoff: float = 1e-6) -> OutputLaw:
    """The law of what is shown of some rows: the largest k of every group, and the groups that are named."""
    sketch, keys = top.summary(rows)
    drawn = release_law(top.mechanism, sketch, cutoff)
    known: dict[str, Row] = {}
    named = tuple(sorted(top.named(rows) or ()))
    mass: dict[Any, float] = {}
    for output, probability in drawn.mass.items():
        shown: dict[str, list[tuple[int, str]]] = {}
        for key, count in output.counts:  # type: ignore[attr-defined]
            if key not in known:
                item = keys.items(pa.array([literal_eval(key)], pa.large_binary())).to_pylist()[0]
                known[key] = item["group"], item["item"]
            group, name = known[key]
            shown.setdefault(group, []).append((-count, name))
        best = tuple((group, *sorted(found)[: top.k]) for group, found in sorted(shown.items()))
        seen = (best, named, output.offset)  # type: ignore[attr-defined]
        mass[seen] = mass.get(seen, 0.0) + probability
    return OutputLaw(mass, drawn.missing)


def worst_of(top: GroupedTop, pairs: Sequence[tuple[Rows, Rows]]) -> Divergence:
    """The largest divergence of neighbours, in both directions, at the epsilon that is claimed."""
    epsilon, both = top.guarantee.epsilon or 0.0, [way for pair in pairs for way in (pair, pair[::-1])]
    laws = {rows: law_of_groups(top, rows) for rows in dict.fromkeys(rows for pair in pairs for rows in pair)}
    found = [divergence(laws[first], laws[second], epsilon) for first, second in both]
    return Divergence(max(each.lower for each in found), max(each.upper for each in found))


class _GroupsAudit(Audit):
    """The four checks."""

    def structure(self, mechanism: GroupedTop, effort: Effort) -> Iterator[Finding]:
        """Different pairs have different keys, and one row more is one count more of one key."""
        parts = ["", "a", "b", "aa", "ab", "\x00", "a\x00", "\x01\x00\x00\x00"]
        pairs = list(product(parts, repeat=2))
        columns = [pa.array(column) for column in zip(*pairs, strict=True)]
        made = Layout.of(["group", "item"], [column.type for column in columns], 1).keys(columns)
        same = len(pairs) - len(set(made.to_pylist()))
        yield never("pairs that share a key", same, len(pairs))
        moved = (_keys_moved(mechanism, *pair) for pair in neighbouring_streams(PAIRS, 3 + effort.length))
        yield largest("keys that one row changes, by how much", 1, moved)

    def exact(self, mechanism: GroupedTop, effort: Effort) -> Iterator[Finding]:
        """The law of what is shown, for short streams and for two items that change places."""
        pairs = [*neighbouring_streams(PAIRS, 2 + effort.length), CLOSE]
        found = worst_of(mechanism, pairs)
        yield checked("what is shown of all groups", "delta", mechanism.budget.delta, found.upper, len(pairs))

    def statistical(self, mechanism: GroupedTop, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release: a group that one row alone has is listed with probability delta."""
        source = fresh_source()
        listed = (len(mechanism.release(PAIRS[:1], source)) > 0 for _ in range(effort.runs))
        yield often("a row alone is listed", mechanism.budget.delta, listed, "delta")

    def coupled(self, mechanism: GroupedTop, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of rows changes nothing; at most k of a group; nothing that nobody has."""
        data: Rows = (*[PAIRS[0]] * 40, *[PAIRS[2]] * 30)
        shuffled: Rows = tuple(data[place] for place in np.random.default_rng(1).permutation(len(data)))

        def broken(seed: int) -> int:
            first, second = (mechanism.release(rows, seeded_source(seed)) for rows in (data, shuffled))
            more = any(len(found) > mechanism.k for found in first.groups.values())
            return ({*first.items} != {*second.items}) + (not {*first.items} <= {*data}) + more

        yield never("order of rows, items of nobody, more than k", map(broken, range(4)))

    def twins(self, top: GroupedTop) -> Sequence[Twin]:

        def in_two_groups(self: GroupedTop, rows: Rows) -> Rows:
            return tuple(pair for group, item in rows for pair in ((group, item), ("h" if group == "g" else "g", item)))

        def k_before_the_noise(self: GroupedTop, rows: Rows) -> Rows:
            counts, best = Counter(rows), set()
            for group in {group for group, _ in rows}:
                pairs = [pair for pair in counts if pair[0] == group]
                best |= {*sorted(pairs, key=lambda pair: (-counts[pair], pair))[: self.k]}
            return tuple(pair for pair in rows if pair in best)

        def groups_of_the_data(self: GroupedTop, rows: Rows) -> tuple[str, ...]:
            return tuple({group for group, _ in rows})

        return (
            twin(top, "a row in two groups, and a budget for each", counted=in_two_groups),
            twin(top, "k taken before the noise", counted=k_before_the_noise),
            twin(top, "the groups of the data named as if they were a public list", named=groups_of_the_data),
        )


def _keys_moved(top: GroupedTop, first: Rows, second: Rows) -> int:
    """How far the counts of keys are apart, summed over the keys: those of the rows themselves, without a sketch."""
    one, two = (
        Counter(row for row in top.counted(rows) if top.listed is None or row[0] in top.listed)
        for rows in (first, second)
    )
    return sum(abs(one[key] - two[key]) for key in {*one, *two})


GROUPS = AuditCase(
    GroupedTop,
    lambda: (
        GroupedTop(Budget(2.0, 0.02)),
        GroupedTop(Budget(2.0, 0.02), listed=("g", "h", "never")),
    ),
    _GroupsAudit(),
)
