"""Small wrong changes to privacy-critical code, each with the tests that should notice it.

Each is one replacement in one file: what a slip of the hand or a wrong idea would leave behind. `tests` are arguments
of pytest, few enough that one change takes seconds, and after the word "audit" those of `discreet audit`. `excuse` says
why a change may survive; there should be few.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant"]


class Mutant(NamedTuple):
    """One wrong change."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    excuse: str = ""

    @property
    def native(self) -> bool:
        """Whether the kernels have to be compiled again."""
        return self.file.startswith("cpp/")

    @property
    def quick(self) -> bool:
        """Whether it takes seconds: neither a compiler nor the audit nor Node."""
        slow = (
            "audit",
            "tests/audit",
            "tests/browser",
            "tests/e2e",
            "tests/exhaustive",
            "tests/faults",
            "tests/service",
        )
        return not self.native and not any(each.startswith((*slow, "tests/statistical")) for each in self.tests)


LAWS = "tests/audit/test_central_laws.py"
CONTRACT = "tests/property/test_mechanism_contract.py"
FIT = "tests/statistical/test_noise_fit.py"
WORDS = "tests/exhaustive/test_noise_words.py"
SAMPLERS = "tests/statistical/test_sampler_laws.py"
REGISTRY = "tests/statistical/test_audit_registry.py"
STATED = "tests/statistical/test_stated_errors.py"
MODEL = "tests/unit/releases/test_error_model.py"
PEOPLE_OVER_TIME = ("tests/unit/continual/test_people_over_time.py",)


def audited(*classes: str) -> tuple[str, ...]:
    """The audit of every example of classes whose name contains one of these: the last of the arguments."""
    return "audit", *(name.lower() for name in classes)


def in_package(package: str, *rows: tuple[str, str, str, str, tuple[str, ...]]) -> list[Mutant]:
    """Rows of (file, name, old, new, tests)."""
    return [Mutant(name, f"src/discreet/{package}/{file}", old, new, tests) for file, name, old, new, tests in rows]


CENTRAL = in_package(
    "central",
    ("stability.py", "cut one too low", "return 1 + stability_threshold(", "return stability_threshold(",
     audited("Stability")),
    ("stability.py", "Gaussian noise for one item of a user",
     "Fraction(gshm_calibration(epsilon, delta, self.most_events)[0])",
     "Fraction(gshm_calibration(epsilon, delta, 1)[0])", audited("Stability")),
    ("merged_counters.py", "noise for one counter instead of all",
     "correlated_calibration(*self.spends, self.capacity, self._steps)",
     "correlated_calibration(*self.spends, 1, self._steps)", audited("UserSketch")),
    ("merged_counters.py", "the noise that all counters share is left out",
     "source.discrete_gaussian(self.scale, len(raw)) + np.int64(shared)", "source.discrete_gaussian(self.scale, len(raw))",
     audited("Merged")),
    ("merged_counters.py", "what is rounded up to the cut is published", "floor >= self.threshold",
     "noisy >= self.threshold", audited("Merged")),
    ("user_sketch.py", "noise for users of one list", "return self.parts_per_user", "return 1", audited("UserSketch")),
    ("merged_counters.py", "noise for one event of a user", "return self.most_events", "return 1",
     audited("Merged")),
    ("_base.py", "the length spends epsilon again", "return whole - length, length",
     "return whole, length", audited("PrivateSpaceSaving")),
    ("reduced_misra_gries.py", "small entries are kept as they are",
     "raised = source.uniform_integers(D, len(y)) < y", "raised = source.uniform_integers(D, len(y)) >= 0",
     ("tests/exhaustive/test_reduced_sketch_exhaustive.py", *audited("ReducedMisraGries"))),
    ("_noisy_entries.py", "entries are not reduced", "y = np.maximum((k + 1) * raw.counts - total, 0)",
     "y = np.maximum((k + 1) * raw.counts, 0)", audited("ReducedMisraGries")),
    ("sketch_heavy_hitters.py", "noise on the rows that are looked at only",
     "cells = summary.not_private_cells() + noise.reshape(self.depth, self.width)",
     "cells = summary.not_private_cells() + 0 * noise.reshape(self.depth, self.width)",
     audited("CountMinHeavyHitters")),
    ("untrusted_merge.py", "the smallest delta is claimed of all parts", "delta=_largest(parts, [p.delta for p in promises]),",
     "delta=min(p.delta for p in promises),", ("tests/unit/central/test_untrusted_merge.py",)),
    ("sharded_offset.py", "shards share one budget's noise but not its scale", "return self.of_one_shard.scale",
     "return self.of_one_shard.scale / self.shards", audited("ShardedOffset")),
    ("_base.py", "a merged sketch is released by a mechanism for one stream",
     "if summary.was_merged and not self.takes_merged:", "if False and not self.takes_merged:", (CONTRACT, "-k", "merged")),
    ("_base.py", "group privacy without its factor on delta",
     "smaller = delta * math.exp(-log_factor) * (1.0 - 1e-12)", "smaller = delta * (1.0 - 1e-12)",
     (LAWS, "-k", "textbook or chan", *audited("TextbookMisraGries"))),
)  # fmt: skip

