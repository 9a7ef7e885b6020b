"""Wrong changes of the kind people make by mistake, in every room of the house.

`REPORTED` are those that were once tried from outside and went unnoticed: each has a test of its own now. `EVERYWHERE`
was written without a look at the tests, to measure how many of such changes these notice (docs/audit.md).
"""

from __future__ import annotations

from tests.mutants.mistakes import AGAIN, MISTAKES, ONCE_MORE
from tests.mutants.mutants import CONTRACT, PEOPLE_OVER_TIME, Mutant, audited, in_package
from tests.mutants.reviews import REVIEWED

__all__ = ["LISTS", "ROOMS"]

COUNTING = "tests/unit/test_counting.py"
LEDGER_FILE = "tests/unit/privacy/test_ledger_file.py"
LEDGER = "tests/unit/privacy/test_ledger.py"
REPLAYS = "tests/unit/test_replays.py"
SYNCED = "tests/unit/test_storage.py"
STATES = "tests/faults/test_states.py"
OUTPUTS = "tests/unit/test_output_files.py"
SERVICE = "tests/service/test_service.py"
SMALL_RULES = "tests/service/test_small_rules.py"
ONE_STATE = "tests/unit/central/test_releases_of_one_state.py"
STRANGERS = "tests/service/test_strangers.py"
SPOOL = "tests/service/test_spool.py"
LIMITS = "tests/service/test_limits.py"
PAN_SERVICE = "tests/service/test_pan_service.py"
SERVICE_DAYS = "tests/service/test_days.py"
FILES = "tests/unit/events/test_files.py"
EVENTS = "tests/unit/events/test_events.py"
TEXT = "tests/unit/events/test_text_items.py"
BAD_ROWS = "tests/unit/events/test_bad_rows.py"
DUCK = "tests/unit/engines/test_people_in_duckdb.py"
SAME = "tests/unit/engines/test_same_release.py"
NUMBERS = "tests/unit/engines/test_numbers.py"
PEOPLE = "tests/unit/central/test_people.py"
PEOPLE_EXACT = "tests/exhaustive/test_people_exhaustive.py"
QUANTILES = "tests/unit/test_quantiles.py"
SUMS = "tests/unit/questions/test_sums.py"
GROUPS = "tests/unit/test_groups.py"
TABLES = "tests/unit/test_tables.py"
SQL = "tests/unit/engines/test_sql.py"
TICKS = "tests/unit/watch/test_ticks.py"
CLIENT = "tests/browser/test_client.py"
SHUFFLED = "tests/unit/multiparty/test_shuffled_rounds.py"
HOSTILE = "tests/unit/multiparty/test_hostile_messages.py"
MONITOR = "tests/unit/multiparty/test_stream_monitor.py"


def client(name: str, old: str, new: str, excuse: str = "") -> Mutant:
    return Mutant(f"client: {name}", "clients/js/discreet.js", old, new, (CLIENT, "-k", "its_own"), excuse)


UNDECIDED = "a word leaves a draw undecided once in 2^40, and no test draws so often"


REPORTED = [
    *in_package(
        "central",
        ("universe_histogram.py", "people move one count, however many they are in",
         "return min(self.max_items or 1, int(self.universe.size))", "return 1", (COUNTING, *audited("UniverseHistogram"))),
        ("merged_counters.py", "counters of 0 get noise and may be shown", "raw = positive(summary.not_private_counts())",
         "raw = summary.not_private_counts()", (ONE_STATE,)),
        ("untrusted_merge.py", "the parts with the smallest deltas count", "sorted(values)[-parts:]", "sorted(values)[:parts]",
         ("tests/unit/central/test_untrusted_merge.py",)),
        ("_base.py", "what is released is not copied before it is summed",
         "return summary.copy() if isinstance(summary, Summary) and not isinstance(summary, ExactCounts) else summary",
         "return summary", (ONE_STATE, CONTRACT)),
        ("person_vectors.py", "left_out at 90 for 95 %", "def left_out(self, longest: float, confidence: float = 0.95)",
         "def left_out(self, longest: float, confidence: float = 0.9)", (PEOPLE, "tests/statistical/test_left_out.py")),
        ("_quantiles.py", "all quantiles may fail with all of beta", "(1.0 - self.confidence) / len(self.quantiles)",
         "1.0 - self.confidence", (QUANTILES,)),
    ),
    *in_package(
        "continual",
        ("_people.py", "of people's items the smallest count, not the first", "order = np.lexsort((first, pairs >> _ITEM_BITS))",
         "order = np.arange(len(pairs))", PEOPLE_OVER_TIME),
        ("heavy_hitters.py", "counters of 0 are shown", "(v >= self.threshold) & (counts > 0)", "v >= self.threshold",
         ("tests/unit/continual/test_heavy_hitters.py",)),
    ),
    *in_package(
        "noise",
        ("source.py", "the remainder of a binomial in chunks is lost",
         "((trials // parts + 1, trials % parts), (trials // parts, parts - trials % parts))",
         "((trials // parts, trials % parts), (trials // parts, parts - trials % parts))", ("tests/unit/noise/test_random_source.py", "-k", "binomial")),
        ("source.py", "exceedances at a cut of 0 or less are off by one", "trials, parameter, 1 - minimum, 1 if size",
         "trials, parameter, -minimum if minimum else 1, 1 if size", ("tests/unit/noise/test_random_source.py", "-k", "either_side")),
    ),
    *in_package(
        "engines",
        ("duck_people.py", "257 items of a person take part out of core", "WHERE r <= {most_items}\"", "WHERE r <= {most_items} + 1\"", (DUCK,)),
        ("duck_people.py", "DuckDB's own words are passed on", "could not count these people ({type(error).__name__})",
         "could not count these people ({error})", (DUCK,)),
        ("numbers.py", "numbers beyond 63 bits come back negative", "return pa.array(known).view(self._integers)", "return pa.array(known)",
         (NUMBERS, DUCK)),
    ),
    *in_package(
        "events",
        ("assembly.py", "people of a third batch of lists are those of the second",
         "lists.flatten(), before + len(lists)", "lists.flatten(), len(lists)", (EVENTS, "tests/unit/test_api_users.py")),
        ("text.py", "the first row of a second file is taken for its header",
         "return end if names == self.names and not more else start", "return end", ("tests/unit/events/test_live_input.py",)),
        ("assembly.py", "a bad cell shifts the list beside it", "listed = listed if listed is None else listed[good]", "pass", (GROUPS,)),
        ("assembly.py", "of text that is no UTF-8 one column alone is cleaned",
         "good = readable(array, most if name == self.names[0] else None, self.check_text)",
         "good = readable(array, most, self.check_text) if name == self.names[0] else None",
         (FILES, BAD_ROWS, "tests/unit/events/test_cells.py")),
    ),
    *in_package(
        "privacy",
        ("ledger/idle_connections.py", "a forked child uses its parent's connection",
         "return connection if process == os.getpid() else None", "return connection", (LEDGER_FILE,)),
        ("ledger/sqlite.py", "the name of a new ledger is not synced", "        sync_folder(self.path.parent)  # the file", "        pass  # the file", (SYNCED,)),
        ("accounting.py", "the deltas of a mixed account are not taken off", "_concentrated(sums.other_rho, sums.other_delta, delta * (1.0 - share)),",
         "_concentrated(sums.other_rho, Fraction(0), delta * (1.0 - share)),", ("tests/unit/privacy/test_accounting.py",)),
        ("steps.py", "a step may be forged onto another past",
         "or (None if before is None else before.token) != self.previous:", "or False:",
         ("tests/unit/continual/test_steps.py", "tests/faults/test_copies.py")),
    ),
    Mutant("a condition is no part of the question", "src/discreet/questions/question.py",
           "return {name: spoken(value) for name, value in said.items() if value is not None}",
           "return {name: spoken(value) for name, value in said.items() if value is not None and name != \"where\"}", (REPLAYS, "tests/unit/questions/test_questions.py")),
    Mutant("a new state is not synced", "src/discreet/storage.py", "            os.fsync(file)\n            if not named:",
           "            if not named:", (SYNCED,)),
    Mutant("the name of a new state is not synced", "src/discreet/storage.py", "                os.fsync(self._directory)\n", "                pass\n", (SYNCED,)),
    Mutant("an output is not synced", "src/discreet/storage.py", "                os.fsync(file.fileno())\n", "                pass\n", (SYNCED,)),
    Mutant("others may read an output before it is complete", "src/discreet/storage.py", "    file = os.open(path, flags, 0o600)\n",
           "    file = os.open(path, flags, 0o644)\n", (OUTPUTS,)),
    *in_package(
        "releases",
        ("release.py", "of several columns ties keep the order of hashes",
         "(table, [*keys[:by], (\"count\", \"descending\"), *keys[by:]])", "(table, [*keys[:by], (\"count\", \"descending\")])",
         ("tests/unit/releases/test_release_order.py",)),
    ),
    *in_package(
        "multiparty",
        ("local_protocol.py", "a late report stays last", "for last in range(first, self.count):", "for last in range(first, self.count - 1):", (SHUFFLED,)),
        ("levels.py", "lists that were cut count as complete", "                    complete = False\n", "                    pass\n",
         ("tests/unit/multiparty/test_hierarchy.py",)),
        ("block_stream.py", "seeded messages of a stream pass for private ones", "        self._seeded |= message.seeded\n", "        pass\n", (MONITOR,)),
    ),
    *in_package(
        "service",
        ("runs.py", "a live interval at 90 for 95 %", "inv_cdf((1 + CONFIDENCE) / 2)", "inv_cdf(CONFIDENCE)", (SMALL_RULES,)),
        ("streams.py", "events count in a tick that is over", "            self.seal(self.around.clock())\n            if self.ended:\n                raise gone()\n            tick",
         "            if self.ended:\n                raise gone()\n            tick", (SMALL_RULES,)),
        ("routes.py", "seeded reports are taken", "            if opened.seeded:\n", "            if False:\n", (SMALL_RULES,)),
        ("bodies.py", "visitors are told by an empty key", "hmac.new(secret, f", "hmac.new(b\"\", f", (SMALL_RULES,)),
        ("uploads.py", "another body goes under a pending key", "if same != digest:", "if False:", (SMALL_RULES,)),
        ("access.py", "events that are refused count", "(left - number if enough else left, now)", "(left - number, now)", (SMALL_RULES,)),
        ("pan_stream.py", "the old pan-private file is not erased", "erase=True", "erase=False", (SMALL_RULES,)),
    ),
    client("a negative zero counts twice", 'if (magnitude === 0n && negative && this.sign === "unfolded") return null;', ""),
    client("noise of Math.random", "if (!this.recorded) return crypto.getRandomValues(new BigUint64Array(1))[0];",
           "if (!this.recorded) return BigInt(Math.floor(Math.random() * 2 ** 53)) << 11n;"),
]  # fmt: skip

