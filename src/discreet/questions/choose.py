"""Which mechanism: by name, or chosen from the kind of summary, the unit and the budget, never from the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet import central
from discreet.central import Mechanism
from discreet.central.preparation import (
    Prepared,
    choose_capacity,
    counters_cost_no_noise,
    frequency_published,
    split_off_total,
)
from discreet.errors import IncompatibleSummaryError, ParameterError, WordError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES
from discreet.privacy import Budget, Event, Unit, User
from discreet.summaries import (
    CountMin,
    CountSketch,
    ExactCounts,
    LinearSketch,
    MisraGries,
    ShardedMisraGries,
    SpaceSaving,
    Summary,
    UserMisraGries,
)

PUBLISHED = {
    "pmg": "PrivateMisraGries",
    "textbook": "TextbookMisraGries",
    "chan": "ChanMisraGries",
    "space_saving": "PrivateSpaceSaving",
}
"""Of the names, those that stand for a mechanism of `discreet.published`."""

_CLASSES = {
    "offset": "Offset",
    "reduced": "ReducedMisraGries",
    "merged": "Merged",
    "summed": "Summed",
    "user": "UserSketch",
    "stability": "Stability",
    "count_min": "CountMinHeavyHitters",
    "count_sketch": "CountSketchHeavyHitters",
    **PUBLISHED,
}


class _Mechanisms(Mapping[str, type[Mechanism]]):
    """Classes of `discreet.central` and `discreet.published`, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> type[Mechanism]:
        from discreet import published

        mechanism: type[Mechanism] = getattr(published if name in PUBLISHED else central, _CLASSES[name])
        return mechanism

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES


MECHANISMS: Mapping[str, type[Mechanism]] = _Mechanisms()
"""The mechanisms that a name stands for. Their options are those of the classes' defaults."""


def prepare(
    summary: Summary | Sequence[Summary],
    budget: Budget,
    mechanism: str | Mechanism | type[Mechanism],
    unit: Unit | None,
    total_share: float | None,
    stream_length: int | None,
    parts_per_user: int | None = None,
    *,
    needs_no_length: bool = False,
    bounded: bool = False,
) -> Prepared:
    """Check all arguments of a release, choose the mechanism and calibrate. Whatever can be refused is refused here.

    Of the summary only what is public is read: its class and its size. It may be empty, and be filled afterwards;
    `bounded` says that at most m items of a person will reach it.
    """
    made = mechanism if isinstance(mechanism, Mechanism) else None
    if unit is None:
        unit = Event() if made is None else made.unit
    if not isinstance(unit, Unit):
        raise ParameterError(f"unit must be one of discreet's units, such as dc.Event(), not {type(unit).__name__}")
    if made is not None and made.unit != unit:
        raise ParameterError(
            f"the mechanism protects {made.unit}, but the release asks for {unit}; make the mechanism for that unit"
        )
    if made is not None and made.budget != budget:
        raise ParameterError(
            f"the mechanism was made for {made.budget}, but the release asks for {budget}; use the same budget for both"
        )
    rest, total_noise = budget, None
    if total_share is not None:
        lists = parts_per_user if made is None else getattr(made, "parts_per_user", None)
        rest, total_noise = split_off_total(budget, total_share, unit, lists or 1)
    chosen, because, length = choose(summary, rest, mechanism, unit, stream_length, parts_per_user, needs_no_length)
    prepared = Prepared(
        chosen, budget, because, total_share, total_noise, length,
        bounded=bounded or (getattr(chosen, "parts_per_user", None) == 1 and _bounds_people(summary)),
    )  # fmt: skip
    chosen.check(summary)
    return prepared


def mechanism_told(mechanism: str | Mechanism | type[Mechanism]) -> object:
    """A mechanism as it was given, JSON-ready: the same for equal ones, in any process."""
    if isinstance(mechanism, type):
        return mechanism.__name__
    if not isinstance(mechanism, Mechanism) or not dataclasses.is_dataclass(mechanism):
        return mechanism
    values = {each.name: getattr(mechanism, each.name) for each in dataclasses.fields(mechanism) if each.init}
    told = {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in values.items()}
    return {"class": type(mechanism).__name__, **told}


