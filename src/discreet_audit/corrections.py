"""What the papers print, beside what is right: every row of `discreet audit --corrections`.

docs/privacy/corrections.md has the arguments. What ours does is found anew, by the checks of the audit. So is what a
literal version loses that changes a mechanism of this package: it is a twin. The other literal versions are texts,
whose exact laws stay what they are: they are numbers here, and tests/audit/printed_versions.py computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.central import Merged, Offset, UserSketch
from discreet.continual import one_shot
from discreet.continual.anatomy import Tree
from discreet.multiparty import Separation, Stream
from discreet.pan import CroppedMean, Density, HeavyFraction, Incidence, ModularIncidence
from discreet.pan.heavy_fraction import ladder_weights
from discreet.privacy import Budget, User
from discreet.published import MergedMisraGries, PrivateSpaceSaving, TextbookMisraGries
from discreet.published.private_space_saving import space_saving_paper_margin
from discreet.summaries import CountMin, MisraGries
from discreet_audit import pan
from discreet_audit.closed_forms import NoiseLaw
from discreet_audit.continual import above_threshold_losses, stop_is_beaten, worst_norm
from discreet_audit.core import QUICK, audit_of
from discreet_audit.exact import neighbouring_streams, worst_pair
from discreet_audit.multiparty import entries_loss, neighbours, separation_loss, stream_loss


@dataclass(frozen=True)
class Correction:
    """One claim of a paper, and what it comes to.

    kind "privacy": the literal version loses more than claimed. "misuse": the paper does not say it, and `literal` is
    what its result loses where it does not apply. "number": it is private and publishes something else than it says;
    claimed is the error that was meant to be 0. "bound": a bound that fails more often than stated, or says nothing.
    "waste": it is private and spends more than it has to; then `literal` and `ours` are what is accounted for the same
    release.
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


def _printed(where: str, what: str, quantity: str, claimed: float, literal: float, ours: float) -> Correction:
    """A version as printed."""
    kind = {"error": "number", "delta": "privacy", "epsilon": "privacy"}.get(quantity, "bound")
    return Correction(where, what, kind, quantity, claimed, literal, ours)


def _wasted(where: str, what: str, quantity: str, literal: float, ours: float) -> Correction:
    """A version that is private and accounts for more than it spends."""
    return Correction(where, what, "waste", quantity, literal, literal, ours)


# ---- central ---------------------------------------------------------------------------------------------------------


def _delta(mechanism: Any) -> float:
    """The largest exact delta of a mechanism (or of its twin) that the audit finds."""
    findings = audit_of(mechanism).exact(mechanism, QUICK)
    return max(finding.measured for finding in findings if finding.quantity == "delta")


def _twin(mechanism: Any, words: str) -> Any:
    (twin,) = [twin for twin in audit_of(mechanism).twins(mechanism) if words in twin.name]
    return twin.mechanism


def keys_of_one(k: int) -> float:
    """How many keys of one sketch of k counters its neighbour lacks, at most, over all short streams."""

    def kept(stream: Sequence[int]) -> frozenset[int]:
        sketch = MisraGries(k, seed=1)
        sketch.update(np.asarray(stream, np.int64))
        return frozenset(sketch.not_private_counts().items.to_pylist())

    pairs = neighbouring_streams(range(k + 1), k + 1)
    return worst_pair(pairs, kept, lambda one, other: max(len(one - other), len(other - one)))[0]


def cells_moved(rows: int, instead: int | None) -> float:
    """Cells of a CountMin that move when event 1 is replaced by another, or by none."""
    sketches = [CountMin(4096, rows, seed=1) for _ in range(2)]
    for sketch, event in zip(sketches, (1, instead), strict=True):
        sketch.update(np.array([0] if event is None else [0, event], np.int64))
    one, other = (np.asarray(sketch.not_private_cells(), np.int64) for sketch in sketches)
    return float(np.abs(one - other).sum())


