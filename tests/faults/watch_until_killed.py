"""Run a watch again and again, killed at random moments, until its ticks are used up. Prints how often it was killed.

Each run is a forked child, so that a hundred kills take seconds. A child is killed either by the clock, which hits
the middle of a system call too, or by itself at a random executed line, which does not depend on how fast the machine
is: the first one always is, so that there is a kill to speak of. Called by test_watch.py.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import discreet as dc
from discreet.continual import HeavyHitters
from discreet.events.live_input import LiveInput
from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.ledger import Ledger
from discreet.storage import locked
from discreet.watch.tasks import TopItems
from discreet.watch.ticks import Rule
from discreet.watch.watcher import Watcher

BUDGET = dc.Budget(400.0, 1e-2)
LINES_OF_A_TICK = 1500  # about; only how many ticks lie between two kills depends on it


def kill_after(lines: int) -> None:
    """Let this process kill itself when it has executed so many more lines of Python."""
    left = lines

    def count(frame, event, argument):
        nonlocal left
        left -= event == "line"
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    sys.settrace(count)


def child(folder: Path, ledger: str, horizon: int) -> None:
    out = os.open(folder / "out.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    reader = LiveInput(str(folder / "rows.txt"), "text", None, None, needs_items=True)
    payer = Ledger(ledger).account("rows")
    with locked(folder / "state") as kept:
        watcher = Watcher.open(kept, TopItems(horizon, 16), BUDGET, payer, reader, Rule(rows=10))
        for result in watcher.releases(once=True):
            shown = {item["item"]: item["count"] for item in result["items"]}
            os.write(out, (repr((result["tick"], sorted(shown.items()))) + "\n").encode())


def main() -> None:
    folder, ledger, horizon, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)
    # What a child would import, and the tables it would make, before it gets anywhere.
    warm = HeavyHitters(horizon, BUDGET, 16)
    warm.step(["a"]).to_dict()
    Tally.of([Charge.of(BUDGET)]).fits(BUDGET)
    kills = idle = printed = 0
    while True:
        # Longer while nothing comes of it, so that a slow machine gets there too.
        patience = chance.random() * 1.3**idle
        by_line = kills == 0 or chance.random() < 0.5
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if by_line:
                    kill_after(int(patience * 5 * LINES_OF_A_TICK))
                child(folder, ledger, horizon)
                status = 0
            finally:
                os._exit(status)
        if not by_line:
            time.sleep(patience * 0.05)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                sys.exit("a run failed")
            break
        kills += 1
        size = (folder / "out.jsonl").stat().st_size if (folder / "out.jsonl").exists() else 0
        idle, printed = (idle + 1, printed) if size == printed else (0, size)
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main()
