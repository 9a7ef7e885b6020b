"""A release on one sheet, for anyone who has to sign it off: the fields are those that docs/nist.md refers to.

`registry.py` has the entry of a public registry.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError
from discreet.privacy.checks import numbered
from discreet.releases.explain import COUNTED, cut_of, factor_of, intervals_of, missing, several_spans, spent, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_OPEN = "______________________________"
_NOTHING = "nothing by rule"
_TRUST = {
    "central": "a curator holds the data and makes one release",
    "continual": "a curator holds the data and makes a release at every tick",
    "pan": "nobody holds the data: what is kept is private itself",
    "multiparty": "nobody is trusted: what each party sends is private itself",
}
_ESTIMATED = {
    "estimates": "counts of items",
    "heavy_hitters": "frequent items",
    "quantiles": "quantiles",
    "ranges": "counts of ranges",
}


def _answers(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The answers of a report by their titles; of anything else, itself."""
    if "questions" not in told:
        return {"": told}
    return {str(each["title"]): each["answer"] for each in told["questions"]}


def _of_each(told: dict[str, Any], what: Callable[[dict[str, Any]], str], nothing: str) -> str:
    """What is said of each answer of a report, with its title; `nothing` is not."""
    said = {title: text for title, answer in _answers(told).items() if (text := what(answer)) != nothing}
    return "; ".join(f"{title}: {text}" if title else text for title, text in said.items()) or nothing


def released(told: dict[str, Any]) -> str:
    """What was released, in words."""
    if "questions" in told:
        return f"answers to {numbered(len(told['questions']), 'question')} ({_of_each(told, released, '')})"
    columns = {
        role: " and ".join(map(repr, [name] if isinstance(name, str) else name))
        for role, name in (told.get("columns") or {}).items()
    }
    named = ", ".join(f"{role} {name}" for role, name in columns.items())
    if "items" in told:
        most = "" if told.get("k") is None else f", at most {told['k']} of them"
        each = " in every group" if "by" in columns else ""
        counted = told.get("counted", "events")
        what = f"items with {'' if counted in ('sums', 'weights') else 'counts '}{COUNTED[counted]}{most}{each}"
    elif told["guarantee"]["trust"] == "multiparty":
        shown = [words for name, words in _ESTIMATED.items() if name in told]
        what = "estimates from messages of parties: " + (", ".join(shown) or "how many sent one")
    elif "quantiles" in told:
        what = "quantiles of a column"
    elif "number_of" in told or "estimate_of" in told:
        of = told.get("number_of") or told["estimate_of"]
        number = of in ("rows", "people", "values")
        what = f"the number of {of.replace('values', 'different values')}" if number else f"the {of} of a column"
        what += "" if "number_of" in told else " in every group"
    elif "total" in told or "people" in told:
        what = f"the number of {'rows' if 'total' in told else 'people'} so far"
    elif "estimator" in told:
        what = f"one number ({told['estimator']})" if "value" in told else f"numbers ({told['estimator']})"
    else:
        what = "one number"
    chosen = told.get("parameters") or {}
    what += f" (columns: {named})" if named else ""
    what += f", every {chosen['every']} by itself" if "every" in chosen else ""
    which = chosen.get("where") or chosen.get("sql")
    return what + (f", of rows where {which}" if which else "")


def horizon_of(told: dict[str, Any]) -> Any:
    """The number of ticks, of releases over time; else how many releases there are."""
    once = told["guarantee"]["trust"] == "central" or (
        told["guarantee"]["trust"] == "multiparty" and "since" not in told
    )
    one = "one release" if once else None
    parameters = told.get("parameters") or {}
    if "horizon" in parameters and parameters["horizon"] is None:
        return "any number of ticks"
    return parameters.get("horizon", one)


