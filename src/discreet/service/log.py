"""What a service writes to its log: a sentence for people, and the same as fields for machines.

No line has an item, an address or a true count in it (see `journal`).
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any

log = logging.getLogger("discreet.service")


def tell(level: int, event: str, sentence: str, **facts: Any) -> None:
    """Write one line: `sentence` has the places {stream}, {reasons}, ... of `facts`."""
    log.log(level, "%s", sentence.format(**facts), extra={"facts": {"event": event, **facts}})


class LogLines(logging.Formatter):
    """One JSON object a line: time, level, event, the fields of the event, and the sentence as `message`."""

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{when}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        line |= getattr(record, "facts", {"event": "message"})
        return json.dumps({**line, "message": record.getMessage()})