EVERYWHERE = [
    Mutant("others may read a state", "src/discreet/storage.py", "            os.fchmod(file, 0o600)\n", "            os.fchmod(file, 0o644)\n", (STATES, "tests/unit/test_output_files.py", "tests/unit/pan/test_pan_ledger.py")),
    Mutant("a state may have a second name", "src/discreet/storage.py", "        if held.st_nlink > 1:\n", "        if held.st_nlink > 2:\n", (STATES, "tests/faults/test_copies.py")),
    Mutant("a state of another class is read", "src/discreet/storage.py", "    if found != family:\n", "    if False:\n", (STATES, "tests/golden", "tests/unit/pan")),
    Mutant("a state of any older version is read", "src/discreet/storage.py", "    if not oldest <= version <= newest:\n", "    if version > newest:\n", (SYNCED,)),
    Mutant("a state that was replaced is overwritten", "src/discreet/storage.py", "            self._check_unchanged()\n            new = self._write(data)", "            new = self._write(data)", (STATES, "tests/faults/test_copies.py", "tests/e2e/test_watch.py")),
    Mutant("temporary outputs of the living are removed", "src/discreet/storage.py", "        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n        now = os.lstat(path)", "        now = os.lstat(path)", (OUTPUTS,)),
    *in_package(
        "engines",
        ("duck_people.py", "rows beyond the most count out of core", 'value = f"least(n, {self._most}) * weight"', 'value = "n * weight"', (DUCK, SAME)),
        ("duck_people.py", "weights of discovery are rounded up", 'weight = f"trunc({LENGTH - 1} / sqrt(', 'weight = f"ceil({LENGTH - 1} / sqrt(', (DUCK, SAME)),
        ("duck_people.py", "vectors are scaled to the shorter length", "greatest(sqrt(q::DOUBLE),", "least(sqrt(q::DOUBLE),", (DUCK, SAME)),
        ("duck_people.py", "a person is cut where a batch ends", "start = int(np.searchsorted(people, people[-1])) if len(people) else 0", "start = len(people)", (DUCK, "tests/unit/engines/test_pairs.py")),
        ("duck_people.py", "the choice of items has no fresh key", "hash(i, {secrets.randbits(62)})", "hash(i, 1)", (DUCK,)),
        ("exact_people.py", "the limit of memory is not looked at", "fits = each * count + users.bytes + items.bytes <= room", "fits = True", (DUCK,)),
        ("numbers.py", "rows without a value keep the one before", "who, what, steps = who.filter(~missing), what.filter(~missing), steps[~missing]", "steps = np.where(missing, 0, steps)", (DUCK,)),
        ("group_sums.py", "the last batch alone counts", "np.add.at(sums[:, part], places, entries[:, part])", "sums[places, part] = entries[:, part]", (SUMS, "tests/exhaustive/test_moments_exhaustive.py")),
        ("group_sums.py", "numbers that are none count", "good = ~np.isnan(values)", "good = np.ones(len(values), np.bool_)", (SUMS,)),
        ("different.py", "what is in memory at the end is not counted", "        self._write()\n        return sum(map(self._count_part, self._parts))", "        return sum(map(self._count_part, self._parts))", ("tests/unit/engines/test_different_items.py",)),
        ("different.py", "text and bytes are the same items", "yield _TEXT if is_text else _BYTES, items", "yield _TEXT, items", ("tests/unit/engines/test_different_items.py",)),
        ("amounts.py", "people of two parts have the same numbers", "after = other.people + np.int32(int(self.people.max(initial=-1)) + 1)", "after = other.people", (QUANTILES,)),
        ("amounts.py", "values that are no numbers fall into a bin", "good = ~np.isnan(numbers)\n", "good = np.ones(len(numbers), bool)\n", (QUANTILES,)),
        ("closed_duckdb.py", "a bad row takes its neighbour along", "elif block.num_rows > 1:", "elif block.num_rows > 2:", (SQL, "tests/unit/engines/test_closed_duckdb.py")),
        ("sql.py", "a window function is accepted", '        if node.get("qualify"):\n', "        if False:\n", (SQL,)),
        ("sql.py", "random() is accepted", "\"VOLATILE\", \"CONSISTENT_WITHIN_QUERY\"", "\"CONSISTENT_WITHIN_QUERY\"", (SQL,)),
        ("sql.py", "LIMIT is accepted", 'if modifier.get("type") != "ORDER_MODIFIER":', 'if modifier.get("type") not in ("ORDER_MODIFIER", "LIMIT_MODIFIER"):', (SQL,)),
        ("private_folder.py", "folders of others that are in use are removed", "if old.stat().st_uid == os.getuid() and (lock := _locked(old)) is not None:", "if (lock := os.open(old, os.O_RDONLY)) is not None:", (DUCK, "tests/unit/engines/test_different_items.py")),
    ),
    *in_package(
        "events",
        ("samples.py", "a user keeps one item too many", "key=_rank)[: self._max_items])", "key=_rank)[: self._max_items + 1])", (EVENTS, "tests/unit/events/test_samples.py")),
        ("samples.py", "the last items of a user are kept, not a sample", "or rank < kept[-1][0])", "or rank > kept[-1][0])", (EVENTS, "tests/unit/events/test_samples.py")),
        ("samples.py", "lists keep one item too many", "return np.sort(order[place < max_items])", "return np.sort(order[place <= max_items])", (EVENTS, "tests/unit/events/test_samples.py")),
        ("samples.py", "the key of the sample is always the same", "self._key = secrets.token_bytes(16)", "self._key = bytes(16)", (EVENTS, "tests/unit/events/test_samples.py")),
        ("samples.py", "all users keep the same items", "mixed(self._hashes(user_names, b\"user\")[user_index], self", "mixed(self._hashes(user_names, b\"user\")[user_index] * np.uint64(0), self", (EVENTS, "tests/unit/events/test_samples.py")),
        ("assembly.py", "items of any length pass", "good = readable(array, most if name == self.names[0] else None, self.check_text)", "good = readable(array, None, self.check_text)", (FILES, BAD_ROWS, EVENTS)),
        ("assembly.py", "rows outside of the period count", "        there = there & inside\n", "", ("tests/unit/questions/test_person_days.py",)),
        ("assembly.py", "a column beside the items may have nulls", "there = reduce(pc.and_, (pc.is_valid(column) for column in batch.columns))", "there = pc.is_valid(batch.columns[0])", (FILES, EVENTS)),
        ("assembly.py", "bad rows pass where they are an error", "if number and not self._skip_bad_rows:", "if number > 1 and not self._skip_bad_rows:", (BAD_ROWS, FILES)),
        ("assembly.py", "rows of two kinds of items are mixed", "        if kind != self._kind:\n", "        if False:\n", (FILES, EVENTS)),
        ("items.py", "true and false are items", "if isinstance(value, bool) or type(value).__name__ in (\"bool\", \"bool_\") or not hasattr", "if not hasattr", ("tests/unit/events/test_items.py",)),
        ("items.py", "a number beyond 64 bits is an item", "return number if -(2**63) <= number < 2**64 else None", "return number if -(2**63) <= number <= 2**64 else None", ("tests/unit/events/test_items.py",)),
        ("items.py", "NaN of pandas is an item", "return (isinstance(value, float) or of_numpy) and bool(value != value)", "return of_numpy and bool(value != value)", ("tests/unit/events/test_items.py",)),
        ("items.py", "an error of another library is passed on", "    except Exception as error:\n        kind = type(error).__name__\n    # Not in", "    except ZeroDivisionError as error:\n        kind = type(error).__name__\n    # Not in", ("tests/unit/events/test_items.py", "tests/property/test_one_odd_row.py")),
        ("universe.py", "the element after the last is inside", "0 <= item - self.first < self.size else -1", "0 <= item - self.first <= self.size else -1", ("tests/unit/events/test_universe.py",)),
        ("universe.py", "a word outside of the range passes", "if (words >= np.uint64(self.size)).any():", "if (words > np.uint64(self.size)).any():", ("tests/unit/events/test_universe.py",)),
        ("times.py", "times without a zone are off by an hour", "known = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone.utc)", "known = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1)))", ("tests/unit/events/test_times.py",)),
        ("times.py", "the end of the years counts", "good = (seconds >= YEAR_1) & (seconds < _YEAR_10000)", "good = seconds >= YEAR_1", ("tests/unit/events/test_times.py",)),
        ("keys.py", "rows of groups that are not listed count for the first", "None if listed.all() else listed", "None", (GROUPS, "tests/unit/events/test_keys.py")),
        ("lookup.py", "a public table may have a key twice", "if len(pc.unique(keys)) < len(keys):", "if False:", ("tests/unit/events/test_lookup.py",)),
        ("lookup.py", "another table under the same charge id", "json.dumps([on, sorted(columns), rows], default=repr, ensure_ascii=False)", "json.dumps([on, sorted(columns)], default=repr, ensure_ascii=False)", ("tests/unit/events/test_lookup.py", REPLAYS)),
        ("one_pass.py", "an error of one count is lost", "        if failed is not None:\n            raise failed\n", "", ("tests/unit/events/test_one_pass.py",)),
        ("files.py", "a file without a name's format is text", 'if head.lstrip().startswith(b"{"):', 'if head.startswith(b"{ "):', (FILES,)),
        ("files.py", "lines are counted from 0", "partial(int, lines + 1)", "partial(int, lines)", (BAD_ROWS,)),
    ),
    *in_package(
        "service",
        ("streams.py", "a key may be used for another body", "        if found[0] != digest:\n", "        if False:\n", (SERVICE,)),
        ("streams.py", "a key that was counted counts again after more was read", "record.key in keys or record.key in self._fed_keys:", "record.key in keys:", (SMALL_RULES,)),
        ("streams.py", "how full the spool is can be told to the byte", "limit - _RANDOM.random() * _ROOM_SHARE * limit", "limit", (SMALL_RULES,)),
        ("streams.py", "events stay on disk after their tick", "        self._spool.remove_until(tick - carried)\n", "        pass\n", (SERVICE, SPOOL)),
        ("streams.py", "states of earlier ticks stay on disk", 'if path.name.endswith((".state", ".new")) and path.name != but:', 'if path.name.endswith(".new") and path.name != but:', (SERVICE, "tests/service/test_folder.py")),
        ("streams.py", "a definition may change", "        if changed:\n            raise ParameterError(\n                f\"the stream {self.name!r} has started, so", "        if False:\n            raise ParameterError(\n                f\"the stream {self.name!r} has begun", (SERVICE, "tests/service/test_folder.py")),
        ("streams.py", "a survey takes any number of reports at once", "        if self.reports + len(numbers) > most:\n", "        if False:\n", (LIMITS, SERVICE)),
        ("streams.py", "a report counts again after its tick", "lambda number: number in heard or aggregator.has(number))", "lambda number: number in heard)", (SERVICE,)),
        ("access.py", "a token is for all streams", "and self.stream in (None, stream)", "and True", (SERVICE, STRANGERS)),
        ("access.py", "who may send may read", "(self.scope == deed or (self.scope == \"admin\" and deed == \"read\"))", "(self.scope == deed or deed == \"read\")", (SERVICE, STRANGERS)),
        ("access.py", "strangers learn which streams exist", "        if caller.token is None:\n            raise _unknown()\n        if not caller.token.may(deed, name):", "        if caller.token is None and stream is not None:\n            raise _unknown()\n        if caller.token is not None and not caller.token.may(deed, name):", (SERVICE, STRANGERS)),
        ("access.py", "who was let in stays in", "(caller.token is not None and self._service.tokens.has(caller.token))", "caller.token is not None", (SERVICE, LIMITS)),
        ("uploads.py", "strangers share their keys", 'sender = caller.name.encode() if caller.token else b"\\0" + digest', "sender = caller.name.encode()", (STRANGERS, SERVICE)),
        ("uploads.py", "a body may be of any size", "                if held.size + len(piece) > most:\n", "                if False:\n", (SMALL_RULES,)),
        ("event_spool.py", "events are acknowledged before they are on disk", "                    view, at = view[written:], at + written\n                _to_disk(file)", "                    view, at = view[written:], at + written", (SPOOL, SYNCED)),
        ("event_spool.py", "others may read the events that wait", "os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)\n        self._open", "os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)\n        self._open", (SERVICE, "-k", "raw_events")),
        ("event_spool.py", "damage is taken for events", "yield (payload if zlib.crc32(payload) == crc else None), at", "yield payload, at", (SPOOL,)),
        ("event_spool.py", "what failed to be written is found later", "                self._uncut.add(tick)\n                with suppress(OSError):\n                    os.ftruncate(file, before)", "                with suppress(OSError):\n                    pass", (SMALL_RULES,)),
        ("folder.py", "a file of the service is not synced", "            os.fsync(file)\n", "            pass\n", (SYNCED, "tests/service/test_folder.py")),
        ("folder.py", "others may look into the folder", "folder.mkdir(mode=0o700", "folder.mkdir(mode=0o755", ("tests/service/test_folder.py", SERVICE)),
        ("runs.py", "midnight is in both days", "(times >= low) & (times < high)", "(times >= low) & (times <= high)", (SMALL_RULES,)),
        ("runs.py", "all that passed are shown, not k", "shown if k is None else shown[:k]", "shown", (SMALL_RULES,)),
        ("increases.py", "the sum of two intervals keeps the confidence of one", "round(2.0 * CONFIDENCE - 1.0, 10)", "CONFIDENCE", ("tests/service/test_increases_served.py",)),
        ("increases.py", "an increase takes the wrong end", 'now["lower"] - then["upper"] if then["upper"]', 'now["lower"] - then["lower"] if then["upper"]', (SMALL_RULES,)),
        ("increases.py", "an increase over two runs", ' and found[0]["run"] == found[1]["run"]:', ":", (SMALL_RULES,)),
        ("guard.py", "an error says what was sent", 'ProblemError(500, "Internal error")', 'ProblemError(500, "Internal error", str(error))', (SERVICE, LIMITS)),
        ("pan_stream.py", "all events are one element", "os.urandom(size) if arrival.key is None", "bytes(size) if arrival.key is None", (SMALL_RULES,)),
        ("pan_stream.py", "true counts are in memory", "self.accepted = self.refused = None", "self.accepted, self.refused = 0, None", (PAN_SERVICE,)),
    ),
    *in_package(
        "summaries",
        ("people.py", "weights of discovery are rounded up in lists", "np.floor(_WHOLE / np.sqrt(items))", "np.ceil(_WHOLE / np.sqrt(items) + 1)", (PEOPLE, PEOPLE_EXACT)),
        ("people.py", "values are not cut to the range", "cut = np.clip(values, self.low, self.high)", "cut = np.maximum(values, self.low)", (PEOPLE, SUMS, PEOPLE_EXACT)),
        ("people.py", "a person of a list has one item too many", "return np.asarray(rank < most_items)", "return np.asarray(rank <= most_items)", (PEOPLE, PEOPLE_EXACT)),
        ("people.py", "short vectors are made longer", "np.maximum(np.sqrt(squared_lengths), longest)", "np.sqrt(squared_lengths)", (PEOPLE, PEOPLE_EXACT)),
    ),
    *in_package(
        "central",
        ("person_vectors.py", "items that took no part may pass", "took_part = weights > 0", "took_part = weights >= 0", (PEOPLE, PEOPLE_EXACT)),
        ("person_vectors.py", "the second look has the noise of the first", "again = aimed + source.discrete_gaussian(calibration.sigma_of(SECOND_LOOK), len(weights))", "again = aimed + source.discrete_gaussian(sigma, len(weights))", (PEOPLE, PEOPLE_EXACT, *audited("PersonVectors"))),
        ("person_vectors.py", "of equals the place decides", "equals = equals[sorted(range(len(items)), key=lambda index: item_order(items[index]))]", "pass", (PEOPLE, PEOPLE_EXACT)),
        ("person_vectors.py", "lengths without noise", "noisy = (true + source.discrete_gaussian(sigma, len(edges))) / LENGTH", "noisy = (true + 0 * source.discrete_gaussian(sigma, len(edges))) / LENGTH", (PEOPLE, PEOPLE_EXACT, *audited("PersonVectors"))),
    ),
    *in_package(
        "continual",
        ("_people.py", "rows of nobody count", "rows = np.flatnonzero((people >= 0) & (items >= 0))\n        rows = rows[room", "rows = np.flatnonzero(items >= 0)\n        rows = rows[room", PEOPLE_OVER_TIME),
        ("_people.py", "a state with more items than allowed is read", "((held >= 0) & (held <= most)).all()", "(held >= 0).all()", PEOPLE_OVER_TIME),
        ("_people.py", "a state with other people is read", "    if header[\"most\"] != most or not", "    if not", PEOPLE_OVER_TIME),
    ),
    *in_package(
        "watch",
        ("ticks.py", "a row of the next tick counts in this one", "later = numbers > self.now\n", "later = numbers > self.now + 1\n", (TICKS,)),
        ("ticks.py", "one row may end many ticks", "if reached[i + 1] <= self.now + 1:", "if False:", (TICKS,)),
        ("ticks.py", "rows count again after a restart", "new = (batch.ends > self._again) | (numbers >= self._since)", "new = np.ones(len(numbers), bool)", (TICKS, "tests/e2e/test_watch.py")),
        ("ticks.py", "rows of a day that is over count in the next", "batch, numbers = batch.part(~over), numbers[~over]", "pass", (TICKS, "tests/unit/watch/test_days.py")),
        ("ticks.py", "times far ahead count", "early = batch.times > clock + self.rule.ahead", "early = batch.times > clock + 1e12", (TICKS,)),
        ("ticks.py", "a tick of rows is one row longer", "            if self._count == rows:\n", "            if self._count > rows:\n", (TICKS,)),
    ),
    *in_package(
        "questions",
        ("answer.py", "the budget is looked at after everything was read", "if payer.account is not None:  # before reading", "if False:  # before reading", (REPLAYS, "tests/unit/test_api.py", "tests/unit/questions/test_questions.py")),
        ("answer.py", "a charge stands for other files, too", "secret={**data.secret, \"request\": request})", "secret={\"request\": request})", (REPLAYS,)),
        ("question.py", "a row is hidden where a person was asked for", "    if question.whole_person and not isinstance(way.unit, User):\n", "    if False:\n", ("tests/unit/questions/test_questions.py", "tests/unit/questions/test_person_days.py")),
        ("bad_rows.py", "a repeated question forgets that its test refused", 'if payload is not None and json.loads(payload)["refused"]:', "if False:", ("tests/unit/questions/test_max_bad.py",)),
    ),
    Mutant("any ledger will do after a restart", "src/discreet/service/streams.py", "if account is None or (self.tick and not account.is_begun(self.charge_id(run))):",
           "if account is None:", (SMALL_RULES,), "the state of a stream knows its ledger, and refuses another one itself"),
    client("bias of a remainder", "const floor = (ONE64 - high) % high;", "const floor = 0n;"),
    client("rounded against privacy", "const other = ceilDiv(ONE64 * q, (1n << 192n) + q * k);", "const other = (ONE64 * q) / ((1n << 192n) + q * k);"),
    client("recorded randomness passes for private", "const version = 1 | (source.seeded ? 0x80 : 0);", "const version = 1;"),
    client("a shuffled report has its sender's number", "if (this.shuffled !== null && (number !== undefined || items.length > 1))", "if (false)"),
    client("a settled draw counts zero twice", 'const twice = this.sign === "unfolded" && negative && magnitude === 0n;', "const twice = false;", UNDECIDED),
    client("an undecided draw is accepted", 'if (verdict === "unknown") return { negative, known: true, bits, word: uniform, block: BigInt(block), offset };', "", UNDECIDED),
]  # fmt: skip