RELEASES = in_package(
    "releases",
    ("payment.py", "the release is drawn before it is charged",
     "    paid = account.pay(charge_id,", "    draw()\n    paid = account.pay(charge_id,",
     ("tests/unit/releases/test_payment.py", "tests/unit/test_api.py")),
    ("payment.py", "what another process stored is not what is returned",
     "    if stored != payload:\n", "    if False:\n", ("tests/unit/releases/test_payment.py",)),
    ("payment.py", "another object goes on under a charge", "    if stored != token:\n", "    if False:\n",
     ("tests/unit/releases/test_payment.py",)),
    ("error_model.py", "every noise may fail with all of beta", "parts = self.random_parts",
     "parts = 1", (MODEL,)),
    ("error_model.py", "the lower distance lacks the offset",
     "above_truth += max(0.0, offset + self.offset_noise.bound(beta / parts))",
     "above_truth += max(0.0, self.offset_noise.bound(beta / parts))", (MODEL, CONTRACT, "-k", "shard or bounds")),
    ("error_model.py", "the tail of one side for both", "chance_of_each(beta, self.draws) / tails", "chance_of_each(beta, self.draws) / 1", (MODEL,)),
)  # fmt: skip

CONTINUAL = in_package(
    "continual",
    ("_factors.py", "sigma for one item of an event",
     "sigma = math.sqrt(items) * self.sensitivity_to(changes) / math.sqrt(2.0 * rho)",
     "sigma = self.sensitivity_to(changes) / math.sqrt(2.0 * rho)", audited("Histogram")),
    ("_factors.py", "the noise of nodes that ended stays", "noises[:level] = 0\n", "noises[:0] = 0\n",
     ("tests/unit/continual/test_counter.py",)),
    ("_factors.py", "the noise of a level is drawn once", "noises[:level] = 0\n        noises[level] += fresh",
     "noises[level] += fresh * (noises[level] == 0)", audited("Counter")),
    ("_people.py", "a person has one item too many", "pairs = pairs[place < room[owners]]", "pairs = pairs[place <= room[owners]]",
     PEOPLE_OVER_TIME),
    ("_people.py", "items before this tick are forgotten", "room[: len(self._held)] -= self._held\n", "\n", PEOPLE_OVER_TIME),
    ("_people.py", "a pair counts again at another tick", "new = ~among(pairs, self._pairs)", "new = np.ones(len(pairs), bool)",
     PEOPLE_OVER_TIME),
    ("_people.py", "people who may bring one item more are forgotten",
     "return held < self.most", "return held < self.most - 1",
     PEOPLE_OVER_TIME),
    ("histogram.py", "items that count for nobody are there", "for place in fresh.tolist()]", "for place in range(before, len(final))]",
     PEOPLE_OVER_TIME),
    ("histogram.py", "noise for one item of a person", "self._most, allowed = self.unit.limit, OF_PEOPLE", "self._most, allowed = 1, OF_PEOPLE",
     PEOPLE_OVER_TIME),
    ("_schemes.py", "delta is not shared by the ticks", "self._delta * self.factor.tick_share(tick))",
     "self._delta)", audited("Histogram")),
    ("_schemes.py", "a cut one too low", "return self._heaviest + self.factor.hiding_shift(",
     "return self._heaviest - 1 + self.factor.hiding_shift(", audited("Histogram")),
    ("_doubling.py", "every epoch spends all of delta", "return epoch_share(epoch) / first", "return 1.0 / first",
     audited("Histogram")),
    ("_doubling.py", "the totals of epochs spend all of rho", "_part(over, TOTALS_SHARE, sigma)", "_part(over, 1.0, sigma)",
     ("tests/audit/test_any_horizon.py",)),
    ("_late.py", "a state is drawn with half its variance", "sigmas = tuple(_root(Fraction(variance) * squared)",
     "sigmas = tuple(_root(Fraction(variance) * squared / 2)", ("tests/exhaustive/test_late_noise_exhaustive.py",)),
    ("_schemes.py", "new items join with no noise of the past",
     "joined = self.factor.join(fresh, tick - 1, self.sigma, source)",
     "joined = self.factor.join(fresh, 0, self.sigma, source)", audited("Histogram")),
    ("_schemes.py", "half the noise at the level of AboveThreshold",
     "\n        self.level_noise = source.discrete_laplace(2 * self._tau1, 1)",
     "\n        self.level_noise = source.discrete_laplace(self._tau1, 1)", audited("Histogram")),
    ("one_shot.py", "twice the rate of a choice",
     "return source.exponential_mechanism(counts, 4 / tau, 1, min(k, len(counts)))",
     "return source.exponential_mechanism(counts, 8 / tau, 1, min(k, len(counts)))",
     audited("Histogram")),
    ("one_shot.py", "a stop one too low", "scores = np.append(counts[top], rest + 1 + shift)",
     "scores = np.append(counts[top], rest + shift)", audited("Histogram")),
    ("heavy_hitters.py", "every level of the tree spends the whole budget",
     "each_epsilon, each_delta = repeated_share(epsilon, delta, count)",
     "each_epsilon, each_delta = epsilon, delta", audited("HeavyHitters")),
    ("heavy_hitters.py", "noise for one counter in the baseline", "scale = self.capacity / Fraction(each_epsilon)",
     "scale = 1 / Fraction(each_epsilon)", audited("HeavyHitters")),
)  # fmt: skip

