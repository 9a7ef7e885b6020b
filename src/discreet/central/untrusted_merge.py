"""Adding up releases of several streams: the aggregator sees nothing that is not private."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet._data_class import replace
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.events.values import items_array
from discreet.privacy import Guarantee
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Release


def merge_releases(releases: Sequence[Release], *, parts_per_user: int = 1) -> Release:
    """The sum of releases of different streams, item by item. Post-processing: it costs nothing more.

    Unit: that of the releases; all events of a unit are in one stream, or in `parts_per_user` of them, which the
        guarantee repeats. Streams that a unit is not in tell nothing of it.
    Guarantee: that of the weakest release; with p parts the p largest epsilons, deltas or rhos added up.
    Error: grows with the number of releases: every one adds its noise, and a stream in which an item stayed below the
        cut adds nothing to the sum but up to its cut to the upper bound. (So give whole releases, not their heads.)
    Follows [LT] section 7, untrusted aggregator.
    """
    if not releases or not all(isinstance(release, Release) for release in releases):
        raise ParameterError("merge_releases takes a list of one or more releases")
    whole_number("parts_per_user", parts_per_user)
    units = {release.guarantee.unit for release in releases}
    if len(units) > 1 or len({release.guarantee.rho is None for release in releases}) > 1:
        raise IncompatibleSummaryError("the releases have different units or kinds of budget and cannot be merged")
    total: Counter[Any] = Counter()
    for release in releases:
        total.update(dict(zip(release.items, release.counts.tolist(), strict=True)))
    return Release(
        items_array(total),
        np.array(list(total.values()), np.int64),
        _weakest(releases, parts_per_user),
        _summed_errors(releases),
        offset=None if any(r.offset is None for r in releases) else sum(r.offset or 0 for r in releases),
    )


def _weakest(releases: Sequence[Release], parts: int) -> Guarantee:
    promises = [release.guarantee for release in releases]
    first = promises[0]
    in_one = "all events of a unit are in one stream"
    where = in_one if parts == 1 else f"the events of a unit are in at most {parts} of the streams"
    rests_on = dict.fromkeys(assumption for promise in promises for assumption in promise.assumptions)
    return replace(
        first,
        epsilon=None if first.epsilon is None else _largest(parts, [p.epsilon or 0.0 for p in promises]),
        delta=_largest(parts, [p.delta for p in promises]),
        rho=None if first.rho is None else _largest(parts, [p.rho or 0.0 for p in promises]),
        mechanism=f"sum of {len(releases)} releases ({first.mechanism})",
        assumptions=(*rests_on, where),
        seeded=any(p.seeded for p in promises),
    )


def _largest(parts: int, values: list[float]) -> float:
    """The sum of the largest `parts` of them, rounded up."""
    exact = sum(map(Fraction, sorted(values)[-parts:]), start=Fraction(0))
    total = float(exact)
    return total if Fraction(total) >= exact else math.nextafter(total, math.inf)


def _summed_errors(releases: Sequence[Release]) -> ErrorModel:
    """Conservative: with all noises within b at once, a sum of l of them is within l b."""
    models = [release.error_model.of_all for release in releases]
    if len({(m.noise.law, m.shared is None, m.offset_noise is None) for m in models}) > 1:
        raise IncompatibleSummaryError("the releases were made by different kinds of mechanism")
    return ErrorModel(
        _all_at_once([m.noise for m in models]),
        shared=None if models[0].shared is None else _all_at_once([m.shared for m in models if m.shared]),
        offset_noise=None
        if models[0].offset_noise is None
        else _all_at_once([m.offset_noise for m in models if m.offset_noise]),
        summary_below=sum(max(r.error_model.summary_below, _unlisted(r)) for r in releases),
        summary_above=sum(m.summary_above for m in models),
        lowest=min(m.lowest for m in models),
    )


def _unlisted(release: Release) -> float:
    """The most that an item that is not listed can have occurred, up to the noise of the counters."""
    model = release.error_model
    another_law = model.offset_noise is not None and model.offset_noise.scale != model.noise.scale
    if release.threshold is None or model.lowest == 0 or another_law:
        return math.inf
    # Stored but hidden: value + noise < threshold + offset. Not stored: what the summary loses, or the offset.
    return release.threshold + max(0, release.offset or 0) + model.summary_below


def _all_at_once(noises: Sequence[Noise]) -> Noise:
    """One law whose bound covers the sum of one draw of each: all draws are within the bound of the widest law."""
    widest = max(noises, key=lambda noise: noise.scale)
    steps = sum((noise.step for noise in noises), start=Fraction(0))
    return replace(widest, draws=sum(noise.draws for noise in noises), step=steps)