# Of a later list by chance: lines drawn from all rooms, changed before anyone looked at tests. These got through, and have tests since.
BY_CHANCE = [
    Mutant("one item of a person often has the cut of one row", "src/discreet/central/stability.py", "log_tail(rate, t + 1 - items)", "log_tail(rate, t + 1)", ("tests/exhaustive/test_second_opinion.py", "-k", "often")),
    Mutant('what a sketch may lose is one counter too much', 'src/discreet/central/_base.py', 'return float(length // (capacity + 1)), float(length // (capacity + 1))', 'return float(length // capacity), float(length // (capacity + 1))', ('tests/unit/central/test_preparation.py',)),
    Mutant('an item at the threshold is hidden', 'src/discreet/central/sketch_heavy_hitters.py', 'noisy - (offset or 0) >= self.threshold', 'noisy - (offset or 0) > self.threshold', ('tests/unit/central/test_sketch_heavy_hitters.py',)),
    Mutant('the shared noise of one listed item for all', 'src/discreet/continual/heavy_hitters.py', 'Fraction(error), max(1, listed))', 'Fraction(error), 1)', ('tests/unit/continual/test_heavy_hitters.py',)),
    Mutant('the first second of the year 10000 is a time', 'src/discreet/events/times.py', 'good = (whole >= YEAR_1) & (whole < _YEAR_10000)', 'good = (whole >= YEAR_1) & (whole <= _YEAR_10000)', ('tests/unit/events/test_times.py',)),
    Mutant('collisions of primes are left out of the interval', 'src/discreet/pan/incidence.py', 'extra = self._collision / 2 if 2.0**-tables', 'extra = 0.0 if 2.0**-tables', ('tests/unit/pan/test_questions.py',)),
    Mutant('the reach of residues is that of the best entry', 'src/discreet/pan/modular_incidence.py', 'np.fft.fft(g**2)).real.max())', 'np.fft.fft(g**2)).real.min())', ('tests/unit/pan/test_questions.py',)),
    Mutant('the worse of two mechanisms is chosen', 'src/discreet/questions/choose.py', 'kind = central.Offset if flat <= users else central.UserSketch', 'kind = central.Offset if flat >= users else central.UserSketch', ('tests/unit/test_api_users.py',)),
    Mutant('a replaced value is explained as an added row', 'src/discreet/releases/explain.py', 'if unit == "Replace" else "it was there"', 'if unit != "Replace" else "it was there"', ('tests/unit/releases/test_explain.py',)),
    Mutant('texts with equal digests are left out', 'src/discreet/summaries/linear_sketches.py', 'return min(1.0, float(self.total * digest', 'return 0.0 * min(1.0, float(self.total * digest', ('tests/unit/summaries/test_linear_sketches_unit.py',)),
    Mutant('an estimate of CountMin has no lower end of its own', 'src/discreet/summaries/linear_sketches.py', 'return Estimate(value, max(0, value - self._distance()), value)', 'return Estimate(value, value, value)', ('tests/unit/summaries/test_linear_sketches_unit.py',)),
    Mutant("half of the offsets' noise is left out of what is shown", "src/discreet/privacy/calibration/discovery.py", "d = np.arange(-reach, reach + 1, dtype=np.float64)", "d = np.arange(0, reach + 1, dtype=np.float64)", ("tests/exhaustive/test_second_opinion.py", "-k", "discover")),
    Mutant("people cost an account half of their rho", "src/discreet/central/person_vectors.py", "mu**2 / 2.0 * (1.0 + 1e-12)", "mu**2 / 4.0 * (1.0 + 1e-12)", ("tests/exhaustive/test_second_opinion.py", "-k", "cost")),
    Mutant("what lies outside of the blocks is left out of delta", "src/discreet/privacy/calibration/correlated_noise.py", "(1.0 + _ROUNDING) + self.outside)", "(1.0 + _ROUNDING))", ("tests/exhaustive/test_second_opinion.py", "-k", "outside")),
    Mutant("a stream longer than its public length is taken", "src/discreet/central/_base.py", "if isinstance(self.stream_length, int) and summary.total > self.stream_length:", "if False:", ("tests/unit/central/test_bad_input.py", "-k", "longer")),
]  # fmt: skip