PAN = in_package(
    "pan",
    ("incidence.py", "half the sensitivity of primes", "return 2 * len(self._moduli)", "return len(self._moduli)",
     audited("Incidence")),
    ("incidence.py", "after an announcement one count as before", "return 2 if intrusions else 1", "return 1",
     ("tests/unit/pan/test_estimators.py", "-k", "announcement")),
    ("incidence.py", "counters of an element do not share epsilon",
     "return response_weights(modulus, epsilon_state / len(self._moduli))",
     "return response_weights(modulus, epsilon_state)", audited("Incidence")),
    ("heavy_fraction.py", "noise of bits for signs", 'return 2 if self._method == "counters" else 1', "return 1",
     audited("HeavyFraction")),
    ("cropped_mean.py", "noise of bits for signs", "return 1 if self._t == self._modulus else 2", "return 1",
     ("tests/unit/pan/test_questions.py",)),
    ("window.py", "a window of counters begins one later", "0, self.low, self.high", "0, self.low + 1, self.high",
     ("tests/unit/pan/test_questions.py",)),
    ("window.py", "counters drawn anew say as much as before", "if intrusions == 0:", "if True:",
     ("tests/unit/pan/test_window_after_intrusions.py",)),
    ("occurrences.py", "sensitivity 1 for a sign that moves between counters",
     "return 2  # a sign leaves one counter and enters another, or changes", "return 1", audited("Occurrences")),
    ("occurrences.py", "intervals after counters were drawn anew", "self._limits(signs) if self.intrusions else None",
     "None", ("tests/unit/pan/test_occurrences.py",)),
    ("modular_incidence.py", "sensitivity 1 for a move between residues",
     "return 2  # an entry leaves one residue and enters another", "return 1", audited("ModularIncidence")),
    ("charge.py", "the state is drawn before the charge",
     'begin(account, made.charge_id, bill, made.token.encode(), what="state", save=draw)',
     'draw(); begin(account, made.charge_id, bill, made.token.encode(), what="state")',
     ("tests/unit/pan/test_pan_ledger.py",)),
    ("charge.py", "one token for all states", "charge_id, uuid.uuid4().hex, account)", 'charge_id, "begun", account)',
     ("tests/unit/pan/test_pan_ledger.py",)),
    ("_base.py", "one more intrusion than planned is free", "numbers = range(s.announced_intrusions + 1, intrusions + 1)",
     "numbers = range(s.announced_intrusions + 2, intrusions + 1)", ("tests/unit/pan/test_pan_ledger.py",)),
    ("_base.py", "noise is not wiped", "            noise[:] = 0", "            pass",
     ("tests/unit/pan/test_estimators.py", "-k", "wiped")),
    ("_base.py", "a table is not erased after its last release", "                self._table.erase()",
     "                pass", ("tests/unit/pan/test_estimators.py",)),
    ("_base.py", "beyond the announced intrusions nothing more is claimed",
     "epsilon=rounded_up(Fraction(s.epsilon) + beyond * s.epsilon_state),", "epsilon=rounded_up(Fraction(s.epsilon)),",
     ("tests/unit/pan/test_estimators.py",)),
    ("responses.py", "coins rounded to the wrong side",
     "seen = min((ONE << _BITS) // ((1 << _BITS) + q), ONE - 1)",
     "seen = min((ONE << _BITS) // ((1 << _BITS) + q) + 1, ONE - 1)", ("tests/exhaustive/test_pan_laws_exhaustive.py",)),
    ("intervals.py", "what may fail is not halved for the two sides",
     "beta * (1 - float(w)) / 2) for w in _SHARES]", "beta * (1 - float(w))) for w in _SHARES]",
     ("tests/unit/pan/test_intervals.py",)),
    ("intervals.py", "noise may fail with all of beta", "candidates = [(noise.bound(beta * float(w)),",
     "candidates = [(noise.bound(beta),", ("tests/unit/pan/test_intervals.py",)),
)  # fmt: skip

