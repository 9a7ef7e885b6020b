"""A release as an entry of the public registry of differential privacy deployments, in YAML.

Field names and enumerations are those of the registry's schema. Tier 2 follows from the release alone, tier 3 as far as
a release knows. What only the publisher knows says FILL IN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from discreet.releases.sheet import horizon_of, released

_OPEN = "FILL IN"
_ACTORS = {
    "central": "The publisher holds the raw data and is trusted with it. Everyone else sees the releases.",
    "continual": "The publisher holds the raw data and is trusted with it. Everyone else sees every release.",
    "pan": "The publisher is trusted while an event is processed. Anyone who reads its memory later, or sees the "
    "releases, learns no more than the parameters allow.",
    "multiparty": "Nobody is trusted: every party adds noise before it sends a message. The collector and everyone "
    "else see the messages.",
}
_COMPOSITION = {
    "central": "The parameters are those of this release. Releases about the same people add up; the publisher's "
    "ledger composes them.",
    "continual": "The parameters cover all releases of the stream together, whatever their number up to the horizon.",
    "pan": "The parameters cover the state and the release together.",
    "multiparty": "The parameters are those of one party's messages of this round.",
}


def registry_entry(told: dict[str, Any], *, data: str | None = None, period: str | None = None) -> dict[str, Any]:
    """The entry, as data; `told` is a release as `to_json` writes it."""
    guarantee = told["guarantee"]
    trust, unit, horizon = guarantee["trust"], guarantee["unit"], horizon_of(told)
    name = data or _OPEN
    slug = re.sub(r"[^a-z0-9]+", "-", f"{name} {period or ''}".lower()).strip("-")
    limits = "" if unit.get("max_items") is None else f" At most {unit['max_items']} items of a person count."
    software = f"discreet {told['version']}" if told.get("version") else "discreet"
    warning = "NOT PRIVATE: its noise came from a seeded source. Do not publish. " if guarantee["seeded"] else ""
    loss = {key: guarantee[key] for key in ("epsilon", "delta", "rho") if guarantee[key] is not None}
    pure = not guarantee["delta"]
    if pure:
        loss.pop("delta", None)
    once = trust in ("central", "multiparty", "pan") and not isinstance(horizon, int)
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [_OPEN],
                "description": f"{warning}{released(told)[:1].upper()}{released(told)[1:]}"
                + (f", of {period}." if period else "."),
                "intended_use": _OPEN,
                "data_product_type": "Summary statistics",
                "data_product_region": _OPEN,
                "publication_date": (told.get("time") or "1970-01-01")[:10],
            },
            "dp_variant": {
                "variant_name": "Zero-concentrated DP"
                if guarantee["epsilon"] is None
                else "Pure DP"
                if pure
                else "Approximate DP",
                "data_domain": "All data sets with the columns that were asked for.",
                "unprotected_quantities": "; ".join(guarantee["assumptions"]) or "None.",
            },
            "privacy_loss": {
                "privacy_unit": unit["description"],
                "privacy_unit_details": f"Adjacent data sets differ in {unit['description']}.{limits}",
                "privacy_parameters": loss,
            },
            "deployment_model": {
                "model_name": "Local" if trust == "multiparty" else "Central",
                "actors": _ACTORS[trust],
                "release_type": "One release" if once else "Many releases",
                **({} if once else {"release_type_details": f"One budget pays for all: {_many(horizon)}."}),
                "data_source_type": "Static" if trust == "central" else "Dynamic",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Lists are sorted and cut to the number of items asked for; intervals follow from "
                "the published numbers.",
                "composition": _COMPOSITION[trust],
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Rows that cannot be read are left out by a rule that looks "
                "at the row alone. Parameters were chosen before the data was read.",
                "mechanisms": f"{guarantee['mechanism']} ({guarantee['reference']}), by {software}. Noise is "
                "integer-valued, from the operating system's random source; no floating-point noise is drawn. Timing "
                "is outside the guarantee.",
                "justification": _OPEN,
            },
            "administrative": {"registry_authors": [_OPEN]},
        },
    }


def _many(horizon: Any) -> str:
    return f"{horizon} ticks" if isinstance(horizon, int) else str(horizon or "any number of releases")


def registry_yaml(entry: dict[str, Any]) -> str:
    """The entry in YAML: strings are quoted as in JSON, which YAML reads the same."""
    return "\n".join(_lines(entry)) + "\n"


def _lines(values: dict[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        else:
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, float) and "." not in text:
                text = text.replace("e", ".0e")  # YAML takes 1e-06 for text
            yield f"{indent}{name}: {text}"
