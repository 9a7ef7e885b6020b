"""Surveys: nobody is trusted. Reports are private before they come, and what is published is computed from them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from discreet import multiparty
from discreet.errors import CorruptStateError, MessageError
from discreet.privacy import Guarantee
from discreet.releases.payment import begin
from discreet.service.definitions import StreamDefinition
from discreet.service.event_spool import Record
from discreet.service.problems import ProblemError
from discreet.service.runs import CONFIDENCE
from discreet.service.streams import Arrival, SpooledStream, Surroundings
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

_FAMILY = 151


def protocol_of(definition: StreamDefinition, name: str, run: int) -> multiparty.Protocol:
    """The round of a survey: what every client has to know."""
    kind = getattr(multiparty, definition.protocol or "HadamardResponse")
    round_id = f"{name} {definition.digest}" + ("" if run == 1 else f" {run}")
    made: multiparty.Protocol = kind(round_id, definition.budget_of(run), list(definition.options or ()))
    return made


class Survey:
    """A run of a survey: begun once, fed with records of reports, one step a tick."""

    def __init__(
        self,
        definition: StreamDefinition,
        name: str,
        run: int,
        account: Account | None = None,
        charge_id: str | None = None,
        data: bytes | None = None,
    ) -> None:
        self.definition = definition
        self._payer: tuple[Any, Any] = account, charge_id
        protocol: Any = protocol_of(definition, name, run)
        if data is None:
            self._token = uuid.uuid4().hex
            self.mechanism: multiparty.Aggregator = protocol.aggregator(max_reports=None)
            return
        _, payload = open_state(data, _FAMILY, 1)
        if len(payload) < 32:
            raise CorruptStateError("the state of a survey is truncated")
        self._token = payload[:32].decode("ascii", "replace")
        self.mechanism = protocol.restore(payload[32:], max_reports=None)

    @property
    def guarantee(self) -> Guarantee:
        """Of every report."""
        return self.mechanism.guarantee

    def begin(self) -> None:
        """Register the survey in the ledger, unless that was done."""
        bill = self.mechanism.protocol.bill
        begin(*self._payer, bill, self._token.encode(), what="survey")

    def to_bytes(self) -> bytes:
        """As private as the reports, which anyone may see."""
        return seal_state(_FAMILY, 1, self._token.encode() + self.mechanism.to_bytes())

    def add(self, records: Sequence[Record]) -> None:
        """Take reports. One whose number was heard before changes nothing."""
        for record in records:
            with suppress(MessageError):
                self.mechanism.receive(record.data or b"")

    def step(self, save: Callable[[dict[str, Any]], None]) -> None:
        """Publish what the reports so far tell: counts that could be, which add up to them. Nothing random is drawn."""
        options = list(self.definition.options or ())
        counts = self.mechanism.estimate(options, consistent=True)
        lower, upper = counts.bounds(CONFIDENCE)
        rows = [
            {"item": option, "count": round(count), "lower": math.floor(low), "upper": math.ceil(high)}
            for option, count, low, high in zip(options, counts.values, lower, upper, strict=True)
        ]
        save({"items": sorted(rows, key=lambda row: -row["count"]), "reports": self.mechanism.total})

    def settle(self) -> None:
        """The ledger knows no ticks of a survey."""


class SurveyStream(SpooledStream):
    """A survey. A report has a number, and one whose number was heard before does not count again."""

    present: Survey

    def __init__(self, name: str, definition: StreamDefinition, around: Surroundings) -> None:
        super().__init__(name, definition, around)
        self._numbers: set[int] = set()  # of reports that wait
        self._published = 0  # reports that do not

    @property
    def protocol(self) -> multiparty.Protocol:
        """Of the round that reports belong to now."""
        return protocol_of(self.definition, self.name, self.open_run)

    @property
    def reports(self) -> int:
        """How many the present run has, with those that wait."""
        return self._published + len(self._numbers)

    def admit_reports(self, number: int) -> None:
        """Refuse reports for which there is no room in memory; those on their way are counted later."""
        if self.reports + number > self.around.limits.survey_reports:
            raise self._full()

    def _full(self) -> ProblemError:
        most = self.around.limits.survey_reports
        return ProblemError(507, "The survey takes no more reports", f"It has room for {most:,} of them.")

    def _run_of(self, run: int, account: Account | None, data: bytes | None = None) -> Survey:
        return Survey(self.definition, self.name, run, account, self.charge_id(run), data)

    def _counts_now(self) -> None:
        with self.lock:  # the writer adds to them
            self._published = self.present.mechanism.parties
            self._numbers = {number for number in self._numbers if not self.present.mechanism.has(number)}

    def _note(self, record: Record, tick: int) -> None:
        super()._note(record, tick)
        self._numbers.update(self._numbers_of(record))

    def _record(self, arrival: Arrival) -> Record | None:
        # Counted here, where they are added one after the other: requests that come at once were all admitted.
        heard, aggregator = self._numbers, self.present.mechanism
        try:
            data, numbers = self._unheard(arrival.data, lambda number: number in heard or aggregator.has(number))
        except MessageError as error:  # its horizon has ended on the way
            arrival.error = ProblemError(422, "The report cannot be taken", reason_code=error.reason)
            return None
        if data is None:
            return None
        if self.reports + len(numbers) > self.around.limits.survey_reports:
            arrival.error = self._full()
            return None
        self._numbers.update(numbers)
        return Record(len(numbers), data, arrival.key, arrival.digest, len(numbers))

    def _not_kept(self, record: Record) -> None:
        self._numbers.difference_update(self._numbers_of(record))

    def _numbers_of(self, record: Record) -> list[int]:
        with suppress(MessageError):
            return self._unheard(record.data or b"", lambda number: False)[1]
        return []

    def _unheard(self, message: bytes, heard: Callable[[int], bool]) -> tuple[bytes | None, list[int]]:
        """What is new of a message for this horizon or, where its first tick waits to be published, for the next."""
        found: tuple[bytes | None, list[int]]
        protocol: Any = self.present.mechanism.protocol
        try:
            found = protocol.unheard(message, heard)
        except MessageError:
            if self.run == self.runs:
                raise
            following: Any = protocol_of(self.definition, self.name, self.run + 1)
            found = following.unheard(message, heard)
        return found