def _central() -> Iterator[Correction]:
    large, small = Budget(1.0, 0.02), Budget(1.0, 1e-9)
    saving, textbook = PrivateSpaceSaving(large, 3, stream_length=200), TextbookMisraGries(large, capacity=8)
    rows: list[tuple[str, str, Any, str]] = [
        ("[SS] Algorithm 3", "cut from the private length", saving, "private length"),
        ("[LT] Theorem 23", "> for >=: offset release", Offset(small, capacity=256), "one lower"),
        ("[LT] Theorem 23", "> for >=: 64 counters, Gaussian", Merged(small, capacity=64), "one lower"),
        ("[LT] section 5.1", "Algorithm 2's threshold, zeros dropped", textbook, "Algorithm 2"),
        ("[LT] Lemma 17", "merged: noise for one counter of 64", Merged(small, capacity=64), "one counter"),
        ("[LT] Lemma 27", "users of 8 items: noise for 8 of 64", UserSketch(small, 64, User(8)), "m counters"),
    ]
    for where, what, mechanism, words in rows:
        literal, ours = _delta(_twin(mechanism, words)), _delta(mechanism)
        # [LT] states the inequality, the threshold for dropped zeros and the number of counters right.
        kind = "misuse" if where.startswith("[LT]") else "privacy"
        yield Correction(where, what, kind, "delta", mechanism.guarantee.delta, literal, ours)
    what = "the printed cut, |X| counts events"
    yield _printed("[SS] Algorithm 3", what, "delta", 1e-6, 0.710682047485947, 8.890398251847183e-38)
    what = "gamma = ln(2/delta)/epsilon at epsilon 0.1, delta 0.001, printed as 89.87: off by"
    margins = (89.87, space_saving_paper_margin(0.1, 1e-3))
    off = (round(abs(margin - math.log(2 / 1e-3) / 0.1), 9) for margin in margins)
    yield _printed("[SS] section 4.3", what, "error", 0.0, *off)
    what = "Misra-Gries of 3 counters, zeros dropped: keys that only one sketch has (Lemma 2)"
    yield _printed("[SS] Algorithm 1", what, "keys", 2, 3, keys_of_one(3))
    what = "cut with + gamma_2, CountSketch"
    yield _printed("[SS] Algorithm 5", what, "delta", 1e-6, 1.0, 3.497981386106603e-31)
    yield _printed("[SS] appendix B", "envelope from the data's F2", "delta", 1e-6, 0.4621171572604719, 0.0)
    what = "CountSketch errs by more than eta sqrt(F2/w), eta = 0.1 (3,000 items of 60)"
    yield _printed("[SS] Lemma 13", what, "failure", 0.01, 0.7629018612726433, 0.0012416817287817456)
    what = "ln(2 (T + k~)/delta) rows of CountMin, T = 10^6, k~ = 1024: union bound"
    yield _printed("[SS] appendix B", what, "failure", 0.001, 0.477325439453125, 0.0009322762489318848)
    moved = (cells_moved(5, event) for event in (2, None))
    yield _wasted("[SS] appendix B", "cells of 5 rows: l1-sensitivity", "sensitivity", *moved)


# ---- pan -------------------------------------------------------------------------------------------------------------

LOOKS: list[pan.History] = [("look", "output"), ("output", "look")]


def _of(estimator: Any, frames: list[pan.History] = LOOKS, most: int = 3) -> float:
    return max(pan.worst_loss(element, frames, most)[0] for element in pan.elements_of(estimator))


def _few_primes(epsilon_state: float) -> Incidence:
    """An estimator of three counters whose primes are few enough to enumerate, with this epsilon for a look."""
    while True:
        budget = Budget(2 * epsilon_state)
        made = Incidence(3, 1, budget=budget, method="primes", max_count=2, primes=3, collision=0.9, output_share=0.5)
        if math.prod(made.moduli) <= 105:
            return made


