"""Which mechanism: by name, or chosen from the kind of summary, the unit and the budget, never from the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet import central
from discreet._data_class import MISSING, fields, is_dataclass, replace
from discreet.central import Mechanism
from discreet.central._base import (
    Prepared,
    choose_capacity,
    counters_cost_no_noise,
    frequency_published,
    split_off_total,
)
from discreet.errors import IncompatibleSummaryError, ParameterError, WordError
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
) -> Prepared:
    """Check all arguments of a release, choose the mechanism and calibrate. Whatever can be refused is refused here.

    Of the summary only what is public is read: its class, its size, and whether it was merged.
    """
    made = mechanism if isinstance(mechanism, Mechanism) else None
    if unit is None:
        unit = Event() if made is None else made.unit
    if not isinstance(unit, Unit):
        raise ParameterError(f"unit must be one of discreet's units, such as dc.Event(), not {type(unit).__name__}")
    lists = parts_per_user
    if made is not None:
        _check_made(made, budget, unit)
        lists = getattr(made, "parts_per_user", None)
        for name, given in (("stream_length", stream_length), ("parts_per_user", parts_per_user)):
            if given is not None:
                raise ParameterError(f"{name} cannot be combined with a ready-made mechanism; give it to the mechanism")
    rest, total_noise = budget, None
    if total_share is not None:
        rest, total_noise = split_off_total(budget, total_share, unit, lists or 1)
    parts = [summary] if isinstance(summary, Summary) else summary
    if made is not None:
        chosen, because = _for_budget(made, rest), _GIVEN
    else:
        if mechanism == "auto":
            kind = _automatic(summary, unit)
            because = _BECAUSE[kind.__name__]
            if rest.delta == 0.0:
                raise WordError(_NEEDS_DELTA)
        else:
            kind, because = mechanism_class(mechanism), _ASKED
            if kind is central.Offset and isinstance(summary, ShardedMisraGries):
                kind = central.ShardedOffset
        if parts_per_user is not None and not issubclass(kind, central.UserSketch):
            raise ParameterError(
                f"{kind.name} counts rows or events, each in one part; leave parts_per_user out (it is for "
                "UserMisraGries)"
            )
        if issubclass(kind.accepts[0], LinearSketch):
            length = {} if stream_length is None else {"stream_length": stream_length}
            chosen = kind.for_summary(summary, rest, unit=unit, **length)  # type: ignore[attr-defined]
        else:
            shards, capacity = getattr(summary, "shards", None), getattr(parts[0], "capacity", None)
            options = {"sketches": len(parts), "parts_per_user": parts_per_user, "shards": shards}
            chosen = make(kind, rest, unit, capacity, stream_length, **options)
    # Users' sets are in it, and of anyone with more items a sample.
    bounded = all(isinstance(part, UserMisraGries) and part.samples for part in parts)
    bounded = bounded and getattr(chosen, "parts_per_user", None) == 1
    prepared = Prepared(chosen, budget, because, total_share, total_noise, stream_length, bounded=bounded)
    chosen.check(summary)
    return prepared


def _for_budget(made: Mechanism, budget: Budget) -> Mechanism:
    """A mechanism that was made before; with `total_share` it gets what is left."""
    return made if made.budget == budget else replace(made, budget=budget)  # type: ignore[type-var]


def _check_made(made: Mechanism, budget: Budget, unit: Unit) -> None:
    """A mechanism that was made before must be for what is asked."""
    if made.unit != unit:
        raise ParameterError(
            f"the mechanism protects {made.unit}, but the release asks for {unit}; make the mechanism for that unit"
        )
    if made.budget != budget:
        raise ParameterError(
            f"the mechanism was made for {made.budget}, but the release asks for {budget}; use the same budget for both"
        )


def mechanism_told(mechanism: str | Mechanism | type[Mechanism]) -> object:
    """A mechanism as it was given, JSON-ready: the same for equal ones, in any process."""
    if isinstance(mechanism, type):
        return mechanism.__name__
    if not isinstance(mechanism, Mechanism) or not is_dataclass(mechanism):
        return mechanism
    values = {each.name: getattr(mechanism, each.name) for each in fields(mechanism) if each.init}
    told = {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in values.items()}
    return {"class": type(mechanism).__name__, **told}


def mechanism_class(mechanism: object) -> type[Mechanism]:
    """The class that a name or class stands for."""
    if isinstance(mechanism, type) and issubclass(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, str) and mechanism in MECHANISMS:
        return MECHANISMS[mechanism]
    given = repr(mechanism) if isinstance(mechanism, str) else type(mechanism).__name__
    raise ParameterError(f"mechanism must be 'auto', a Mechanism, or one of {', '.join(MECHANISMS)}; not {given}")


_GIVEN, _ASKED = "it was given", "it was asked for"
_NEEDS_DELTA = "finding unknown items needs {delta} > 0; give one, such as 1e-6, or list all items with {universe}"
_BECAUSE = {
    "Summed": "it is the one for several sketches, each of its own stream",
    "UserSketch": "it is the one for a sketch of users' sets",
    "Merged": "the sketch was merged, and this mechanism is proved for that",
    "Offset": "it is the default for a Misra-Gries sketch of one stream: one noise a count, a threshold that grows "
    "with neither the capacity nor the length, and a published offset that bounds what the sketch lost",
    "ShardedOffset": "it is the one for shards of disjoint items: the default release of each, with the whole budget; "
    "putting them together adds no noise",
    "PrivateSpaceSaving": "it is the one for SpaceSaving; unless stream_length is given, the length of the stream is "
    "private and a share of epsilon is spent on it",
    "Stability": "it is the one for exact counts",
    "CountMinHeavyHitters": "it is the one for CountMin; the length is read from the noisy cells",
    "CountSketchHeavyHitters": "it is the one for CountSketch; unless stream_length is given, a share of epsilon is "
    "spent on the length",
}
"""Why a mechanism was chosen that nobody asked for, by its class."""


_OWN = {
    ShardedMisraGries: "ShardedOffset",
    ExactCounts: "Stability",
    CountMin: "CountMinHeavyHitters",
    CountSketch: "CountSketchHeavyHitters",
}
"""Summaries that one mechanism is for."""


def _automatic(summary: Summary | Sequence[Summary], unit: Unit) -> type[Mechanism]:
    if not isinstance(summary, Summary):
        return central.Summed
    if isinstance(summary, UserMisraGries):
        if not isinstance(unit, User):
            raise IncompatibleSummaryError(
                "UserMisraGries counts sets of items per user; release it with unit=dc.User(max_items), "
                f"not {type(unit).__name__}"
            )
        return central.UserSketch
    if isinstance(summary, MisraGries):
        return central.Merged if summary.was_merged else central.Offset
    for kind, name in _OWN.items():
        if isinstance(summary, kind):
            mechanism: type[Mechanism] = getattr(central, name)
            return mechanism
    from discreet import published

    if isinstance(summary, SpaceSaving):
        return published.PrivateSpaceSaving
    if isinstance(summary, published.TrackedOracle):
        raise IncompatibleSummaryError("an oracle of your own can only be released by its OracleHeavyHitters")
    raise IncompatibleSummaryError(
        f"a {type(summary).__name__} cannot be released; pass a summary, such as dc.MisraGries"
    )


def make(
    kind: type[Mechanism],
    budget: Budget,
    unit: Unit,
    capacity: int | None,
    stream_length: int | None,
    **options: Any,
) -> Mechanism:
    """A mechanism of a class, with those of the options that it takes; None is its default."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    options = {name: value for name, value in options.items() if name in known and value is not None}
    options |= {"budget": budget, "unit": unit}
    if "capacity" in known and capacity is not None:
        options["capacity"] = capacity
    if stream_length is not None:
        if "stream_length" not in known:
            raise ParameterError(f"{kind.name} does not use the length of the stream; leave stream_length out")
        options["stream_length"] = stream_length
    elif issubclass(kind.accepts[0], SpaceSaving):
        options["stream_length"] = "noisy"  # the length is private unless someone says otherwise
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.init and name not in options:
            raise ParameterError(
                f"{kind.name} needs {name}: make a {kind.__name__} with it and pass that as the mechanism"
            )
    return kind(**options)


