"""Many processes on one ledger, and processes killed without warning."""

import json
import os
import subprocess
import sys
from collections import defaultdict

import pytest

import discreet as dc

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the scripts below fork")

# Forks 20 children that all start on one signal; each charges until it is refused, and reports what was accepted.
RACE = """
import os, sys
import discreet as dc

path, children = sys.argv[1], int(sys.argv[2])
warm = dc.Ledger("warm")                          # load everything once, before forking: a refusal needs most
warm.grant("searches", dc.Budget(0.125))
try:
    warm.account("searches").charge(dc.Budget(1.0))
except dc.BudgetExceededError:
    pass
go = os.pipe()
for child in range(children):
    if os.fork() == 0:
        os.close(go[1])
        os.read(go[0], 1)                         # returns when the parent closes its end
        account = dc.Ledger(path).account("searches")
        accepted = 0
        try:
            while True:
                day = {"unit": dc.User(per="1d"), "period": sys.argv[3]} if sys.argv[3:] else {}
                account.charge(dc.Budget(0.125), charge_id=f"{child}-{accepted}", **day)
                accepted += 1
        except dc.BudgetExceededError:
            os.write(1, f"{child} {accepted}\\n".encode())
            os._exit(0)
        except BaseException as error:
            os.write(1, f"{child} {error!r}\\n".encode())
        os._exit(1)
os.close(go[1])
codes = [os.waitpid(-1, 0)[1] for _ in range(children)]
sys.exit(max(codes) != 0)
"""

# Forks children that all ask for the same charge id and print the release they would publish.
SAME_ID = """
import os, sys
import discreet as dc

path, children = sys.argv[1], int(sys.argv[2])
go = os.pipe()
for child in range(children):
    if os.fork() == 0:
        os.close(go[1])
        os.read(go[0], 1)
        account = dc.Ledger(path).account("searches")
        release = account.begin("monday", dc.Budget(1.0))
        if release is None:
            release = account.store("monday", os.urandom(8).hex().encode())
        os.write(1, release + b"\\n")
        os._exit(0)
os.close(go[1])
sys.exit(max(os.waitpid(-1, 0)[1] for _ in range(children)) != 0)
"""

# Forks children that are copies of one state: each draws its own version of every step and goes on only from its own.
FORKED_STATES = """
import os, sys
import discreet as dc

path, children, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
go = os.pipe()
for child in range(children):
    if os.fork() == 0:
        os.close(go[1])
        os.read(go[0], 1)
        account = dc.Ledger(path).account("searches")
        previous = None
        for number in range(1, steps + 1):
            token = os.urandom(8).hex()
            try:
                stored = account.store_step("stream", number, token, token.encode(), previous=previous)
            except dc.LedgerError:
                os._exit(0)                       # this copy's past was not published
            os.write(1, f"{number} {stored.token} {stored.payload.decode()}\\n".encode())
            previous = token                      # as a careless state would: its own token, published or not
        os._exit(0)
os.close(go[1])
sys.exit(max(os.waitpid(-1, 0)[1] for _ in range(children)) != 0)
"""

# Two children at a time make releases under ids day 0, day 1, ... and publish each by writing it to a file in one
# write; both are killed after a random delay, and the next two retry from a random earlier day. At last one process
# that is left alone goes through all days.
KILL = """
import json, os, random, signal, sys, time
from datetime import date, timedelta
import discreet as dc

path, other, rounds, by_day = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:] == ["by day"]
unit = {"unit": dc.User(per="1d")} if by_day else {}
published = os.open("published", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
generator = random.Random(11)
kills = 0
warm = dc.Ledger(other)                           # load everything once, before forking
warm.grant("searches", dc.Budget(1.0))
pace = 0.15                                       # at most: a slow disk makes it no longer
for day in range(5):
    started = time.monotonic()
    warm.account("searches").begin(f"day {day}", dc.Budget(0.125))
    warm.account("searches").store(f"day {day}", b"release")
    pace = min(pace, time.monotonic() - started)

def work(day, last=10**9):
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(1000.0), **unit)
    while day < last:
        account = ledger.account("searches")
        about = {**unit, "period": str(date(2026, 1, 1) + timedelta(day))} if by_day else {}
        release = account.begin(f"day {day}", dc.Budget(0.125), **about)
        if release is None:
            release = account.store(f"day {day}", os.urandom(8).hex().encode())
        os.write(published, json.dumps([f"day {day}", release.decode()]).encode() + b"\\n")
        day += 1

for round in range(rounds):
    children = []
    start = max(0, round - generator.randrange(4))
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                work(start)
            except BaseException as error:
                os.write(2, f"{error!r}\\n".encode())
            os._exit(1)
        children.append(child)
    time.sleep(generator.uniform(0.0, 5 * pace))
    if not os.path.getsize("published"):
        pace *= 1.1                               # slower than it was alone: they get there, too
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        status = os.waitpid(child, 0)[1]
        kills += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
print(kills, os.path.getsize("published") > 0)
work(0, rounds)
"""


