"""What a release promises, in words for people who do not know the field."""

from __future__ import annotations

import math
import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

COUNTED = {
    "events": "of events",
    "people": "of people who have the item",
    "rows": "of rows that people have with the item",
    "weights": "sums of the weights that events give the item",
    "sums": "sums of the values of people's rows with the item, each value cut to the public range",
}
"""What a count is of, in words."""

_WORDS = {
    "misra-gries": "Misra-Gries: a way to count a stream with a fixed number of counters; rare items lose theirs.",
    "offset": "Offset: a noisy number that says how much Misra-Gries may have lost, added back to every count.",
    "spacesaving": "SpaceSaving: a way to count a stream with a fixed number of counters that never counts too little.",
    "curator": "Curator: anyone who holds the data and makes the release.",
    "zcdp": "zCDP: another scale of the same promise, for Gaussian noise; epsilon and delta above follow from it.",
}
"""Words that a reader may not know, explained where they appear."""

_TRUST = {
    "central": "Anyone who made the release had the raw data and is trusted with it. The promise is about everybody "
    "who sees the release, whatever else they know and whatever computers they have.",
    "continual": "Anyone who makes the releases has the raw data and is trusted with it. The promise is about "
    "everybody who sees the releases, all of them together, whatever else they know.",
    "pan": "The raw data are forgotten as they are processed. The promise is about everybody who sees the release, and "
    "about somebody who reads the program's memory once.",
    "multiparty": "Nobody is trusted with somebody else's data: what each party sends is already private. The promise "
    "is about everybody who sees any message, the collector included.",
}


def explained(
    guarantee: dict[str, Any],
    counted: str = "events",
    left_out: dict[str, float] | None = None,
    scaling: dict[str, Any] | None = None,
) -> str:
    """The paragraphs as one text, in lines of at most 100 characters."""
    return "\n\n".join(map(wrapped, explanation(guarantee, counted, left_out, scaling)))


def wrapped(text: str) -> str:
    """A paragraph, or a list with a line for each point, in lines of at most 100 characters."""
    return "\n".join(
        line if line.startswith("  ") else textwrap.fill(line, 100, subsequent_indent="  " * line.startswith("- "))
        for line in text.splitlines()
    )


def pairs_are_listed(mechanism: str) -> bool:
    """Whether what is listed are items that people have together, by the name of the mechanism."""
    return mechanism.endswith("have together")


TOGETHER = (
    "A row lists items that the same people have. At most one release in a thousand lists items that nobody has "
    "together."
)


def intervals_of(counted: str, scaling: dict[str, Any] | None) -> str:
    """What the intervals of people's counts contain, in a sentence; `scaling` is that of the error model in JSON."""
    if scaling is None:
        return "The intervals are for what was counted; their lower ends hold for the truth, too."
    if scaling["covered"] is None:
        return "The intervals contain the true numbers: their upper ends allow for what was left out."
    much = f"{float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal(repr(scaling['covered']))):,g}"
    what, all_of = ("values", f"values of up to {much} in all") if counted == "sums" else ("rows", f"up to {much} rows")
    return (
        f"The intervals contain the true numbers as long as people have {all_of}. The {what} of people with more may "
        f"be scaled down, to no less than {much}, and the intervals are for that."
    )


def cut_of(told: dict[str, Any]) -> str:
    """What the threshold of a release is, in words."""
    cut = told.get("threshold")
    if cut is None:
        return "none"
    if told["guarantee"]["mechanism"].startswith("discovery"):
        return (
            f"an item is found from about {cut:g} people if they have no other items (sqrt(d) times as many if each "
            "has d items). Listed counts may be below it"
        )
    if told.get("offset") is not None or told.get("shard_offsets"):
        return f"{cut:g} more than the offset (what is below is not listed)"
    return f"{cut:g} (what is below is not listed)"


def missing(value: float, lower: float, upper: float, covered: bool = False) -> str:
    """How much lower than the truth counts of people are, in a sentence; `covered`: of people up to a bound."""
    if upper == 0.0:
        whose = "Of people with no more than that, nothing" if covered else "Nothing"
        return f"{whose} was left out to bound what one person adds."
    low, high = math.floor(100 * lower), math.ceil(100 * upper)
    about = "less than 1" if value < 0.01 else f"about {100 * value:.0f}"
    span = f" ({low} to {high} %)" if high > 1 else ""
    return f"Counts are low by {about} %{span}: people with many items are counted in part."