def prepare_rows(
    sets: bool,
    k: int,
    budget: Budget,
    unit: Unit,
    mechanism: str | Mechanism | type[Mechanism],
    *,
    capacity: int | None = None,
    length: int | None = None,
    total_share: float | None = None,
    workers: int | None = None,
    memory: str | None = None,
) -> Prepared:
    """The same before there is a summary: the mechanism, from public parameters, makes the empty one that rows fill.

    With `sets` rows are people's, and of anyone with more than m items a sample counts. A length that the mechanism
    does not take is left out.
    """
    if sets and not isinstance(unit, User):
        raise ParameterError("each row of a column of lists is one person; pass unit=dc.User()")
    made = mechanism if isinstance(mechanism, Mechanism) else None
    if made is not None:
        kind: type[Mechanism] = type(made)
    elif mechanism != "auto":
        kind = mechanism_class(mechanism)
    else:
        kind = central.Offset
        if sets:
            # Group privacy pays for the items of a user, the user-level sketch for its counters. Which is better?
            flat, users = (published_from(name, k, budget, unit, capacity, length) for name in ("offset", "user"))
            kind = central.Offset if flat <= users else central.UserSketch
    if not sets and issubclass(kind.accepts[0], UserMisraGries):
        raise IncompatibleSummaryError("this mechanism needs a column of lists, one list per user")
    if memory is not None and (capacity is not None or made is not None or not counters_cost_no_noise(kind)):
        raise ParameterError(
            "memory cannot be combined with capacity, with a ready-made mechanism, or with one whose noise grows with "
            "the counters; give capacity alone"
        )
    if workers is not None and workers != getattr(made, "shards", 1):
        kind = _in_shards(kind, mechanism, unit, workers)
    if made is not None:
        _check_made(made, budget, unit)
    rest, total_noise = budget, None
    if total_share is not None:
        rest, total_noise = split_off_total(budget, total_share, unit, getattr(made, "parts_per_user", 1))
    if made is not None:
        return Prepared(_for_budget(made, rest), budget, _GIVEN, total_share, total_noise, bounded=sets)
    if mechanism == "auto" and budget.delta == 0.0:
        raise WordError(_NEEDS_DELTA)
    if capacity is None:
        capacity, _ = choose_capacity(k, budget, unit, length, kind, memory, workers or 1)
    shape = sketch_shape(kind, budget, capacity, length) if issubclass(kind.accepts[0], LinearSketch) else {}
    if "stream_length" not in {each.name for each in fields(kind)}:  # type: ignore[arg-type]
        length = None
    because = _BECAUSE[kind.__name__] if mechanism == "auto" else _ASKED
    chosen = make(kind, rest, unit, capacity, length, shards=workers, **shape)
    return Prepared(chosen, budget, because, total_share, total_noise, length, bounded=sets)


def _in_shards(
    kind: type[Mechanism], mechanism: str | Mechanism | type[Mechanism], unit: Unit, workers: int
) -> type[Mechanism]:
    """The mechanism for several workers in place of the one for one."""
    if isinstance(mechanism, central.ShardedOffset):
        raise ParameterError(
            f"the mechanism was made for {mechanism.shards} shards, but workers is {workers}; make them equal"
        )
    if isinstance(mechanism, Mechanism):
        raise ParameterError("workers needs a mechanism in shards; make a dc.central.ShardedOffset")
    if not issubclass(kind.accepts[0], MisraGries):
        instead = f'; mechanism="offset" does, with group privacy for {unit.describe()}' if mechanism == "auto" else ""
        raise ParameterError(f"{kind.accepts[0].__name__} and its release use one worker; leave workers out{instead}")
    if kind is not central.Offset:
        raise ParameterError(f"workers needs the offset release, the only one proved for shards; {kind.name} is not")
    return central.ShardedOffset


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