@pytest.fixture
def path(new_ledger):
    return str(new_ledger())


@pytest.fixture
def run(tmp_path):
    def start(script, *arguments):
        # Accounts are large here, and are warned of.
        command = [sys.executable, "-W", "ignore:epsilon=", "-c", script, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        return done.stdout.splitlines()

    return start


def test_twenty_processes_never_overspend_an_account(path, run):
    dc.Ledger(path).grant("searches", dc.Budget(4.0))
    accepted = [int(line.split()[1]) for line in run(RACE, path, 20)]
    assert len(accepted) == 20
    assert sum(accepted) == 32  # 4.0 / 0.125: all of the budget and not a charge more
    charges = [event for event in dc.Ledger(path).account("searches").history() if event.kind == "charge"]
    assert len(charges) == 32
    dc.Ledger(path).verify()


def test_twenty_processes_never_overspend_a_day(path, run):
    """Another day has the whole grant, whatever was spent about the first."""
    ledger, day = dc.Ledger(path), dc.User(per="1d")
    ledger.grant("searches", dc.Budget(4.0), unit=day)
    account = ledger.account("searches")
    account.charge(dc.Budget(2.0), unit=day, period=("2026-11-14", "2026-11-15"))
    assert sum(int(line.split()[1]) for line in run(RACE, path, 20, "2026-11-15")) == 16
    left = [account.statement(f"2026-11-{number}").remaining.epsilon for number in (14, 15, 16)]
    assert left == [2.0, 0.0, 4.0]
    ledger.verify()


def test_processes_with_one_charge_id_publish_one_release(path, run):
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(1.0))
    releases = run(SAME_ID, path, 12)
    assert len(releases) == 12
    assert len(set(releases)) == 1
    assert [event.kind for event in ledger.history()] == ["grant", "charge", "release"]


def test_copies_of_a_state_publish_one_version_of_every_step(path, run):
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(1.0))
    ledger.account("searches").begin("stream", dc.Budget(1.0))
    published = defaultdict(set)
    for line in run(FORKED_STATES, path, 12, 8):
        number, token, payload = line.split()
        assert token == payload
        published[int(number)].add(token)
    assert {number: len(tokens) for number, tokens in published.items()} == dict.fromkeys(range(1, 9), 1)
    steps = [event for event in ledger.history() if event.kind == "step"]
    assert [event.details["number"] for event in steps] == list(range(1, 9))
    assert all({event.details["token"]} == published[event.details["number"]] for event in steps)


def test_processes_may_race_to_make_the_ledger(path, run):
    script = """
import os, sys
import discreet as dc
go = os.pipe()
for child in range(12):
    if os.fork() == 0:
        os.close(go[1])
        os.read(go[0], 1)
        dc.Ledger(sys.argv[1]).grant("searches", dc.Budget(1.0))
        os._exit(0)
os.close(go[1])
sys.exit(max(os.waitpid(-1, 0)[1] for _ in range(12)) != 0)
"""
    run(script, path)
    assert [event.kind for event in dc.Ledger(path).history()] == ["grant"]


@pytest.mark.parametrize(("rounds", "by_day"), [(110, False), (30, True)])
def test_kill_nine_never_publishes_what_was_not_charged(path, new_ledger, run, tmp_path, rounds, by_day):
    """Two kills a round at random moments of grant, charge, store and publish; of person-days, each day by itself."""
    assert run(KILL, path, new_ledger(), rounds, *(["by day"] if by_day else [])) == [f"{2 * rounds} True"]
    dc.Ledger(path).verify()
    ledger = dc.Ledger(path)
    ids = defaultdict(set)
    with open(tmp_path / "published") as file:
        for line in file:
            charge_id, release = json.loads(line)
            ids[charge_id].add(release)
    assert len(ids) >= rounds
    history = ledger.history()
    charged = {event.charge_id: event.seq for event in history if event.kind == "charge"}
    stored = {event.charge_id: event for event in history if event.kind == "release"}
    for charge_id, releases in ids.items():
        assert len(releases) == 1  # a retry published the same release, not a second draw
        assert charged[charge_id] < stored[charge_id].seq
        assert ledger.release_payload(stored[charge_id]).decode() in releases
    account = ledger.account("searches")
    if by_day:  # a restored backup knows every day, too
        ledger.backup(tmp_path / "backup.sqlite")
        for each in (account, dc.Ledger(tmp_path / "backup.sqlite").account("searches")):
            assert each.spent().epsilon == 0.125
            assert each.statement("2026-01-07").spent.epsilon == 0.125
            assert each.statement("2025-12-31").spent.epsilon == 0.0
        return
    assert account.spent().epsilon == 0.125 * len(charged)
    # What a killed process had charged but not stored is still good for one release.
    for charge_id in set(charged) - set(stored):
        assert account.begin(charge_id, dc.Budget(0.125)) is None
