"""Mistakes in every room, drawn up from the sources alone: what slips in when code is written or changed in a hurry.

A delta that is not added up, a cache that is keyed too coarsely, a row at the border of two batches or two days, a state
that forgets, an exit code. Each list was complete before anyone looked at the tests for its sake (docs/audit.md has the
scores). Those that survived name the tests that they have since; the others were noticed as they were. Two change
nothing: vectors of the look that are kept (nobody asks in that order), and True as the group 1 (pyarrow refuses it).
"""

from __future__ import annotations

from tests.mutants.mutants import Mutant

__all__ = ["AGAIN", "MISTAKES"]

MISTAKES = [
    # privacy
    Mutant('an account of people takes charges that hide one row', 'src/discreet/privacy/guarantee.py', '    def covers(self, other: Unit) -> bool:\n        return isinstance(other, Event)', '    def covers(self, other: Unit) -> bool:\n        return isinstance(other, (Event, User))', ()),
    Mutant('a guarantee tells what a part has spent', 'src/discreet/privacy/guarantee.py', '            changes |= spent.to_dict()', '            pass', ()),
    Mutant('weeks begin on Sunday', 'src/discreet/privacy/spans.py', '(7 * number, 3) if unit == "week"', '(7 * number, 4) if unit == "week"', ()),
    Mutant('a moment with an offset is in the day of UTC', 'src/discreet/privacy/spans.py', 'moment = moment.astimezone(zoneinfo.ZoneInfo(self.zone or "UTC"))', 'moment = moment.astimezone(zoneinfo.ZoneInfo("UTC"))', ()),
    Mutant('a month is followed by the one after the next', 'src/discreet/privacy/spans.py', 'months = 12 * day.year + day.month - 1 + number', 'months = 12 * day.year + day.month + number', ()),
    Mutant('of too many epsilons two become the smaller', 'src/discreet/privacy/accounting.py', '(_, fewer), (above, times) = several[least : least + 2]', '(above, fewer), (_, times) = several[least : least + 2]', ()),
    Mutant('a filter with less delta covers one with more', 'src/discreet/privacy/zcdp_filter.py', ' and self.rho >= other.rho and self.delta >= other.delta', ' and self.rho >= other.rho', ()),
    Mutant('what was charged about the day before counts', 'src/discreet/privacy/ledger/balance.py', 'piece.first >= period.after or piece.after <= begin', 'piece.first >= period.after or piece.after < begin', ()),
    Mutant('a new grant has no end', 'src/discreet/privacy/ledger/accounts.py', 'until=until or before.until,', 'until=until,', ('tests/unit/privacy/test_ledger_periods.py', '-k', 'new_grant')),
    Mutant('a grant must cover one day of several', 'src/discreet/privacy/ledger/accounts.py', 'if not all(limit.pays(tally) for _, tally in balance.pieces):', 'if balance.pieces and not any(limit.pays(tally) for _, tally in balance.pieces):', ()),
    Mutant('an account that was moved takes a release', 'src/discreet/privacy/ledger/accounts.py', '            self._read(log).check_open()\n            log.append(self.name, "release"', '            log.append(self.name, "release"', ()),
    Mutant('another account of the ledger goes on with a state', 'src/discreet/privacy/steps.py', 'if is_other or (self.number and not account.is_begun(self.charge_id)):', 'if is_other:', ()),
    Mutant('an altered release passes a verification', 'src/discreet/privacy/ledger/event_log.py', '            if event.kind in ("release", "step"):\n                self.payload(event)\n', '', ()),
    Mutant('what one of several sketches shows', 'src/discreet/privacy/calibration/discovery.py', 'both = (1.0 + math.exp(epsilon)) * sketches * _shown(', 'both = (1.0 + math.exp(epsilon)) * _shown(', ()),
    # noise
    Mutant('a place at the end of a block is in it', 'src/discreet/noise/selection.py', 'position = int(np.searchsorted(ends, place, side="right"))', 'position = int(np.searchsorted(ends, place, side="left"))', ()),
    Mutant('folded weights count once', 'src/discreet/noise/laws.py', 'sums, weight, factor = [(one, one)], (one, one), 2 if folded else 1', 'sums, weight, factor = [(one, one)], (one, one), 1', ()),
    # central
    Mutant('the length of several lists moves as that of one', 'src/discreet/central/_base.py', 'm = unit.limit * whole_number("parts_per_user", lists) if isinstance(unit, User) else 1', 'm = unit.limit if isinstance(unit, User) else 1', ()),
    Mutant('that an item of one person passes costs nothing', 'src/discreet/central/person_vectors.py', 'return Charge(None, chance * (1.0 + 1e-6), rho=', 'return Charge(None, 0.0, rho=', ()),
    Mutant('who is covered is said of the rarest items', 'src/discreet/central/person_vectors.py', 'covered = None if present else length.reach / float(weights.max())', 'covered = None if present else length.reach / float(weights.min())', ()),
    Mutant('intervals of groups hold one by one', 'src/discreet/central/row_moments.py', 'beta = -math.expm1(math.log1p(self.confidence - 1.0) / groups)', 'beta = 1.0 - self.confidence', ()),
    Mutant('intervals of discovered groups forget that they passed', 'src/discreet/central/row_moments.py', '            beta /= 4.0\n', '            pass\n', ()),
    Mutant('an upper end for values that nobody is credited with', 'src/discreet/central/credited_distinct.py', '    def _upper(self, upper: float) -> float:\n        return math.inf', '    def _upper(self, upper: float) -> float:\n        return upper', ()),
    Mutant('votes of a person move a choice as one row does', 'src/discreet/central/quantile_choice.py', 'return self.epsilons[node.level] / (2 * max(share, 1 - share) * self.height)', 'return self.epsilons[node.level] / (2 * max(share, 1 - share))', ()),
    Mutant('the look at pairs is free', 'src/discreet/central/person_pairs.py', 'return super().counts(second, loses) - LOOK_AT_PAIRS', 'return super().counts(second, loses)', ()),
    # continual
    Mutant('a state over time forgets that it was seeded', 'src/discreet/continual/_base.py', 'self._seeded = self._seeded or bool(header["seeded"])', 'self._seeded = bool(self._seeded)', ()),
    Mutant('the oldest tick that is remembered is forgotten', 'src/discreet/continual/_base.py', 'for tick, past in self._past.items() if tick >= self.tick - self.remember}', 'for tick, past in self._past.items() if tick > self.tick - self.remember}', ()),
    Mutant('the offset of a window is that of one node', 'src/discreet/continual/heavy_hitters.py', 'offset = sum(node.offset for node in nodes)', 'offset = max((node.offset for node in nodes), default=0)', ()),
    Mutant('after another draw nothing is missing', 'src/discreet/continual/heavy_hitters.py', '            self.carried_below += missing\n', '            pass\n', ('tests/unit/continual/test_heavy_hitters.py', '-k', 'another_draw')),
    Mutant('visits in epochs cost as one', 'src/discreet/continual/counter.py', 'return factor.sigma(self._rho * share, self.max_items_per_event * self.changes)', 'return factor.sigma(self._rho * share, self.max_items_per_event)', ()),
    Mutant('items over time have all of delta for the noise', 'src/discreet/continual/histogram.py', 'rho = self.budget.as_zcdp(_UNKNOWN, 0.5)', 'rho = self.budget.as_zcdp(_UNKNOWN)', ()),
    Mutant('who left stays in the count of people', 'src/discreet/continual/distinct_count.py', 'added, self._added = self._added - len(self._people.left(self.tick + 1)), 0', 'added, self._added = self._added, 0', ()),
    # pan
    Mutant('another account pays for no intrusion beyond the plan', 'src/discreet/pan/_base.py', 'bill, more = made._bill(made._settings.epsilon), made._beyond_the_plan(made.intrusions)', 'bill, more = made._bill(made._settings.epsilon), {}', ()),
    Mutant('both tails of a distinct count have all of beta', 'src/discreet/pan/distinct_count.py', 'bounds.append(((bits + noise).sum(axis=1) + math.log(2 / beta)) / s)', 'bounds.append(((bits + noise).sum(axis=1) + math.log(1 / beta)) / s)', ()),
    Mutant('announced intrusions have no part of epsilon', 'src/discreet/pan/settings.py', 'return Fraction(self.epsilon) * (1 - self.share) / (1 + self.announced_intrusions)', 'return Fraction(self.epsilon) * (1 - self.share)', ()),
    Mutant('a window that was read reaches as far as before', 'src/discreet/pan/window.py', 'return f, (f - reach - c) / (1 - c), (f + reach) / d', 'return f, f - reach, f + reach', ()),
    # multiparty
    Mutant('numbers beside each other overlap', 'src/discreet/multiparty/aggregator.py', 'bisect_right(self._starts[piece], last) - 1] > first', 'bisect_right(self._starts[piece], last) - 1] >= first', ()),
    Mutant('enough reports are too few', 'src/discreet/multiparty/aggregator.py', 'if self.shown < self.limits.minimum_reports:', 'if self.shown <= self.limits.minimum_reports:', ()),
    Mutant('all rows of a round have one hash function', 'src/discreet/multiparty/_base.py', 'for part in (self.family, *parts)) + self.round_id.encode()', 'for part in (self.family, *parts[:0])) + self.round_id.encode()', ()),
    Mutant('a block from before a party joined counts in full', 'src/discreet/multiparty/block_stream.py', 'return packet is not None and (packet.joined <= block.first * b or block.level == 0)', 'return packet is not None', ()),
    Mutant('a state of a stream forgets which parties were expected', 'src/discreet/multiparty/block_stream.py', '        self._expect(header["expected"])\n', '', ()),
    # releases
    Mutant('True is found where 1 is listed', 'src/discreet/releases/release.py', 'return None if row is None or isinstance(item, (bool, float)) != isinstance(row.item, (bool, float)) else row', 'return row', ()),
    Mutant('everything else has the bounds of one confidence twice', 'src/discreet/releases/release.py', 'lower, upper = self.bounds(1.0 - half)', 'lower, upper = self.bounds(confidence)', ()),
    Mutant('JSON is silent about what was left out', 'src/discreet/releases/release.py', '        if self.left_out is not None:\n            out["left_out"] = self.left_out.numbers()\n', '', ()),
    Mutant('nothing is kept for what scaling leaves out', 'src/discreet/releases/error_model.py', 'beta *= 0.99 if self.scaling.noise is None else 0.79', 'beta *= 1.0', ('tests/unit/releases/test_error_model.py', '-k', 'share_what')),
    Mutant('stretches may fail with all of beta each', 'src/discreet/releases/error_model.py', 'each = [stretch.lacks(beta / len(self.released)) for stretch in self.released]', 'each = [stretch.lacks(beta) for stretch in self.released]', ('tests/unit/releases/test_error_model.py', '-k', 'share_what')),
    Mutant('a release does not say what its account rests on', 'src/discreet/releases/payment.py', 'guarantee=answer.guarantee.assuming(*assumed))', 'guarantee=answer.guarantee)', ()),
    # events
    Mutant('a row without a group is of none that is listed', 'src/discreet/events/keys.py', 'listed = np.asarray(places.is_valid()) | np.asarray(keys.is_null())', 'listed = np.asarray(places.is_valid())', ('tests/unit/events/test_keys.py', '-k', 'without_a_group')),
    Mutant('groups of two columns are those of the first', 'src/discreet/events/keys.py', 'for column in self.layout.columns(keys)[: self.layout.by]]', 'for column in self.layout.columns(keys)[:1]]', ()),
    Mutant('there are two zeros', 'src/discreet/events/keys.py', 'array = pa.array(numbers + numbers.dtype.type(0), mask=np.isnan(numbers))', 'array = pa.array(numbers, mask=np.isnan(numbers))', ()),
    Mutant('an hour that comes twice is one', 'src/discreet/events/times.py', 'begins = [clock - over, np.asarray(moments.cast(pa.int64())) - over]', 'begins = [clock - over, np.asarray(pc.assume_timezone(pa.array(clock - over).cast(pa.timestamp("s")), self.zone or "UTC", ambiguous="earliest", nonexistent="earliest").cast(pa.int64()))]', ('tests/unit/events/test_times.py', '-k', 'comes_twice')),
    Mutant('nobody notices whose rows are bad', 'src/discreet/events/assembly.py', 'if self.people is not None and "user" in batch.schema.names and not of_people:', 'if False:', ()),
    Mutant('a newline that came late belongs to no position', 'src/discreet/events/live_input.py', '                    piece = piece[ending.end() :]\n                    self._cutter.position += ending.end()\n', '                    piece = piece[ending.end() :]\n', ('tests/unit/events/test_live_input.py', '-k', 'without_its_newline')),
    Mutant('an item of users who share one is theirs once', 'src/discreet/events/samples.py', '_, first = np.unique(user_index * np.int64(len(item_names)) + item_index, return_index=True)', '_, first = np.unique(user_index * np.int64(len(item_names) - 1) + item_index, return_index=True)', ()),
    # engines
    Mutant('NOT BETWEEN is BETWEEN', 'src/discreet/engines/plain_where.py', 'return _operator("OPERATOR_NOT", found) if negated else found', 'return found', ()),
    Mutant('vectors are kept by their items alone', 'src/discreet/engines/duck_people.py', 'asked = places.tobytes() + weights.tobytes()', 'asked = places.tobytes()', ()),
    Mutant('the vectors of the look are taken for those of the counts', 'src/discreet/engines/duck_people.py', '        self._chosen = None\n        with self._wanted', '        with self._wanted', ('tests/unit/engines/test_people_in_duckdb.py', '-k', 'asked_before')),
    Mutant('of sums as many steps count as of rows', 'src/discreet/engines/exact_people.py', 'kind, most, each = entry.sums, MOST_STEPS, 64', 'kind, most, each = entry.sums, MOST_ROWS, 64', ()),
    Mutant('on disk -1 and 2**64 - 1 are one number', 'src/discreet/engines/different.py', 'yield _LARGE, items.filter(pa.array(large))', 'yield _INTEGER, items.filter(pa.array(large))', ()),
    # storage
    Mutant('a lock on a file that was deleted counts', 'src/discreet/storage.py', '        if (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino):\n            return file\n', '        if held and now:\n            return file\n', ('tests/unit/test_storage.py', '-k', 'deleted')),
    # watch
    Mutant('a tick that nobody looked at lasts as long as any', 'src/discreet/watch/ticks.py', 'yield self._ended((before, reached))', 'yield self._ended((before, before + 1))', ()),
    Mutant('midnight is of the day before', 'src/discreet/watch/ticks.py', 'over = batch.times < self.rule.days.begin(', 'over = batch.times <= self.rule.days.begin(', ()),
    Mutant('another condition goes on with a watch', 'src/discreet/watch/watcher.py', '            "where": None if reader.query is None else reader.query.text,\n', '', ()),
    Mutant('a blank row has no place in a tick of rows', 'src/discreet/watch/tasks.py', 'keep_blank=live.rows is not None,', 'keep_blank=False,', ()),
    # service
    Mutant('a stream does not wait for late events', 'src/discreet/service/streams.py', 'return self.timetable.number(now - self._late)', 'return self.timetable.number(now)', ()),
    Mutant('keys that a torn mechanism had are not given again', 'src/discreet/service/streams.py', 'self._fed, self._fed_keys, self._is_torn = Counter(), set(), False', 'self._fed, self._is_torn = Counter(), False', ('tests/service/test_small_rules.py', '-k', 'before_it_failed')),
    Mutant('a query is no part of what a key stands for', 'src/discreet/service/uploads.py', 'digest = hashlib.sha256(f"{_media_type(request)}\\0{request.url.query}\\0".encode() + body)', 'digest = hashlib.sha256(f"{_media_type(request)}\\0".encode() + body)', ('tests/service/test_small_rules.py', '-k', 'stands_for_all')),
    Mutant('a pan-private stream keeps events that it refused', 'src/discreet/service/pan_stream.py', '                self._read()  # the events of this group are in memory and not on disk: back to what is\n', '', ('tests/service/test_pan_service.py', '-k', 'not_in_memory')),
    # cli, questions, summaries
    Mutant('a full disk is an error like any other', 'src/discreet/cli/process.py', 'return _fail(5 if error.errno in NO_ROOM else 1, f"an output', 'return _fail(1, f"an output', ('tests/unit/cli/test_internal_errors.py', '-k', 'takes_no_more')),
    Mutant('standard input has the charge of other standard input', 'src/discreet/questions/answer.py', 'if question.period is None or not data.are_files or "-" in data.secret.get("files", ["-"]):', 'if question.period is None or not data.are_files:', ('tests/unit/questions/test_person_days.py', '-k', 'name_a_charge')),
    Mutant("a question's own condition replaces the report's", 'src/discreet/questions/report.py', 'said["where"] = self.where if own is None else f"({self.where}) AND ({own})"', 'said["where"] = self.where if own is None else own', ()),
    Mutant('deltas of a report are not added up', 'src/discreet/questions/report.py', '        delta += Fraction(said.delta)\n', '', ()),
    # the client of the browser, kernels
    Mutant('client: a place after the last is inside', 'clients/js/discreet.js', 'return value >= this.first && value < this.first + this.size ?', 'return value >= this.first && value <= this.first + this.size ?', ('tests/browser/test_client.py', '-k', 'its_own')),
    Mutant('client: 128 takes one byte', 'clients/js/discreet.js', 'for (; value >= 0x80n; value >>= 7n)', 'for (; value > 0x80n; value >>= 7n)', ('tests/browser/test_client.py', '-k', 'its_own')),
    Mutant('client: the last eight bytes are a piece of their own', 'clients/js/discreet.js', 'for (; bytes.length - at >= 8; at += 7)', 'for (; bytes.length - at > 8; at += 7)', ()),
    Mutant('users of one side are lost in a merge', 'cpp/include/discreet/counters/user_misra_gries.hpp', 'assign(sum, total_ + other.total_, users_ + other.users_,', 'assign(sum, total_ + other.total_, users_,', ()),
    Mutant('a merge forgets what it took away', 'cpp/include/discreet/counters/misra_gries.hpp', 'assign(sum, total_ + other.total_, alpha_ + other.alpha_ + cut);', 'assign(sum, total_ + other.total_, alpha_ + other.alpha_);', ()),
    Mutant('a piece of 60 bytes has its length behind it', 'cpp/include/discreet/readers/snappy.hpp', 'if (n > 60) {', 'if (n >= 60) {', ('tests/unit/events/test_pages.py', '-k', 'every_length')),
    Mutant('2**63 is read as an int64', 'cpp/include/discreet/readers/json_lines.hpp', '"9223372036854775808" : "9223372036854775807"', '"9223372036854775808" : "9223372036854775808"', ()),
    Mutant('a key of a line is looked for in the one before', 'cpp/include/discreet/readers/json_lines.hpp', '    for (Slot& slot : slots_) clear(slot);\n', '', ()),
    Mutant('candidates of a merge keep their old estimates', 'cpp/include/discreet/sketches/linear_sketch.hpp', '      c.count = sum.estimate(digest(c.key));\n', '', ()),
]  # fmt: skip