# Drawn by a seed from every room: a file, a statement of it, and a slip. Tests were looked at afterwards.
DRAWN = [
    Mutant('a count of one unit has the noise of two', 'src/discreet/central/noisy_count.py', '        return 1\n\n    @cached_property\n    def noise', '        return 2\n\n    @cached_property\n    def noise', ('tests/unit/cli/test_init.py', '-k', 'explained')),
    Mutant('a length may have all of epsilon, or none', 'src/discreet/central/_base.py', '        if not 0.0 < share < 1.0:\n            raise ParameterError(f"length_share', '        if not 0.0 <= share <= 1.0:\n            raise ParameterError(f"length_share', ('tests/unit/central/test_bad_input.py',)),
    Mutant('a sum is of two sketches unless more are named', 'src/discreet/central/summed_entries.py', '    sketches: int = 1', '    sketches: int = 2', ('tests/unit/central/test_preparation.py',)),
    Mutant('one candidate fewer of each group', 'src/discreet/central/person_vectors.py', '            if seen[groups[index]] <= most:', '            if seen[groups[index]] < most:', ('tests/golden/test_commands_golden.py', '-k', 'groups')),
    Mutant('published mechanisms are planned beside questions', 'src/discreet/cli/plan.py', '    if published and (questions or people is not None):', '    if published and (questions and people is not None):', ('tests/e2e/test_cli_plan.py',)),
    Mutant('an internal error shows its words', 'src/discreet/cli/process.py', '    if os.environ.get("DISCREET_DEBUG"):', '    if not os.environ.get("DISCREET_DEBUG"):', ('tests/unit/cli/test_internal_errors.py',)),
    Mutant('all counts of a vector have one noise', 'src/discreet/continual/counter.py', 'self.factor.start(self.size or 1)', 'self.factor.start(1)', ('tests/unit/continual/test_counter.py',)),
    Mutant('parts of a state are read in another order', 'src/discreet/continual/heavy_hitters.py', 'for (part,) in header["parts"]]', 'for (part,) in reversed(header["parts"])]', ('tests/golden/test_continual_golden.py',)),
    Mutant('no base but 2', 'src/discreet/continual/histogram.py', '        self.base = whole_or_none("base", base, 2, max(2, self.horizon or MAX_HORIZON))', '        self.base = whole_or_none("base", base, 2, min(2, self.horizon or MAX_HORIZON))', ('tests/unit/continual/test_histogram_over_time.py',)),
    Mutant('a state whose last people hold nothing is refused', 'src/discreet/continual/_people.py', '        if (np.bincount(owners, minlength=number) != ', '        if (np.bincount(owners) != ', ('tests/unit/continual/test_people_over_time.py',)),
    Mutant('a column fewer for sums', 'src/discreet/engines/person_sums.py', 'listed or most + 1)', 'listed or most)', ('tests/unit/cli/test_init.py', '-k', 'runs_as')),
    Mutant('a person has one item fewer out of core', 'src/discreet/engines/duck_people.py', 'SELECT u, count(*) AS d FROM pairs GROUP BY u', 'SELECT u, count(*) - 1 AS d FROM pairs GROUP BY u', ('tests/unit/engines/test_people_in_duckdb.py',)),
    Mutant('folders that are in use are removed', 'src/discreet/engines/private_folder.py', '            if old.stat().st_uid == os.getuid() and (lock := _locked(old)) is not None:', '            if old.stat().st_uid == os.getuid() or (lock := _locked(old)) is not None:', ('tests/unit/engines/test_different_items.py',)),
    Mutant('pages of the first group for all', 'src/discreet/events/pages.py', 'for batch in others.of_group(group))', 'for batch in others.of_group(0))', ('tests/unit/events/test_pages.py',)),
    Mutant('a state at the start of its first file is refused', 'src/discreet/events/live_input.py', '        if files[0].start > position:', '        if files[0].start >= position:', ('tests/unit/events/test_follow.py',)),
    Mutant('two counts read their files twice', 'src/discreet/events/one_pass.py', '    if not isinstance(files, Files) or len(counts) < 2 or files.passes or files.query is not None:', '    if not isinstance(files, Files) or len(counts) < 3 or files.passes or files.query is not None:', ('tests/unit/events/test_one_pass.py',)),
    Mutant('a rectangle of any number of boxes', 'src/discreet/multiparty/grid.py', '    if boxes.most > _MAX_PARTS:', '    if False:', ('tests/unit/multiparty/test_grid.py',)),
    Mutant('cells of one column for all', 'src/discreet/multiparty/sketch_stream.py', 'return self.rows * (self.columns or 1)', 'return self.rows', ('tests/unit/multiparty/test_hierarchical_stream.py',)),
    Mutant('two liars reach as far as one in a local sketch', 'src/discreet/multiparty/local_sketch.py', 'most_of(largest, count)', 'most_of(largest, 1)', ('tests/unit/multiparty/test_hostile_messages.py',)),
    Mutant('half of the share is enough to be listed', 'src/discreet/multiparty/levels.py', 'threshold, complete = share * self.total, True', 'threshold, complete = share * self.total / 2, True', ('tests/unit/multiparty/test_hierarchical_stream.py',)),
    Mutant('an upper bound is rounded down', 'src/discreet/noise/enclosure.py', 'min((high >> shift) + 1, 1 << bits)', 'min(high >> shift, 1 << bits)', ('tests/unit/noise/test_enclosures.py',)),
    Mutant('the first class is lost', 'src/discreet/noise/selection.py', '    held = np.diff(ends[np.append(first[1:], len(order)) - 1], prepend=0)', '    held = np.diff(ends[np.append(first[1:], len(order)) - 1])', ('tests/unit/cli/test_init.py', '-k', 'runs_as')),
    Mutant('a response is kept too seldom', 'src/discreet/noise/response.py', 'keep = _ONE - (choices - 1) * other', 'keep = _ONE - choices * other', ('tests/unit/published/test_misra_gries_stream.py',)),
    Mutant('primes are drawn for the other method', 'src/discreet/pan/incidence.py', '    def _build(self, source: RandomSource) -> _native.PanTable:\n        if self._method == "primes":', '    def _build(self, source: RandomSource) -> _native.PanTable:\n        if self._method != "primes":', ('tests/unit/pan/test_questions.py',)),
    Mutant('the deviation of a sample without its factor 2', 'src/discreet/pan/modular_incidence.py', 'sample = math.sqrt(2 * v * log / m)', 'sample = math.sqrt(v * log / m)', ('tests/unit/pan/test_questions.py',)),
    Mutant('outputs are weighed as if there were one', 'src/discreet/pan/intervals.py', 'epsilon * s / releases)', 'epsilon * s)', ('tests/unit/pan/test_intervals.py',)),
    Mutant('the grid of one epsilon beside Gaussian noise', 'src/discreet/privacy/accounting.py', 'if len(epsilons) == 1 and not gaussian:', 'if len(epsilons) == 1:', ('tests/unit/privacy/test_accounting.py', '-k', 'one_epsilon')),
    Mutant('what is seeded is private', 'src/discreet/privacy/estimate.py', 'return self.guarantee is not None and not self.guarantee.seeded', 'return self.guarantee is not None', ('tests/unit/test_counting.py',)),
    Mutant('a cut one too high', 'src/discreet/privacy/calibration/tails.py', '    while high - low > 1:', '    while high - low > 2:', ('tests/unit/cli/test_init.py', '-k', 'explained')),
    Mutant('delta of one item for all items of a person', 'src/discreet/privacy/calibration/offset_cut.py', '_guaranteed(epsilon, t, whole_number("max_items", max_items))', '_guaranteed(epsilon, t, min(1, whole_number("max_items", max_items)))', ('tests/unit/privacy/test_calibration_laplace.py',)),
    Mutant('a delta that no cut can have is taken', 'src/discreet/privacy/calibration/discovery.py', '    if most == 0.0:', '    if False:', ('tests/unit/continual/test_discovery.py', '-k', 'no_cut')),
    Mutant('the first step of a charge is its last', 'src/discreet/privacy/ledger/event_log.py', 'ORDER BY number DESC LIMIT 1', 'ORDER BY number LIMIT 1', ('tests/unit/continual/test_counter.py',)),
    Mutant('moved accounts are open to older programs', 'src/discreet/privacy/ledger/event_log.py', 'version or EVENT_VERSION, at,', 'EVENT_VERSION, at,', ('tests/unit/privacy/test_ledger_moving.py',)),
    Mutant("a forked child has its parent's connection", 'src/discreet/privacy/ledger/idle_connections.py', 'return connection if process == os.getpid() else None', 'return connection', ('tests/unit/privacy/test_ledger_file.py', '-k', 'fork')),
    Mutant('Gaussian noise grows with the number of counters', 'src/discreet/published/gaussian_sparse.py', '    noise_growth: ClassVar[float] = 0.5', '    noise_growth: ClassVar[float] = 1.0', ('tests/unit/central/test_preparation.py',)),
    Mutant('two liars reach as far as one in a merged sketch', 'src/discreet/published/merged_sketch.py', 'most_of(largest, count)', 'most_of(largest, 1)', ('tests/unit/multiparty/test_hostile_messages.py',)),
    Mutant('a threshold that is just enough is refused', 'src/discreet/published/private_misra_gries.py', '        if self.threshold < self._exact_threshold():', '        if self.threshold <= self._exact_threshold():', ('tests/unit/engines/test_threads.py',)),
    Mutant('one row of a sketch is planned', 'src/discreet/questions/plans.py', '8 * collisions.width * collisions.depth', '8 * collisions.width', ('tests/golden/test_commands_golden.py', '-k', 'plan')),
    Mutant('each worker has all of the memory', 'src/discreet/questions/choose.py', 'memory, workers or 1)', 'memory, 1)', ('tests/unit/central/test_preparation.py',)),
    Mutant('a pair of a person and a day is a person', 'src/discreet/questions/count.py', 'data.rows(self, self.user, of_people=True)', 'data.rows(self, self.user)', ('tests/unit/questions/test_person_days.py',)),
    Mutant('bad rows are counted though nobody asked', 'src/discreet/questions/answer.py', 'counts_bad_rows: bool = False', 'counts_bad_rows: bool = True', ('tests/unit/questions/test_max_bad.py',)),
    Mutant('a replay forgets what was left out', 'src/discreet/privacy/estimate.py', '            return cls(fields["value"], fields["lower"], upper, guarantee, asked=asked, left_out=left_out, notes=notes)', "            return cls(fields['value'], fields['lower'], upper, guarantee, asked=asked, notes=notes)", ('tests/unit/releases/test_payment.py',)),
    Mutant('intervals of groups upside down', 'src/discreet/releases/group_list.py', 'rows[0], rows[1], rows[2], guarantee', 'rows[0], rows[2], rows[1], guarantee', ('tests/unit/questions/test_groups.py',)),
    Mutant('labels are cut on both sides', 'src/discreet/releases/labels.py', '        _both_ends(text, most) if len(text) > most and many[label] > 1 else label', '        _both_ends(text, most) if len(text) > most else label', ('tests/unit/releases/test_display.py',)),
    Mutant('a line above every row', 'src/discreet/releases/html.py', '        begins = bool(release.by) and texts[0] != ""', '        begins = bool(release.by) or texts[0] != ""', ('tests/unit/releases/test_display.py',)),
    Mutant('the clock waits for a stream', 'src/discreet/service/runtime.py', '                if stream.lock.acquire(blocking=False):', '                if stream.lock.acquire():', ('tests/service/test_limits.py', '-k', 'clock_does_not')),
    Mutant('others may look into a backup', 'src/discreet/service/backup.py', '                    make_folder(made)', '                    made.mkdir(exist_ok=True)', ('tests/service/test_backup.py',)),
    Mutant('an answer without its type', 'src/discreet/service/routes.py', '        return Response(shapes.HealthModel(status="ready").to_json(), media_type="application/json")', "        return Response(shapes.HealthModel(status='ready').to_json())", ('tests/service/test_interface.py',)),
    Mutant('a log line without its last tick', 'src/discreet/service/journal.py', '                tell(INFO, "ticks", f"stream {{stream}}: {which} out", stream=stream.name, first=before + 1, last=tick)', "                tell(INFO, 'ticks', f'stream {{stream}}: {which} out', stream=stream.name, first=before + 1)", ('tests/service/test_journal.py',)),
    Mutant('estimates of half the width', 'src/discreet/summaries/linear_sketches.py', 'estimates(prepare_column(items)), dtype=np.int64)', 'estimates(prepare_column(items)), dtype=np.int32)', ('tests/unit/summaries/test_linear_sketches_unit.py',)),
    Mutant('the limit of a control group is not looked at', 'src/discreet/summaries/memory.py', '    return min(sizes)', '    return max(sizes)', ('tests/unit/summaries/test_memory_room.py',)),
    Mutant('equal digests never fail an estimate', 'src/discreet/summaries/linear_sketches.py', 'min(1.0, math.exp(-self.depth) + self._string_failure())', 'min(1.0, math.exp(-self.depth))', ('tests/unit/summaries/test_linear_sketches_unit.py',)),
    Mutant('a wrong name is told twice', 'src/discreet/errors.py', '    return did_you_mean(name, known) or f"; use one of: {\', \'.join(map(str, known))}"', '    return did_you_mean(name, known) and f"; use one of: {\', \'.join(map(str, known))}"', ('tests/unit/questions/test_report.py',)),
    Mutant('digits of other scripts are a horizon', 'src/discreet/watch/ticks.py', 'isinstance(horizon, str) and horizon.isascii() and horizon.isdecimal()', 'isinstance(horizon, str) and horizon.isdecimal()', ('tests/unit/watch/test_ticks.py',)),
    Mutant('an increase over one tick fewer', 'src/discreet/watch/tasks.py', 'since = mechanism.tick - self.remember', 'since = mechanism.tick - self.remember + 1', ('tests/e2e/test_watch.py', '-k', 'increases')),
    Mutant('every run is a tick longer', 'src/discreet/watch/timetable.py', '+ _ticks(begins, ends, seconds))', '+ _ticks(begins, ends, seconds) + 1)', ('tests/unit/watch/test_days.py',)),
    Mutant('noise of any name', 'src/discreet/central/stability.py', '        if self.noise not in ("laplace", "gaussian"):', '        if False:', ('tests/unit/central/test_bad_input.py',)),
    Mutant('votes of places by people', 'src/discreet/central/_quantiles.py', '    pairs.add(people.astype(np.int32, copy=False), places.astype(np.int32, copy=False))', '    pairs.add(places.astype(np.int32, copy=False), people.astype(np.int32, copy=False))', ('tests/unit/test_quantiles.py',)),
    Mutant('shared noise is taken away', 'src/discreet/central/merged_counters.py', 'floor = counts + (halves >> 1)', 'floor = counts - (halves >> 1)', ('tests/unit/central/test_releases_of_one_state.py',)),
    Mutant('room for an item that is not there', 'src/discreet/continual/heavy_hitters.py', '        more = len(self.parts) - len(self.since)', '        more = max(1, len(self.parts) - len(self.since))', ('tests/unit/continual/test_any_horizon.py',)),
    Mutant('readers may change what was published', 'src/discreet/continual/counter.py', 'if self.size is None else self._last.copy()', 'if self.size is None else self._last', ('tests/unit/continual/test_sparse_choices.py',)),
    Mutant('whoever is chosen later has less noise', 'src/discreet/continual/_schemes.py', '                self._choose(total, tick, source)', '                self._choose(total, tick - 1, source)', ('tests/unit/continual/test_sparse_choices.py',)),
    Mutant('the last of equal pairs counts', 'src/discreet/engines/pairs.py', '_, first = np.unique(pairs, return_index=True)', '_, first = np.unique(pairs[::-1], return_index=True)', ('tests/unit/engines/test_pairs.py',)),
    Mutant('a key that is not there is looked for later', 'src/discreet/events/lookup.py', '    choose(data.schema.names, [lookup.on])', '    pass', ('tests/unit/events/test_lookup.py', '-k', 'refused_by_its_name')),
    Mutant('2**63 is an int64', 'src/discreet/events/universe.py', 'if low >= -(2**63) and high < 2**63:', 'if low >= -(2**63) and high <= 2**63:', ('tests/unit/events/test_universe.py',)),
    Mutant('states of parties get another number', 'src/discreet/multiparty/stream_party.py', 'PARTY_STATE = 201', 'PARTY_STATE = 202', ('tests/unit/multiparty/test_stream_steps.py',)),
    Mutant('the second half of a block is the third', 'src/discreet/multiparty/packets.py', 'Block(self.level - 1, 2 * self.j + 1)', 'Block(self.level - 1, 2 * self.j + 2)', ('tests/unit/multiparty/test_packets.py',)),
    Mutant('what was rejected is not told', 'src/discreet/multiparty/post.py', '            heard["rejected"].append({"file": str(path), "reason": reason, "text": str(error)})', '            pass', ('tests/unit/multiparty/test_post.py',)),
    Mutant('a response that tells nothing is taken', 'src/discreet/noise/response.py', '    if keep <= other:', '    if keep < other:', ('tests/unit/multiparty/test_multiparty_protocols.py',)),
    Mutant('an item at the cut is hidden', 'src/discreet/noise/places.py', '    shown = noisy >= cut', '    shown = noisy > cut', ('tests/unit/published/test_misra_gries_stream.py',)),
    Mutant('the most of all levels for each', 'src/discreet/pan/distinct_count.py', '        most = 0.999 * epsilon_output / np.maximum(weights.max(axis=1), 1e-300)', '        most = 0.999 * epsilon_output / np.maximum(weights.max(), 1e-300)', ('tests/unit/cli/test_explain.py',)),
    Mutant('any parameters were asked for', 'src/discreet/privacy/guarantee.py', '            and isinstance(made.parameters, dict)\n', '', ('tests/unit/questions/test_small_words.py',)),
    Mutant('powers of negative ratios with the other sign', 'src/discreet/privacy/calibration/tick_noise.py', '1.0 - (-1.0) ** terms * np.abs(ratio) ** terms', '1.0 + (-1.0) ** terms * np.abs(ratio) ** terms', ('tests/unit/continual/test_sparse_choices.py',)),
    Mutant('group privacy forgets a step', 'src/discreet/privacy/calibration/offset_cut.py', 'return epsilon - step + math.log(-math.expm1(-epsilon))', 'return epsilon + math.log(-math.expm1(-epsilon))', ('tests/unit/privacy/test_calibration_laplace.py',)),
    Mutant('a backup replaces what is there', 'src/discreet/privacy/ledger/sqlite.py', 'os.link(partial, goal)', 'os.replace(partial, goal)', ('tests/unit/privacy/test_ledger_file.py', '-k', 'backup')),
    Mutant('marks of a charge are those of its account', 'src/discreet/privacy/ledger/event_log.py', '2: ("marks", "account, charge_id")}', '2: ("marks", "account")}', ('tests/unit/privacy/test_ledger.py',)),
    Mutant('vectors of any numbers', 'src/discreet/published/inner_product.py', '        if array.dtype.kind not in "biu" or (array.size and (array.min() < 0 or array.max() > 1)):', '        if array.dtype.kind not in "biu":', ('tests/unit/published/test_inner_product.py',)),
    Mutant('an item just beyond the universe is read', 'src/discreet/published/merged_misra_gries_stream.py', 'int(np.asarray(raw.items).max()) >= self._size)', 'int(np.asarray(raw.items).max()) > self._size)', ('tests/unit/published/test_misra_gries_stream.py',)),
    Mutant('a range is what it came as', 'src/discreet/questions/sums.py', '        object.__setattr__(self, "range", tuple(map(_number, self.range)))', '        pass', ('tests/unit/questions/test_small_words.py',)),
    Mutant('a universe of any size at every tick', 'src/discreet/questions/live_question.py', 'if listed.size is None or listed.size > _MOST_LISTED:', 'if listed.size is None:', ('tests/unit/questions/test_small_words.py',)),
    Mutant('items of a person that are no number', 'src/discreet/questions/plans.py', '(positive_number("items_per_person", items_per_person),)', '(items_per_person,)', ('tests/unit/test_plan_people.py',)),
    Mutant('a belief is rounded down', 'src/discreet/releases/explain.py', 'share = math.ceil(1000.0', 'share = math.floor(1000.0', ('tests/unit/releases/test_explain.py',)),
    Mutant('a file without a name', 'src/discreet/releases/report_release.py', '    return re.sub(r"[^\\w]+", "-", title.lower()).strip("-")[:40] or "question"', '    return re.sub(r"[^\\w]+", "-", title.lower()).strip("-")[:40]', ('tests/unit/questions/test_small_words.py',)),
    Mutant('quantiles of a later version are read', 'src/discreet/releases/estimate_table.py', 'if told["release"] != cls.stored_as or told["version"] != 1:', 'if told["release"] != cls.stored_as:', ('tests/unit/questions/test_small_words.py',)),
    Mutant('a service that lost its folder goes on', 'src/discreet/service/server.py', 'service.when_lost = lambda: loop.call_soon_threadsafe(server.stop)', 'service.when_lost = lambda: None', ('tests/service/test_folder.py',)),
    Mutant('anything is a state', 'src/discreet/summaries/counters.py', '        if not isinstance(data, (bytes, bytearray, memoryview)):', '        if False:', ('tests/unit/summaries/test_what_is_a_state.py',)),
    Mutant('a state that was replaced is written', 'src/discreet/storage.py', 'if now is None or (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino):', 'if now is None:', ('tests/unit/test_storage.py',)),
    Mutant('a run is final while it goes on', 'src/discreet/watch/watcher.py', '"final": self.run.is_over}', '"final": not self.run.is_over}', ('tests/unit/watch/test_days.py',)),
    Mutant('another universe goes on with a state', 'src/discreet/watch/tasks.py', 'listed = None if self.universe is None else sha256(json.dumps(self.universe).encode()).hexdigest()', 'listed = None', ('tests/e2e/test_watch_people.py',)),
]  # fmt: skip