def _pan() -> Iterator[Correction]:
    eps, few = 0.1, partial(_printed, "[PAN] Figure 3")
    literal, ours = 3.4233717647227233, _of(Density(3, budget=Budget(2 * eps)))
    yield _printed("[PAN] section 3", "density: noise after rescaling", "epsilon", 2 * eps, literal, ours)
    ours = _of(CroppedMean(3, 4, budget=Budget(2 * eps)))
    what = "cropped mean, t = 4: noise after rescaling"
    yield _printed("[PAN] Figure 2", what, "epsilon", 2 * eps, literal, ours)
    ladder = HeavyFraction(3, 1, budget=Budget(eps * 4), method="ladder", max_count=4)
    literal, ours = 70.01844225441425, _of(ladder, LOOKS[:1], 1)
    yield few("heavy hitters, 3 tables: noise for one", "epsilon", eps * 4, literal, ours)
    rungs = [1.0, 2.0, 4.0, 8.0, 16.0]
    shown = [zip(ladder_weights(rungs, 2, one), rungs, strict=True) for one in (True, False)]
    literal, ours = (abs(math.fsum(w * min(12, t) for w, t in weights) - 1) for weights in shown)
    yield few("one interval for all heavy hitters (k = 2, all occur 12 times)", "error", 0, literal, ours)
    # With the smallest sample for which ours is within 0.05 of a fraction, at epsilon 1, except in 1 run of 20.
    ours = 0.05 if HeavyFraction.for_accuracy(0.05, 0.05, 1.0, universe=2**20, k=16).sample_size < 2**20 else 1.0
    what = "the error of a fraction, at most, N = 2^14, any rho, alpha = 0"
    yield _printed("[PAN] Theorem 4.1", what, "bound", 1.0, 19.408134759737376, ours)
    eps = 0.5
    ours = _of(ModularIncidence(3, 3, budget=Budget(2 * eps), shift="paper"))
    what = "modular incidence, k = 3: noise for 1/m"
    yield _printed("[PAN] Theorem 5.2", what, "epsilon", 2 * eps, 1.4999999999999998, ours)
    what = "matrix of i + j in place of i - j (fractions 0.1, 0.6, 0.2, 0.1)"
    yield _printed("[PAN] Figure 5", what, "error", 0, 0.5, 0.0)
    what = "incidence: three counters, one look, if each has all of epsilon (Figure 4 is not in our text)"
    yield _printed("[PAN] Theorem 5.1", what, "epsilon", 1.0, 3.0, _of(_few_primes(1.0), [("look",)], 6))
    planned = CroppedMean(3, 3, budget=Budget(3 * eps), announced_intrusions=1, output_share=1 / 3)
    misused = partial(Correction, "[PAN] section 3", kind="misuse", quantity="epsilon", literal=math.inf)
    ours = _of(planned, [("announce", "look", "output")], 2)
    yield misused("announced intrusion: bits drawn anew, counters kept", claimed=3 * eps, ours=ours)
    ours = _of(Density(3, budget=Budget(2 * eps), output_share=0.5), [("look",)])
    yield misused("entries made when an element first comes", claimed=eps, ours=ours)


# ---- multiparty, and over time ---------------------------------------------------------------------------------------


def _multiparty() -> Iterator[Correction]:
    where, eps = "[MDP] section 3.3", 2.0
    protocol = Separation("corrections", Budget(eps), 4, items_per_column=1.0, threshold=1, separation_share=0.5)
    # A heavy item below the threshold is replaced by a light one above it: all that is released moves.
    pairs = [*neighbours(4, 2), ((0, 1, 1, 1), (1, 1, 1, 1))]
    ours = separation_loss(protocol, pairs)
    wrong = {"heavy and light items in parallel": "parallel", "u - n entries of count 0": "zero entries"}
    for what, words in wrong.items():
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
    what = "failure N beta/log_d u an estimate (N = 10^6, u = 49^6, share 0.001): union bound"
    yield _printed("[MDP] Theorem 4", what, "failure", 0.01, 1.0, 0.00098)
    stream = Stream("corrections", Budget(eps), 5, epoch_steps=2, horizon=9, columns=8)
    literal = stream_loss(_twin(stream, "log2 m"), QUICK)[0]
    ours = stream_loss(stream, QUICK)[0]
    what = "blocks of 5 epochs: log2 m levels"
    yield Correction("[MDP] section 4.1", what, "privacy", "epsilon", eps, literal, ours)


def _continual() -> Iterator[Correction]:
    tree, moved = Tree(7, 2), worst_norm(Tree(7, 2), 1)[0]
    yield _wasted("[CO] Theorem 1", "tree of 3 levels: l2-sensitivity", "sensitivity", float(tree.levels), moved)
    each = max(above_threshold_losses(*(NoiseLaw("laplace", scale, 1e-12) for scale in (2, 4))))
    yield _wasted("[CO] Theorem 4", "one run of AboveThreshold, tau_1 = 1", "epsilon", 2.0, each)
    yield _wasted("[CO] Theorem 4", "sparseGumb, k = 10, tau = 1", "rho", 12.0, 10.125)
    limit, delta, scale = 1000, 0.01, Fraction(5)
    printed = float(scale) * math.log(1 / delta)  # h_(k-bar + 1) + 1 + tau ln(1/delta'), a real number
    ours_shift = one_shot.gumbel_shift(scale, 2 * delta, limit)
    beaten = [stop_is_beaten(limit, shift, float(scale)) for shift in (printed, ours_shift)]
    what = "UnkGumb, k = 1 of 1000: delta 2 k delta'"
    yield Correction("[CO] Theorem 3", what, "privacy", "delta", 2 * delta, *beaten)
    what = "epsilon of rho = 0.5 at delta 1e-6"
    yield _wasted("[CO] Lemma 2.2", what, "epsilon", 5.756521769756932, 4.886554117474313)


def corrections() -> list[Correction]:
    """All of them; a few seconds."""
    return [*_central(), *_pan(), *_multiparty(), *_continual()]
