"""What the papers' versions lose as printed, beside what ours lose: the numbers of docs/privacy/corrections.md.

    discreet audit --corrections

Every number is computed from an exact law or an exact count; nothing is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.central import Merged, Offset, UserSketch
from discreet.continual import one_shot
from discreet.continual.anatomy import Tree
from discreet.multiparty import Separation, Stream
from discreet.pan import CroppedMean, Density, HeavyFraction, Incidence, ModularIncidence
from discreet.privacy import Budget, User
from discreet.published import MergedMisraGries, PrivateSpaceSaving, TextbookMisraGries
from discreet.published.private_space_saving import space_saving_paper_margin
from discreet_audit import literal_pan, literal_sketches
from discreet_audit.continual_laws import above_threshold_losses, event_shift, sparse_rho, stop_is_beaten
from discreet_audit.laws import NoiseLaw
from discreet_audit.multiparty_laws import entries_loss, neighbours, separation_loss
from discreet_audit.multiparty_transcripts import stream_loss
from discreet_audit.pan_laws import History, Model, models_of, worst_loss
from discreet_audit.registry import QUICK, case_of

__all__ = ["Correction", "corrections"]

LOOKS: list[History] = [("look", "output"), ("output", "look")]


@dataclass(frozen=True)
class Correction:
    """One claim of a paper, and what it comes to.

    kind "privacy": the literal version loses more than claimed. "misuse": the paper is right, and `literal` is what its
    result loses where it does not apply. "number": it is private and publishes something else than it says; claimed is
    the error that was meant to be 0. "waste": it is private and spends more than it has to; then `literal` and `ours`
    are what is accounted for the same release.
    """

    where: str
    what: str
    kind: str
    quantity: str
    claimed: float
    literal: float
    ours: float

    @property
    def place(self) -> str:
        """Where, and whether it is the paper's fault."""
        return f"{self.where}, misused" if self.kind == "misuse" else self.where

    @property
    def caught(self) -> bool:
        """Whether the literal version is rejected and ours is not."""
        if self.kind == "waste":
            return self.ours < self.literal
        return self.ours <= self.claimed * (1 + 1e-9) + 1e-12 < self.literal


def _loss(model: Model, frames: list[History] = LOOKS, most: int = 3) -> float:
    return worst_loss(model, frames, most)[0]


def _of(estimator: Any, frames: list[History] = LOOKS, most: int = 3) -> float:
    return max(_loss(model, frames, most) for model in models_of(estimator, 1))


def _pan() -> Iterator[Correction]:
    def row(where: str, what: str, claimed: float, literal: float, ours: float, *, kind: str = "privacy") -> Correction:
        return Correction(
            f"[PAN] {where}", what, kind, "epsilon" if kind == "privacy" else "error", claimed, literal, ours
        )

    eps = 0.1
    after, budget = literal_pan.density_noise_after_rescaling(eps), Budget(2 * eps)
    yield row("section 3", "density: noise after rescaling", 2 * eps, _loss(after), _of(Density(3, budget=budget)))
    after = literal_pan.cropped_mean_noise_after_rescaling(eps, 4)
    ours = _of(CroppedMean(3, 4, budget=budget))
    yield row("Figure 2", "cropped mean, t = 4: noise after rescaling", 2 * eps, _loss(after), ours)
    rungs = (1, 2, 4)
    one = literal_pan.heavy_hitters_noise_for_one_table(eps, rungs)
    ladder = HeavyFraction(3, 1, budget=Budget(eps * (1 + len(rungs))), method="ladder", max_count=4)
    yield row(
        "Figure 3",
        "heavy hitters, 3 tables: noise for one",
        eps * 4,
        _loss(one, LOOKS[:1], 1),
        _of(ladder, LOOKS[:1], 1),
    )
    heights = [1.0, 2.0, 4.0, 8.0, 16.0]
    found = [literal_pan.fraction_of_one_interval(heights, 2, 12, corrected=fixed) for fixed in (False, True)]
    errors = [abs(value - 1.0) for value in found]
    yield row("Figure 3", "one interval for all heavy hitters (k = 2, all occur 12 times)", 0, *errors, kind="number")
    eps = 0.5
    single = literal_pan.modular_noise_for_one_residue(eps, 3)
    ours = _of(ModularIncidence(3, 3, budget=Budget(2 * eps), shift="paper"))
    yield row("Theorem 5.2", "modular incidence, k = 3: noise for 1/m", 2 * eps, _loss(single), ours)
    truth = [0.1, 0.6, 0.2, 0.1]
    errors = [
        float(np.abs(literal_pan.modular_matrix_as_printed(eps, truth, corrected=fixed) - truth).max())
        for fixed in (False, True)
    ]
    yield row("Figure 5", "matrix of i + j in place of i - j (fractions 0.1, 0.6, 0.2, 0.1)", 0, *errors, kind="number")
    eps = 1.0
    apart = literal_pan.counters_that_do_not_share(eps, (2, 3, 5))
    primes = _few_primes(eps)
    ours = _of(primes, [("look",)], 6)
    yield row("Theorem 5.1", "incidence: three counters, one look", eps, _loss(apart, [("look",)], 6), ours)
    eps = 0.5
    kept = literal_pan.bits_alone_rerandomised(eps, 3)
    planned = CroppedMean(3, 3, budget=Budget(3 * eps), announced_intrusions=1, output_share=1 / 3)
    frames: list[History] = [("announce", "look", "output")]
    ours = _of(planned, frames, 2)
    yield row("section 3", "announced intrusion: counters kept", 3 * eps, _loss(kept, frames, 2), ours)
    lazy = literal_pan.entries_made_on_arrival(eps)
    ours = _of(Density(3, budget=Budget(2 * eps), output_share=0.5), [("look",)])
    yield row("section 3", "entries made when an element first comes", eps, _loss(lazy, [("look",)]), ours)