# Drawn by `random_changes.py`: what survived its first lists and has a test since.
SLIPS = [
    Mutant("numbers of nobody's rows are a person's", "src/discreet/engines/amounts.py", "good &= owner >= 0", "good &= owner >= -1", ("tests/property/test_rows_of_nobody.py",)),
    Mutant("pairs of nobody are a person's", "src/discreet/engines/pairs.py", "some[(owners >= 0) & (places >= 0)]", "some[places >= 0]", ("tests/property/test_rows_of_nobody.py",)),
    Mutant("a histogram by group hides one item of a person", "src/discreet/questions/histogram.py", "range(groups * items), unit, self.max_items)", "range(groups * items), unit, self.max_items and 1)", ("tests/unit/questions/test_histogram_by_group.py",)),
    Mutant("kinds of objects are published", "src/discreet/questions/top.py", "            if rows.feeds_kinds:\n", "            if False:\n", ("tests/unit/test_api_users.py",)),
    Mutant('the interval of a ladder leaves out the sample', 'src/discreet/pan/heavy_fraction.py', '(max(means) - min(means)) ** 2', '(min(means) - min(means)) ** 2', ('tests/unit/pan/test_ladder.py',)),
    Mutant('the increase of a number is one of 90 %', 'src/discreet/watch/tasks.py', '"confidence": 0.95, "value": int(risen.value)', '"confidence": 0.9, "value": int(risen.value)', ('tests/e2e/test_watch.py', '-k', 'leave_a_window')),
    Mutant('an increase of a window is cut at infinity', 'src/discreet/watch/tasks.py', 'else -math.inf', 'else math.inf', ('tests/e2e/test_watch.py', '-k', 'leave_a_window')),
    Mutant('two long names have one holder', 'src/discreet/privacy/ledger/accounts.py', 'return f"holder of {what}"[:200]', 'return f"holder of {what}"[:199]', ('tests/unit/privacy/test_ledger_names.py',)),
    Mutant('a week is a seventh of a day', 'src/discreet/privacy/ledger/accounts.py', 'return number * (7 if unit == "week" else 1)', 'return number / (7 if unit == "week" else 1)', ('tests/unit/privacy/test_ledger_periods.py', '-k', 'renews_after')),
    Mutant('narrow noises beside wide ones have no tail', 'src/discreet/privacy/calibration/gaussian.py', 'if not large.all():', 'if not large.any():', ('tests/unit/privacy/test_calibration_gaussian.py', '-k', 'many_changes')),
    Mutant('a tick that is saved late is not in the ledger', 'src/discreet/watch/tasks.py', '            save(*self._unsaved)\n            self.settle()', '            save(*self._unsaved)', ('tests/unit/watch/test_failed_saves.py',)),
    Mutant('an argument is looked for that is not there', 'src/discreet/engines/sql.py', 'if place is not None and len(given) > max(place, 1):', 'if place is not None and len(given) >= max(place, 1):', ('tests/unit/engines/test_conditions.py', '-k', 'too_few')),
    Mutant('a universe of 2^20 items is not listed', 'src/discreet/multiparty/aggregator.py', 'size is not None and size <= MOST_LISTED', 'size is not None and size < MOST_LISTED', ('tests/unit/multiparty/test_consistent_estimates.py', '-k', 'listed')),
    Mutant('a schema of a database is refused', 'src/discreet/engines/sql.py', '        known |= {"schema_name"}\n', '', ('tests/unit/events/test_event_refusals.py', '-k', 'schema')),
    Mutant('noise reaches one less', 'src/discreet/multiparty/party_sketches.py', 'return math.ceil(Fraction(451, 10) * scale)', 'return math.floor(Fraction(451, 10) * scale)', ('tests/unit/multiparty/test_answers.py', '-k', 'reach')),
    Mutant('words keep their braces', 'src/discreet/errors.py', 'spelling(found[1])', 'spelling(found[0])', ('tests/unit/test_error_words.py',)),
    Mutant('the mean of a sum of noises is another', 'src/discreet/central/sketch_heavy_hitters.py', 'math.sinh(t / 2.0)', 'math.sinh(t / 2.5)', ('tests/unit/central/test_sketch_heavy_hitters.py', '-k', 'chernoff')),
    Mutant('a release for another max_count is taken', 'src/discreet/pan/occurrences.py', 'if unbiased.shape != (self._max_count,) or covariance.shape != (self._max_count, self._max_count):', 'if False:', ('tests/unit/test_altered_states.py', '-k', 'Occurrences')),
    Mutant("an oracle's item at the cut is not listed", 'src/discreet/published/oracle_heavy_hitters.py', '[estimate >= cut for estimate', '[estimate > cut for estimate', ('tests/property/test_cuts.py', '-k', 'oracle')),
    Mutant('what is told of items is in the order of a set', 'src/discreet/continual/heavy_hitters.py', 'enumerate(sorted({*lacking}))', 'enumerate(list({*lacking}))', ('tests/unit/continual/test_heavy_hitters.py', '-k', 'order_not')),
    Mutant('a plan takes any branching', 'src/discreet/multiparty/round_plan.py', '        levels_of(Universe.of(law.universe), branching)\n', '', ('tests/unit/test_ranges.py', '-k', 'branching')),
    Mutant('a period of no day is one', 'src/discreet/privacy/spans.py', 'if after <= first:', 'if after < first:', ('tests/unit/test_refusals.py', '-k', 'period')),
    Mutant('a party told the inverse of its share', 'src/discreet/multiparty/post.py', '{100 * part:.0f}% of them', '{100 / part:.0f}% of them', ('tests/unit/multiparty/test_answers.py',)),
    Mutant('a histogram without a margin has one', 'src/discreet/continual/histogram.py', 'if isinstance(self._scheme, Sparse) else 0', 'if isinstance(self._scheme, Sparse) else 1', ('tests/unit/continual/test_bounds_and_margin.py', '-k', 'alone')),
    Mutant('few counters for many items', 'src/discreet/central/_base.py', '_power_of_two(max(2 * k, items, 16))', '_power_of_two(min(2 * k, items, 16))', ('tests/unit/questions/test_chosen_sizes.py',)),
    Mutant('questions take their words by place', 'src/discreet/questions/question.py', '@dataclass(frozen=True, kw_only=True)\nclass Question(', '@dataclass(frozen=True, kw_only=False)\nclass Question(', ('tests/unit/questions/test_chosen_sizes.py', '-k', 'by_name')),
    Mutant('uptime counts from the start of the machine', 'src/discreet/service/catalogue.py', 'time.monotonic() - service.begun', 'time.monotonic() + service.begun', ('tests/service/test_service_refusals.py', '-k', 'how_long')),
]  # fmt: skip

LISTS = {"reported": REPORTED, "everywhere": EVERYWHERE, "by chance": BY_CHANCE, "drawn": DRAWN, "slips": SLIPS,
         "reviewed": REVIEWED, "mistaken": MISTAKES, "again": AGAIN, "once more": ONCE_MORE}  # fmt: skip
ROOMS: list[Mutant] = [mutant for each in LISTS.values() for mutant in each if mutant.tests]