def _bounds_people(summary: Summary | Sequence[Summary]) -> bool:
    """Whether users' sets are in it, and of anyone with more items a sample."""
    parts = summary if isinstance(summary, (list, tuple)) else (summary,)
    return all(isinstance(part, UserMisraGries) and part.samples for part in parts)


def choose(
    summary: Summary | Sequence[Summary],
    budget: Budget,
    mechanism: str | Mechanism | type[Mechanism],
    unit: Unit,
    stream_length: int | None,
    parts_per_user: int | None = None,
    needs_no_length: bool = False,
) -> tuple[Mechanism, str, int | None]:
    """The mechanism to release a summary with, why, and the public length if it takes one.

    Reads public facts of the summary: its class, capacity, was_merged. With `needs_no_length` a length that the
    mechanism does not take is left out; otherwise it is refused.
    """
    if isinstance(mechanism, Mechanism):
        if stream_length is not None and not needs_no_length:
            raise ParameterError(
                "stream_length cannot be combined with a ready-made mechanism; give it to the mechanism"
            )
        if parts_per_user is not None:
            raise ParameterError(
                "parts_per_user cannot be combined with a ready-made mechanism; give it to the mechanism"
            )
        if mechanism.budget != budget:
            # With `total_share` the mechanism gets what is left.
            mechanism = dataclasses.replace(mechanism, budget=budget)  # type: ignore[type-var]
        return mechanism, "it was given", None
    if mechanism == "auto":
        kind, because = _automatic(summary, unit)
        if budget.delta == 0.0:
            raise WordError(
                "finding unknown items needs {delta} > 0; give one, such as 1e-6, or list all items with {universe}"
            )
    else:
        kind, because = mechanism_class(mechanism), "it was asked for"
        if kind is central.Offset and isinstance(summary, ShardedMisraGries):
            kind = central.ShardedOffset
    if needs_no_length and stream_length is not None and not _takes(kind, "stream_length"):
        stream_length = None
    if parts_per_user is not None and not issubclass(kind, central.UserSketch):
        raise ParameterError(
            f"{kind.name} counts rows or events, each in one part; leave parts_per_user out (it is for UserMisraGries)"
        )
    if issubclass(kind.accepts[0], LinearSketch):
        length = {} if stream_length is None else {"stream_length": stream_length}
        made: Mechanism = kind.for_summary(summary, budget, unit=unit, **length)  # type: ignore[attr-defined]
        return made, because, stream_length
    parts = [summary] if isinstance(summary, Summary) else summary
    options = {"sketches": len(parts), "parts_per_user": parts_per_user, "shards": getattr(summary, "shards", None)}
    made = make(kind, budget, unit, getattr(parts[0], "capacity", None), stream_length, **options)
    return made, because, stream_length


def mechanism_class(mechanism: object) -> type[Mechanism]:
    """The class that a name or class stands for."""
    if isinstance(mechanism, type) and issubclass(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, str) and mechanism in MECHANISMS:
        return MECHANISMS[mechanism]
    given = repr(mechanism) if isinstance(mechanism, str) else type(mechanism).__name__
    raise ParameterError(f"mechanism must be 'auto', a Mechanism, or one of {', '.join(MECHANISMS)}; not {given}")