MULTIPARTY = in_package(
    "multiparty",
    ("separation.py", "noise on present heavy items for half the sensitivity",
     "return 2 / (self._exact_epsilon - self.separation_epsilon)",
     "return 1 / (self._exact_epsilon - self.separation_epsilon)", audited("Separation")),
    ("separation.py", "the width follows the true number of light items",
     "width = self.width(min(max(n - int(noisy.sum()), 0), n))",
     "width = self.width(n - int(true.sum()))",
     audited("Separation")),
    ("separation.py", "a variance of 0 for what was sent", "spreads[at[here]] = heavy_noise + np.where(",
     "spreads[at[here]] = 0 * np.where(", (STATED,)),
    ("separation.py", "noise is left out of the variance of what was sent", "spreads[at[here]] = heavy_noise + np.where(",
     "spreads[at[here]] = np.where(", (STATED,)),
    ("hierarchy.py", "the choice of a level is not in the variance",
     "variances = variances + count * (n - count) / max(n - 1, 1) * (n - here) / here", "variances = variances + 0.0", (STATED,)),
    ("hierarchy.py", "the variance is not scaled with the level's share",
     "values * (n / here), variances * (n / here) ** 2", "values * (n / here), variances * (n / here)", (STATED,)),
    ("hierarchy.py", "reports choose their level by what they say",
     "chosen = source.uniform_integers(len(self.levels), len(words))",
     "chosen = (words % np.uint64(len(self.levels))).astype(np.int64)",
     audited("Hierarchy")),
    ("grid.py", "boxes around a rectangle overlap", "around = [(*inside[:at], outside[at], *whole[at + 1 :])",
     "around = [(*whole[:at], outside[at], *whole[at + 1 :])", ("tests/unit/multiparty/test_grid.py",)),
    ("packets.py", "cells are bound by the largest level", "if np.abs(part).max() > self.bound(block):",
     "if np.abs(part).max() > most:", ("tests/unit/multiparty/test_stream_monitor.py",)),
    ("local_hashing.py", "the item's own bucket among the others",
     "others = 1 + source.uniform_integers(g - 1, len(words))", "others = source.uniform_integers(g, len(words))",
     audited("LocalHashing")),
    ("hadamard_response.py", "bits are kept too often", "return keep_probability(2, self._exact_epsilon)",
     "return keep_probability(2, self._exact_epsilon * Fraction(11, 10))", audited("HadamardResponse")),
    ("party_sketches.py", "noise on cells that are not 0 only",
     "np.clip(values + source.discrete_laplace(scale, len(values)), -bound, bound)",
     "np.clip(values + source.discrete_laplace(scale, len(values)) * (values != 0), -bound, bound)",
     audited("MergedSketch")),
    ("party_sketches.py", "noise for one row", "return 2 * self.rows / self._exact_epsilon",
     "return 2 / self._exact_epsilon", audited("MergedSketch")),
    ("stream_party.py", "steps are sampled by what they hold",
     "chosen = np.flatnonzero(self._source.bernoulli(stream.sample_rate, len(words)))",
     "chosen = np.flatnonzero(self._source.bernoulli(stream.sample_rate, len(words)) * present)",
     audited("Stream")),
    ("_base.py", "a party speaks again under another charge", "if self._spoke and not is_stored(ledger, charge_id):",
     "if self._spoke and ledger is None:", ("tests/unit/multiparty/test_party_ledger.py",)),
    ("_base.py", "a charge id stands for any message", 'request={"message": self.charge_id}', "request=None",
     ("tests/unit/multiparty/test_party_ledger.py",)),
    ("stream_party.py", "a refused charge counts as paid",
     "        begins = begin(self._ledger, self.charge_id, self.stream.bill, b\"begun\", save=first)\n"
     "        self._charged = True\n",
     "        self._charged = True\n"
     "        begins = begin(self._ledger, self.charge_id, self.stream.bill, b\"begun\", save=first)\n",
     ("tests/unit/multiparty/test_party_ledger.py",)),
    ("aggregator.py", "a message may carry any number of reports", "if most is not None and opened.items > most:",
     "if most is None and opened.items > 0:", ("tests/unit/multiparty/test_hostile_messages.py",)),
    ("aggregator.py", "a number counts as often as it comes", "            self._known.add(first, count)\n        return True",
     "            pass\n        return True", ("tests/unit/multiparty/test_hostile_messages.py",)),
    ("aggregator.py", "a run's last number is free again", "- 1] > first", "- 1] > first + 1",
     ("tests/unit/multiparty/test_hostile_messages.py",)),
    ("local_protocol.py", "reports are shown as they come", "if self._box.count >= self._size:",
     "if self._box.count >= 1:", ("tests/unit/multiparty/test_shuffled_rounds.py",)),
    ("local_protocol.py", "the open batch keeps its order", "        if self._mixed:\n            self._mix(first)\n", "",
     ("tests/unit/multiparty/test_shuffled_rounds.py",)),
    ("local_protocol.py", "left-overs of a merge are shown", "            if rest.all():\n", "            if rest.any():\n",
     ("tests/unit/multiparty/test_shuffled_rounds.py",)),
    ("local_protocol.py", "what another showed counts as new", "            self._box.remove(batch.numbers)", "            pass",
     ("tests/unit/multiparty/test_shuffled_rounds.py",)),
    ("local_protocol.py", "a shuffled report has its sender's number", "if self.shuffled is not None and number is not None:",
     "if False:", ("tests/unit/multiparty/test_shuffled_rounds.py",)),
    ("local_hashing.py", "liars do half of what they can", "return np.minimum(count, support) * (1 - 1 / g) / gap",
     "return np.minimum(count, support) * (1 - 1 / g) / gap / 2", ("tests/unit/multiparty/test_hostile_messages.py",)),
    ("block_stream.py", "steps without a sample are sure", "variances += self._worth**2 * unsure / self.protocol._steps_a_sample",
     "variances += 0 * unsure", ("tests/unit/multiparty/test_stream_monitor.py",)),
    ("estimates.py", "intervals around the consistent values", "Estimates.bounds(replace(self, values=self.unbiased), confidence)",
     "Estimates.bounds(self, confidence)", ("tests/unit/multiparty/test_consistent_estimates.py",)),
)  # fmt: skip