def _period(told: dict[str, Any]) -> str:
    """What a release over time says of it."""
    if "covers" not in told:
        days = told.get("parameters", {}).get("period") or _OPEN
        return days if isinstance(days, str) else " to ".join(days)
    ticks = "ticks {first_tick} to {last_tick}".format(**told["covers"])
    return ticks + (f", up to {told['end']}" if told.get("end") else "")


def _left_out(told: dict[str, Any]) -> str:
    """What the release says of what it lacks."""
    lacks = told.get("left_out")
    bounded = [] if lacks is None else [f"about {100 * lacks['value']:.2g} % of contributions, by bounding"]
    return "; ".join([*bounded, *(["items below the threshold"] if told.get("threshold") else [])]) or _NOTHING


def _budget(values: dict[str, Any]) -> str:
    if values["epsilon"] is None:
        return f"rho = {values['rho']:g} (zCDP)" + (f", delta = {values['delta']:g}" if values["delta"] else "")
    return f"epsilon = {values['epsilon']:g}, delta = {values['delta']:g}"


def _limits(told: dict[str, Any]) -> list[str]:
    """What intervals contain and what is missing, where people were bounded."""
    if not told.get("left_out"):
        return []
    if "counted" not in told:  # numbers, whose notes say it
        notes = list(told.get("notes", ()))
        if "estimate_of" in told:  # of groups, where it is beside them
            notes.append(missing(**told["left_out"], covered=bool(notes)))
        return [note.rstrip(".") for note in notes]
    scaling = (told.get("error_model") or {}).get("scaling")
    bounded = scaling is not None and scaling["covered"] is not None
    contain, lacks = intervals_of(told["counted"], scaling), missing(**told["left_out"], covered=bounded)
    return [contain.rstrip("."), lacks.rstrip(".")]


def _bounds(told: dict[str, Any]) -> str:
    """What bounds values, and what counts of a person."""
    chosen = told.get("parameters") or {}
    most = told["guarantee"]["unit"].get("max_items") or chosen.get("max_items")
    said = [] if most is None else [f"at most {most} items of a person count"]
    if ends := told.get("range") or chosen.get("range") or chosen.get("value_range"):
        low, high = (end if isinstance(end, str) else f"{end:g}" for end in ends)  # text: days and times
        said.append(f"values from {low} to {high}")
    return "; ".join(said)


