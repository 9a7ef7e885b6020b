"""What this host has seen of a ledger that is kept elsewhere: its last event, in a small file.

A database that was put back from a backup, or taken over by a standby that had not heard of the last commits, is whole:
nothing inside tells that its end is missing. Anyone who saw that end can tell. So a process remembers the last event
that it wrote, in memory and in a file of its user, and refuses to write to a log that does not have it any more.
Hosts that never wrote cannot tell, and neither can those whose file is gone (docs/reliability.md, "A ledger that
forgets").
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from contextlib import suppress
from pathlib import Path

from discreet.errors import LedgerError
from discreet.privacy.ledger.event_log import LogReader


class Witness:
    """The last event of the ledger at a place that this host saw."""

    def __init__(self, place: str) -> None:
        self._place = place
        name = hashlib.sha256(place.encode()).hexdigest()[:32]
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        self.file = Path(state) / "discreet" / "ledgers" / f"{name}.json"
        self._seen = (0, "")

    def check(self, log: LogReader) -> None:
        """Raise LedgerError if the log has forgotten what was seen."""
        for seq, digest in {self._seen, self._written()}:
            if seq and log.end != (seq, digest) and not log.has(seq, digest):
                raise LedgerError(
                    f"the ledger {self._place} has lost events: this host saw its event {seq}, and it ends at "
                    f"{log.end[0]} or has another one there. It was restored from a backup, or a standby took over "
                    "without the last commits. Charge again what was lost (docs/reliability.md), then remove "
                    f"{self.file}"
                )

    def saw(self, log: LogReader) -> None:
        """Remember the end of a log that was committed. A file that cannot be written is done without."""
        if log.end == self._seen:
            return
        self._seen = log.end
        with suppress(OSError):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._written()[0] < self._seen[0]:
                partial = self.file.with_suffix(f".{uuid.uuid4().hex}")
                partial.write_text(json.dumps({"place": self._place, "seq": self._seen[0], "digest": self._seen[1]}))
                partial.replace(self.file)

    def _written(self) -> tuple[int, str]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            known = json.loads(self.file.read_text())
            return int(known["seq"]), str(known["digest"])
        return 0, ""