PUBLISHED = in_package(
    "published",
    ("private_misra_gries.py", "one noise for all counters is left out",
     "raw.counts + source.discrete_laplace(self.scale) + source.discrete_laplace(self.scale, len(raw))",
     "raw.counts + source.discrete_laplace(self.scale, len(raw))", audited("PrivateMisraGries")),
    ("private_misra_gries.py", "> for >= at the cut", "noisy >= self.threshold", "noisy > self.threshold - 2",
     audited("PrivateMisraGries")),
    ("private_space_saving.py", "noise of the length for one event of a user",
     "return self.most_events / self._epsilons[1]", "return 1 / self._epsilons[1]",
     audited("PrivateSpaceSaving")),
    ("private_space_saving.py", "a cut from the length that the data have",
     "+ source.discrete_laplace(self._length_scale)) // self.capacity",
     "+ 0 * source.discrete_laplace(self._length_scale)) // self.capacity", audited("PrivateSpaceSaving")),
    ("private_space_saving.py", "the key of the other stream is forgotten",
     "log_any_shown(epsilon / m, [t, t + 1]) + group, delta)", "log_any_shown(epsilon / m, [t]) + group, delta)",
     ("tests/unit/privacy/test_calibration_space_saving.py", *audited("PrivateSpaceSaving"))),
    ("inner_product.py", "vectors are not wiped", "            rows[...] = 0\n", "            pass\n",
     ("tests/unit/published/test_inner_product.py",)),
    ("merged_misra_gries.py", "noise for one counter", "return self.capacity + 1\n", "return 2\n",
     audited("MergedMisraGries")),
    ("merged_misra_gries_stream.py", "noise for exact counters",
     "return 2 if self._is_exact(level) else self.counters(level) + 1\n", "return 2\n",
     audited("MergedMisraGriesStream")),
)  # fmt: skip