def sign_off_sheet(
    told: dict[str, Any],
    *,
    data: str | None = None,
    period: str | None = None,
    account: str | None = None,
    charge_id: str | None = None,
    spent_by_all: str | None = None,
) -> str:
    """What somebody must know who signs off a release, on one sheet; `told` is the release as JSON has it.

    What nobody can know from the release is left open, to be filled in by hand: lines, and boxes for what only a person
    can confirm. `spent_by_all` is what all releases of the account have spent, in words.
    """
    guarantee = told["guarantee"]
    unit = guarantee["unit"]
    limits = list(guarantee["assumptions"])
    if unit["name"] == "Event":
        usual, weaker = factor_of(guarantee), factor_of(guarantee, 20)
        limits.append(f"for a person with 20 rows the factor {usual} becomes {weaker}, or more")
    if (several := several_spans(guarantee)) is not None:
        limits.append(several.rstrip("."))
    for title, answer in _answers(told).items():
        limits += [f"{title}: {text}" if title else text for text in _limits(answer)]
    limits += [
        "facts about the whole group can still be learned",
        f"intervals: {100 * told.get('confidence', 0.95):g} % for all of them together",
    ]
    epsilon, delta = spent(guarantee)
    bounds = [text] if (text := _of_each(told, _bounds, "")) else []
    if isinstance(horizon_of(told), int):
        bounds.append(f"{horizon_of(told)} ticks, for which all is paid")
    elif horizon_of(told) == "any number of ticks":
        bounds.append("any number of ticks, for which all is paid")
    facts = {
        "Data set": data or _OPEN,
        "Collected for": _OPEN,
        "Data held by": _OPEN,
        "Period": period or _period(told),
        "Asked": told.get("time") or _OPEN,
        "Released": released(told),
        "Hidden (unit)": unit["description"],
        "Bounds": "; ".join(bounds) or "none",
        "This release": f"{_budget(guarantee)}: a factor of {factor_of(guarantee)} at most"
        + (f", and {delta:g} more" if delta else ""),
        "All about these people": spent_by_all or _OPEN,
        "Threshold": _of_each(told, cut_of, "none"),
        "Left out (bias)": _of_each(told, _left_out, _NOTHING),
        "Trust": _TRUST.get(guarantee["trust"], guarantee["trust"]),
        "Mechanism": guarantee["mechanism"] + (f" ({guarantee['reference']})" if guarantee["reference"] else ""),
        "Version": f"discreet {told['version']}" if told.get("version") else _OPEN,
        "Account": account or _OPEN,
        "Charge id": charge_id or _OPEN,
    }
    seeded = ["**NOT PRIVATE: its noise came from a seeded source. Do not sign.**", ""] if guarantee["seeded"] else []
    boxes = [
        f"The unit is right: what must be hidden is {unit['description'].split(' added')[0].rstrip(',')}.",
        "The account is that of all people in the data, and pays for everything that is published about them.",
        f"Epsilon {epsilon:.3g} is what we allow (smaller is stronger; 1 is a common limit), and delta {delta:g}"
        + (" (the chance that the promise fails) is far below 1 / people." if delta else ": the promise never fails."),
        "The bounds and lists given above were chosen without looking at the data.",
        "Every party sends one message a round, and nothing else."
        if guarantee["trust"] == "multiparty"
        else "Data, summaries and states stay where they are; nothing but this release leaves.",
        "Facts about the whole group may be published.",
        "Groups too small to be listed, or shown with much noise, are known, and nobody takes them for absent.",
        "Who may read the data, and until when they are kept, is written down.",
    ]
    lines = [
        "# Sign-off of a release",
        "",
        *seeded,
        *(f"{name + ':':<24}{value}" for name, value in facts.items()),
        "",
        "Known limits:",
        *(wrapped(f"- {limit}") for limit in limits),
        "",
        "To be confirmed by a person:",
        *(wrapped(f"- [ ] {box}") for box in boxes),
        "",
        f"Name: {_OPEN}   Date: ______________   Signature: {_OPEN}",
    ]
    return "\n".join(lines)


def paid_by(told: dict[str, Any], ledger: Path | str, account: str) -> dict[str, Any]:
    """The account, what all of its releases have spent of what was granted, and the charge of this one."""
    from discreet.privacy.ledger import Ledger
    from discreet.releases.release import Release

    opened = Ledger(ledger)
    payer = opened.account(account)
    stands = payer.statement()
    spent = f"{stands.spent} of {stands.granted}{stands.about and f' about {stands.about}, the most about any day'}"
    try:
        payload = Release.from_json(json.dumps(told)).to_payload()
    except (DiscreetError, ValueError, KeyError, TypeError):
        payload = None  # no list, or one of an older version
    same = [
        event.charge_id
        for event in opened.history(account)
        if event.kind == "release" and _is_what_was_stored(told, payload, opened.release_payload(event))
    ]
    return {"account": account, "spent_by_all": spent, "charge_id": same[0] if len(same) == 1 else None}


def _is_what_was_stored(told: dict[str, Any], payload: bytes | None, stored: bytes) -> bool:
    """Whether this release is the stored one: a list byte by byte, numbers by question, promise and values."""
    if payload is not None:
        return payload == stored
    try:
        fields = json.loads(stored)
        fields = {**fields, **(fields.get("told") or fields.get("asked") or {})}
        numbers = [row["value"] for row in told.get("quantiles", [told])]
        return numbers == [row["value"] for row in fields.get("quantiles", [fields])] and all(
            told[name] == fields[name] for name in ("guarantee", "columns", "parameters", "time")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
