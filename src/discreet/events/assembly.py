"""Events, the rows of them that a question asks for, and the one assembler of those rows.

    events = Files(paths, format="csv")      # or events_of(table): of Arrow, pandas, polars, DuckDB, a column, lists
    rows = events.rows("url", user="visitor", by=("country",), nulls="skip")
    rows.feed(summary)                       # or people_of(rows), Pairs(rows), Amounts(rows, place) of the engines
    rows.remarks                             # what was left out, for the operator alone

`Events` says where rows are; `Rows` are those columns of them that were asked for, which can be gone through once. A
batch has the columns "item", "user" and "value", as far as they were asked for. The `Assembler` makes it of the columns
that a reader found, whatever it read: it leaves out nulls and what cannot be an item, makes keys of several columns
(`events.keys`), and checks what a schema says. What becomes of a row depends on this row alone.

How rows are read is nobody else's business: files are read ahead by threads, and decoded and hashed while others are
counted (`events.ahead`, `Rows.feed`); tables are handed to a summary as they are, wherever it knows their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from discreet import _native
from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import DataError, DataWordError, ParameterError
from discreet.events.ahead import read_ahead
from discreet.events.items import (
    DEFAULT_MAX_KEY_BYTES,
    amounts_of,
    check_amounts,
    is_amount,
    item_of,
    kind_of,
    readable,
    without_null_elements,
)
from discreet.events.times import NOT_A_TIME, pair_keys, whole_seconds
from discreet.events.values import with_kinds
from discreet.privacy.checks import numbered

if TYPE_CHECKING:
    import numpy.typing as npt

    from discreet.events.keys import Keys
    from discreet.events.lookup import Lookup
    from discreet.events.row_query import Rowwise
    from discreet.events.times import Every, Pairing

Found = TypeVar("Found")


@runtime_checkable
class Whole(Protocol):
    """A query of all rows of what it reads, whose result is read instead of files."""

    def reading(self, files: Any = None, **how: Any) -> Any:
        """The same query, which reads these files where it names none; `how` is said of them later."""
        ...

    def result(self, wanted: Sequence[str | None]) -> Iterator[tuple[pa.Array, ...]]:
        """The columns that are asked for, batch by batch; None (the first) is the only one beside the others.

        Where none is asked for it is any one of them: each has all rows.
        """
        ...


@dataclass(frozen=True)
class Wanted:
    """Which rows a question asks for, and what of them, in the words of all questions: checked once, without data.

    Attributes:
        columns: Hold the items; none for the only column there is (text files have lines instead). Where there are
            several, or they are of a type that no summary knows (dates, decimals), "item" is a key that `Rows.keys`
            makes columns of again.
        user: Says whose row it is.
        value: Has numbers, in files also as text.
        by: Say the group of a row; with `every` the first of them has the times.
        only_groups: Whether rows have no items, and their groups take the place of these.
        every: Spans of time are the groups.
        groups: All groups there may be, see `Keys`.
        where: Only rows for which this condition is true (`engines.sql.where`).
        nulls: Rows without a value raise DataError, or are left out with "skip".
        bad_rows: So do those that cannot be read, or hold what cannot be an item.
        lists: Whether items come in lists, one row a person; None lets the type tell, of JSON lines the first row.
        numbers: Whether the column holds numbers ("value") instead of items.
        times: Whether these numbers are times, as whole seconds from 1970: dates, timestamps, ISO 8601 or seconds.
        plain: Whether items of types that no summary knows are refused.
        universe: Items of files are written as its elements are: numbers in text are text. What cannot be is left out.
        pairing: A pair of person and span of time takes the place of the person.
        of_people: Whether the items are people.
    """

    columns: tuple[str, ...] = ()
    user: str | None = None
    value: str | None = None
    by: tuple[str, ...] = ()
    only_groups: bool = False
    every: Every | None = None
    groups: Sequence[Any] | None = None
    where: Rowwise | None = None
    nulls: str = "error"
    bad_rows: str = "skip"
    lists: bool | None = None
    numbers: bool = False
    times: bool = False
    plain: bool = False
    universe: Any = None
    pairing: Pairing | None = None
    of_people: bool = False

    def __post_init__(self) -> None:
        for rule in ("nulls", "bad_rows"):
            if getattr(self, rule) not in ("error", "skip"):
                raise ParameterError(f"{rule} must be 'error' or 'skip', not {getattr(self, rule)!r}")
        named = [*self.columns, *self.by, *(name for name in (self.user, self.value) if name is not None)]
        for name in named:
            if not isinstance(name, str) or item_of(name) is None:
                raise ParameterError("the name of a column must be text (Unicode, without lone surrogates)")
        moments = self.by[:1] if self.every is not None else self.columns if self.times else ()
        if self.pairing is not None and self.pairing.time not in moments:
            named.append(self.pairing.time)
        if len({*named}) < len(named):
            raise ParameterError("column, user, by, value and time must name different columns")
        if self.plain and len(self.columns) > 1:
            raise ParameterError("column must be the name of one column")
        if self.numbers and (len(self.columns) > 1 or self.value is not None or self.by):
            raise ParameterError("numbers are read from one column, and have no groups")


class Events:
    """Where rows are: files, a table, a column, lists of people.

    Attributes:
        files: The paths that are read, which no output may overwrite.
        described: What was said of how they are counted, JSON-ready; a charge id stands for it.
    """

    files: Sequence[str] = ()
    described: Mapping[str, Any] = MappingProxyType({})

    def rows(self, columns: str | Sequence[str] | None = None, **words: Any) -> Rows:
        """The same of these columns; `words` are the others of `Wanted`."""
        named = () if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
        return self.rows_wanted(Wanted(named, **words))

    def says_lists(self, column: str | None = None) -> bool | None:
        """Whether items come in lists, one row a person, where the type or the format says it. Nothing is read."""
        raise NotImplementedError

    def makes_keys(self, columns: Sequence[str]) -> bool:
        """Whether items of these columns are keys: of several columns, or of a type that no summary knows."""
        raise NotImplementedError

    def with_lookup(self, lookup: Lookup) -> Events:
        """The same, whose rows have the columns of a public table, too."""
        raise ParameterError("lookup works with files and tables only; join the public table before you pass the data")

    def all_rows(self, *, where: Rowwise | None = None, nulls: str = "error", bad_rows: str = "skip") -> Rows:
        """Rows that nothing is asked of but how many there are (`Rows.number`), with or without values."""
        raise NotImplementedError

    def rows_wanted(self, wanted: Wanted) -> Rows:
        """The rows that a question asks for. Nothing is read yet."""
        raise NotImplementedError


class Rows:
    """Batches of rows: Arrow record batches with the columns "item", "user" and "value" that were asked for.

    No batch has nulls, the items of a batch are of one kind (text, bytes or whole numbers, or lists of these), text is
    valid UTF-8, and no more than a few batches are in memory at a time. It can be gone through once, as batches, by
    `feed`, or by `owned`.

    Attributes:
        keys: What makes columns of "item" again, where it stands for several or for a type that no summary knows.
        tagged: Which of "item" and "user" `owned` gives with their kinds (`events.values`).
        item_type: What a schema says of the items before anything is read; None where none does.
        max_key_bytes: How long an item may be; a key that has its kind in front is a byte longer.
        files: The paths that are read.
        bytes_total: How many bytes there are to read, where that is known.
        nulls: What becomes of rows without a value, for anyone who takes columns as they are.
        elsewhere: What counts people and sketches of rows that are on other machines; None for those that are here.
        watch: Called with the number of rows of every batch that was read.
    """

    keys: Keys | None = None
    tagged: frozenset[str] = frozenset()
    item_type: pa.DataType | None = None
    max_key_bytes = DEFAULT_MAX_KEY_BYTES
    files: Sequence[str] = ()
    bytes_total: int | None = None
    bytes_read: int = 0
    elsewhere: Any = None

    def __init__(self, wanted: Wanted) -> None:
        self.watch: Callable[[int], object] = lambda rows: None
        self._wanted, self.nulls = wanted, wanted.nulls
        self._assembler = Assembler(wanted)
        self._good_rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def mark_people(self) -> None:
        """Notice of people whether any of their rows can be read, for `bad_and_good`."""
        self._assembler.people = BadPeople()

    def bad_and_good(self, people: bool) -> tuple[int, int]:
        """How many rows could not be read, and how many could; or of how many `people`. NOT PRIVATE."""
        if not people:
            return self.bad_rows, self._good_rows
        return (0, 0) if self._assembler.people is None else self._assembler.people.counts()

    @property
    def bad_rows(self) -> int:
        """How many rows were left out so far because they cannot be read. NOT PRIVATE."""
        return self._assembler.bad_rows

    @property
    def first_bad_row(self) -> str | None:
        """Where the first of them was, in a text format. NOT PRIVATE."""
        return self._assembler.first_bad

    @property
    def remarks(self) -> list[str]:
        """What was left out, for the operator, who has the data. NOT PRIVATE."""
        told, alone, found = [], "(not private: for your eyes alone)", self._assembler
        if found.outside:
            told.append(f"skipped {numbered(found.outside, 'row')} outside the period {alone}")
        if found.bad_rows:
            told.append(f"skipped {numbered(found.bad_rows, 'row')} that could not be read {alone}")
        if found.bad_rows and found.first_bad is not None:
            told.append(f"the first one is in {found.first_bad}")
        return told

    @property
    def of_people(self) -> bool:
        """Whether rows say whose they are."""
        return self._wanted.user is not None

    def feed(self, summary: Any, max_items: int | None = None) -> None:
        """Count all rows into a summary. The same rows make the same summary, however they are read.

        Args:
            summary: Is updated, with the rules for nulls and bad rows that were asked for.
            max_items: Rows are people's, by "user" or in lists, and this many different items of a person count: of
                anyone who has more, a random sample.
        """
        rules = {"nulls": self._wanted.nulls, "bad_items": self._rule}
        columns = self._columns(summary, rules, max_items)
        if hasattr(summary, "update_batches"):
            summary.update_batches(columns, **rules)
            return
        for column in columns:
            summary.update(column, **rules)
            del column  # before the next one is read

    @property
    def feeds_kinds(self) -> bool:
        """Whether what `feed` counts are items with their kinds in front (`events.values`)."""
        return "item" in self.tagged - self._unwritten

    def items(self) -> Iterator[Any]:
        """The items alone, batch by batch, as a summary takes them."""
        return self._single_or_lists(None)

    def gathered(self, count: Callable[[Rows], Found], apart: str | None = None) -> Found:
        """What `count` finds in these rows. NOT PRIVATE.

        Where the rows are on many machines, each counts a part of them, and what they find is added up (`merge` of
        summaries, otherwise +). So what is found in parts must add up to what is found in all rows, and `count` and
        what it finds must be things that can be pickled.

        Args:
            count: Takes rows, which it can go through once.
            apart: Where it adds up only if parts have nothing in common: "user" if all rows of a person must be in one
                part, "item" if all rows with an item must be.
        """
        return count(self)

    def number(self) -> int:
        """How many rows there are. NOT PRIVATE."""
        return sum(batch.num_rows for batch in self)

    def owned(self, people: bool = True) -> Iterator[tuple[pa.Array | None, pa.Array | None, pa.Array | None]]:
        """(whose, which item, what value) of every row, batch by batch; of lists the number of the row is the person.

        None stands for what was not asked for. Values of `tagged` columns are written with their kinds: of rows that
        have kinds of their own, as in JSON lines, one of another kind must not stop the others.
        """
        before = 0
        for batch in self if self._waits_for_bytes else read_ahead(self):
            found = {role: batch.column(role) for role in batch.schema.names}
            if people and "user" not in found and "item" in found:
                lists = found["item"]
                if kind_of(lists.type, lists=False) is not None or not pa.types.is_nested(lists.type):
                    raise DataError("without user the column must hold lists, one row per person")
                import pyarrow.compute as pc

                found["user"] = pc.add(pc.list_parent_indices(lists).cast(pa.int64()), before)
                found["item"], before = lists.flatten(), before + len(lists)
            for role in self._unwritten & {*found}:
                found[role] = with_kinds(found[role])
            yield found.get("user"), found.get("item"), found.get("value")

    def parts(self) -> Iterator[tuple[pa.Array | None, pa.Array | None, pa.Array | None]]:
        """The same for rows that may be nobody's."""
        return self.owned(people=False)

    _waits_for_bytes = True  # or has nothing to read ahead
    # Which of the `tagged` columns are not written with their kinds in batches.
    _unwritten: frozenset[str] = frozenset()
    # What becomes of rows that the assembler has passed; a summary may look at items that it has not seen.
    _rule = "skip"

    def _columns(self, summary: Any, rules: dict[str, str], max_items: int | None) -> Iterator[Any]:
        """The columns that a summary is updated with: items, or one list of items a person where it takes lists."""
        columns = self._single_or_lists(max_items)
        if max_items is None or hasattr(summary, "max_items_per_user"):
            return columns
        from discreet.events.samples import items_of_users
        from discreet.noise import system_source

        nulls = self._wanted.nulls
        return (part for lists in columns for part in items_of_users(lists, max_items, nulls, system_source()))

    def _single_or_lists(self, max_items: int | None) -> Iterator[Any]:
        sets = None
        if self.of_people and max_items is not None:
            from discreet.events.samples import UserSets

            sets = UserSets(max_items)
        for batch in self:
            items = batch.column("item")
            self._check_lists(items, max_items)
            if sets is None:
                yield items
            else:
                sets.add(batch.column("user"), items)
            del batch, items  # before the next one is read
        if sets is not None:
            yield from sets.lists()

    def _check_lists(self, items: Any, max_items: int | None) -> None:
        """Refuse lists where single items are counted, and single items where lists are."""
        lists = isinstance(items, pa.Array) and (pa.types.is_list(items.type) or pa.types.is_large_list(items.type))
        if lists and (self.of_people or max_items is None):
            raise DataError("the column holds lists, one row per person; count people and leave user out")
        if not lists and max_items is not None and not self.of_people:
            raise DataError("max_items needs user, or a column of lists with one row per person")


