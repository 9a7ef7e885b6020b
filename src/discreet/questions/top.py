"""Top: the most frequent values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass, replace
from discreet._later import np
from discreet.errors import ParameterError, WordError
from discreet.privacy.guarantee import Unit, User
from discreet.questions.ask import asked_of, function_of
from discreet.questions.question import PERSON, ROW, UNIVERSE, Question, Way, way_of
from discreet.questions.words import (
    Refusal,
    ValueKind,
    choice,
    columns,
    excludes,
    needs,
    number_range,
    plain,
    share,
    whole,
    word,
)
from discreet.questions.words import column as one_column
from discreet.summaries.sharded_misra_gries import MAX_SHARDS

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.events.assembly import Rows
    from discreet.events.keys import Keys
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.questions.answer import Data
    from discreet.releases.release import Release

_WHOSE = (
    "single items do not say whose they are: give a table with column= and user=, or the list of every "
    "person's items; with dc.User(max_items) you vouch that nobody has more rows than that"
)


def _for_rows(name: str, because: str) -> Refusal:
    """A word that says something where rows are hidden, and nothing where people are."""
    text = f"{{{name}}} cannot be combined with {{user}} ({because})"
    return Refusal(text, lambda q: q.people, name)


def _together(name: str, value: Any) -> int | None:
    """Whether items are counted together: True or 2 for pairs, 3 for triples."""
    if isinstance(value, bool):
        return 2 if value else None
    if value not in (2, 3):
        given = value if isinstance(value, int) else type(value).__name__
        raise ParameterError(f"{name} must be True for pairs, or 3 for triples, not {given}")
    return int(value)


_TRIPLES = ("triples", 3, "List which three items people have together.")


@dataclass(frozen=True, kw_only=True)
class Top(Question):
    """The most frequent values of a column."""

    name: ClassVar[str] = "top"
    asks: ClassVar[str] = "List the most frequent values of a column."
    example: ClassVar[str] = "top access.log --column path --user ip --epsilon 1 --delta 1e-6"
    only_shown: ClassVar[bool] = True
    people_by_user: ClassVar[bool] = False

    column: tuple[str, ...] | None = word(None, "Column to count; repeat it to count combinations.", columns())
    k: int = word(100, "List at most N values (of every group).", whole(1, 2**30), letter="k")
    value: str | None = word(
        None, "Add up this column instead of counting people.", one_column(), old=("values", "value_column")
    )
    value_range: tuple[float, float] | None = word(None, "Clip values to this public range.", number_range())
    universe: Any = word(
        None,
        "All possible values, if they are public: a file, N for 0 to N-1, or A:B. Needs no delta.",
        UNIVERSE,
    )
    pairs: int | None = word(
        None,
        "List which two items people have together.",
        ValueKind(_together, type=int, flag=2, more_flags=(_TRIPLES,)),
    )
    max_items: int | None = word(
        None, "Count people with up to N items in full; chosen privately if not given.", whole(1),
        advanced=True, old=("max_items_per_user",),
    )  # fmt: skip
    count: str | None = word(
        None, "Count people who have an item, or their rows with it.", choice("users", "rows"), advanced=True
    )
    mechanism: Any = word("auto", "Mechanism, by a name that `discreet plan` shows.", plain("NAME"), advanced=True)
    capacity: int | None = word(
        None, "Number of counters of the sketch; by default as `discreet plan` chooses.", whole(1, 2**30), advanced=True
    )
    length: int | None = word(
        None,
        "Public upper limit of the number of rows; sizes the sketch.",
        whole(1),
        advanced=True,
        old=("stream_length",),
    )
    total_share: float | None = word(
        None, "Spend this share of the budget on the number of all rows.", share(), advanced=True
    )
    memory: str | None = word(
        None, "Memory to use, such as 2GB; what does not fit goes to disk.", plain("SIZE"), advanced=True
    )
    workers: int | None = word(None, "Number of threads that count; 1 by default.", whole(1, MAX_SHARDS), advanced=True)
    grouped: bool | None = word(
        None, "Whether each row is the list of one person's items; by default the column's type says it.",
        ValueKind(type=bool), in_python_only=True,
    )  # fmt: skip

    rules: ClassVar[tuple[Refusal, ...]] = (
        *Question.rules,
        needs("value", "value_range", because="a public range"),
        needs("value_range", "value"),
        needs("value", "user", because="values are summed by person"),
        Refusal("{count} rows needs {user}", lambda q: q.count == "rows" and not q.people),
        Refusal("{count} rows cannot be combined with {value}", lambda q: q.count == "rows" and q.value is not None),
        Refusal("{unit} row cannot be combined with {max_items}", lambda q: q.unit == ROW and q.max_items is not None),
        Refusal("{unit} must be a person where {user} is given", lambda q: q.user and q.bounded_unit, "unit"),
        Refusal(
            "{mechanism} cannot be combined with {unit} person-day (people's vectors are for it)",
            lambda q: q.spans_hidden,
            "mechanism",
        ),
        Refusal("{mechanism} with {user} needs {max_items}", lambda q: q.user and q.max_items is None, "mechanism"),
        _for_rows("capacity", "it sizes the sketch for rows"),
        _for_rows("length", "it sizes the sketch for rows"),
        _for_rows("total_share", "the number of rows is not published where people are hidden"),
        excludes("universe", "user", "`discreet histogram` counts people over a list"),
        excludes("universe", "max_items", "`discreet histogram` counts people over a list"),
        excludes("universe", "mechanism", "the universe chooses it"),
        excludes("universe", "by"),
        excludes("universe", "every"),
        excludes("grouped", "user", "a row has one item, and says whose it is"),
        Refusal(
            "lists of items come in one {column}, without {by} or {every}",
            lambda q: (len(q.column or ()) > 1 or bool(q.by) or q.every is not None) and q.lists is True,
        ),
        Refusal(
            "{pairs} needs whole people: give {user}, or for lists {unit} person",
            lambda q: q.user is None and q.bounded_unit,
            "pairs",
        ),
        Refusal(
            "{pairs} needs {user}, or one list per person (a row has one item)",
            lambda q: q.grouped is False,
            "pairs",
        ),
        Refusal("{pairs} needs a single {column}", lambda q: len(q.column or ()) > 1, "pairs"),
        Refusal(
            "{pairs} cannot be combined with {count} rows (people who have both are counted)",
            lambda q: q.count == "rows",
            "pairs",
        ),
        *(
            excludes("pairs", name, because)
            for name, because in (
                ("value", "people who have both are counted"),
                ("by", "pairs are counted in one group"),
                ("every", "pairs are counted in one group"),
                ("universe", "the items are discovered"),
                ("max_items", "how much of a person counts is chosen privately"),
                ("mechanism", "pairs have their own"),
            )
        ),
        Refusal("{universe} needs a single {column}", lambda q: len(q.column or ()) > 1, "universe"),
    )

    def complete(self) -> None:
        made = not isinstance(self.mechanism, (str, type))
        if made and self.unit is None and self.user is None:
            object.__setattr__(self, "unit", getattr(self.mechanism, "unit", None))
        if self.pairs is not None and self.unit is None and self.user is None:
            object.__setattr__(self, "unit", User())  # one row has no pairs: each is the list of a person
        if self.universe is not None and self.universe.size is None:
            raise WordError("{universe} must list the items: N for 0 to N-1, A:B, or a file with one item per line")

    # ---- what follows from the words ---------------------------------------------------------------------------------

    @property
    def people(self) -> bool:
        """Whether people are hidden by `PersonVectors`: with all they have, and nobody says how much that is."""
        if self.mechanism != "auto":
            return False
        return self.user is not None or (self.unit is not None and self.whole_person)

    @property
    def bounded_unit(self) -> bool:
        """Whether the unit is another than a whole person, or all of one span."""
        return self.unit is not None and not self.whole_person

    @property
    def lists(self) -> bool | None:
        """Whether rows are lists, one a person; None where the data tell."""
        if self.grouped is not None:
            return self.grouped
        if self.user is not None:
            return False
        if self.unit == PERSON or (self.max_items is not None and self.unit is None):
            return True
        return None if isinstance(self.unit, User) else False

    @property
    def no_other_answer(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"memory", "workers"} if self.people else ())

    def _rows(self, data: Data) -> tuple[Rows, bool]:
        """The rows that it asks for, and whether each is the list of all that one person has.

        That is by what the column's type says, or by the words.
        """
        groups, lists = self.in_groups if self.by or self.every else {}, False
        if self.user is None and not groups and len(self.column or ()) <= 1:
            said = self.lists
            events = data.events if self.lookup is None else data.events.with_lookup(self.lookup)
            told = events.says_lists(self.column[0] if self.column else None)
            if said and told is False:
                raise ParameterError(_WHOSE)
            lists = isinstance(self.unit, User) if said is None else said
            lists = lists if told is None else told
        words = {"user": self.user, "value": self.value, "lists": lists, "universe": self.universe, **groups}
        return data.rows(self, self.column, **words), lists

    # ---- how it is answered ------------------------------------------------------------------------------------------

    def way(self, data: Data, budget: Budget) -> Way:
        says_nothing = self.user is None and self.unit is None and self.max_items is None and self.mechanism == "auto"
        if data.lists and says_nothing:
            return replace(self, unit=PERSON).way(data, budget)  # a line is all that a person has
        if self.people:
            return self._of_people(data, budget)
        from discreet.events.values import without_kinds
        from discreet.questions.choose import prepare_rows

        unit, mechanism = self.unit or (ROW if self.max_items is None else User(self.max_items)), self.mechanism
        if self.universe is not None:
            from discreet.central import ReducedMisraGries

            # Its noise does not grow with the counters.
            mechanism = ReducedMisraGries(budget, self.capacity or max(1 << 16, 32 * self.k), universe=self.universe)
        rows, lists = self._rows(data)
        keys, sets = rows.keys, lists or self.user is not None  # of anyone with more, a sample counts
        if rows.elsewhere is not None:
            self._refuse("workers", "total_share")
            if self.universe is None:
                return self._of_sketches(rows, data, budget, lists, unit)
        # An hour of reading must not end in a parameter that could have been refused before.
        prepared = prepare_rows(
            sets, self.k if keys is None else keys.items_in_all(self.k), budget, unit, mechanism,
            capacity=self.capacity, length=self.length, total_share=self.total_share, workers=self.workers,
            memory=self.memory,
        )  # fmt: skip
        summary = prepared.mechanism.empty_summary(rows.max_key_bytes)

        def count() -> Any:
            rows.feed(summary, unit.limit if sets and isinstance(unit, User) else None)
            prepared.mechanism.check(summary)  # before anything is charged: a stream may be longer than was said
            return summary

        def draw(found: Any, source: RandomSource) -> Release:
            drawn = prepared.draw(found, source)
            if rows.feeds_kinds:
                drawn = drawn.with_items(without_kinds(drawn.item_column))
            return _formed(drawn, keys).head(self.k)

        return way_of(prepared, count, draw)

    def _of_people(self, data: Data, budget: Budget) -> Way:
        from discreet.central._base import prepare_people
        from discreet.engines.exact_people import LEAST_MEMORY, people_of
        from discreet.summaries.memory import Memory
        from discreet.summaries.people import ValueRange

        data.refuse_strict(self)
        if self.memory is not None:
            Memory(self.memory, LEAST_MEMORY)  # refused before anything is read
        if self.user is not None and self.column is None and not data.are_files:
            raise WordError("{user} needs {column}: people are protected in tables only")
        within = None if self.value_range is None else ValueRange(*self.value_range)
        rows, lists = self._rows(data)
        if rows.elsewhere is not None:
            self._refuse("memory", "workers")
        keys = rows.keys
        prepared = prepare_people(
            self.k, budget, max_items=self.max_items, count=self.count or "users", values=within, lists=lists,
            groups=1 if keys is None or not keys.by else keys.many_groups, pairs=self.pairs,
        )  # fmt: skip

        def count() -> Any:
            by_rows = self.count == "rows"
            found = people_of(
                rows, rows=by_rows, value_range=within, memory=self.memory, threads=self.workers,
                together=self.pairs is not None,
            )  # fmt: skip
            prepared.mechanism.check(found)
            if keys is not None and keys.by:
                found.group_of = keys.group_of
            return found

        def draw(found: Any, source: RandomSource) -> Release:
            listed = _formed(prepared.draw(found, source), keys, self.pairs is not None)
            return listed.head(self.k) if listed.by else listed  # of one group, the mechanism lists k

        return way_of(prepared, count, draw, close=lambda found: found.close())

    def _of_sketches(self, rows: Rows, data: Data, budget: Budget, lists: bool, unit: Unit) -> Way:
        """The same of rows on other machines, that make sketches of them."""
        keys, grouped = rows.keys, bool(rows.keys is not None and rows.keys.by)
        made = rows.elsewhere.sketches(
            self.k if keys is None else keys.items_in_all(self.k), budget, unit, capacity=self.capacity,
            memory=self.memory, length=self.length, lists=lists, named=self.mechanism,
        )  # fmt: skip

        def draw(found: Any, source: RandomSource) -> Release:
            drawn = made.draw(found, source, None if grouped else self.k)
            return _formed(drawn, keys).head(self.k)

        way = way_of(made.prepared, made.count, draw, close=lambda found: found.close())
        return replace(way, chosen={**(way.chosen or {}), "partitions": made.plan.partitions})

    def _refuse(self, *words: str) -> None:
        """Refuse words that say nothing about a cluster."""
        for each in words:
            if each in self.given:
                raise WordError(f"{{{each}}} cannot be combined with a data frame of Spark (it is for one machine)")


def _formed(release: Release, keys: Keys | None, pairs: bool = False) -> Release:
    """A release of keys as one of the columns that they were made of; it says that a list of groups is public."""
    if keys is None or keys.are_items:
        return release
    items = _pairs(release.item_column, keys) if pairs else keys.items(release.item_column)
    formed = release.with_items(items, keys.by, keys.groups())
    if keys.many_groups is None:
        return formed
    from discreet.central._additive import PUBLIC_GROUPS

    return formed.with_guarantee(formed.guarantee.assuming(PUBLIC_GROUPS))


def _pairs(items: pa.Array, keys: Keys) -> pa.Array:
    """Keys of items that belong together as those items, each in their own order, which that of keys may not be."""
    import pyarrow as pa

    from discreet.events.values import item_order, parts_of, taken

    columns = [keys.items(column) for column in parts_of(items)]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    places = [sorted(range(len(row)), key=lambda place: item_order(row[place])) for row in rows]
    every, many = pa.concat_arrays(columns), len(items)
    ordered = [
        taken(every, np.array([row[place] * many + index for index, row in enumerate(places)], np.int64))
        for place in range(len(columns))
    ]
    return pa.StructArray.from_arrays(ordered, [field.name for field in items.type])


@function_of(Top, first=("k", "budget"))
def top_k(data: Any, k: int, budget: Budget, **words: Any) -> Release:
    """The most frequent values of a column, privately: at most k of them, largest noisy count first.

        top_k(table, 100, budget, column="url", user="visitor")     # hides people, with all of their rows
        top_k(table, 100, budget, column="shop", user="customer", value="price", value_range=(0, 500))    # sums
        top_k(table, 100, budget, column=["country", "url"])        # items of two columns, and a column for each
        top_k(table, 10, budget, column="url", by="country")        # the top 10 of every country, in one release
        top_k(table, 10, budget, column="url", every="1d", time="ts")   # the top 10 of every day
        top_k(table, 100, budget, column="url", user="visitor", pairs=True)     # which two people have together
        top_k(column, 100, budget)                                  # hides a row

    With `user` the whole of a person is hidden, whatever they did, and nobody has to say how many items that are
    (`PersonVectors`: two passes over exact counts). A count is then of people, and `left_out` says how much of
    it bounding a person's part left out.

    With `pairs` what is listed are pairs of items, and a count is of the people who have both (`PersonPairs`,
    docs/privacy/pairs.md); `pairs=3` lists triples. Items of a pair are in a column each, in order, and a tuple here.

    The contract: every item well above the threshold is listed with high probability; there may be fewer than k; an
    item that did not occur is never listed. `plan` says beforehand how frequent an item must be.

    With `by` a row counts in one group, and what is counted are pairs of a group and an item: all groups share the one
    release, and cost what it costs (docs/privacy/groups.md). A group is listed only through items that pass, unless
    `groups` says which there are.

    Summary, capacity and mechanism are chosen from k, the budget, the unit and the declared length, never from the
    data. A list column (one row a person, its items in the list) is counted as `user` counts a table with
    `unit=User()`, and takes `max_items`, `count` and `memory` then. With `unit=User(m)` it is summarised in one pass
    and bounded memory, for more noise: an item counts once for a person, and of one with more than m different items
    a uniform random sample of m counts. A flat column under `User(m)` has group privacy: the caller sees to it that
    nobody has more than m rows.

    `workers` threads have the items that a keyed hash gives each of them, and `capacity` counters for them; each is
    released with the whole budget, since one row concerns one of them (parallel composition, docs/privacy/shards.md).
    """
    listed: Release = asked_of(Top, data, budget, {"k": k, **words})
    return listed
