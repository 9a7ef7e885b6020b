"""`discreet explain`: what a release promises, in words for people who do not know the field."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.errors import DataError

__all__ = ["explain", "explanation"]

_TRUST = {
    "central": "Whoever made the release had the raw data and is trusted with it. The promise is about everybody who "
    "sees the release, whatever else they know and whatever computers they have.",
    "continual": "Whoever makes the releases has the raw data and is trusted with it. The promise is about everybody "
    "who sees the releases, all of them together, whatever else they know.",
    "pan": "The raw data are forgotten as they are processed. The promise is about everybody who sees the release, and "
    "about somebody who reads the program's memory once.",
    "multiparty": "Nobody is trusted with somebody else's data: what each party sends is already private. The promise "
    "is about everybody who sees any message, the collector included.",
}


def explain(
    release: Annotated[str, typer.Argument(metavar="RELEASE.json", help="A release in JSON; '-' is standard input.")],
) -> None:
    """Explain what a release protects, against whom, and what its epsilon means."""
    try:
        text = sys.stdin.read() if release == "-" else Path(release).read_text(encoding="utf-8")
        guarantee = json.loads(text)["guarantee"]
        paragraphs = explanation(guarantee)
    except OSError as error:
        raise DataError(f"{release} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{release} is not a release in JSON with a guarantee") from None
    print("\n\n".join(textwrap.fill(paragraph, 100) for paragraph in paragraphs))


def explanation(guarantee: dict[str, Any]) -> list[str]:
    """The paragraphs about a guarantee: what is protected, against whom, what epsilon means, what is assumed."""
    if guarantee["seeded"]:
        return [
            "This release is NOT private. Its noise came from a seeded source, as tests use it: whoever knows or "
            "guesses the seed can take the noise away. Do not publish it."
        ]
    paragraphs = [_protected(guarantee), _against(guarantee), _epsilon(guarantee), _counts(guarantee)]
    if guarantee["assumptions"]:
        paragraphs.append("This rests on: " + "; ".join(guarantee["assumptions"]) + ".")
    reference = f" ({guarantee['reference']})" if guarantee["reference"] else ""
    paragraphs.append(f"Mechanism: {guarantee['mechanism']}{reference}.")
    return paragraphs


def _protected(guarantee: dict[str, Any]) -> str:
    unit = guarantee["unit"]
    most = unit.get("max_items")
    whom = {
        "Event": "each single event, that is each row of the input. What can be learned about whether a given row "
        "was there is limited as stated below. A person with many rows is protected for each of them, not for all at "
        "once: for n rows of one person the promise below is n times weaker.",
        "User": f"each person, with all of their items (at most {most} of them were used). What can be learned "
        "about whether a given person was in the data at all is limited as stated below.",
        "Element": "everything about one element of the universe, however often it occurred.",
        "Replace": "the value of each single item. How many items there were is public.",
    }
    return "What is protected: " + whom.get(unit["name"], f"{unit['description']}.")


def _against(guarantee: dict[str, Any]) -> str:
    return "Against whom: " + _TRUST.get(guarantee["trust"], "everybody who sees the release.")


def _epsilon(guarantee: dict[str, Any]) -> str:
    epsilon, delta, rho = guarantee["epsilon"], guarantee["delta"], guarantee["rho"]
    stated = ""
    if epsilon is None:
        from discreet.privacy.calibration.zcdp import zcdp_epsilon

        delta = delta or 1e-9
        epsilon = zcdp_epsilon(rho, delta)
        stated = f" (stated as rho = {rho:g} in zero-concentrated terms, which implies this)"
    except_for = f", except for a chance of at most {delta:g}" if delta else ""
    text = (
        f"What epsilon = {epsilon:.3g} means{stated}: with or without what is protected, every possible release had "
        f"nearly the same chance to come out; the two chances differ by a factor of at most {_factor(epsilon)}"
        f"{except_for}. So whatever somebody concludes from the release, they would have concluded nearly the same "
        "without it. Somebody who thought it as likely as not that it was there can be at most "
        f"{_belief(epsilon)} sure after seeing the release."
    )
    if epsilon > 5.0:
        text += " That is a weak promise; an epsilon near 1 is usual for a single release."
    return text


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 30 else f"e^{epsilon:g}"


def _belief(epsilon: float) -> str:
    # Even odds times e^epsilon: e^epsilon / (1 + e^epsilon), rounded up.
    share = math.ceil(1000.0 / (1.0 + math.exp(-min(epsilon, 700.0)))) / 10.0
    return f"{share:g}%" if share < 100 else "almost entirely"


def _counts(guarantee: dict[str, Any]) -> str:
    # Without a delta, nothing may be certain: then an item may be listed that never occurred.
    listed = "is listed did occur" if guarantee["delta"] else "is listed may, rarely, not have occurred at all"
    return (
        "What was changed: random noise was added to every count, and items that are too rare were left out. The "
        "counts are therefore close to the truth but not exact; the intervals say how close. An item that is not "
        f"listed may still have occurred; one that {listed}. Each further release about the same data adds to what "
        "is revealed: the epsilons of all releases add up (or somewhat less), which is what a budget ledger keeps "
        "track of."
    )