def explanation(
    guarantee: dict[str, Any],
    counted: str = "events",
    left_out: dict[str, float] | None = None,
    scaling: dict[str, Any] | None = None,
) -> list[str]:
    """The paragraphs about a guarantee: what is protected, against whom, what epsilon means, what is assumed.

    `counted` is what the release says that its counts are of, `left_out` its share of what they lack, `scaling` what
    its error model says about that.
    """
    if guarantee["seeded"]:
        return [
            "This release is NOT private. Its noise came from a seeded source, as tests use it: anyone who knows or "
            "guesses the seed can take the noise away. Do not publish it."
        ]
    several = several_spans(guarantee)
    paragraphs = [_protected(guarantee), *([f"Several days: {several}"] if several else [])]
    paragraphs.append("Against whom: " + _TRUST.get(guarantee["trust"], "everybody who sees the release."))
    paragraphs += [_epsilon(guarantee), _odds(guarantee), _counts(guarantee)]
    if counted != "events":
        bounded = scaling is not None and scaling["covered"] is not None
        lacks = "" if left_out is None else f" {missing(**left_out, covered=bounded)}"
        contain = "" if scaling is None else f" {intervals_of(counted, scaling)}"
        paragraphs.insert(1, f"What was counted: counts are {COUNTED[counted]}.{contain}{lacks}")
    paragraphs += [_promised(guarantee), _to_make_sure(guarantee)]
    reference = f" ({guarantee['reference']})" if guarantee["reference"] else ""
    paragraphs.append(f"Mechanism: {guarantee['mechanism']}{reference}.")
    told = " ".join(paragraphs).lower()
    words = [f"- {meaning}" for word, meaning in _WORDS.items() if word in told]
    return [*paragraphs, "\n".join(["Words:", *words])] if words else paragraphs


def several_spans(guarantee: dict[str, Any], many: int = 7) -> str | None:
    """What one person did in several spans is hidden with, where it is one span that is hidden: group privacy.

    docs/privacy/person-days.md: this many epsilon, and delta times (1 + e^epsilon + ...) in one release about all.
    """
    if guarantee["unit"].get("per") is None:
        return None
    epsilon, delta = spent(guarantee)
    text = (
        f"What one person did in n spans together is hidden with n times epsilon: in {many} of them with epsilon = "
        f"{_at_most(many * epsilon)}, {_strength(many * epsilon)}"
    )
    if delta:
        whole = math.inf if many * epsilon > 700.0 else delta * math.expm1(many * epsilon) / math.expm1(epsilon)
        text += f". Delta is {_at_most(many * delta)} then if each release is about one of them"
        text += f", and up to {_at_most(min(1.0, whole))} if one is about all"
    return f"{text}."


def _protected(guarantee: dict[str, Any]) -> str:
    unit = guarantee["unit"]
    if unit.get("per") is not None:
        hidden = unit["description"].partition(", added")[0]
        return (
            f"What is protected: {hidden}. What can be learned about whether a given person did anything then, and "
            "what it was, is limited as stated below."
        )
    most = unit.get("max_items")
    used = "" if most is None else f" that were used, as long as these are at most {most}"
    whom = {
        "Event": "each single event, that is each row of the input. What can be learned about whether a given row "
        "was there is limited as stated below. A person with many rows is protected for each of them, not for all at "
        f"once: with 20 rows the factor {factor_of(guarantee)} below becomes {factor_of(guarantee, 20)}, or more: "
        f"{_strength(20 * spent(guarantee)[0])}. A person with many rows can put their own text on a list.",
        "User": f"each person, with all of their {'rows' if most is None else 'items'}{used}. What can be learned "
        "about whether a given person was in the data at all is limited as stated below.",
        "Element": "everything about one element of the universe, however often it occurred.",
        "Replace": "the value of each single item. How many items there were is public.",
    }
    return "What is protected: " + whom.get(unit["name"], f"{unit['description']}.")


def spent(guarantee: dict[str, Any]) -> tuple[float, float]:
    """Epsilon and delta; where rho was spent, those that it implies."""
    epsilon, delta, rho = guarantee["epsilon"], guarantee["delta"], guarantee["rho"]
    if epsilon is None:
        from discreet.privacy.calibration.zcdp import zcdp_epsilon

        delta = delta or 1e-9
        epsilon = zcdp_epsilon(rho, delta)
    return epsilon, delta


