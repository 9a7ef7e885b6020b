"""The JSON that goes out, each shape once: what is sent is made of these, and `/openapi.json` describes them.

A field that is set goes out, also as null; one with a default that nobody set does not.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from discreet.service.definitions import HiddenUnit, Kind, Trust


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """As a dictionary."""
        return self.model_dump(mode="json", exclude_unset=True)

    def to_json(self) -> bytes:
        """As it is sent."""
        return self.model_dump_json(exclude_unset=True).encode()


class ItemModel(_Shape):
    """One line of a top list. No upper bound is known where it is null."""

    item: str
    count: int
    lower: int
    upper: int | None
    basis: int | None = None  # what increases are the difference of, where it is not the count


class ReleaseModel(_Shape):
    """What was published for a tick: `items`, or a `value`. `missed`: the service did not run when the tick ended."""

    stream: str
    tick: int
    begins: str
    ends: str
    missed: bool
    confidence: float
    run: int
    period: str | None = None  # the day that it is about, where the stream begins anew every day
    final: bool | None = None  # whether it is the last one about that day
    items: list[ItemModel] | None = None
    value: int | None = None
    lower: int | None = None
    upper: int | None = None
    reports: int | None = None
    basis: int | None = None  # as for items
    listed: int | None = None  # how many items there were noises of, where more may have passed than are shown


class IncreaseItemModel(_Shape):
    """How much an item rose. No upper bound is known where it is null."""

    item: str
    increase: int
    lower: int
    upper: int | None


class IncreaseModel(_Shape):
    """How much a stream rose from the end of one tick to that of another: `items` that both list, or a `value`."""

    tick: int
    since: int
    begins: str
    ends: str
    run: int
    confidence: float
    items: list[IncreaseItemModel] | None = None
    value: int | None = None
    lower: int | None = None
    upper: int | None = None


class IncreasesModel(_Shape):
    """Increases in order, for the ticks that have one. `next`: there may be more, from this tick on."""

    stream: str
    over: int
    increases: list[IncreaseModel]
    next: int | None = None


class AmountsModel(_Shape):
    epsilon: float
    delta: float


class AccountAmountModel(_Shape):
    """In the scale in which the account adds up: epsilon, or rho."""

    epsilon: float | None
    delta: float
    rho: float | None


class AccountModel(_Shape):
    """The people that the stream is about, and what all releases about them spent together."""

    name: str
    granted: AccountAmountModel
    spent: AccountAmountModel


class BudgetModel(_Shape):
    """Of the stream; `account` where it shares one with other releases about the same people."""

    granted: AmountsModel
    spent: AmountsModel
    account: AccountModel | None


class FollowingModel(AmountsModel):
    begins: str


class StreamModel(_Shape):
    """A stream: what it publishes, what it promises, and how far it is."""

    name: str
    kind: Kind
    title: str
    unit: HiddenUnit
    protects: Literal["event", "person"]  # `unit` in an earlier word, for one version
    max_items: int | None
    tick_seconds: int
    ticks: int
    run_ticks: int  # of the present run
    per: str | None
    zone: str | None
    period: str | None  # the day that the present run is about
    begins: str
    ends: str
    epsilon: float
    delta: float
    k: int | None
    trust: Trust
    public: bool
    open: bool
    digest: str
    promise: str
    guarantee: dict[str, Any]
    budget: BudgetModel
    state: Literal["running", "ended", "following"]
    following: FollowingModel | None
    run: int
    ticks_published: int
    next_tick: str | None
    latest: ReleaseModel | None
    warnings: list[str]
    question: str | None = None
    options: list[str] | None = None
    protocol: dict[str, Any] | None = None
    definition: dict[str, Any] | None = None


class StreamsModel(_Shape):
    """What the service is called, and the streams that you may read."""

    title: str
    streams: list[StreamModel]


class ReleasesModel(_Shape):
    """Releases in order. `next`: there are more, from this tick on."""

    stream: str
    releases: list[ReleaseModel]
    next: int | None = None


class AcceptedModel(_Shape):
    """How many rows are on disk. `skipped` rows were wrong; `repeated` reports had been heard."""

    accepted: int
    skipped: int | None = None
    repeated: int | None = None


class BadRowModel(_Shape):
    row: int
    reason: str


class ProblemModel(_Shape):
    """A refusal (RFC 9457). `reason_code` says what is wrong with a report of a survey."""

    type: str
    title: str
    status: int
    detail: str | None = None
    rows: list[BadRowModel] | None = None
    bad_rows: int | None = None
    reason_code: str | None = None


class StreamStatusModel(_Shape):
    name: str
    lag_seconds: float
    queue_lag: int | None = None
    spool_bytes: int
    spool_events: int
    spool_damaged: int  # places that could not be read: what was there does not count
    accepted: int | None  # null for a pan stream, which keeps no true count
    refused: dict[str, int] | None  # the same
    ticks_published: int
    ticks_missed: int  # since the start: published a tick or more too late
    trouble: str | None


class StatusModel(_Shape):
    """True counts: NOT private."""

    uptime_seconds: float
    requests: int | None  # null with a pan stream
    waiting_bytes: int
    streams: list[StreamStatusModel]


class HealthModel(_Shape):
    status: str


class RoundModel(BaseModel):
    """What a client of a survey has to know: its round as `multiparty` describes it, for `discreet.js`."""

    protocol: str
    round_id: str
    epsilon: float
    universe: dict[str, Any]
    parameters: dict[str, Any]
