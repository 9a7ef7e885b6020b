"""The forecast of a stream, before anything is spent: what it will promise, and how large its error will be."""

from __future__ import annotations

import math
from typing import Any

from discreet.errors import ParameterError
from discreet.releases.error_model import Stretch
from discreet.service.definitions import StreamDefinition, in_words
from discreet.service.pan_stream import estimator
from discreet.service.runs import CONFIDENCE, Curated, reach, warnings_of
from discreet.service.survey_stream import Survey

_REPORTS = (100, 1_000, 10_000, 100_000)


def possible(name: str, definition: StreamDefinition) -> list[Any]:
    """What publishes in each horizon of a stream, before any event.

    ParameterError if one of them could not be begun: known before anything is spent.
    """
    made: list[Any] = []
    for run in range(1, 2 + len(definition.following)):
        try:
            if definition.trust == "pan":
                made.append(estimator(definition, run))
            elif definition.kind == "survey":
                made.append(Survey(definition, name, run).mechanism)
            else:
                made.append(Curated.of(definition, run).mechanism)
        except ParameterError as problem:
            where = f"streams.{name}" + ("" if run == 1 else f".following.{run - 2}")
            raise ParameterError(f"{where}: {problem}") from None
    return made


def forecast(name: str, definition: StreamDefinition) -> dict[str, Any]:
    """What a stream publishes and promises, and its error, from public numbers alone."""
    first, *later = possible(name, definition)
    warnings = [f"Warning: {said}" for said in warnings_of(definition, 1, first)]
    lines = _ERRORS[definition.trust if definition.trust == "pan" else definition.kind](definition, first)
    remarks = [f"Its definition has the digest {definition.digest}."]
    if not definition.public:
        remarks.append("Readable with a token only.")
    if definition.open:
        remarks.append("Anyone who reaches the service may send to it, without a token.")
    elif definition.sites:
        remarks.append("Not open: trackers send no token, so their events are not counted.")
    for run, publisher in enumerate(later, 2):
        remarks.append(f"Goes on for {definition.length} more, for {definition.budget_of(run)}.")
        warnings += [f"Warning, of what follows: {said}" for said in warnings_of(definition, run, publisher)]
    return {
        "name": name,
        "kind": definition.kind,
        "publishes": f"{_words(definition)}, every {in_words(definition.tick)} for {definition.length}"
        + ("" if definition.per is None else ", and anew for the next"),
        "promise": definition.promise(),
        "error": lines,
        "remarks": remarks,
        "warnings": warnings,
        "digest": definition.digest,
    }


def _words(definition: StreamDefinition) -> str:
    if definition.kind == "top":
        whose = "events" if definition.user is None else "people"
        table = definition.table
        public = f" (of {table.table}, by {table.on!r})" if table and definition.column in table.columns else ""
        return f"the {definition.k} most frequent values of {definition.column!r}{public}, by the number of {whose}"
    if definition.kind == "count":
        return "the number of events so far"
    if definition.kind == "distinct":
        return f"the number of different {definition.user!r} so far"
    return f"the answers to a question with {len(definition.options or ())} options"


def _of_count(definition: StreamDefinition, made: Any) -> list[str]:
    first, last = reach(made.error(1)), reach(made.error(definition.ticks))
    return [f"Error ({CONFIDENCE:.0%}): at most {first:,} at the first tick and {last:,} at the last."]


def _of_top(definition: StreamDefinition, made: Any) -> list[str]:
    release = made.step([], users=[]) if definition.user is not None else made.step([])
    last = definition.ticks
    lines = []
    if definition.universe is None and definition.capacity is None and release.threshold is not None:
        what = "people" if definition.user is not None else "events"
        lines.append(f"An item is listed from about {release.threshold:,.0f} {what} on.")
    elif definition.capacity is not None:
        lines.append(f"An item is found once a stretch of ticks has about {release.threshold or 0:,.0f} events of it.")
    if definition.capacity is None:
        model = made.error_model(last).of_at_least(definition.k or 1)
        together = f"for all of up to {definition.k} items that pass" if model.of_published else "for all items at once"
        high, low = model.distances(CONFIDENCE)
        how = "" if math.isfinite(low) else " too high"
        around = math.ceil(low if math.isfinite(low) else high)
        lines.append(f"Error of a count ({CONFIDENCE:.0%}, {together}): at most {around:,}{how} at the last tick.")
        if math.isinf(low):
            lines.append("A count lacks what came in stretches of ticks that did not list the item; nothing bounds it.")
    elif made.discovered is not None:
        model = made.error_model(last).of_at_least(definition.k or 1)
        high, low = map(math.ceil, model.distances(CONFIDENCE))
        before = math.ceil(Stretch(0, made.threshold, model.noise).lacks((1 - CONFIDENCE) / 3))
        lines.append(
            f"Error of a count ({CONFIDENCE:.0%}, for all of up to {definition.k} items that are found): at most "
            f"{low:,} too low and {high:,} too high at the last tick."
        )
        lines.append(
            f"An item may have about {before:,} more in each stretch of ticks before it is found, and a full sketch "
            "adds up to its offset to a count. The intervals say so item by item."
        )
    else:
        lines.append("Counts are too low by what the sketch leaves out; the intervals say by how much at most.")
    if definition.user is None:
        lines.append("Protects single events: a person with many events is hidden less. Give user and max_items.")
    return lines


def _of_pan(definition: StreamDefinition, table: Any) -> list[str]:
    lines = []
    for relative in (0.01, 0.03, 0.1, 0.3, 1.0):
        try:
            lines.append(f"Error ({CONFIDENCE:.0%}): at most {relative:.0%} from {table.accurate_from(relative):,} on.")
        except ParameterError:
            continue
    if not lines:
        lines.append("Error: more than 100%. The budget is shared by too many ticks; take longer ones.")
    return lines


def _of_survey(definition: StreamDefinition, aggregator: Any) -> list[str]:
    from statistics import NormalDist

    import numpy as np

    from discreet.noise import seeded_source

    options = list(definition.options or ())
    # What a report of anything adds to the variance does not depend on what it says, nearly.
    aggregator.receive(aggregator.protocol.party(0, source=seeded_source(1)).encode(np.array(options[:1] * 1000)))
    variance = float(np.mean(aggregator.estimate(options[1:]).variances)) / 1000
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    errors = ", ".join(f"{z * (variance * n) ** 0.5:,.0f} of {n:,}" for n in _REPORTS)
    return [f"Error of a count ({CONFIDENCE:.0%}), by the number of reports: about {errors}."]


_ERRORS = {"top": _of_top, "count": _of_count, "distinct": _of_count, "survey": _of_survey, "pan": _of_pan}