PRIVACY = in_package(
    "privacy",
    ("accounting.py", "delta is spent twice where two bounds share it",
     "_concentrated(sums.other_rho, sums.other_delta, delta * (1.0 - share))",
     "_concentrated(sums.other_rho, sums.other_delta, delta)",
     ("tests/unit/privacy/test_accounting.py",)),
    ("accounting.py", "deltas of charges are not taken off",
     "left = Fraction(delta) - spent\n", "left = Fraction(delta)\n",
     ("tests/unit/privacy/test_accounting.py",)),
    ("accounting.py", "of two neighbouring epsilons the smaller is kept",
     "= [(above, fewer + times)]", "= [(several[least][0], fewer + times)]", ("tests/unit/privacy/test_accounting.py",)),
    ("zcdp_filter.py", "the deltas of releases have no total", " and is_within(tally.total_delta, self.delta)", "",
     ("tests/exhaustive/test_zcdp_filter_exhaustive.py",)),
    ("zcdp_filter.py", "the releases' deltas are not taken off the conversion's",
     "left = rounded_down(Fraction(budget.delta) - Fraction(delta))", "left = budget.delta",
     ("tests/unit/privacy/test_accounting.py", "-k", "how_many")),
    ("zcdp_filter.py", "an epsilon costs half", "return math.nextafter(rho *", "return math.nextafter(0.5 * rho *",
     ("tests/exhaustive/test_zcdp_filter_exhaustive.py",)),
    ("ledger/accounts.py", "an account with charges comes to a filter",
     "if balance.charges and has_filter != (before.filter is not None) and budget.rho is None:", "if False:",
     ("tests/unit/privacy/test_ledger.py", "-k", "tie")),
    ("ledger/balance.py", "a day's last charge is about the next one alone", "if period.first <= first < period.after",
     "if period.first < first < period.after", ("tests/exhaustive/test_person_day_accounting_exhaustive.py",)),
    ("ledger/balance.py", "the day that least was spent about counts", "return max(each, key", "return min(each, key",
     ("tests/exhaustive/test_person_day_accounting_exhaustive.py",)),
    ("ledger/balance.py", "what a charge cost is not added up", 'details.get("cost")', "None",
     ("tests/unit/privacy/test_ledger.py", "-k", "written_down")),
    ("ledger/sqlite.py", "a commit is not synced", 'connection.execute("PRAGMA synchronous=EXTRA")',
     'connection.execute("PRAGMA synchronous=OFF")', ("tests/unit/privacy/test_ledger_file.py", "-k", "sync")),
    ("ledger/sqlite.py", "a second hard link is taken", "if status.st_nlink > 1 and not", "if status.st_nlink > 2 and not",
     ("tests/unit/privacy/test_ledger_file.py", "-k", "hard_link")),
    ("ledger/event_log.py", "a balance put back from earlier is believed",
     'if (None if stored is None else stored["seq"]) != last:', "if False:",
     ("tests/unit/privacy/test_ledger_altered.py", "-k", "older_total or bears_on")),
    ("ledger/event_log.py", "where a release is stored is not compared", "if found != {kind", "if False and found != {kind",
     ("tests/unit/privacy/test_ledger_altered.py", "-k", "older_mark or bears_on")),
    ("ledger/accounts.py", "a step may follow any past", "if number != highest + 1 or previous != its_token:",
     "if number != highest + 1:", ("tests/unit/privacy/test_ledger.py", "-k", "step")),
    ("ledger/accounts.py", "a charge id stands for any request", 'if earlier.get("request") != asked.get("request"):', "if False:",
     ("tests/unit/privacy/test_ledger.py", "-k", "request")),
    ("calibration/correlated_noise.py", "the shared noise is not charged for", "x = epsilon - loss / (2.0 * self.shared * self.shared)",
     "x = epsilon - 0.0 * loss", audited("Merged")),
    ("calibration/correlated_noise.py", "common counters are one step apart, however many there are",
     "np.full_like(x, common), p)", "np.full_like(x, common), 1)", audited("UserSketch")),
    ("calibration/correlated_noise.py", "isolated keys have a count of one, however many steps there are",
     "self.log_hidden(2 * (threshold - self.height))", "self.log_hidden(2 * (threshold - 1))",
     ("tests/exhaustive/test_correlated_exhaustive.py", "-k", "several_steps")),
    ("calibration/offset_cut.py", "group privacy without its factor", "_log_delta(epsilon / items, t) + group_factor(epsilon, items)",
     "_log_delta(epsilon / items, t)", audited("Offset")),
    ("calibration/tails.py", "the smallest cut is one less", "target = math.nextafter(math.log(delta), -math.inf)",
     "target = math.log(delta) + 0.2", ("tests/unit/privacy/test_calibration_laplace.py",)),
    ("calibration/zcdp.py", "pure DP is half as much zCDP", "return math.nextafter(epsilon * epsilon / 2.0, math.inf)",
     "return math.nextafter(epsilon * epsilon / 4.0, math.inf)", ("tests/unit/privacy/test_calibration_gaussian.py", "tests/unit/privacy/test_accounting.py")),
    ("calibration/gaussian.py", "tails are rounded to the wrong side", "return min(1.0, float(_tail_bounds(np.array([float(m)]), np.array([sigma]))[1][0]))",
     "return min(1.0, float(_tail_bounds(np.array([float(m)]), np.array([sigma]))[0][0]))", ("tests/unit/privacy/test_calibration_gaussian.py",)),
)  # fmt: skip

NOISE = in_package(
    "noise",
    ("source.py", "discrete Laplace 1 % too narrow", "return self._draw(laws.laplace_law(exact(\"scale\", scale, MAX_SCALE)), size)",
     "return self._draw(laws.laplace_law(exact(\"scale\", scale, MAX_SCALE) * Fraction(99, 100)), size)", (SAMPLERS, "-k", "drawn")),
    ("source.py", "discrete Gaussian 1 % too narrow", "return self._draw(laws.gaussian_law(exact(\"sigma\", sigma, MAX_SCALE)), size)",
     "return self._draw(laws.gaussian_law(exact(\"sigma\", sigma, MAX_SCALE) * Fraction(99, 100)), size)", (SAMPLERS, "-k", "drawn")),
    ("source.py", "the law above -1 is a geometric", "        if minimum >= 0:\n            values = minimum + above",
     "        if minimum >= -1:\n            values = minimum + above", (FIT, "-k", "minimum")),
    ("laws.py", "zero is counted twice", "sign = _native.Sign.reject_negative_zero\n    return Law(_geometric_cumulative(x), sign",
     "sign = _native.Sign.folded\n    return Law(_geometric_cumulative(x), sign", (FIT, "-k", "million")),
    ("selection.py", "rounding slack reversed", "_CLASSES * rate)) * (1 - 2.0**-48)", "_CLASSES * rate)) * (1 + 2.0**-48)", ("tests/unit/noise/test_selection.py",)),
    ("selection.py", "the acceptance is left out",
     "            if x == 0 or is_below(lambda bits, x=x: exp_minus(x, bits), source):  # type: ignore[misc]\n                taken",
     "            if x >= 0:\n                taken", ("tests/unit/noise/test_selection.py",)),
    ("source.py", "the offset is published without noise", "a0 = alpha + source.discrete_laplace(scale)", "a0 = alpha + 0 * source.discrete_laplace(scale)",
     audited("Offset")),
    ("places.py", "absent places pass one step later", "count = exceedances(size - len(present), scale, cut)",
     "count = exceedances(size - len(present), scale, cut + 1)", (LAWS, SAMPLERS, "-k", "universe or drawn")),
    ("response.py", "rounded against privacy", "other = -(-(_ONE * q) // ((1 << _BITS) + q * (choices - 1)))",
     "other = (_ONE * q) // ((1 << _BITS) + q * (choices - 1))", ("tests/unit/noise", "tests/exhaustive/test_pan_laws_exhaustive.py", "tests/unit/multiparty/test_multiparty_protocols.py")),
)  # fmt: skip


