"""Noise on every item of a universe, without listing the universe."""

from __future__ import annotations

import numpy as np

from discreet.noise.source import Integers, Number, RandomSource


def noisy_places(
    source: RandomSource,
    size: int,
    places: Integers,
    values: Integers,
    scale: Number,
    cut: int,
    law: str = "laplace",
) -> tuple[Integers, Integers]:
    """Every place of a universe whose value plus noise is at least the cut, and that sum.

    The noise is discrete "laplace" of a scale, or "gaussian" of a sigma. Values are 0 but at `places`, which are
    different. Distributed as if noise were drawn for every place: of the others Binomial(size - len(places),
    P[Z >= cut]) pass, they are a uniform choice, and their noise is that of Z given Z >= cut.
    """
    gaussian = law == "gaussian"
    draw, above = (
        (source.discrete_gaussian, source.discrete_gaussian_at_least)
        if gaussian
        else (source.discrete_laplace, source.discrete_laplace_at_least)
    )
    noisy = values + draw(scale, len(places))
    shown = noisy >= cut
    absent = _absent_above(source, size, places, scale, cut, gaussian)
    found = np.concatenate([places[shown], absent])
    return found, np.concatenate([noisy[shown], above(scale, cut, len(absent))])


def places_above(
    source: RandomSource, size: int, places: Integers, values: Integers, scale: Number, cut: int
) -> Integers:
    """The places that `noisy_places` shows, in their order, without the sums."""
    shown = values + source.discrete_laplace(scale, len(places)) >= cut
    return np.sort(np.concatenate([places[shown], _absent_above(source, size, places, scale, cut)]))


def _absent_above(
    source: RandomSource, size: int, present: Integers, scale: Number, cut: int, gaussian: bool = False
) -> Integers:
    exceedances = source.discrete_gaussian_exceedances if gaussian else source.discrete_laplace_exceedances
    count = exceedances(size - len(present), scale, cut)
    ranks = source.sample_without_replacement(size - len(present), count)
    # The r-th place that is absent stands behind the present ones at or before it.
    ordered = np.sort(present)
    return np.asarray(ranks + np.searchsorted(ordered - np.arange(len(ordered)), ranks, side="right"))