def _epsilon(guarantee: dict[str, Any]) -> str:
    epsilon, delta = spent(guarantee)
    stated = ""
    if guarantee["epsilon"] is None:
        stated = f" (stated as rho = {guarantee['rho']:g} in zero-concentrated terms, zCDP, which implies this)"
    unit = guarantee["unit"]["name"]
    compared = (
        "whichever of two values what is protected has" if unit == "Replace" else "with or without what is protected"
    )
    believed = "it is the one of two values and not the other" if unit == "Replace" else "it was there"
    without = {"Event": "had this row not been in the data", "User": "had this person not been in the data"}.get(
        unit, "had it been otherwise"
    ) + (" then" if guarantee["unit"].get("per") else "")
    plus = f" and by at most {_at_most(delta)} more" if delta else ""
    text = (
        f"What epsilon = {_at_most(epsilon)} means{stated}: {compared}, whatever one may look for in the "
        f"release had nearly the same chance to come out; the two chances differ by a factor of at most "
        f"{_factor(epsilon)}{plus}. So whatever somebody concludes from the release, they would have concluded "
        f"nearly the same {without}; facts about the whole group can still be learned. Somebody who thought it as "
        f"likely as not that {believed} can be at most {_belief(epsilon, delta)} sure after seeing the release"
    )
    text += f", except for a chance of at most {_at_most(2.0 * delta)}." if delta else "."
    text += " Smaller epsilon is stronger; 1 is a common limit."
    if delta:
        text += " Delta is the chance that the promise fails, to be kept far below 1 / people."
    if epsilon > 5.0:
        text += " That is a weak promise; an epsilon near 1 is usual for a single release."
    return text


def _odds(guarantee: dict[str, Any]) -> str:
    """The same in odds, which change by e^epsilon at most, or by twice that where there is a delta: see `_belief`."""
    epsilon, delta = spent(guarantee)
    largest = epsilon + (math.log(2.0) if delta else 0.0)
    replaced = guarantee["unit"]["name"] == "Replace"
    row = guarantee["unit"]["name"] == "Event"
    what = "what your value is" if replaced else f"that {'a row of yours is' if row else 'you are'} in it"
    text = (
        f"In odds: anyone who sees this release can be at most {_factor(largest)} times as sure as before {what}"
        f"{f', except for a chance of at most {_at_most(2.0 * delta)}' if delta else ''}."
    )
    lines = [f"  {'thought before':>16}  {'at most after':>14}"]
    for before in (0.01, 0.1, 0.5):
        after = 1.0 / (1.0 + (1.0 - before) / before * math.exp(-min(largest, 700.0)))
        lines.append(f"  {100 * before:>14g} %  {min(100.0, math.ceil(1000 * after) / 10):>12g} %")
    return "\n".join([text, *lines])


def factor_of(guarantee: dict[str, Any], times: int = 1) -> str:
    """e^epsilon, or that of this many together, in words."""
    return _factor(times * spent(guarantee)[0])


def _strength(epsilon: float) -> str:
    return "practically no protection" if epsilon > 8.0 else "a weaker promise" if epsilon > 1.0 else "still a promise"


def _promised(guarantee: dict[str, Any]) -> str:
    unit = {"Event": "every row", "User": "every person", "Element": "every element", "Replace": "every value"}
    points = [
        f"the factor above, for {unit.get(guarantee['unit']['name'], 'everybody')}"
        f"{' and each span of time' if guarantee['unit'].get('per') else ''}, whatever else is known about them",
        "nothing that is done with the release later, with other data or better computers, weakens it",
    ]
    if guarantee["trust"] in ("central", "continual"):
        points.append(
            "95 % intervals hold all together with 95 %, not each for itself; they are lopsided where a summary can "
            "only lose counts, or only gain them"
        )
    return "\n".join(["What is promised:", *(f"- {point}" for point in points)])