def kernel(file: str, name: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, f"cpp/include/discreet/{file}", old, new, tests)


SKETCHES = "tests/property/test_counter_sketches.py"
KERNELS = [
    kernel("counters/misra_gries.hpp", "a new key starts at 2", "    const uint32_t position = table_.insert(key, hash);\n    counts_[position] = alpha_ + 1;", "    const uint32_t position = table_.insert(key, hash);\n    counts_[position] = alpha_ + 2;", SKETCHES),
    kernel("counters/misra_gries.hpp", "zero counters are replaced in reverse order", "rank += hashes[j] < hashes[i];", "rank += hashes[j] > hashes[i] && j < n;", SKETCHES),
    kernel("counters/misra_gries.hpp", "a decrement is skipped when a zero was used up", "    ++alpha_;\n    turn_ = Table::first_group();\n    return Table::kNone;",
           "    alpha_ += next_zero_ == 0;\n    turn_ = Table::first_group();\n    return Table::kNone;", SKETCHES),
    kernel("counters/space_saving.hpp", "the least recent of the smallest is evicted", "return last_[a] < last_[b];", "return last_[a] > last_[b];", SKETCHES),
    kernel("counters/user_misra_gries.hpp", "repeats of a user count", "} else if (user_[p] != users_) {", "} else if (true) {", SKETCHES),
    kernel("counters/user_misra_gries.hpp", "one decrement too late", "if (size_ > capacity_) decrement_all();", "if (size_ > capacity_ + 1) decrement_all();", SKETCHES),
    kernel("counters/pairs.hpp", "a person has one item too many", "choice.resize(most_items);", "choice.resize(most_items + 1);", "tests/unit/central/test_people.py", "tests/unit/engines/test_people_in_duckdb.py", "tests/unit/engines/test_same_release.py"),
    kernel("counters/pairs.hpp", "votes are shared by fewer rows", "shared = std::max(n, most);", "shared = std::max(n - 1, most);", "tests/unit/test_quantiles.py"),
    kernel("noise/samplers.hpp", "rounding slack reversed", "if (high + slack <= sum) return Verdict::yes;", "if (high <= sum + slack) return Verdict::yes;", WORDS),
    kernel("noise/samplers.hpp", "the block below is taken at its bound", "if (word + 1 >= bounds_[block]) {", "if (word >= bounds_[block]) {", WORDS),
    kernel("noise/random_source.hpp", "used words stay in memory", "buffer_[position_++] = 0;", "position_++;", "tests/unit/noise/test_random_source.py"),
    kernel("noise/random_source.hpp", "bias of a remainder", "while (static_cast<std::uint64_t>(product) < floor)", "while (false)", FIT, "-k", "uniform"),
    kernel("sketches/pan.hpp", "a coin decides by its first byte", "if (drawn != mine) return drawn < mine;", "return drawn < mine;", "tests/unit/pan/test_kernel.py"),
    kernel("sketches/pan.hpp", "an announcement leaves the bits", "bits_[i] = response.again(bits_[i], random);", "bits_[i] = bits_[i];", "tests/unit/pan/test_kernel.py",
           "tests/statistical/test_pan_coverage.py", "-k", "announce or announced or rerandomise"),
]  # fmt: skip


def audit_notices(file: str, name: str, old: str, new: str, *words: str) -> Mutant:
    """A break that `discreet audit --quick` must notice, of the rows that contain these words."""
    return Mutant(f"audit: {name}", file, old, new, ("audit", *words))


def samplers_notice(file: str, name: str, old: str, new: str) -> Mutant:
    """A break below the random source, which the tests of what the samplers draw must notice."""
    return Mutant(f"samplers: {name}", file, old, new, (SAMPLERS, "-k", "drawn"))


def releases_notice(file: str, name: str, old: str, new: str) -> Mutant:
    """A break of the noise of whole releases, which the tests that count it must notice."""
    return Mutant(f"releases: {name}", file, old, new, (REGISTRY, "-k", "pass_and and Samplers"))