def _few_primes(epsilon_state: float) -> Incidence:
    """An estimator of three counters whose primes are few enough to enumerate, with this epsilon for a look."""
    while True:
        budget = Budget(2 * epsilon_state)
        made = Incidence(3, 1, budget=budget, method="primes", max_count=2, primes=3, collision=0.9, output_share=0.5)
        if math.prod(made.moduli) <= 105:
            return made


def _delta(mechanism: Any) -> float:
    """The largest exact delta of a mechanism (or of its twin) that the audit finds."""
    findings = case_of(mechanism).exact(mechanism, QUICK)
    return max(finding.measured for finding in findings if finding.quantity == "delta")


def _twin(mechanism: Any, words: str) -> Any:
    (twin,) = [twin for twin in case_of(mechanism).twins(mechanism) if words in twin.name]
    return twin.mechanism


def _central() -> Iterator[Correction]:
    large, small = Budget(1.0, 0.02), Budget(1.0, 1e-9)
    rows: list[tuple[str, str, Any, str]] = [
        (
            "[SS] Algorithm 3",
            "cut from the private length",
            PrivateSpaceSaving(large, capacity=3, stream_length=200),
            "private length",
        ),
        ("[LT] Theorem 23", "> for >=: offset release", Offset(small, capacity=256), "one lower"),
        ("[LT] Theorem 23", "> for >=: 64 counters, Gaussian", Merged(small, capacity=64), "one lower"),
        (
            "[LT] section 5.1",
            "Algorithm 2's threshold, zeros dropped",
            TextbookMisraGries(large, capacity=8),
            "Algorithm 2",
        ),
        ("[LT] Lemma 17", "merged: noise for one counter of 64", Merged(small, capacity=64), "one counter"),
        ("[LT] Lemma 27", "users of 8 items: noise for 8 of 64", UserSketch(small, 64, User(8)), "m counters"),
    ]
    for where, what, mechanism, words in rows:
        literal, ours = _delta(_twin(mechanism, words)), _delta(mechanism)
        # [LT] states the inequality, the threshold for dropped zeros and the number of counters right.
        kind = "misuse" if where.startswith("[LT]") else "privacy"
        yield Correction(where, what, kind, "delta", mechanism.guarantee.delta, literal, ours)
    printed = [literal_sketches.printed_cut_of_algorithm_3(1.0, 1e-6, blanks=blanks) for blanks in (False, True)]
    yield Correction("[SS] Algorithm 3", "the printed cut, |X| counts events", "privacy", "delta", 1e-6, *printed)
    gamma = math.log(2 / 1e-3) / 0.1
    printed_gamma = literal_sketches.GAMMA_OF_SECTION_4_3
    off = [round(abs(value - gamma), 9) for value in (printed_gamma, space_saving_paper_margin(0.1, 1e-3))]
    what = "gamma = ln(2/delta)/epsilon at epsilon 0.1, delta 0.001, printed as 89.87: off by"
    yield Correction("[SS] section 4.3", what, "number", "error", 0.0, *off)
    values = [literal_sketches.printed_cut_of_algorithm_5(1.0, 1e-6, corrected=fixed) for fixed in (False, True)]
    yield Correction("[SS] Algorithm 5", "cut with + gamma_2, CountSketch", "privacy", "delta", 1e-6, *values)
    values = [literal_sketches.cut_from_the_second_moment(1.0, corrected=fixed) for fixed in (False, True)]
    yield Correction("[SS] appendix B", "envelope from the data's F2", "privacy", "delta", 1e-6, *values)
    d = 5
    yield Correction(
        "[SS] appendix B", "cells of 5 rows: l1-sensitivity", "waste", "sensitivity", 2.0 * d, 2.0 * d, float(d)
    )