def _to_make_sure(guarantee: dict[str, Any]) -> str:
    points = list(guarantee["assumptions"])
    if guarantee["unit"]["name"] == "Event":
        points.append("single rows are what must be hidden, not people with several rows")
    if guarantee["unit"]["name"] == "User":
        points.append("one person is one id: somebody with two ids is two people")
    if guarantee["trust"] in ("central", "continual"):
        points.append(
            "nobody but the curator sees the data, summaries and states, and what a command shows of its work"
        )
    points.append(
        "all releases about the same people are paid by one account: an account is a set of people, not a data set"
    )
    return "\n".join(["What you must make sure of:", *(f"- {point}" for point in points)])


def _at_most(number: float) -> str:
    """Three digits, rounded up."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(float(number)))):g}"


def _factor(epsilon: float) -> str:
    if epsilon >= 30:
        return f"e^{_at_most(epsilon)}"
    factor = math.exp(epsilon)
    for size, name in ((1e12, "million million"), (1e9, "billion"), (1e6, "million")):
        if factor >= size:
            return (
                f"{math.ceil(factor / size * 10) / 10:g} {name}"
                if factor < 10 * size
                else f"{math.ceil(factor / size):g} {name}"
            )
    return _at_most(factor) if factor < 1000 else f"{math.ceil(factor):,}"


def _belief(epsilon: float, delta: float) -> str:
    """How sure somebody with even odds can become, rounded up: odds of e^epsilon, or of twice that with a delta.

    With a delta the odds may exceed e^epsilon more often than delta (about 20 times as often for Gaussian noise at
    epsilon 1 and delta 1e-6). They exceed e^x with probability p only if delta >= p (1 - e^(epsilon - x)): twice
    e^epsilon with 2 delta at most, whatever the mechanism.
    """
    odds = epsilon + (math.log(2.0) if delta else 0.0)
    share = math.ceil(1000.0 / (1.0 + math.exp(-min(odds, 700.0)))) / 10.0
    return f"{share:g}%" if share < 100 else "almost entirely"


def _counts(guarantee: dict[str, Any]) -> str:
    trust = guarantee["trust"]
    more = "release"
    if trust == "pan":
        changed = (
            "of the data nothing but random answers is kept, and what is published is computed from them, in most "
            "cases with noise of its own. It is therefore close to the truth but not exact; the interval says how "
            "close."
        )
    elif trust == "multiparty":
        more = "message"
        changed = (
            "every party put random noise or random answers into what it sent. Estimates are therefore close to the "
            "truth but not exact; the intervals say how close."
        )
    elif trust == "continual":
        changed = (
            "random noise was added to every count, which is therefore close to the truth but not exact; the intervals "
            "say how close. Where the items were listed beforehand, one may be shown that never occurred; where they "
            "were not, one that is shown did occur, and one that is too rare is left out."
        )
    elif guarantee["mechanism"].startswith("noisy count of"):
        changed = (
            "random noise was added to one number, which is therefore close to the truth but not exact; the interval "
            "says how close. Where values are credited to people, some may not be counted."
        )
    elif guarantee["mechanism"].startswith("quantiles by recursive choice"):
        changed = (
            "the answers were chosen at random from a public range, those near the truth by far most often, and random "
            "noise was added to the counts behind the intervals. The answers are therefore close to the truth but not "
            "exact; the intervals say how close. Values outside the range count as its ends."
        )
    elif guarantee["mechanism"].startswith("quantiles"):
        changed = (
            "the values were counted in parts of a public range, random noise was added to the counts, and the answers "
            "were computed from them. They are therefore close to the truth but not exact; the intervals say how "
            "close. Values outside the range count as its ends."
        )
    elif guarantee["mechanism"] == "histogram over a public list":
        changed = (
            "random noise was added to every count, which is therefore close to the truth but not exact; the intervals "
            "say how close. Every item of a public list is shown, whether it occurred or not; others are left out."
        )
    else:
        # Without a delta nothing may be certain: then an item may be listed that never occurred.
        certain = guarantee["delta"] and not pairs_are_listed(guarantee["mechanism"])
        listed = "is listed did occur" if certain else "is listed may, rarely, not have occurred at all"
        changed = (
            "random noise was added to every count, and items that are too rare were left out. The counts are "
            "therefore close to the truth but not exact; the intervals say how close. An item that is not listed may "
            f'still have occurred; one that {listed}. A line "everything else" is all rows that are not listed, '
            "frequent or rare."
        )
    return (
        f"What was changed: {changed} Each further {more} about the same people adds to what is revealed: the epsilons "
        "of all of them add up (or somewhat less), which is what a budget ledger keeps track of."
    )