# Drawn up when the first had been tried, before its survivors had all of their tests.
AGAIN = [
    Mutant('a share of delta is all of it', 'src/discreet/privacy/budget.py', 'return zcdp_rho(self.epsilon, self.delta * delta_share)', 'return zcdp_rho(self.epsilon, self.delta)', ()),
    Mutant('a unit by its name has no zone', 'src/discreet/privacy/guarantee.py', 'return User(per=_SPANS.get(span, span), zone=zone)', 'return User(per=_SPANS.get(span, span))', ()),
    Mutant('a period of several days is the first of them', 'src/discreet/privacy/spans.py', 'first, after = names[0], self.after(names[-1])', 'first, after = names[0], self.after(names[0])', ()),
    Mutant('a charge with a delta fits a grant of rho', 'src/discreet/privacy/accounting.py', 'return not sums.total_delta and is_within(sums.total_rho, budget.rho)', 'return is_within(sums.total_rho, budget.rho)', ()),
    Mutant('what is left is what the emptiest day has left', 'src/discreet/privacy/ledger/balance.py', 'return min(left, key=lambda amount: (amount.epsilon or 0.0, amount.rho or 0.0))', 'return max(left, key=lambda amount: (amount.epsilon or 0.0, amount.rho or 0.0))', ()),
    Mutant('a check looks at no unit', 'src/discreet/privacy/ledger/accounts.py', '        if unit is not None:\n            self._check_unit(balance, unit)\n        about = self._about(balance, balance.spans', '        about = self._about(balance, balance.spans', ()),
    Mutant('a step that a copy stored first is published anyway', 'src/discreet/privacy/steps.py', '        if stored.token != self.token:\n            raise self._old(account, tick)\n', '', ()),
    Mutant('a ledger knows the version of its last event alone', 'src/discreet/privacy/ledger/event_log.py', '"version": max(head["version"], event.version),', '"version": event.version,', ()),
    Mutant('a release with a total tells what is left', 'src/discreet/central/_base.py', 'drawn.guarantee = drawn.guarantee.assuming(note, spent=self.budget)', 'drawn.guarantee = drawn.guarantee.assuming(note)', ()),
    Mutant('intervals of people with m items reach no farther than what stands out', 'src/discreet/central/person_vectors.py', '            reach = max(reach, longest)\n', '', ('tests/unit/central/test_people.py', '-k', 'covered_in_full')),
    Mutant('an account of rhos pays for one count of several', 'src/discreet/central/universe_histogram.py', 'return additive_cost(self.noise.law, self.scale, changes=self.changes)', 'return additive_cost(self.noise.law, self.scale)', ()),
    Mutant('no discovered group passed by luck', 'src/discreet/central/row_moments.py', 'lucky = number < self.threshold / moment.one + self._reach_of_number(beta)', 'lucky = number < self.threshold / moment.one', ()),
    Mutant('of people over time an account hides m items', 'src/discreet/continual/_base.py', 'hides = replace(self.unit, max_items=None) if isinstance(self.unit, User) else self.unit', 'hides = self.unit', ('tests/unit/continual/test_people_over_time.py', '-k', 'adds_up_whole')),
    Mutant('a second draw errs on one side only', 'src/discreet/continual/heavy_hitters.py', 'summary_above=carried,', 'summary_above=0.0,', ('tests/unit/continual/test_heavy_hitters.py', '-k', 'another_draw')),
    Mutant('nobody leaves a window without a count', 'src/discreet/continual/histogram.py', 'lowest=0 if self._domain is not None or self.max_weight > 1 or self.window is not None else 1,', 'lowest=0 if self._domain is not None or self.max_weight > 1 else 1,', ()),
    Mutant('delta over time of one item for all of an event', 'src/discreet/continual/histogram.py', 'one_shot.gauss_shift(sigma, delta / (L * most))', 'one_shot.gauss_shift(sigma, delta / L)', ()),
    Mutant('accuracy begins one count too early', 'src/discreet/pan/distinct_count.py', 'return math.ceil(counts[above[-1] + 1]) if above.size else 1', 'return math.ceil(counts[above[-1]]) if above.size else 1', ('tests/unit/pan/test_estimators.py', '-k', 'as_was_said')),
    Mutant('half of the parties and one more tell the time', 'src/discreet/multiparty/block_stream.py', 'told = ends[(len(ends) - 1) // 2] if ends else 0', 'told = ends[len(ends) // 2] if ends else 0', ()),
    Mutant('two protocols of a round have one charge', 'src/discreet/multiparty/_base.py', 'return f"{self.round_digest.hex()}-{self.digest.hex()}-{number}"', 'return f"{self.round_digest.hex()}-{number}"', ('tests/unit/multiparty/test_party_ledger.py', '-k', 'charge_of_its_own')),
    Mutant('counts that were rounded are taken for exact', 'src/discreet/releases/release.py', 'np.ceil(np.asarray(side) * self.steps + 0.5) for side', 'np.ceil(np.asarray(side) * self.steps) for side', ()),
    Mutant('each of two ticks may fail with all that may', 'src/discreet/releases/over_time.py', 'share = beta / 2.0 if changes is None else', 'share = beta if changes is None else', ()),
    Mutant('the text of a tick has 90 % in place of 95', 'src/discreet/releases/formats.py', 'spread = math.ceil(1.96 * result["standard_deviation"])', 'spread = math.ceil(1.645 * result["standard_deviation"])', ()),
    Mutant('a file of no known format has items of one kind', 'src/discreet/events/files.py', 'self._of_kinds = "jsonl" in named or (None in named and files.dialect is None)', 'self._of_kinds = "jsonl" in named', ('tests/unit/events/test_files.py', '-k', 'hides_none')),
    Mutant('the last of a few days is the one before', 'src/discreet/events/times.py', 'for day in range(first + 1, last + 1):', 'for day in range(first + 1, last):', ()),
    Mutant('True is the group 1', 'src/discreet/events/keys.py', 'any(isinstance(value, (float, bool)) for value in values)', 'any(isinstance(value, float) for value in values)', ()),
    Mutant('positions count bytes of UTF-8', 'src/discreet/events/live_input.py', '            rows.ends = _characters(data, rows.ends)\n', '            pass\n', ()),
    Mutant('rows from before a null come again', 'src/discreet/events/parquet.py', '        self._taken += rows\n', '', ('tests/unit/events/test_parquet_columns.py', '-k', 'come_once')),
    Mutant('who has too many items gives each as if all took part', 'src/discreet/engines/duck_people.py', 'sqrt(least(d, {most_items})::DOUBLE)', 'sqrt(d::DOUBLE)', ()),
    Mutant('the last column of integers decides about all', 'src/discreet/engines/numbers.py', 'self._integers = pa.uint64() if pa.types.is_uint64(kind) else self._integers or pa.int64()', 'self._integers = pa.uint64() if pa.types.is_uint64(kind) else pa.int64()', ('tests/unit/engines/test_numbers.py', '-k', 'come_last')),
    Mutant('a condition has one plan, whatever the types are', 'src/discreet/engines/plain_where.py', 'types = tuple(map(str, kinds.values()))', 'types = ("",)', ('tests/unit/engines/test_plain_where.py', '-k', 'read_anew')),
    Mutant('a state that could not be written stays beside', 'src/discreet/storage.py', '            with suppress(OSError):\n                os.unlink(self._temporary, dir_fd=self._directory)\n            raise write_error(', '            raise write_error(', ()),
    Mutant('rows of the tick that was open are lost by a restart', 'src/discreet/watch/ticks.py', 'new = (batch.ends > self._again) | (numbers >= self._since)', 'new = (batch.ends > self._again) | (numbers > self._since)', ()),
    Mutant('how far a queue was read is forgotten', 'src/discreet/service/streams.py', '(key, digest, rows, math.inf if key.startswith(OFFSET_KEY) else until)', '(key, digest, rows, until)', ('tests/service/test_small_rules.py', '-k', 'for_ever')),
    Mutant('an older folder draws ticks of a pan stream again', 'src/discreet/service/pan_stream.py', '        self._steps.look(self.payer, self.tick, None if self._release is None else text_of(self._release).encode())\n', '', ('tests/service/test_pan_service.py', '-k', 'older_than_its_ledger')),
    Mutant('SIGTERM ends as Ctrl-C does', 'src/discreet/cli/process.py', 'return _fail(130 if _received is None else 128 + _received, what_happened())', 'return _fail(130, what_happened())', ()),
    Mutant('an encoding is no part of what is asked', 'src/discreet/questions/answer.py', 'told |= {"encoding": encoding, "rows_of', 'told |= {"rows_of', ('tests/unit/questions/test_person_days.py', '-k', 'files_are_read')),
    Mutant('every part of a report has all of delta', 'src/discreet/questions/report.py', 'rounded_down(share * Fraction(budget.delta)))', 'budget.delta)', ()),
    Mutant('a stream that is too long is charged before that is seen', 'src/discreet/questions/top.py', '            prepared.mechanism.check(summary)  # before anything is charged: a stream may be longer than was said\n', '', ('tests/unit/questions/test_chosen_sizes.py', '-k', 'than_was_said')),
    Mutant('client: random numbers of 63 bits', 'clients/js/discreet.js', 'crypto.getRandomValues(new BigUint64Array(1))[0] >> 2n', 'crypto.getRandomValues(new BigUint64Array(1))[0] >> 1n', ('tests/browser/test_client.py', '-k', 'its_own')),
    Mutant('-0 is a number of its own', 'cpp/include/discreet/readers/json_lines.hpp', '      if (text == "-0") text.remove_prefix(1);\n', '', ()),
]  # fmt: skip