BREAKS = [
    releases_notice("src/discreet/noise/source.py", "discrete Laplace 10 % too narrow",
           "return self._draw(laws.laplace_law(exact(\"scale\", scale, MAX_SCALE)), size)",
           "return self._draw(laws.laplace_law(exact(\"scale\", scale, MAX_SCALE) * Fraction(9, 10)), size)"),
    samplers_notice("src/discreet/noise/source.py", "sigma 7 % too small",
           "return self._draw(laws.gaussian_law(exact(\"sigma\", sigma, MAX_SCALE)), size)",
           "return self._draw(laws.gaussian_law(exact(\"sigma\", sigma, MAX_SCALE) * Fraction(93, 100)), size)"),
    samplers_notice("src/discreet/noise/source.py", "every noise of a batch comes twice",
           "        return values if plainly else np.asarray(values)",
           "        return np.repeat(np.asarray(values)[: -(-len(values) // 2)], 2)[: len(values)]"),
    releases_notice("src/discreet/noise/source.py", "noise on the first thousand counters only",
           "noises = source.discrete_laplace(scale, Plainly(len(counters)))",
           "noises = np.asarray(source.discrete_laplace(scale, Plainly(len(counters)))) * (np.arange(len(counters)) < 1000)"),
    releases_notice("src/discreet/central/stability.py", "half the noise on large counts",
           "noisy = raw.counts + draw(self.scale, len(raw))",
           "noisy = raw.counts + draw(self.scale, len(raw)) // np.where(raw.counts > 1000, 2, 1)"),
    releases_notice("src/discreet/central/stability.py", "half the noise on texts",
           "noisy = raw.counts + draw(self.scale, len(raw))",
           "noisy = raw.counts + draw(self.scale, len(raw)) // (2 if \"string\" in str(raw.items.type) else 1)"),
    audit_notices("src/discreet/central/_base.py", "the number of counters in the guarantee",
           "replace(self.guarantee, seeded=source.seeded),\n            drawn.error_model",
           "replace(self.guarantee, seeded=source.seeded, assumptions=(str(len(drawn.raw)),)),\n            drawn.error_model",
           "offset"),
    audit_notices("src/discreet/multiparty/separation.py", "a message's width follows the true number of light items",
           "width = self.width(min(max(n - int(noisy.sum()), 0), n))",
           "width = self.width(n - int(true.sum()))", "separation"),
    audit_notices("src/discreet/published/merged_misra_gries.py", "a message's counts are raised where the sketch is full",
           "return write_counters(sent, self.cut)",
           "return write_counters((sent[0], sent[1] + (len(sketch.not_private_counts()) == self.capacity)), self.cut)",
           "mergedmisragries"),
    audit_notices("src/discreet/continual/_factors.py", "the noise of a level of the tree is drawn once",
           "noises[:level] = 0\n        noises[level] += fresh", "noises[level] += fresh * (noises[level] == 0)", "counter"),
    audit_notices("src/discreet/continual/_schemes.py", "items that come late have no noise of the past",
           "joined = self.factor.join(fresh, tick - 1, self.sigma, source)",
           "joined = self.factor.join(fresh, 0, self.sigma, source)", "histogram"),
    audit_notices("cpp/include/discreet/counters/misra_gries.hpp", "the smallest zero counter is not replaced, but the next",
           "const auto [victim_hash, victim] = zeros_[next_zero_++];",
           "const auto [victim_hash, victim] = zeros_[end_zero_ - ++next_zero_ == 0 ? 0 : next_zero_ - 1];",
           "offset"),
    audit_notices("cpp/include/discreet/counters/misra_gries.hpp", "a decrement leaves out counters of 1",
           "n += counts[i] == alpha_;", "n += counts[i] == alpha_ && (alpha_ & 3) != 3;", "offset"),
    audit_notices("cpp/include/discreet/counters/space_saving.hpp", "the least recent of the smallest is evicted",
           "return last_[a] < last_[b];", "return last_[a] > last_[b];", "spacesaving"),
    audit_notices("cpp/include/discreet/counters/user_misra_gries.hpp", "one decrement too late",
           "if (size_ > capacity_) decrement_all();", "if (size_ > capacity_ + 1) decrement_all();", "usersketch"),
    samplers_notice("cpp/include/discreet/noise/random_source.hpp", "every source starts from the same seed",
           "system_random(buffer_.data() + first, (buffer_.size() - first) * sizeof buffer_[0]);",
           "std::mt19937_64 fixed(1); for (std::size_t i = first; i < buffer_.size(); ++i) buffer_[i] = fixed();"),
    samplers_notice("cpp/include/discreet/noise/samplers.hpp", "a shuffle never leaves an element in its place",
           "const std::size_t j = source.below(i + 1);", "const std::size_t j = i ? source.below(i) : 0;"),
    audit_notices("cpp/include/discreet/sketches/pan.hpp", "an element that comes twice leaves its bit",
           "if (!bits_.empty()) bits_[i] = response.draw_seen(random);",
           "if (!bits_.empty() && !bits_[i]) bits_[i] = response.draw_seen(random);", "density"),
]  # fmt: skip

MUTANTS: list[Mutant] = [
    *CENTRAL,
    *RELEASES,
    *CONTINUAL,
    *PAN,
    *MULTIPARTY,
    *PUBLISHED,
    *PRIVACY,
    *NOISE,
    *KERNELS,
    *BREAKS,
]
