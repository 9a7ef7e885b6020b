"""A release on one sheet, for whoever signs it off, and as an entry of a public register."""

from __future__ import annotations

from typing import Any

from discreet.releases.explain import COUNTED, factor_of, missing, spent, wrapped

__all__ = ["registry_entry", "sign_off_sheet"]

_OPEN = "______________________________"
_TRUST = {
    "central": "a curator holds the data and makes one release",
    "continual": "a curator holds the data and makes a release at every tick",
    "pan": "nobody holds the data: what is kept is private itself",
    "multiparty": "nobody is trusted: what each party sends is private itself",
}


def _released(told: dict[str, Any]) -> str:
    columns = told.get("columns") or {}
    named = ", ".join(f"{role} {name!r}" for role, name in columns.items())
    if "items" in told:
        most = "" if told.get("k") is None else f", at most {told['k']} of them"
        what = f"items with counts {COUNTED[told.get('counted', 'events')]}{most}"
    elif "quantiles" in told:
        what = "quantiles of a column"
    else:
        what = "one number"
    return what + (f" (columns: {named})" if named else "")


def _budget(values: dict[str, Any]) -> str:
    if values["epsilon"] is None:
        return f"rho = {values['rho']:g} (zCDP)" + (f", delta = {values['delta']:g}" if values["delta"] else "")
    return f"epsilon = {values['epsilon']:g}, delta = {values['delta']:g}"


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
    can confirm.

    Args:
        told: A release, an estimate or quantiles as `to_json` writes them.
        data: The name of the data.
        period: What time they are from.
        account: The account that paid.
        charge_id: Under which charge.
        spent_by_all: What all releases of this account have spent, in words.
    """
    guarantee = told["guarantee"]
    unit = guarantee["unit"]
    limits = list(guarantee["assumptions"])
    if unit["name"] == "Event":
        usual, weaker = factor_of(guarantee), factor_of(guarantee, 20)
        limits.append(f"for a person with 20 rows the factor {usual} becomes {weaker}, or more")
    if told.get("left_out"):
        lacks = told["left_out"]
        limits.append(missing(lacks["value"], lacks["lower"], lacks["upper"]).rstrip("."))
    limits += [
        "facts about the whole group can still be learned",
        f"intervals: {100 * told.get('confidence', 0.95):g} % for all of them together",
    ]
    epsilon, delta = spent(guarantee)
    bounds = "none" if unit.get("max_items") is None else f"at most {unit['max_items']} items of a person count"
    cut = told.get("threshold")
    facts = {
        "Data set": data or _OPEN,
        "Period": period or _OPEN,
        "Asked": told.get("time") or _OPEN,
        "Released": _released(told),
        "Hidden (unit)": unit["description"],
        "Bounds": bounds,
        "This release": f"{_budget(guarantee)}: a factor of {factor_of(guarantee)} at most",
        "All about these people": spent_by_all or _OPEN,
        "Threshold": "none" if cut is None else f"{cut:g} (what is below is not listed)",
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
        f"Epsilon {epsilon:.3g} is what we allow (smaller is stronger; 1 is a common limit), and delta {delta:g} is "
        "far below 1 / people.",
        "The bounds and lists given above were chosen without looking at the data.",
        "Data, summaries and states stay where they are; nothing but this release leaves.",
        "Facts about the whole group may be published.",
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


def registry_entry(told: dict[str, Any], *, data: str | None = None, period: str | None = None) -> dict[str, Any]:
    """The entry for a public register of differentially private deployments, JSON-ready; None must be filled in."""
    guarantee = told["guarantee"]
    parameters = told.get("parameters") or {}
    return {
        "what_is_released": _released(told),
        "data_set": data,
        "period": period,
        "privacy_unit": guarantee["unit"]["description"],
        "neighbours": "replacement" if guarantee["unit"]["name"] == "Replace" else "add or remove",
        "contribution_bound": guarantee["unit"].get("max_items"),
        "epsilon": guarantee["epsilon"],
        "delta": guarantee["delta"],
        "rho": guarantee["rho"],
        "definition": "zCDP" if guarantee["epsilon"] is None else "approximate DP" if guarantee["delta"] else "pure DP",
        "mechanism": guarantee["mechanism"],
        "reference": guarantee["reference"],
        "trust": _TRUST.get(guarantee["trust"], guarantee["trust"]),
        "horizon": parameters.get("horizon", "one release" if guarantee["trust"] == "central" else None),
        "assumptions": list(guarantee["assumptions"]),
        "threshold": told.get("threshold"),
        "software": f"discreet {told['version']}" if told.get("version") else "discreet",
        "asked": told.get("time"),
        "private": not guarantee["seeded"],
    }
