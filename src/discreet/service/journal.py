"""What a running service tells its operator: where streams begin, which ticks are out, what is refused, what is late.

A line is a sentence for people, and the same as fields for machines.

No item, no address and no true count is in it: of refusals the reasons, not how many. Of a pan stream it says what
follows from the clock alone: that something was refused tells that somebody was there.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from logging import ERROR, INFO, WARNING
from typing import TYPE_CHECKING, Any

from discreet.watch.timetable import moment

if TYPE_CHECKING:
    from discreet.service.streams import LiveStream

_SAY_SECONDS = 60.0  # between two lines about ticks, and about refusals, of a stream


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


class Journal:
    """The lines of one service. What repeats is said once a minute, what changes at once."""

    def __init__(self) -> None:
        self._said = -_SAY_SECONDS
        self._ticks: dict[str, int] = {}  # that were told
        self._late: set[str] = set()
        self._damaged: dict[str, int] = {}
        self._reasons: dict[str, set[str]] = {}

    def begin(self, stream: LiveStream) -> None:
        """A stream is served from now on."""
        self._ticks[stream.name] = stream.tick
        where = "begins" if stream.tick == 0 else f"goes on after tick {stream.tick}"
        kind = stream.definition.kind + (", pan" if stream.definition.trust == "pan" else "")
        is_daily = stream.definition.per is not None
        last = stream.span if is_daily else stream.timetable.run(int(stream.runs))
        what = "it begins anew" if is_daily else f"its {last.last} ticks end"
        sentence = f"stream {{stream}} ({{kind}}) {where}; {what} at {{ends}}"
        tell(INFO, "start", sentence, stream=stream.name, kind=kind, tick=stream.tick, ends=moment(last.ends))

    def refused(self, stream: LiveStream, reason: str) -> None:
        """Note why a request was refused."""
        if stream.definition.trust != "pan":
            self._reasons.setdefault(stream.name, set()).add(reason)

    def look(self, streams: Iterable[LiveStream]) -> None:
        """Say what is new."""
        listed = list(streams)
        for stream in listed:
            self._look_at(stream)
        now = time.monotonic()
        if now - self._said >= _SAY_SECONDS:
            self._said = now
            self.say(listed)

    def _look_at(self, stream: LiveStream) -> None:
        if stream.spool_damaged > self._damaged.get(stream.name, 0):
            self._damaged[stream.name] = stream.spool_damaged
            sentence = (
                "stream {stream}: the spool is damaged (disk or file system?): requests that were acknowledged cannot "
                "be read and are left out; the others count"
            )
            tell(ERROR, "damage", sentence, stream=stream.name)
        if stream.is_late and stream.name not in self._late:
            self._late.add(stream.name)
            late = round(stream.lag_seconds, 1)
            tell(WARNING, "late", f"stream {{stream}} is late: {stream.delay}", stream=stream.name, lag_seconds=late)
        elif not stream.is_late and stream.name in self._late:
            self._late.discard(stream.name)
            tell(INFO, "on time", "stream {stream} is on time again", stream=stream.name)

    def say(self, streams: Iterable[LiveStream]) -> None:
        """Say what has come together."""
        for stream in streams:
            before, tick = self._ticks.get(stream.name, 0), stream.tick
            if tick > before:
                which = f"tick {tick} is" if tick == before + 1 else f"ticks {before + 1} to {tick} are"
                tell(INFO, "ticks", f"stream {{stream}}: {which} out", stream=stream.name, first=before + 1, last=tick)
                self._ticks[stream.name] = tick
            reasons = self._reasons.pop(stream.name, None)
            if reasons:
                sentence = f"stream {{stream}} refused requests: {', '.join(sorted(reasons))}"
                tell(INFO, "refused", sentence, stream=stream.name, reasons=sorted(reasons))
