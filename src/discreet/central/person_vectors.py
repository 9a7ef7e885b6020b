"""Discover, then count: the frequent items of people, each hidden with all of their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, replace
from discreet.central._base import Mechanism
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.events.values import item_order, published_type
from discreet.noise import RandomSource
from discreet.privacy import Budget, Estimate, Unit, User
from discreet.privacy.calibration.gaussian import log_ndtr, ndtr, ndtri
from discreet.privacy.checks import whole_number, whole_or_none
from discreet.releases.error_model import ErrorModel, Noise, Scaling
from discreet.releases.release import Release
from discreet.summaries.people import LENGTH, MOST_ROWS, MOST_STEPS, Counts, People, ValueRange, each_once

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge

Array = npt.NDArray[np.float64]
Lengths = tuple[npt.NDArray[Any], Counts]
"""Squared lengths, and how many people have each."""

MOST_ITEMS = 256
"""Of more different items of a person a random choice of this many takes part in discovery."""
LOOK, SECOND_LOOK = Fraction(6), Fraction(21, 5)
"""Parts of mu^2, of PARTS, for the looks at the items; the second is left out where the first finds enough."""
FIRST, AGAIN = 1, 1
"""What the two looks weigh in the sum that decides what the second finds."""
AIM_FROM, AIM_TO = Fraction(2), Fraction(11, 4)
"""The second look aims at items whose first noisy sum is from here, in standard deviations; fully from there."""
LEAST_AIM, MOST_AIM = 64, 1024
"""The weight in the second look of items that are far from the cut, or passed it already; and of those at it."""
SIZES, LOSSES, PARTS = Fraction(3, 5), Fraction(2, 5), 20  # 3 % and 2 %; what is left is for the counts
SIZES_OF_SUMS, LOSSES_OF_SUMS = Fraction(2), Fraction(8, 5)
"""10 and 8 % of rows and values: a person may have any number, and intervals reach no farther than is seen here."""
RUNGS = 2
"""For how many lengths it is asked what scaling to them would lose."""
NOTHING_LOST = 1.2
"""How much larger a squared error may be where nothing is lost: intervals are narrower then."""
CANDIDATES, ENOUGH = Fraction(3, 2), Fraction(5, 4)
CANDIDATES_AGAIN = Fraction(6, 5)
"""Items that are counted at most, in k: after one look, and after two, which order them better."""
_LARGEST = 2.0**62
MOST_IN_GROUPS = 2**16
"""How many items are counted at most where nobody knows how many groups there are."""
_FACTOR, _FACTOR_OF_SUMS = math.sqrt(2.0), 2.0
"""Of the squared lengths of neighbouring bins; wider bins hold more people, who stand out of the noise sooner."""
FINEST = 1024
"""Weights of items are whole numbers up to this."""


class Entries(NamedTuple):
    """What a person's vector has for one item, before its weight, and how a sum of it is published.

    Attributes:
        counted: What a count is of.
        least, most: What anyone who has the item has.
        one: The largest of one row.
        worth: What 1 is worth in a count.
        lowest: What the true number of something that is listed is at least.
        listed_from: The least count that is listed ...
        above_noise: ... and by how many standard deviations of its noise it must exceed 0.
        sums: Of rows and values anyone may have any number: sizes and losses have more of the budget, and wider bins.
    """

    counted: str
    least: int = 1
    most: int = 1
    one: int = 1
    worth: float = 1.0
    lowest: int = 1
    listed_from: int = 1
    above_noise: float = 0.0
    sums: bool = False


@dataclass(frozen=True)
class PersonVectors(Mechanism):
    """What people have, with all rows of a person hidden; nobody has to say how many items that are.

    Unit: one person with all of their rows, added or removed (`User()`). `User(m)` fixes the length C: anyone who has
        more is hidden, too.
    Guarantee: (epsilon, delta), jointly for all steps.
    Noise: whatever is asked of the data is a sum over people of whole vectors of length at most L = 2^24, plus discrete
        Gaussian noise of L/mu_i on every coordinate; sum_i mu_i^2 = mu^2. Discover: presence of items, noise on every
        item that somebody has, and a cut; a second look, aimed at items near the cut, where fewer than 1.25 k pass.
        Sizes, and losses: a length C is chosen from a private histogram of lengths, and it is asked what scaling to C
        loses. Count: vectors over what was discovered, scaled to length at most C. The k largest are listed.
    Threshold: T, in units of one person who has one item. An item all of whose people have d items needs about T
        sqrt(d) people to be listed.
    Error: the noise of an item is Gaussian of C/(mu_4 a_x). What scaling leaves out of a count is never negative: its
        share is stated as `left_out`, and intervals reach up to what the losses allow (`Scaling`). Of people they
        contain the true number; of rows and sums that in which nobody has more than the release says (`covered`).
    Argument: docs/privacy/people.md.

    Args:
        k: How many items to list at most.
        rows: Count how often, instead of how many people. All rows of a person are hidden either way.
        values: Sum values, each cut to this public range, instead of counting people. Items are found by how many
            people have them, and listed by their sums.
        lists: Whether people come as lists of items, of which nothing says whose they are; the guarantee then says that
            everybody has one.
        groups: How many groups items are in, a public number: k items of each are listed, the 1.5 k (1.2 k) largest of
            each are counted, and there is a second look where fewer than 1.25 k of one of them pass. None: nobody
            knows. Then there is always a second look.
    """

    name: ClassVar[str] = "discovery and count of people's items"
    reference: ClassVar[str] = "docs/privacy/people.md"
    accepts: ClassVar[tuple[type, ...]] = (People,)
    hides: ClassVar[Unit | None] = User()  # `User(m)` says how much counts of anyone with more, not who is hidden
    _assumed_of_users = ()  # it is known whose a row is, and all of a person's rows are hidden

    budget: Budget
    k: int
    unit: Unit = User()
    rows: bool = False
    lists: bool = False
    values: ValueRange | None = None
    groups: int | None = 1

    def __post_init__(self) -> None:
        if self.values is not None and self.rows:
            raise ParameterError("a question sums values or counts rows, not both")
        _ = self.spends
        whole_number("k", self.k, 1, 2**30)
        whole_or_none("groups", self.groups, 1, 2**20)
        if not isinstance(self.unit, User):
            raise ParameterError(f"{self.name} protects dc.User(); got {type(self.unit).__name__}")

    @cached_property
    def calibration(self) -> Calibration:
        """Noise and cuts."""
        found = calibrated(*self.spends, self.most_candidates)
        return found.of_sums() if self.entries.sums else found

    @cached_property
    def cost(self) -> Charge | None:
        """mu^2/2 of all steps, and the chance that an item of this person alone passes a cut (docs/privacy/people.md).

        Noise is discrete Gaussian on whole vectors, which has this rho exactly; the chance is one of rounded noise, of
        which discrete noise is within a factor of 1 + 1e-6 (see `calibrated`).
        """
        from discreet.privacy.accounting import Charge

        items = np.arange(1.0, MOST_ITEMS + 1)
        passes = alone(self.calibration.mu, self.calibration.z, items)
        chance = float(np.max(-np.expm1(items * np.log1p(-passes))))
        return Charge(None, chance * (1.0 + 1e-6), rho=self.calibration.mu**2 / 2.0 * (1.0 + 1e-12))

    @property
    def _looked_for(self) -> int:
        """How many items are looked for, in each group."""
        return self.k

    def _most_of(self, second: bool) -> int:
        """Of the items of a group that pass, how many are taken at most."""
        return math.ceil((CANDIDATES_AGAIN if second else CANDIDATES) * self.k)

    @property
    def most_candidates(self) -> int:
        """How many items are counted at most."""
        if self.groups is None:
            return max(MOST_IN_GROUPS, math.ceil(CANDIDATES * self.k))
        return self.groups * math.ceil(CANDIDATES * self.k)

    @cached_property
    def entries(self) -> Entries:
        """What is counted."""
        if self.values is None:
            return Entries("rows", most=MOST_ROWS, sums=True) if self.rows else Entries("people")
        least, steps = max(1, int(self.values.steps(np.array([self.values.low]))[0])), ValueRange.STEPS
        worth = self.values.high / steps
        return Entries("sums", least, MOST_STEPS, steps, worth, lowest=0, sums=True)

    @property
    def in_full(self) -> bool:
        """Whether all whom intervals are about count in full, so that nothing is asked about losses."""
        return False

    @cached_property
    def threshold(self) -> float:
        return self.calibration.cuts[1] / (FIRST + AGAIN) / LENGTH

    @property
    def assumptions(self) -> tuple[str, ...]:
        told = ("every person is one list",) if self.lists else ()
        bounded = isinstance(self.unit, User) and self.unit.max_items is not None
        return (*told, "people with more items are hidden, too: they are scaled down") if bounded else told

    @cached_property
    def error_model(self) -> ErrorModel:
        """The least noise of a count: that of one item a person. The release has the noise of every item."""
        return ErrorModel(
            Noise("gaussian", self.calibration.sigma_of(self.calibration.counts(True)), self.most_candidates)
        )

    def check(self, summary: Any) -> None:
        if not isinstance(summary, People):
            raise IncompatibleSummaryError(f"{self.name} takes people, not {type(summary).__name__}")

    def _publish(self, people: People, source: RandomSource) -> Release:
        places, sums, second = self.discover(people, source)
        return self._count(people, places, sums, second, source)

    def _count(self, people: People, places: Counts, sums: Counts, second: bool, source: RandomSource) -> Release:
        """Sizes, losses and counts of what was discovered."""
        # a_x: whole weights, larger for rarer items. Noise on a count is in proportion to 1/a_x, what a person's vector
        # is long by to a_x^2: for n_x people the sum of squared errors is least for a_x in proportion to n_x^(-1/4).
        relative = np.maximum(sums, 1) ** -0.25
        weights = np.maximum(np.rint(FINEST * relative / relative.max(initial=0.0)), 1).astype(np.int64)
        guarantee = replace(self.guarantee, seeded=source.seeded)
        entries = self.entries
        if not len(places):
            sigma, left_out, longest = self.calibration.sigma_of(self.calibration.counts(second)), None, 1.0
            model = ErrorModel(Noise("gaussian", sigma))
        else:
            lengths = people.lengths(places, weights)
            length = self.choose_length(lengths, weights, sums, second, source)
            longest, left_out = length.longest, replace(length.left_out, guarantee=guarantee)
            sigma = self.calibration.sigma_of(self.calibration.counts(second, length.loses))
            noise = Noise("gaussian", sigma, len(places))
            model = ErrorModel(noise, lowest=entries.lowest, scaling=self.losses(lengths, length, weights, source))
        noisy = people.scaled_sums(places, weights, longest) + source.discrete_gaussian(sigma, len(places))
        # One person who has an item and is not scaled down adds LENGTH * weight / longest steps to it; of values, one
        # whose rows with it add up to 1.
        one = LENGTH * weights / longest / entries.worth
        counts = np.clip(np.rint(noisy / one), -_LARGEST, _LARGEST).astype(np.int64)
        least = np.maximum(entries.listed_from, 0.5 + entries.above_noise * (float(sigma) / one))  # counts are rounded
        keep = np.flatnonzero(counts >= least)
        listed = Release(
            published_type(people.items(places[keep])),
            counts[keep],
            guarantee,
            model,
            threshold=self.threshold,
            steps=1.0 / one[keep],
            counted=entries.counted,
            left_out=left_out,
        )
        return listed.head(self.k) if self.groups == 1 else listed  # of each group, where its column is

    def discover(self, people: People, source: RandomSource) -> tuple[Counts, Counts, bool]:
        """(places, noisy weights, whether there was a second look) of the largest items that pass."""
        calibration = self.calibration
        sigma = calibration.sigma_of(LOOK)
        weights = people.discovery_weights(MOST_ITEMS)
        noisy = weights + source.discrete_gaussian(sigma, len(weights))
        took_part = weights > 0  # an item that took no part cannot pass, nor call for a second look
        del weights  # one number for every item that somebody has
        passed = took_part & (noisy >= calibration.cuts[0])
        # Whether so few items passed that a second look is worth its price: a function of what passed alone.
        if self.groups is None or self.groups == 1:
            second = self.groups is None or int(np.count_nonzero(passed)) < ENOUGH * self._looked_for
        else:
            _, many = np.unique(people.groups(np.flatnonzero(passed)), return_counts=True)
            second = int(np.count_nonzero(many >= math.ceil(ENOUGH * self.k))) < self.groups
        if second:
            again = people.aimed_weights(MOST_ITEMS, aims(noisy, passed, sigma))
            again = again + source.discrete_gaussian(calibration.sigma_of(SECOND_LOOK), len(noisy))
            found = took_part & ~passed & (FIRST * noisy + AGAIN * again >= calibration.cuts[1])
            # Both looks in units of the first, for weights and their order. The second has more of each item that it
            # found, by a factor that is estimated from all of them.
            factor = min(max(float(np.sum(again[found])) / max(float(np.sum(noisy[found])), 1.0), 0.5), 16.0)
            both = (FIRST * noisy[found] + AGAIN * again[found]) / (FIRST + AGAIN * factor)
            noisy[found] = np.maximum(np.rint(both), 1)
            passed |= found
        chosen = self._largest(people, np.flatnonzero(passed), noisy, second)
        return chosen, noisy[chosen], second

    def _largest(self, people: People, places: Counts, noisy: Counts, second: bool) -> Counts:
        """Of the places that passed, those that are counted: the largest, of each group; of equals the items decide."""
        most = self._most_of(second)
        if self.groups != 1:
            items, groups = people.items(places).to_pylist(), people.groups(places).tolist()
            seen = dict.fromkeys(groups, 0)
            chosen = []
            for index in sorted(range(len(items)), key=lambda index: (-noisy[places[index]], item_order(items[index]))):
                seen[groups[index]] += 1
                if seen[groups[index]] <= most:
                    chosen.append(index)
            return places[np.array(chosen[: self.most_candidates], np.int64)]
        order = np.argsort(-noisy[places], kind="stable")
        best = noisy[places[order]]
        if len(best) > most and best[most - 1] == best[most]:
            # Places follow everybody's rows: of equals at the end the items themselves decide.
            equals = order[best == best[most]]
            items = people.items(places[equals]).to_pylist()
            equals = equals[sorted(range(len(items)), key=lambda index: item_order(items[index]))]
            order = np.concatenate([order[best > best[most]], equals])
        return places[order[:most]]

    def choose_length(
        self, lengths: Lengths, weights: Counts, sums: Counts, second: bool, source: RandomSource
    ) -> Length:
        """C, and how far intervals reach: all of it from a private histogram of lengths."""
        entries, calibration = self.entries, self.calibration
        present = entries.most == 1
        # The upper ends of the bins of squared lengths; the last is that of the longest vector there can be.
        ends, factor = [float(entries.least * int(weights.min())) ** 2], _FACTOR_OF_SUMS if entries.sums else _FACTOR
        longest = float(entries.most) ** 2 * float(np.sum(weights.astype(np.float64) ** 2))
        while ends[-1] < longest:
            ends.append(min(ends[-1] * factor, longest))
        edges = np.array(ends)
        true = (_shared_out if present else _binned)(edges, *lengths)
        sigma = calibration.sigma_of(calibration.sizes)
        noisy = (true + source.discrete_gaussian(sigma, len(edges))) / LENGTH
        sizes = Sizes(edges, noisy, float(sigma) / LENGTH, not present, factor)
        # Of presence intervals cover the longest vector there can be. Of rows and values nothing private tells what
        # one person may have, and they cover vectors a bin longer than those that stand out, and two rows of any item.
        default = 2.0 * entries.one * float(weights.max())
        reach = math.sqrt(float(edges[-1])) if present else max(sizes.reach, default)
        assert isinstance(self.unit, User)
        if self.unit.max_items is not None:
            largest = np.sort(weights)[::-1][: self.unit.max_items].astype(np.float64)
            longest = entries.one * float(np.sqrt(np.sum(largest**2)))
            reach = max(reach, longest)
        elif self.in_full:
            longest = reach
        else:
            noises = [
                float(calibration.sigma_of(calibration.counts(second, loses))) / LENGTH for loses in (True, False)
            ]
            listed = self.k if self.groups == 1 else len(sums)
            longest = sizes.best_length(reach, noises, weights, sums, listed, default, entries.least)
        left_out, noise = sizes.left_out(longest), Noise("gaussian", sigma, len(edges), Fraction(1, LENGTH))
        return Length(longest, reach, longest < reach, left_out, float(np.sum(noisy)), noise)

    def losses(self, lengths: Lengths, length: Length, weights: Counts, source: RandomSource) -> Scaling:
        """What scaling to C, and to longer ones, leaves out, in private sums: what the upper ends of intervals need."""
        present = self.entries.most == 1
        covered = None if present else length.reach / float(weights.max()) * self.entries.worth
        if not length.loses:
            return Scaling((1.0,), (0.0,), None, length.people, length.noise, not present, covered)
        # C, and longer ones, for which it is asked what scaling to them would lose.
        rungs = length.longest * (length.reach / length.longest) ** (np.arange(RUNGS) / RUNGS)
        true, unit = _lost(*lengths, rungs, length.reach, present)
        sigma = self.calibration.sigma_of(self.calibration.losses)
        if not present:  # in steps of the counts' noise, which are worth more where the weight is small
            unit *= LENGTH / length.longest
        lost = (true + source.discrete_gaussian(sigma, len(rungs))) * unit
        ratios = (*(rungs / length.longest).tolist(), length.reach / length.longest)
        noise = Noise("gaussian", sigma, len(rungs), Fraction(unit))
        return Scaling(ratios, (*lost.tolist(), 0.0), noise, length.people, length.noise, not present, covered)


def aims(noisy: Counts, passed: npt.NDArray[np.bool_], sigma: Fraction) -> Counts:
    """What every item weighs in the second look: a function of its own noisy sum, and of whether it passed.

    It grows with the sum, from `LEAST_AIM` to `MOST_AIM`, and is never less: that bounds what an item that one person
    alone has can weigh beside the person's others. Whole numbers throughout, so that every engine has the same.
    """
    low, wide = int(AIM_FROM * 2 * sigma), int((AIM_TO - AIM_FROM) * 2 * sigma)
    near = np.minimum(noisy, int(AIM_TO * sigma) + 1)
    near *= 2
    near -= low
    np.maximum(near, 0, out=near)
    near *= MOST_AIM
    near //= wide
    np.clip(near, LEAST_AIM, MOST_AIM, out=near)
    near[passed] = LEAST_AIM
    return near


def _binned(edges: Array, squared: Array, times: Counts) -> Counts:
    """How many people are in each bin, in steps of the lattice."""
    return LENGTH * np.bincount(np.searchsorted(edges, squared), times, len(edges) + 1)[: len(edges)].astype(np.int64)


def _shared_out(edges: Array, squared: Array, times: Counts) -> Counts:
    """The same with every person shared out to the edges on both sides, more to the nearer one.

    A person at e_i + u (e_(i+1) - e_i) adds 1 - u and u, which is no longer than 1 in l2, so it costs what a bin costs.
    But sums of what is linear in the squared length are exact, wherever in a bin people are.
    """
    upper = np.clip(np.searchsorted(edges, squared), 1, max(len(edges) - 1, 1))
    if len(edges) == 1:
        return np.array([LENGTH * int(times.sum())])
    low, high = edges[upper - 1], edges[upper]
    part = np.rint(LENGTH * np.clip((squared - low) / (high - low), 0.0, 1.0)).astype(np.int64)
    shared = np.zeros(len(edges), np.int64)
    np.add.at(shared, upper, part * times)
    np.add.at(shared, upper - 1, (LENGTH - part) * times)
    return shared


def _lost(squared: Array, times: Counts, rungs: Array, reach: float, present: bool) -> tuple[Counts, float]:
    """(sums over people, their unit): what scaling to each length loses of one entry of a person, at most.

    A person whose vector is l long, l <= reach, loses 1 - C/l of what they have: of presence, of one; of rows and
    values, of at most l/a_x, so that l - C is summed, and divided by a_x later. The vector of one person, one number a
    rung, is longest for the longest l: in units of that it is no longer than LENGTH. Entries are rounded up.
    """

    def of(lengths: Array) -> Array:
        over = np.maximum(lengths[:, None] - rungs, 0.0)
        return np.asarray(over / lengths[:, None] if present else over)

    whole = LENGTH - 2 * len(rungs)  # rounding up adds less than one to each entry
    unit = float(np.linalg.norm(of(np.array([reach])))) / whole
    entries = np.ceil(of(np.minimum(np.sqrt(squared), reach)) / unit).astype(np.int64)
    return np.asarray(times @ entries, np.int64), unit


@dataclass(frozen=True)
class Length:
    """What follows from the private sizes.

    Attributes:
        longest: C, to which vectors are scaled.
        reach: The length of vectors up to which intervals are about all that a person has.
        loses: Whether scaling can leave out anything of that.
        left_out: The share of contributions that scaling leaves out.
        people: How many people have any of the items, with noise: the sum of the sizes.
        noise: That of each of the sizes, in people.
    """

    longest: float
    reach: float
    loses: bool
    left_out: Estimate
    people: float
    noise: Noise


class Sizes:
    """A private histogram of the lengths of people's vectors: noisy counts with the standard deviation `spread`.

    `mass` of a place is how many (person, item) pairs one person there has; of rows or values, what they add up to at
    least. Rows and values are in bins; people are shared out to the edges (`_shared_out`), so that sums over the edges
    are exact, and what scaling leaves out is at most that sum and at least that less `gaps` (docs/privacy/people.md).

    Attributes:
        lengths: That of each edge; of a bin a typical one, in the middle of its logarithms.
        people: What stands out of the noise, by itself or two beside each other; the rest counts as empty, or noise
            would invent long vectors. Of rows and values a bin by itself must stand out more, and one in a row with it
            less.
        seen: How many bins there are up to the first beyond the last that stands out.
        reach: The upper end of the last of them.
    """

    def __init__(self, edges: Array, noisy: Array, spread: float, rows: bool, factor: float = _FACTOR) -> None:
        self.edges, self.noisy, self.spread, self.rows = edges, noisy, spread, rows  # rows or values: larger than 1
        self.factor = factor
        self.lengths = np.sqrt(edges / math.sqrt(factor)) if rows else np.sqrt(edges)
        self.power = 1 if rows else 2  # mass is this power of a length
        shown = self._stand_out(0.0015 / len(edges))
        if rows:
            surely, likely = self._stand_out(1e-6 / len(edges)), self._stand_out(0.02)
            rows_of = np.cumsum(~likely)  # consecutive ones have one number
            shown = likely & np.isin(rows_of, rows_of[surely])
        self.people = np.where(shown, np.maximum(noisy, 0.0), 0.0)
        self.seen = int(np.flatnonzero(self.people)[-1]) + 2 if self.people.any() else 1
        self.reach = math.sqrt(float(edges[: self.seen][-1]))

    def _stand_out(self, chance: float) -> npt.NDArray[np.bool_]:
        least = -float(ndtri(chance)) * self.spread
        pairs = self.noisy[:-1] + self.noisy[1:] >= math.sqrt(2.0) * least
        return np.asarray((self.noisy >= least) | np.append(pairs, False) | np.append(False, pairs))

    def lost(self, lengths: Array, longest: float) -> Array:
        """What scaling to `longest` leaves out of the mass of one person with a vector of each of these lengths."""
        return np.asarray(lengths**self.power * (1.0 - np.minimum(1.0, longest / lengths)))

    def gaps(self, longest: float) -> Array:
        """How much less than the sum over the edges scaling may leave out, for one person shared out to an edge."""
        if self.rows or len(self.edges) == 1:
            return np.zeros(len(self.edges))
        parts = np.linspace(0.0, 1.0, 65)[:, None]
        inside = self.lost(np.sqrt(self.edges[:-1] + parts * np.diff(self.edges)), longest)
        at = self.lost(self.lengths, longest)
        most = np.max((1.0 - parts) * at[:-1] + parts * at[1:] - inside, axis=0) * 1.01  # between two of the parts
        return np.asarray(np.maximum(np.append(most, 0.0), np.append(0.0, most)))

    def best_length(
        self,
        reach: float,
        noises: Sequence[float],
        weights: Counts,
        sums: Counts,
        k: int,
        default: float,
        least: int = 1,
    ) -> float:
        """The C up to `reach` that makes squared errors of the first k counts least: (loss)^2 + (noise)^2, in people.

        Each is divided by its count: otherwise the largest counts alone would decide. What an item loses is estimated
        from the people whose vectors are long enough to have it, and the noise of the sizes adds to its square.
        `noises` are those of a count at C = 1 and weight 1: where something is lost, and where C is `reach` and nothing
        is. Where no bin stands out of the noise C is the default.
        """
        lengths, each = self.lengths, self.lengths**self.power
        mass = self.people * each
        if not mass.any():
            return min(reach, default)
        # How many people have an item: in proportion to the noisy sums of discovery, and together what all have.
        counts = (
            np.maximum(sums[:k], 1)
            * np.sum(mass)
            / np.sum(weights.astype(np.float64) ** self.power * np.maximum(sums, 1))
        )
        # Nobody who has an item has a shorter vector than it alone. Many items have the same weight.
        own, same = np.unique(least * weights[:k].astype(np.float64), return_inverse=True)
        there = np.where(lengths * 1.001 >= own[:, None], mass, 0.0)
        total = np.maximum(np.sum(there, axis=1), 1e-300)
        unsure = self.spread * each * (np.arange(len(each)) < self.seen)
        grid = math.sqrt(float(self.edges[0])) * 2.0 ** np.arange(0.0, 64.0, 0.125)
        best, least_error = reach, math.inf
        for longest in (*grid[grid < reach].tolist(), reach):
            lost = np.maximum(1.0 - longest / lengths, 0.0)
            share = np.maximum(there @ lost / total, 1.0 - longest / own)[same]
            squared = (counts * share) ** 2 + (counts * np.linalg.norm(unsure * lost) / np.sum(mass)) ** 2
            noise = noises[longest >= reach] * longest / weights[:k]
            error = float(np.mean((squared + noise**2) / counts))
            if error < least_error * (NOTHING_LOST if longest >= reach else 1.0):
                best, least_error = longest, error
        return best

    def left_out(self, longest: float, confidence: float = 0.95) -> Estimate:
        """The share of the contributions that scaling to `longest` leaves out, with an interval.

        Of presence the interval is for all people, and for every C that could have been chosen: the upper end takes all
        edges, the lower one those that are seen. Of rows and values it is for the bins up to the first beyond the last
        that stands out. docs/privacy/people.md, "Left out".
        """
        beta, seen = (1.0 - confidence) / 2.0, self.seen
        if self.rows:
            # How many rows or what values people have may be the same for all: the crowd is at one end of a bin then.
            half = -float(ndtri(beta)) * self.spread
            low, high = np.sqrt(self.edges / self.factor), np.sqrt(self.edges)
            value = self._share(self.lengths, longest)
            return Estimate(value, self._share(low, longest, -half), self._share(high, longest, half))
        gaps = self.gaps(longest)
        value = self._share(self.lengths, longest, gaps=gaps * (1 / 3))
        mass, lost = self.lengths**2, self.lost(self.lengths, longest)
        if not lost.any():
            return Estimate(value, 0.0, value)
        s = np.linspace(0.0, 1.0, 1001)[:, None]
        among = 2.0 + 8.0 * math.log2(math.sqrt(self.edges[-1] / self.edges[0]))  # `best_length`'s grid, and two
        above, below = lost - s * mass, (lost - gaps)[:seen] - s * mass[:seen]
        above = above @ self.noisy - float(ndtri(beta / among)) * self.spread * np.linalg.norm(above, axis=1)
        reach = float(ndtri(beta / (among * len(self.edges)))) * self.spread
        below = below @ self.noisy[:seen] + reach * np.linalg.norm(below, axis=1)
        # The largest s that is not too large; the first that may be too large, and all before it are not.
        too_small = np.flatnonzero(above > 0.0)
        upper = float(min(1.0, (too_small[-1] + 1) / 1000.0)) if len(too_small) else 0.0
        lower = max(0.0, (int(np.argmax(np.append(below <= 0.0, True))) - 1) / 1000.0)
        return Estimate(value, min(lower, value), max(upper, value))

    def _share(self, lengths: Array, longest: float, more: float = 0.0, gaps: Array | float = 0.0) -> float:
        """What is lost of vectors of these lengths, of all that those who are seen have; `more` deviations."""
        noisy, lost = self.noisy[: self.seen], (self.lost(lengths, longest) - gaps)[: self.seen]
        everything = max(float(np.sum(np.maximum(noisy, 0.0) * (lengths**self.power)[: self.seen])), 1e-9)
        return min(max((float(np.sum(noisy * lost)) + more * math.sqrt(float(np.sum(lost**2)))) / everything, 0.0), 1.0)


@dataclass(frozen=True)
class Calibration:
    """mu of all steps together, and the cuts in steps of the lattice: of the first look, and of the sum of both, in
    which they weigh `FIRST` and `AGAIN`."""

    mu: float
    z: float
    cuts: tuple[int, int] = (0, 0)
    sizes: Fraction = SIZES
    losses: Fraction = LOSSES

    def of_sums(self) -> Calibration:
        """The same in all, with less noise on sizes and losses and more on the counts."""
        return replace(self, sizes=SIZES_OF_SUMS, losses=LOSSES_OF_SUMS)

    def sigma_of(self, part: int | Fraction) -> Fraction:
        """The noise of a step that has this part of mu^2: L/mu_i, rounded up."""
        return Fraction(math.ceil(LENGTH / (self.mu * math.sqrt(part / PARTS)) * (1.0 + 1e-12)))

    def counts(self, second: bool, loses: bool = True) -> Fraction:
        """The part of mu^2 that is left for the counts; without losses nothing is asked about them."""
        return PARTS - self.sizes - LOOK - (SECOND_LOOK if second else 0) - (self.losses if loses else 0)

    @property
    def spread_of_both(self) -> float:
        """The noise of FIRST times the first look and AGAIN times the second."""
        return math.hypot(FIRST * self.sigma_of(LOOK), AGAIN * self.sigma_of(SECOND_LOOK))


def gaussian_delta(epsilon: Array, mu: Array) -> Array:
    """delta of Gaussian noise at any epsilon, never understated: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    first = log_ndtr(mu / 2.0 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return np.asarray(np.exp(first) * (-np.expm1(np.minimum(0.0, second - first)) + 1e-11))


def alone(mu: float, z: float, d: Array, cells: int = 512) -> Array:
    """The chance that an item that one person alone has passes a cut, for a person with d items; never understated.

    Cuts are at z standard deviations. The first look has 1/sqrt(d) of the item. Its noisy sum y, in standard
    deviations, aims the second, which then has at most a(y)/sqrt(a(y)^2 + (d - 1) a_0^2): the person's other items
    weigh a_0 = LEAST_AIM at least. In every cell of y what passes is bounded by what passes at its upper end.
    """
    noise = Calibration(mu, z)
    sigma, second = (float(noise.sigma_of(part)) for part in (LOOK, SECOND_LOOK))
    d = np.asarray(d)[:, None]
    shift, upper = LENGTH / (np.sqrt(d) * sigma), np.linspace(-2.0, z, cells)
    beyond = ndtr(shift - upper)
    inside = np.concatenate([1.0 - beyond[:, :1], beyond[:, :-1] - beyond[:, 1:]], axis=1)
    aim = (upper + 1.0 / sigma - float(AIM_FROM)) / float(AIM_TO - AIM_FROM)  # rounded noise is off by half a step
    aim = np.clip(MOST_AIM * aim, LEAST_AIM, MOST_AIM)
    weight = aim / np.sqrt(aim**2 + (d - 1.0) * LEAST_AIM**2)
    left = ((noise.spread_of_both * z - FIRST * sigma * upper) / AGAIN - weight * LENGTH) / second
    return np.asarray(beyond[:, -1] + np.sum(inside * ndtr(-left), axis=1))


def joint_delta(
    epsilon: float, mu: float, z: float, most_items: int = MOST_ITEMS, only_isolated: bool = False
) -> float:
    """delta of all steps together, cuts at z standard deviations.

    A person has d items, j of which nobody else has. pi: one of the j passes a cut in one of the looks. If none does,
    what is left is Gaussian: the looks at the d - j others, sizes, counts.
    """
    share = float(LOOK / PARTS)  # where the second look does not happen, counts have its part
    if only_isolated:  # some of them: for a first guess
        sizes = each_once(np.minimum([1, 2, 4, 16, 64, most_items], most_items)).astype(np.float64)
        d = j = sizes[:, None]
        passes = alone(mu, z, sizes)[:, None]
    else:
        d, j = np.arange(1.0, most_items + 1)[:, None], np.arange(0.0, most_items + 1)[None, :]
        # With more items each of them passes less often: the next smaller size that is asked for is a bound.
        sizes = each_once(np.floor(np.append(1.1 ** np.arange(0.0, 7.3 / math.log(1.1)), most_items)))
        sizes = sizes[sizes <= most_items]
        passes = alone(mu, z, sizes)[np.searchsorted(sizes, d, side="right") - 1]
    log_none = j * np.log1p(-np.minimum(passes, 0.5))
    pi = -np.expm1(log_none)
    rest = mu * np.sqrt(1.0 - share * np.minimum(j, d) / d)
    with_person = pi + (1.0 - pi) * gaussian_delta(epsilon - log_none, rest)
    without = gaussian_delta(epsilon + log_none, rest)
    return float(np.max(np.where(j <= d, np.maximum(with_person, without), 0.0)))


def largest_mu(epsilon: float, delta: float, touched: int, share: float) -> float:
    """The largest mu of Gaussian noise, so the least noise, that this share of delta allows.

    Noise is discrete: on the N coordinates that one person touches its law is within a factor
    exp(N (200 + 1/8)/sigma^2) of that of rounded continuous noise (docs/privacy/people.md), which is taken off epsilon.
    """

    def passes(mu: float) -> bool:
        least = epsilon - touched * 201.0 * (mu / LENGTH) ** 2
        return least > 0.0 and float(gaussian_delta(np.array(least), np.array(mu))) <= delta * share

    low, high = 0.0, 1.0
    while passes(high) and high < 1e6:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if passes(middle) else (low, middle)
    if low < 1e-6:
        raise ParameterError(f"epsilon={epsilon:g}, delta={delta:g} is too small a budget for people")
    return low


@lru_cache(maxsize=64)
def calibrated(epsilon: float, delta: float, candidates: int) -> Calibration:
    """The least noise for the steps together, at 95 % of delta, and the lowest cuts that all of it allows."""
    touched = 2 * MOST_ITEMS + 2 + RUNGS + candidates
    mu = largest_mu(epsilon, delta, touched, 0.95)
    least = epsilon - touched * 201.0 * (mu / LENGTH) ** 2
    most = delta * (1.0 - 1e-6)
    low, high = 0.0, 64.0
    for _ in range(26):
        middle = (low + high) / 2.0
        low, high = (low, middle) if joint_delta(least, mu, middle, only_isolated=True) <= most else (middle, high)
    z, more = high, 1e-4
    while joint_delta(least, mu, z) > most:
        z, more = z * (1.0 + more), 1.5 * more
        if z > 64.0:
            raise ParameterError(f"epsilon={epsilon:g}, delta={delta:g} is too small a budget for people")
    # Rounding of the noise to whole steps moves a sum by at most half a step, so that of both by FIRST + AGAIN halves.
    noise = Calibration(mu, z)
    cuts = math.ceil(z * float(noise.sigma_of(LOOK))) + 1, math.ceil(z * noise.spread_of_both) + FIRST + AGAIN
    return replace(noise, cuts=cuts)
