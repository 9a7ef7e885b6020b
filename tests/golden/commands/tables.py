"""The files that the pinned commands read: small, the same everywhere, with what real files have.

600 people, 6,000 rows of visits in CSV, Parquet and JSON lines; lists, baskets, a web server's log, empty cells, odd
lines, and files that are damaged. Numbers come from a recurrence of our own, so no library can change them.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS, PEOPLE, PAGES = 6000, 600, 40
COUNTRIES = ("de", "fr", "in", "us", "br")


class Numbers:
    """A linear congruence: the same numbers on every machine."""

    def __init__(self, seed):
        self._state = seed

    def below(self, end):
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % end

    def skewed(self, end):
        """Small numbers are more frequent than large ones."""
        return self.below(1 + self.below(1 + self.below(end)))


def visits():
    """Rows as dictionaries: about a week from Monday 2025-06-02, in order of time."""
    numbers = Numbers(2026)
    for row in range(ROWS):
        person = numbers.skewed(PEOPLE) if row % 3 else row // 3 % PEOPLE
        seconds = row * 100
        day, rest = divmod(seconds, 86400)
        yield {
            "page": f"/p{numbers.skewed(PAGES)}",
            "visitor": f"v{person:03}",
            "country": COUNTRIES[numbers.skewed(len(COUNTRIES))],
            "ts": f"2025-06-{2 + day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z",
            "ms": 5 + numbers.skewed(2000),
            "status": (200, 200, 200, 404, 500)[numbers.below(5)],
        }


def write_tables(folder):
    """Write all files into a folder."""
    folder = Path(folder)
    rows = list(visits())
    names = list(rows[0])
    lines = [",".join(str(row[name]) for name in names) for row in rows]

    def write(name, lines):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    write("visits.csv", [",".join(names), *lines])
    write("first.csv", [",".join(names), *lines[:3000]])
    write("second.csv", [",".join(names), *lines[3000:]])
    write("bare.csv", lines)
    write("semicolons.csv", [";".join(names), *(line.replace(",", ";") for line in lines)])
    write("visits.jsonl", [json.dumps(row) for row in rows])
    table = pa.table({name: [row[name] for row in rows] for name in names})
    pq.write_table(table, folder / "visits.parquet", row_group_size=2000)
    write("pages.txt", [row["page"] for row in rows])
    write(
        "holes.csv",
        ["page,visitor,ms"]
        + [
            f"{'' if n % 10 == 3 else row['page']},{row['visitor']},{'fast' if n % 50 == 7 else row['ms']}"
            for n, row in enumerate(rows)
        ],
    )
    log = '{0}.0.0.{1} - - [02/Jun/2025:10:00:00 +0000] "GET {2} HTTP/1.1" {3} {4} "-" "agent"'
    write(
        "access.log",
        [
            log.format(10, int(row["visitor"][1:]) % 256, row["page"], row["status"], row["ms"])
            if n % 500 != 250
            else "not a line of a log"
            for n, row in enumerate(rows[:3000])
        ],
    )
    lists = {}
    for row in rows:
        have = lists.setdefault(row["visitor"], [])
        if row["page"] not in have:
            have.append(row["page"])
    persons = [lists[person] for person in sorted(lists)]
    write("baskets.txt", [" ".join(items) for items in persons])
    pq.write_table(pa.table({"pages": pa.array(persons, pa.list_(pa.string()))}), folder / "lists.parquet")
    write("universe.txt", [f"/p{n}" for n in range(PAGES)])
    write("countries.txt", ["de", "fr", "jp"])
    write("votes.txt", [str(n % 7) for n in range(500)])
    write("numbers.csv", ["n", *(row["ms"] % 16 for row in rows)])
    write("growing.csv", [",".join(names), *lines[:2401]])
    (folder / "empty.csv").write_bytes(b"")
    (folder / "damaged.parquet").write_bytes((folder / "visits.parquet").read_bytes()[:-50])
    (folder / "text.parquet").write_bytes(b"this is no Parquet\n")
    (folder / "other.json").write_text('{"hello": 1}\n')
    (folder / "damaged.state").write_bytes(b"no state at all")
    (folder / "damaged.sqlite").write_bytes(b"no ledger at all" * 100)