def _automatic(summary: Summary | Sequence[Summary], unit: Unit) -> tuple[type[Mechanism], str]:
    if not isinstance(summary, Summary):
        return central.Summed, "it is the one for several sketches, each of its own stream"
    if isinstance(summary, UserMisraGries) and not isinstance(unit, User):
        raise IncompatibleSummaryError(
            "UserMisraGries counts sets of items per user; release it with unit=dc.User(max_items), "
            f"not {type(unit).__name__}"
        )
    if isinstance(summary, UserMisraGries):
        return central.UserSketch, "it is the one for a sketch of users' sets"
    if isinstance(summary, MisraGries) and summary.was_merged:
        return (
            central.Merged,
            "the sketch was merged, and this mechanism is proved for that",
        )
    if isinstance(summary, MisraGries):
        return central.Offset, (
            "it is the default for a Misra-Gries sketch of one stream: one noise a count, a threshold that grows with "
            "neither the capacity nor the length, and a published offset that bounds what the sketch lost"
        )
    if isinstance(summary, ShardedMisraGries):
        return central.ShardedOffset, (
            "it is the one for shards of disjoint items: the default release of each, with the whole budget; putting "
            "them together adds no noise"
        )
    from discreet import published

    if isinstance(summary, SpaceSaving):
        return published.PrivateSpaceSaving, (
            "it is the one for SpaceSaving; unless stream_length is given, the length of the stream is private and a "
            "share of epsilon is spent on it"
        )
    if isinstance(summary, ExactCounts):
        return central.Stability, "it is the one for exact counts"
    if isinstance(summary, CountMin):
        return central.CountMinHeavyHitters, "it is the one for CountMin; the length is read from the noisy cells"
    if isinstance(summary, CountSketch):
        return central.CountSketchHeavyHitters, (
            "it is the one for CountSketch; unless stream_length is given, a share of epsilon is spent on the length"
        )
    if isinstance(summary, published.TrackedOracle):
        raise IncompatibleSummaryError("an oracle of your own can only be released by its OracleHeavyHitters")
    raise IncompatibleSummaryError(f"a {type(summary).__name__} cannot be released")


def _takes(kind: type[Mechanism], name: str) -> bool:
    return any(field.name == name for field in dataclasses.fields(kind))  # type: ignore[arg-type]


def make(
    kind: type[Mechanism],
    budget: Budget,
    unit: Unit,
    capacity: int | None,
    stream_length: int | None,
    **options: Any,
) -> Mechanism:
    """A mechanism of a class, with those of the options that it takes; None is its default."""
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    options = {name: value for name, value in options.items() if name in fields and value is not None}
    options |= {"budget": budget, "unit": unit}
    if "capacity" in fields and capacity is not None:
        options["capacity"] = capacity
    if stream_length is not None:
        if "stream_length" not in fields:
            raise ParameterError(f"{kind.name} does not use the length of the stream; leave stream_length out")
        options["stream_length"] = stream_length
    elif issubclass(kind.accepts[0], SpaceSaving):
        options["stream_length"] = "noisy"  # the length is private unless someone says otherwise
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.init and name not in options:
            raise ParameterError(
                f"{kind.name} needs {name}: make a {kind.__name__} with it and pass that as the mechanism"
            )
    return kind(**options)


def empty_summary(
    grouped: bool,
    k: int,
    budget: Budget,
    unit: Unit,
    capacity: int | None,
    mechanism: str | Mechanism | type[Mechanism],
    stream_length: int | None,
    workers: int | None,
    memory: str | None = None,
    max_key_bytes: int = DEFAULT_MAX_KEY_BYTES,
) -> Summary:
    """The empty summary to fill, from public parameters and the column's type."""
    if grouped and not isinstance(unit, User):
        raise ParameterError("each row of a column of lists is one person; pass unit=dc.User()")
    made = mechanism if isinstance(mechanism, Mechanism) else None
    if made is not None:
        chosen: type[Mechanism] = type(made)
    elif mechanism != "auto":
        chosen = mechanism_class(mechanism)
    else:
        chosen = central.Offset
        if grouped:
            # Group privacy pays for the items of a user, the user-level sketch for its counters. Which is better?
            flat, users = (
                published_from(name, k, budget, unit, capacity, stream_length) for name in ("offset", "user")
            )
            chosen = central.Offset if flat <= users else central.UserSketch
    if not grouped and issubclass(chosen.accepts[0], UserMisraGries):
        raise IncompatibleSummaryError("this mechanism needs a column of lists, one list per user")
    if memory is not None and (capacity is not None or made is not None or not counters_cost_no_noise(chosen)):
        raise ParameterError(
            "memory cannot be combined with capacity, with a ready-made mechanism, or with one whose noise grows with "
            "the counters; give capacity alone"
        )
    capacity = getattr(made, "capacity", capacity)
    if capacity is None:
        capacity, _ = choose_capacity(k, budget, unit, stream_length, chosen, memory, workers or 1)
    summary = _of_class(chosen, budget, unit, capacity, mechanism, stream_length, max_key_bytes)
    if workers is None and not (made is not None and isinstance(made, central.ShardedOffset)):
        return summary
    return _in_shards(summary, mechanism, unit, workers)


