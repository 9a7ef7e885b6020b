"""Mistakes that a reviewer from outside would look for, in every room of the house.

Written before anyone looked at the tests: budgets spent twice, the sensitivity of another unit, cuts and intervals that
are off, checks left out, wrong defaults. Of the 49 that change something, 45 were noticed as they were (docs/audit.md).
Four were not: coordinates of sizes and losses (an eleventh digit of the noise), jobs of two budgets, floats as people,
rows of nobody in sums (on Spark). "One of k choices" changes no delta above 10^-47.
"""

from __future__ import annotations

from tests.mutants.mutants import Mutant

__all__ = ["REVIEWED"]

REVIEWED = [
    Mutant("half of an interval is one side's", 'src/discreet/central/noisy_count.py', 'return self.error_bound(1.0 - self.confidence)', 'return self.error_bound(2.0 * (1.0 - self.confidence))', ()),
    Mutant('a person is one value, however many are credited', 'src/discreet/central/credited_distinct.py', '        return self.max_items\n\n    @property\n    def name', '        return 1\n\n    @property\n    def name', ()),
    Mutant('a person moves the test of bad rows as a row does', 'src/discreet/central/bad_share.py', 'return bad + good if isinstance(self.unit, User) else max(bad, good)', 'return max(bad, good)', ()),
    Mutant('data at the cut are refused', 'src/discreet/central/bad_share.py', 'self.noise, scale=self.scale).draw(source) > self.cut', 'self.noise, scale=self.scale).draw(source) >= self.cut', ()),
    Mutant('a person moves sums as one row does', 'src/discreet/central/row_moments.py', 'return self.moment.one * (self.max_items or 1)', 'return self.moment.one', ()),
    Mutant('the cut of a group forgets its one row', 'src/discreet/central/row_moments.py', 'return self.moment.one + _least_unlikely(', 'return _least_unlikely(', ()),
    Mutant('the choice is free', 'src/discreet/central/chosen_distinct.py', 'return part.pure(self.name, from_zcdp=True), rest', 'return part.pure(self.name, from_zcdp=True), self.budget', ()),
    Mutant('every level of choices has the whole budget', 'src/discreet/central/quantile_choice.py', '            return (given / levels,) * levels', '            return (given,) * levels', ()),
    Mutant('rho is spent on choices and on intervals', 'src/discreet/central/quantile_choice.py', 'return Fraction(self.budget.rho) - Fraction(rest.rho), rest', 'return Fraction(self.budget.rho), rest', ()),
    Mutant('intervals of a histogram hold one by one', 'src/discreet/central/universe_histogram.py', 'additive_noise(self.budget, changes=self.changes, draws=self.universe.size)', 'additive_noise(self.budget, changes=self.changes)', ()),
    Mutant('sizes and losses are not among the coordinates', 'src/discreet/central/person_moments.py', 'largest_mu(epsilon, delta, 2 + RUNGS + coordinates, 1.0 - 1e-9)', 'largest_mu(epsilon, delta, coordinates, 1.0 - 1e-9)', ()),
    Mutant('both parts of a split have all of delta', 'src/discreet/privacy/budget.py', 'return Budget(part), Budget(_remainder(self.epsilon, part), self.delta)', 'return Budget(part, self.delta), Budget(_remainder(self.epsilon, part), self.delta)', ()),
    Mutant('every share has all of delta', 'src/discreet/privacy/budget.py', 'self.delta * float(fraction))', 'self.delta)', ()),
    Mutant('a whole person covers their days', 'src/discreet/privacy/guarantee.py', 'return self.max_items is None and isinstance(other, User) and (self.per, self.zone) == (other.per, other.zone)', 'return self.max_items is None and isinstance(other, User)', ()),
    Mutant('one of k choices may be far off', 'src/discreet/privacy/shuffle.py', 'k * (below[:, 0] + beyond[:, 0])', '(below[:, 0] + beyond[:, 0])', ()),
    Mutant('a copy with another version of the last step goes on', 'src/discreet/privacy/steps.py', '(known, last.token) != (self.number, self.token)', 'known != self.number', ()),
    Mutant('whoever lost a stream may charge for it', 'src/discreet/privacy/ledger/accounts.py', '            self._check_held(log)\n            balance, events = self._read(log)', '            balance, events = self._read(log)', ()),
    Mutant('a grant ends a day early', 'src/discreet/privacy/ledger/accounts.py', 'if limit.until is not None and today > limit.until:', 'if limit.until is not None and today >= limit.until:', ()),
    Mutant('a charge is forgotten a day early', 'src/discreet/privacy/ledger/accounts.py', 'timedelta(days=_days(renews))).isoformat())', 'timedelta(days=_days(renews) - 1)).isoformat())', ()),
    Mutant('an account that was moved may be charged', 'src/discreet/privacy/ledger/accounts.py', '            balance.check_open()\n            self._check_unit(', '            self._check_unit(', ()),
    Mutant('an id stands for any period', 'src/discreet/privacy/ledger/accounts.py', '"stores_release", "period")', '"stores_release")', ()),
    Mutant('a stored answer is had for another budget', 'src/discreet/privacy/ledger/accounts.py', '({"budget": each["budget"], **each["question"]} for each in (earlier, asked))', '(dict(each["question"]) for each in (earlier, asked))', ()),
    Mutant('an account is moved while a charge waits for its release', 'src/discreet/privacy/ledger/transfer.py', '        _check_closed(account, events)\n', '        pass\n', ()),
    Mutant('each of several intervals has all of the confidence', 'src/discreet/questions/report.py', '1.0 - (1.0 - self.confidence) / many', 'self.confidence', ()),
    Mutant('the test of bad rows is free', 'src/discreet/questions/bad_rows.py', '        part, rest = budget.split(SHARE)\n', '        part, rest = budget.split(SHARE)[0], budget\n', ()),
    Mutant('an id stands for any request of the caller', 'src/discreet/questions/answer.py', 'secret={**data.secret, "request": request}', 'secret=data.secret', ()),
    Mutant('jobs of two budgets have one charge', 'src/discreet/questions/answer.py', 'terms = [stands_for(question, data), budget.to_dict()]', 'terms = [stands_for(question, data)]', ()),
    Mutant('a period has the first moment after it', 'src/discreet/events/times.py', 'pc.less(spans, after)', 'pc.less_equal(spans, after)', ()),
    Mutant('one missing value decides how people are told apart', 'src/discreet/events/times.py', '    if pa.types.is_floating(kind):\n        # One', '    if False:\n        # One', ()),
    Mutant('an error says which items are outside', 'src/discreet/events/universe.py', '            if (places < 0).any():\n                raise DataError("an item is outside the universe")', '            if (places < 0).any():\n                raise DataError(f"an item is outside the universe: {items!r}")', ()),
    Mutant('noise of another run is forgotten in a difference', 'src/discreet/releases/over_time.py', 'return [*self.alone(), *earlier.alone()]', 'return self.alone()', ()),
    Mutant('the reach of an increase is one-sided', 'src/discreet/releases/over_time.py', 'chance_of_each(beta, draws) / 2.0)', 'chance_of_each(beta, draws))', ()),
    Mutant('a state forgets that it was seeded', 'src/discreet/pan/_base.py', '"seeded": self._seeded,\n                "answered"', '"seeded": False,\n                "answered"', ()),
    Mutant("every release has all of the outputs' share", 'src/discreet/pan/settings.py', 'return Fraction(self.epsilon) * self.share / self.releases', 'return Fraction(self.epsilon) * self.share', ()),
    Mutant('seeded messages of a round pass for private ones', 'src/discreet/multiparty/aggregator.py', '        self._seeded |= message.seeded\n', '        pass\n', ()),
    Mutant('fewer parties than liars', 'src/discreet/multiparty/aggregator.py', 'math.ceil(round(probability(', 'math.floor(round(probability(', ()),
    Mutant('one tick more than was paid for', 'src/discreet/continual/_base.py', 'self.tick >= self.horizon:', 'self.tick > self.horizon:', ()),
    Mutant("half a window's changes", 'src/discreet/continual/_factors.py', 'most = [2 * visits] if visits is not None else []', 'most = [visits] if visits is not None else []', ()),
    Mutant('a level of a tree is not hidden', 'src/discreet/continual/_factors.py', '    def sensitivity(self) -> float:\n        return math.sqrt(self.levels)', '    def sensitivity(self) -> float:\n        return math.sqrt(self.levels - 1 or 1)', ()),
    Mutant("rows of nobody are somebody's", 'src/discreet/engines/person_sums.py', 'good = (owners >= 0) & (places >= 0)', 'good = places >= 0', ()),
    Mutant('a query may read files', 'src/discreet/engines/closed_duckdb.py', '"enable_external_access": False', '"enable_external_access": True', ()),
    Mutant('a tick does not wait for late rows', 'src/discreet/watch/ticks.py', 'reached = self._ticks.number(clock - self.rule.late)', 'reached = self._ticks.number(clock)', ()),
    Mutant('a stranger may hold as much as a token', 'src/discreet/service/access.py', 'ask and any(weight * (self._held', 'ask and any((self._held', ()),
    Mutant('a backup copies a memory that may be looked at once', 'src/discreet/service/backup.py', 'if kept.file == "pan.state":', 'if kept.file == "":', ()),
    Mutant('a token that was removed reads on', 'src/discreet/service/archive.py', 'while not self._closed and allowed():', 'while not self._closed:', ()),
    Mutant('a release is out before it is on disk', 'src/discreet/service/store.py', 'db.execute("pragma synchronous = full")', 'db.execute("pragma synchronous = off")', ()),
    Mutant('a backup brings its ledger back', 'src/discreet/service/backup.py', 'ignored = () if ledger_too else ("ledger.sqlite",)', 'ignored = ()', ()),
    Mutant('a log says that somebody used a pan stream', 'src/discreet/service/journal.py', 'if stream.definition.trust != "pan":\n            self._reasons', 'if True:\n            self._reasons', ()),
    Mutant('quiet is not quiet', 'src/discreet/cli/output.py', '    if not quiet:\n        note(message)', '    note(message)', ()),
    Mutant('what an interval of a signed sum is worth', 'src/discreet/summaries/moments.py', 'worth = 1.0 if self.kind == "count" else self.largest', 'worth = 1.0', ()),
]  # fmt: skip