def _not_items(source: str) -> str:
    return f"{source} has an item of more than {DEFAULT_MAX_KEY_BYTES} bytes, or text that is not valid UTF-8"


def _among(kept: Any, line_of: Callable[[int], int] | None) -> Callable[[int], int] | None:
    """The lines of the rows that were kept."""
    return None if line_of is None else lambda row: line_of(int(np.flatnonzero(kept)[row]))


class Assembler:
    """Makes batches of the columns that a reader found, and leaves out the rows that cannot be read.

    Attributes:
        names: What the columns of a batch hold, in their order: "item", "user" and "value", as far as they are wanted.
        keys: Makes the items, where they are of several columns or of a type that no summary knows.
        has_schema: Whether the format says of what kind the items are. Otherwise every row has a kind of its own, and
            one row must not decide for others.
        check_text: Whether the reader has not made sure yet that text is UTF-8.
        longest: How many bytes an item may have.
        outside: How many rows were left out because they are not of the period. NOT PRIVATE.
        bad_rows: How many rows were left out. NOT PRIVATE.
        first_bad: Where the first of them was, if that is known. NOT PRIVATE.
        line_of: The line of a row of the next batch, where the reader reads lines.
        people: Is told whose rows stay and whose are bad, where somebody asks.
        time_place: Where the column of times is that spans are told apart by.
    """

    def __init__(self, wanted: Wanted) -> None:
        there = {"item": not wanted.numbers, "user": wanted.user is not None}
        there["value"] = wanted.numbers or wanted.value is not None
        self.names = [role for role in there if there[role]]
        self.keys: Keys | None = None
        self.has_schema, self.check_text, self.longest = True, False, DEFAULT_MAX_KEY_BYTES
        self.bad_rows, self.outside = 0, 0
        self.time_place: int | None = None
        self._whose: int | None = None  # the place of the people
        self._times_alone = False  # whether the column of times is read for this alone
        self.first_bad: str | None = None
        self.line_of: Callable[[int], int] | None = None
        self.people: BadPeople | None = None
        self._skip_nulls, self._skip_bad_rows = wanted.nulls == "skip", wanted.bad_rows == "skip"
        self._wanted = wanted
        self._kind: str | None = None

    def pair(self, pairing: Pairing, names: Sequence[Any]) -> list[Any]:
        """Tell spans of time apart: the columns to read, with that of times, the last unless it is there."""
        self._times_alone = pairing.time not in names
        read = [*names, pairing.time] if self._times_alone else list(names)
        self.time_place, user = read.index(pairing.time), self._wanted.user
        self._whose = read.index(user) if user is not None else 0 if self._wanted.of_people else None
        return read

    def found_bad(self, number: int, reason: str, line: Callable[[], int] | None = None) -> None:
        """Some rows are bad, for a reason that tells nothing about what is in them; the first of them in this line."""
        if number and not self._skip_bad_rows:
            raise DataError(reason if line is None else f"{reason} (line {line():,})")
        if number and not self.bad_rows and line is not None:
            self.first_bad = f"line {line():,}: {reason}"
        self.bad_rows += number

    def batch(self, arrays: tuple[pa.Array, ...], source: str) -> pa.RecordBatch:
        """The rows of these columns that are items (and users, and values), from a source of this name."""
        if self._wanted.pairing is not None:
            arrays = self._paired(arrays, self._wanted.pairing, source)
        if self.keys is not None and self.keys.needed(arrays[0].type):
            if self._kind is not None:
                raise DataError(f"{source} has items of type {arrays[0].type}, after items of type {self._kind}")
            made = self._keyed(arrays, source)
        elif any(pa.types.is_null(array.type) for array in arrays):
            # A column with only nulls so far; its type is not known yet.
            self._found_nulls(len(arrays[0]), source)
            made = pa.record_batch([], names=[])
        else:
            made = self._single(arrays, source)
        if self.people is not None and "user" in made.schema.names:
            self.people.mark(made.column("user"), good=True)
        return made

    def _single(self, arrays: tuple[pa.Array, ...], source: str) -> pa.RecordBatch:
        """The same for items of one column, of a kind that summaries know."""
        kinds = [kind_of(array.type, lists=of == "item") for of, array in zip(self.names, arrays, strict=True)]
        for of, array, kind in zip(self.names, arrays, kinds, strict=True):
            if of == "value":
                if not self._wanted.times:
                    check_amounts(array, source)
            elif kind is None and (of == "item" or pa.types.is_nested(array.type)):
                raise DataError(f"{source}: items must be text, bytes or whole numbers, not {array.type}")
        if self.has_schema and self.names[0] == "item":
            self.same_kind(kinds[0], source)
        batch = self._without_nulls(pa.record_batch(list(arrays), names=self.names), source)
        batch = self._readable(batch, source)
        if self.names[-1] == "value":
            batch = self._with_amounts(batch, source)
        if kinds[0] is not None and kinds[0].startswith("list"):
            lists = batch.column(0)
            if lists.flatten().null_count:
                self._found_nulls(1, source)
                batch = batch.set_column(0, "item", without_null_elements(lists))
        return batch

    def _paired(self, arrays: tuple[pa.Array, ...], pairing: Pairing, source: str) -> tuple[pa.Array, ...]:
        """The columns of the rows of the period, with pairs of a span and a person in place of people.

        A row is of one span, which its own time decides, so it is in one pair.
        """
        place, whose = self.time_place, self._whose
        assert place is not None
        spans, good = pairing.spans(arrays[place], source)
        arrays = arrays[:place] + arrays[place + 1 :] if self._times_alone else arrays
        there = np.asarray(spans.is_valid())
        if not there.all():
            self._found_nulls(1, source, lambda: int(np.argmin(there)))
        text = None if whose is None else readable(arrays[whose], None, self.check_text)
        for bad, reason in ((good, f"{source} has {NOT_A_TIME}"), (text, _not_items(source))):
            if bad is not None:
                self.found_bad(int((~bad).sum()), reason, None)
                there = there & bad
        inside = pairing.inside(spans)
        self.outside += int((there & ~inside).sum())
        there = there & inside
        if not there.all():
            kept = pa.array(there)
            arrays, spans = tuple(array.filter(kept) for array in arrays), spans.filter(kept)
            self.line_of = _among(there, self.line_of)
        if whose is None:
            return arrays
        return (*arrays[:whose], pair_keys(spans, arrays[whose]), *arrays[whose + 1 :])

    def same_kind(self, kind: str | None, source: str) -> None:
        """Refuse items of another kind than those before."""
        self._kind = self._kind or kind
        if kind != self._kind:
            raise DataError(f"{source} has items of type {kind}, after items of type {self._kind}")

    def take(self, items: _native.MadeColumn, source: str) -> None:
        """Note the rows that native code found beside the items of a column."""
        self._found_nulls(items.nulls, source)
        self.found_bad(items.bad, _not_items(source))

    def _keyed(self, arrays: tuple[pa.Array, ...], source: str) -> pa.RecordBatch:
        """The same for items that are made of several columns: all but the users and the values."""
        assert self.keys is not None
        parts = len(arrays) - len(self.names) + 1
        many = parts - len(self.keys.by)  # groups come after the items, of which one may be found by its place
        arrays = (*arrays[many:parts], *arrays[:many], *arrays[parts:])
        self.keys.start([part.type for part in arrays[:parts]], source)
        if self.names[-1] == "value" and not self._wanted.times:
            check_amounts(arrays[-1], source)
        batch = pa.record_batch(list(arrays), names=[*map(str, range(parts)), *self.names[1:]])
        batch = self._without_nulls(batch, source)
        if not batch.num_rows:
            return pa.record_batch([], names=[])
        batch = self._readable(batch, source)
        if self.names[-1] == "value":
            batch = self._with_amounts(batch, source)
        keys, good, listed = self.keys.of(batch.columns[:parts], source)
        batch = pa.record_batch([keys, *batch.columns[parts:]], names=self.names)
        if good is not None:
            batch = self._left_out(batch, good, f"{source} has {NOT_A_TIME}")
            listed = listed if listed is None else listed[good]
        if listed is not None:
            batch, self.line_of = batch.filter(pa.array(listed)), _among(listed, self.line_of)
        return self._readable(self._without_nulls(batch, source), source)  # what is not a number has no key

    def _without_nulls(self, batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
        if not any(column.null_count for column in batch.columns):
            return batch
        import pyarrow.compute as pc

        there = reduce(pc.and_, (pc.is_valid(column) for column in batch.columns))
        self._found_nulls(1, source, lambda: int(np.argmin(there)))
        self.line_of = _among(there, self.line_of)
        return batch.filter(there)

    def _found_nulls(self, number: int, source: str, row: Callable[[], int] = lambda: 0) -> None:
        if number and not self._skip_nulls:
            where = "" if self.line_of is None else f" (line {self.line_of(row()):,})"
            raise DataWordError(f"{source} has rows with no value in the column{where}; skip them with {{nulls=skip}}")

    def _left_out(
        self, batch: pa.RecordBatch, good: npt.NDArray[np.bool_], reason: str, of_people: bool = False
    ) -> pa.RecordBatch:
        """The batch without the rows that are not good: they are bad, perhaps because nobody can say whose they are."""
        if self.people is not None and "user" in batch.schema.names and not of_people:
            self.people.mark(batch.column("user").filter(pa.array(~good)), good=False)
        line_of = self.line_of
        line = None if line_of is None else lambda: line_of(int(np.argmin(good)))
        self.found_bad(len(good) - int(good.sum()), reason, line)
        self.line_of = _among(good, line_of)
        return batch.filter(pa.array(good))

    def _readable(self, batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
        """The batch without its bad rows: items that are too long, text that is not UTF-8."""
        most = self.longest + (0 if self.keys is None else self.keys.room)
        for position, name in enumerate(batch.schema.names):
            array = batch.column(position)  # of the rows that the columns before have left
            if name == "value":
                continue
            good = readable(array, most if name == self.names[0] else None, self.check_text)
            if good is not None:
                if pa.types.is_dictionary(array.type):  # its values must be readable, too
                    batch = batch.set_column(position, name, array.dictionary_decode())
                batch = self._left_out(batch, good, _not_items(source), of_people=name == "user")
        return batch

    def _with_amounts(self, batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
        """The batch with values that were text, or times, as numbers, without the rows whose value is none."""
        column = batch.column("value")
        if is_amount(column.type) and not self._wanted.times:
            return batch
        values, good = whole_seconds(column, source) if self._wanted.times else amounts_of(column)
        batch = batch.set_column(batch.num_columns - 1, "value", values)
        if good is None or good.all():
            return batch
        wrong = NOT_A_TIME if self._wanted.times else "a value that is not a number"
        return self._left_out(batch, good, f"{source} has {wrong}")


class BadPeople:
    """Who has rows that can be read, and who has none: for a test of bad rows (`central.bad_share`). NOT PRIVATE.

    People are in groups by a hash under a fresh key, in bounded memory. Far fewer people than groups are
    counted one by one, nearly; of more, a group is good if one of them is. Whatever the hash does, a person is in one
    group.
    """

    def __init__(self, groups: int = 1 << 22) -> None:
        import secrets

        self._key = secrets.randbits(64)
        self._good, self._bad = np.zeros(groups, np.bool_), np.zeros(groups, np.bool_)

    def mark(self, users: pa.Array, good: bool) -> None:
        """These people have a row that can be read, or one that cannot."""
        users = (users.dictionary_decode() if pa.types.is_dictionary(users.type) else users).drop_null()
        if kind_of(users.type, lists=False) is None:
            users = users.cast(pa.string())
        hashes = np.frombuffer(_native.key_hashes(users, self._key), np.uint64)
        self.mark_groups(hashes % len(self._good), good)

    def mark_groups(self, groups: npt.NDArray[Any], good: bool) -> None:
        """The same of groups."""
        (self._good if good else self._bad)[groups] = True

    def counts(self) -> tuple[int, int]:
        """(groups of people all of whose rows are bad, other groups)."""
        good = int(np.count_nonzero(self._good))
        return int(np.count_nonzero(self._bad & ~self._good)), good
