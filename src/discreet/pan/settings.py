"""What an estimator takes besides its own parameters, and how its epsilon is split between looks and releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict

from discreet._data_class import dataclass, replace
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.pan.intervals import choose_share, smallest_sample
from discreet.pan.responses import gap_of
from discreet.privacy.checks import positive_number, probability, whole_number

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

KEPT = ("confidence", "releases", "announced_intrusions", "response")
"""Of the options what a state keeps as it was given; the share is kept as it was chosen."""
MOST_INTRUSIONS = 16
"""How many can be announced to one state: after each it tells less."""


class Options(TypedDict, total=False):
    """What every estimator takes besides its own parameters.

    Args:
        confidence: Of the interval of a release; 0.95 by default.
        releases: How many outputs the budget covers; 1 by default. Calls after the last return it again.
        announced_intrusions: How many announced intrusions the budget covers besides the unannounced one; by default 0.
        response: "tight" (the default) or "paper", the two coins of randomised response.
        output_share: The part of epsilon for the outputs; chosen for the narrowest interval by default.
        source: A seeded source, for tests and audits: what it protects is not private.
        ledger: The account that pays. The whole budget is charged durably before the state is drawn; it covers the
            state, one unannounced look, `announced_intrusions` announced ones and `releases` outputs. An announced
            intrusion beyond these is charged epsilon_state more.
        charge_id: Names the charge; a new id by default. It pays for one state, and for those that go on from it.
    """

    confidence: float
    releases: int
    announced_intrusions: int
    response: str
    output_share: float
    source: RandomSource | None
    ledger: Account | None
    charge_id: str | None


@dataclass(frozen=True)
class Settings:
    """The public numbers that decide what may be seen: how epsilon is split and what is promised.

    epsilon = (1 + announced_intrusions) epsilon_state + releases epsilon_output, exactly.
    """

    epsilon: float
    confidence: float
    releases: int
    announced_intrusions: int
    response: str
    share: Fraction

    @classmethod
    def of(cls, epsilon: float, options: Mapping[str, Any], width: Width) -> Settings:
        """From options, checked; a share that is not given is the one with the narrowest interval."""
        confidence = options.get("confidence", 0.95)
        level = probability("confidence", confidence)
        if level < 0.5:
            raise ParameterError(f"confidence must be at least 0.5, not {confidence!r}")
        releases = whole_number("releases", options.get("releases", 1), 1, 2**20)
        planned = whole_number("announced_intrusions", options.get("announced_intrusions", 0), 0, MOST_INTRUSIONS)
        response, share = options.get("response", "tight"), options.get("output_share")
        if response not in ("tight", "paper"):
            raise ParameterError(f"response must be 'tight' or 'paper', not {response!r}")
        if share is not None:
            share = share if isinstance(share, Fraction) else Fraction(probability("output_share", share))
            if not 0 < share < 1:
                raise ParameterError("output_share must be greater than 0 and less than 1")
        made = cls(epsilon, level, releases, planned, str(response), share or Fraction(1, 2))
        return made if share is not None else made.narrowest(width)

    def narrowest(self, width: Width) -> Settings:
        """With the share that makes the interval narrowest."""
        looks = 1 + self.announced_intrusions
        try:
            share = choose_share(self.epsilon, looks, self.releases, lambda es, eo: width(self, es, eo))
        except ArithmeticError:
            raise ParameterError("epsilon is too small: no interval can be computed") from None
        return replace(self, share=share)

    @property
    def epsilon_state(self) -> Fraction:
        """What one intrusion may learn."""
        return Fraction(self.epsilon) * (1 - self.share) / (1 + self.announced_intrusions)

    @property
    def epsilon_output(self) -> Fraction:
        """What one release may add."""
        return Fraction(self.epsilon) * self.share / self.releases

    @property
    def beta(self) -> float:
        """The chance that an interval misses."""
        return 1.0 - self.confidence

    def gap(self, epsilon_state: float) -> float:
        """How far apart the coins are after the planned intrusions, for sizing."""
        return gap_of(self.response, epsilon_state, self.announced_intrusions)

    # ---- in a state ------------------------------------------------------------------------------------------------

    def to_list(self) -> list[Any]:
        """As JSON has it."""
        return [self.epsilon, *(getattr(self, name) for name in KEPT), str(self.share)]

    @classmethod
    def from_list(cls, values: list[Any], width: Width) -> Settings:
        """The inverse of `to_list`."""
        epsilon, *kept, share = values
        options = {**dict(zip(KEPT, kept, strict=True)), "output_share": Fraction(share)}
        return cls.of(positive_number("epsilon", epsilon), options, width)


Width = Callable[[Settings, float, float], float]
"""The half-width of an interval in the worst case, for epsilon_state and epsilon_output; no data is involved."""


def fewest(
    draft: Any, size: str, alpha: float, beta: float, epsilon: float, options: Options, most: int, least: int
) -> int:
    """The smallest size of a draft, an attribute of it, at which its width is at most alpha; fills in the confidence
    1 - beta."""
    width: Width = draft._width
    alpha, beta = positive_number("alpha", alpha), probability("beta", beta)
    if "confidence" in options or "output_share" in options:
        raise ParameterError("for_accuracy chooses confidence (1 - beta) and output_share itself")
    options["confidence"] = 1 - beta
    half = Settings.of(positive_number("epsilon", epsilon), {**options, "output_share": Fraction(1, 2)}, width)

    def enough(number: int) -> bool:
        setattr(draft, size, max(number, least))
        split = half.narrowest(width)
        return width(split, float(split.epsilon_state), float(split.epsilon_output)) <= alpha

    return max(smallest_sample(enough, most), least)