def _of_class(
    chosen: type[Mechanism],
    budget: Budget,
    unit: Unit,
    capacity: int,
    mechanism: object,
    stream_length: int | None,
    longest: int,
) -> Summary:
    """The empty summary that a mechanism of this class takes, for one worker and keys of at most this many bytes."""
    kind = chosen.accepts[0]
    if issubclass(kind, UserMisraGries):
        assert isinstance(unit, User)
        return kind(capacity, unit.limit, oversized="sample", max_key_bytes=longest)
    if issubclass(kind, LinearSketch):
        if isinstance(mechanism, (central.CountMinHeavyHitters, central.CountSketchHeavyHitters)):
            return kind(mechanism.width, mechanism.depth, tracked=capacity, max_key_bytes=mechanism.max_key_bytes)
        return kind(**sketch_shape(chosen, budget, capacity, stream_length), tracked=capacity)
    if isinstance(mechanism, Mechanism) and isinstance(mechanism, central.ShardedOffset):
        return ShardedMisraGries(capacity, mechanism.shards, max_key_bytes=longest)
    if issubclass(kind, ExactCounts):
        return kind(max_key_bytes=longest)
    return kind(capacity, max_key_bytes=longest)  # type: ignore[call-arg]


def _in_shards(
    summary: Summary, mechanism: str | Mechanism | type[Mechanism], unit: Unit, workers: int | None
) -> Summary:
    """The empty summary for several workers in place of the one for one."""
    if isinstance(mechanism, central.ShardedOffset):
        if workers is not None and workers != mechanism.shards:
            raise ParameterError(
                f"the mechanism was made for {mechanism.shards} shards, but workers is {workers}; make them equal"
            )
        return summary
    if workers is None or workers == 1:
        return summary
    if isinstance(mechanism, Mechanism):
        raise ParameterError("workers needs a mechanism in shards; make a dc.central.ShardedOffset")
    if not isinstance(summary, MisraGries):
        instead = f'; mechanism="offset" does, with group privacy for {unit.describe()}' if mechanism == "auto" else ""
        raise ParameterError(f"{type(summary).__name__} and its release use one worker; leave workers out{instead}")
    if mechanism != "auto" and mechanism_class(mechanism) is not central.Offset:
        raise ParameterError(
            f"workers needs the offset release, the only one proved for shards; "
            f"{mechanism_class(mechanism).name} is not"
        )
    return ShardedMisraGries(summary.capacity, workers, max_key_bytes=summary.max_key_bytes)


def sketch_shape(kind: type[Mechanism], budget: Budget, capacity: int, length: int | None) -> dict[str, int]:
    """Width and depth of a linear sketch that tracks `capacity` items; a length that is not known counts as 10^9.

    The chance that d rows fail an item together must be far below delta over all n items: d of about ln(n/delta)/2 is
    where more depth gains no more; a median needs twice as many rows, and an odd number.
    """
    depth = math.ceil(math.log((length or 10**9) / (budget.delta or 1e-9)) / 2.0)
    return {"width": 4 * capacity, "depth": depth if kind.accepts[0] is CountMin else 2 * depth + 1}


def published_from(name: str, k: int, budget: Budget, unit: Unit, capacity: int | None, length: int | None) -> int:
    """The frequency from which on a mechanism publishes, with the capacity that would be chosen for it."""
    kind = MECHANISMS[name]
    if capacity is None:
        capacity, _ = choose_capacity(k, budget, unit, length, kind)
    return frequency_published(make(kind, budget, unit, capacity, None), length or 0, capacity, 0.95)