def _multiparty() -> Iterator[Correction]:
    where, eps = "[MDP] section 3.3", 2.0
    protocol = Separation("corrections", Budget(eps), 4, items_per_column=1.0, threshold=1, separation_share=0.5)
    # A heavy item below the threshold is replaced by a light one above it: all that is released moves.
    pairs = [*neighbours(4, 2), ((0, 1, 1, 1), (1, 1, 1, 1))]
    ours = separation_loss(protocol, pairs)
    for what, words in (
        ("heavy and light items in parallel", "parallel"),
        ("u - n entries of count 0", "zero entries"),
    ):
        literal = separation_loss(_twin(protocol, words), pairs)
        yield Correction(where, what, "privacy", "epsilon", eps, literal, ours)
    right, scale = protocol.threshold, float(protocol.separation_scale)
    assert right is not None
    tails = [math.exp(-t / scale) / (1 + math.exp(-1 / scale)) for t in (right, right + 1)]
    what = "P[Z >= T] for P[Z > T]: entries of count 0, too many by this part"
    yield Correction(where, what, "number", "error", 0.0, tails[0] / tails[1] - 1, 0.0)
    sketches = MergedMisraGries("corrections", Budget(eps), 4, capacity=2)
    literal = entries_loss(_twin(sketches, "removed"), 2)[0]
    what = "Misra-Gries of 2 counters: sensitivity 2"
    yield Correction("[MDP] section 3.1", what, "privacy", "epsilon", eps, literal, entries_loss(sketches, 2)[0])
    stream = Stream("corrections", Budget(eps), 5, epoch_steps=2, horizon=9, columns=8)
    literal = stream_loss(_twin(stream, "log2 m"))[0]
    what = "blocks of 5 epochs: log2 m levels"
    yield Correction("[MDP] section 4.1", what, "privacy", "epsilon", eps, literal, stream_loss(stream)[0])


def _continual() -> Iterator[Correction]:
    horizon = 7
    tree = Tree(horizon, 2)
    z = np.random.default_rng(1).integers(-1000, 1000, horizon).tolist()
    moved = max(float(np.linalg.norm(event_shift(tree, event, z))) for event in range(1, horizon + 1))
    levels = float(tree.levels)
    yield Correction(
        "[CO] Theorem 1", "tree of 3 levels: l2-sensitivity", "waste", "sensitivity", levels, levels, moved
    )
    each = max(above_threshold_losses(*(NoiseLaw("laplace", scale, 1e-12) for scale in (2, 4))))
    yield Correction("[CO] Theorem 4", "one run of AboveThreshold, tau_1 = 1", "waste", "epsilon", 2.0, 2.0, each)
    k, tau = 10, 1.0
    literal, ours = sparse_rho(k, tau, literal=True), sparse_rho(k, tau)
    yield Correction("[CO] Theorem 4", "sparseGumb, k = 10, tau = 1", "waste", "rho", literal, literal, ours)
    limit, delta, scale = 1000, 0.01, Fraction(5)
    printed = float(scale) * math.log(1 / delta)  # h_(k-bar + 1) + 1 + tau ln(1/delta'), a real number
    ours_shift = one_shot.gumbel_shift(scale, 2 * delta, limit)
    beaten = [stop_is_beaten(limit, shift, float(scale)) for shift in (printed, ours_shift)]
    yield Correction(
        "[CO] Theorem 3", "UnkGumb, k = 1 of 1000: delta 2 k delta'", "privacy", "delta", 2 * delta, *beaten
    )
    rho, delta = 0.5, 1e-6
    from discreet.privacy.calibration.gaussian import gaussian_delta

    printed_epsilon = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    exact = _smallest(lambda epsilon: gaussian_delta(epsilon, 1.0) <= delta, printed_epsilon)
    yield Correction(
        "[CO] Lemma 2.2",
        "epsilon of rho = 0.5 at delta 1e-6",
        "waste",
        "epsilon",
        printed_epsilon,
        printed_epsilon,
        exact,
    )


def _smallest(enough: Callable[[float], bool], high: float) -> float:
    """By bisection, from above."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def corrections() -> list[Correction]:
    """All of them; a few seconds."""
    return [*_central(), *_pan(), *_multiparty(), *_continual()]
