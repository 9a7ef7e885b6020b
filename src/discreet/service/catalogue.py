"""The streams as readers see them, as JSON and for Prometheus: only what is released, and what is public."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from discreet._version import __version__
from discreet.service import shapes
from discreet.service.definitions import FORMER
from discreet.service.runtime import Service
from discreet.service.streams import LiveStream
from discreet.service.survey_stream import SurveyStream
from discreet.watch.timetable import moment

_ASK_AGAIN_SECONDS = 5.0
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_AS_DEFINED = ("kind", "max_items", "per", "zone", "k", "trust", "public", "open", "digest")


def described(stream: LiveStream, whole: bool = False) -> shapes.StreamModel:
    """A stream as `/v1/streams` shows it; `whole` with its definition."""
    definition, run = stream.definition, stream.run
    span = stream.span
    epsilon, delta = definition.spent_by(run)
    spent = shapes.AmountsModel(epsilon=epsilon, delta=delta)
    following = None
    if definition.per is None and run < stream.runs:
        following = shapes.FollowingModel(begins=moment(span.ends), **definition.grant_of(run + 1).model_dump())
    more: dict[str, Any] = {}
    if isinstance(stream, SurveyStream):
        of_round = stream.protocol.to_dict()
        more = {"question": definition.question, "options": list(definition.options or ()), "protocol": of_round}
    if whole:
        form = definition.public_form()
        more["definition"] = {**form, **{old: form[new] for old, new in FORMER["key"].items() if new in form}}
    return shapes.StreamModel(
        name=stream.name,
        title=definition.title or stream.name,
        unit=definition.hides,
        protects="event" if definition.hides == "row" else "person",
        tick_seconds=definition.tick,
        ticks=span.last,
        run_ticks=span.ticks,
        period=stream.period_of(run),
        begins=moment(span.begins),
        ends=moment(span.ends),
        **definition.grant_of(run).model_dump(),
        promise=definition.promise(run),
        guarantee=stream.guarantee.to_dict(),
        # All of a run is charged before its first event counts.
        budget=shapes.BudgetModel(granted=spent, spent=spent, account=_account(stream)),
        state="ended" if stream.ended else "running" if run == 1 or definition.per else "following",
        following=following,
        run=run,
        ticks_published=stream.tick,
        next_tick=None if stream.ended else moment(stream.starts(stream.open_tick + 1) + (definition.late or 0)),
        latest=None if stream.latest is None else shapes.ReleaseModel(**stream.latest),
        warnings=stream.warnings,
        **{name: getattr(definition, name) for name in _AS_DEFINED},
        **more,
    )


def _account(stream: LiveStream) -> shapes.AccountModel | None:
    """What was spent in all; looked up again after some seconds, since others charge the account, too."""
    if stream.definition.account is None:
        return None
    account, now = stream.around.ledger.account(stream.account_name), time.monotonic()
    known = stream.around.accounts.get(account.name)
    if known is None or known[0] < now:
        known = stream.around.accounts[account.name] = now + _ASK_AGAIN_SECONDS, account.granted, account.spent()
    granted, spent = (
        shapes.AccountAmountModel(epsilon=amount.epsilon, delta=amount.delta, rho=amount.rho) for amount in known[1:]
    )
    return shapes.AccountModel(name=account.name, granted=granted, spent=spent)


# ---- Prometheus -----------------------------------------------------------------------------------------------------


def metrics(service: Service, streams: Sequence[LiveStream], status: shapes.StatusModel | None = None) -> str:
    """Released values and facts that no event decides: nothing that counts requests, rows, bytes or refusals.

    With `status`, which is for admins alone, also what an operator has to know: NOT private.
    """
    uptime = time.monotonic() - service.begun
    lines = [
        *_metric("discreet_info", "gauge", "The version that runs.", [({"version": __version__}, 1)]),
        *_metric("discreet_uptime_seconds", "gauge", "How long it has been running.", [({}, round(uptime, 3))]),
    ]
    names = [({"stream": stream.name}, stream) for stream in streams]
    ticks = [(label, stream.tick) for label, stream in names]
    lines += _metric("discreet_ticks_published_total", "counter", "Ticks that were published.", ticks)
    damaged = [(label, stream.spool_damaged) for label, stream in names]
    lines += _metric("discreet_spool_damaged_total", "counter", "Places on disk that could not be read.", damaged)
    found: dict[str, list[tuple[dict[str, str], Any]]] = {"": [], "_lower": [], "_upper": []}
    for label, stream in names:
        release = stream.latest or {}
        rows = release.get("items", [release] if "value" in release else [])
        for row in rows:
            labels = {**label, **({"item": row["item"]} if "item" in row else {})}
            found[""].append((labels, row.get("count", row.get("value"))))
            found["_lower"].append((labels, row["lower"]))
            found["_upper"].append((labels, row["upper"]))
    for end, help_text in (
        ("", "The latest released number, with noise."),
        ("_lower", "The lower end of its 95% interval."),
        ("_upper", "The upper end of its 95% interval."),
    ):
        lines += _metric(f"discreet_released{end}", "gauge", help_text, found[end])
    if status is not None:
        lines += _for_operators(status)
    return "\n".join(lines) + "\n"


def _for_operators(status: shapes.StatusModel) -> list[str]:
    """True numbers: NOT private. Of a pan stream, which keeps no true count, what follows from the clock."""
    of = [({"stream": stream.name}, stream) for stream in status.streams]
    refused = [
        ({**label, "reason": reason}, number)
        for label, stream in of
        for reason, number in (stream.refused or {}).items()
    ]
    taken = [(label, stream.accepted) for label, stream in of if stream.accepted is not None]
    waiting: list[tuple[dict[str, str], Any]] = [({}, status.waiting_bytes)]
    gauge, counter = "gauge", "counter"
    behind = [(label, stream.queue_lag) for label, stream in of if stream.queue_lag is not None]
    return [
        line
        for name, kind, text, values in (
            ("lag_seconds", gauge, "How long a tick that is over has waited.", [(x, s.lag_seconds) for x, s in of]),
            ("queue_lag_messages", gauge, "Messages of a queue that wait to be taken.", behind),
            ("missed_ticks_total", counter, "Ticks published late.", [(x, s.ticks_missed) for x, s in of]),
            ("trouble", gauge, "1 while it cannot publish.", [(x, int(s.trouble is not None)) for x, s in of]),
            ("spool_bytes", gauge, "Events on disk, for their tick.", [(x, s.spool_bytes) for x, s in of]),
            ("waiting_bytes", gauge, "Requests in memory, not yet on disk.", waiting),
            ("accepted_total", counter, "Events that were taken.", taken),
            ("refused_total", counter, "Requests that were refused.", refused),
        )
        for line in _metric(f"discreet_{name}", kind, text, values)
    ]


def _metric(name: str, kind: str, text: str, values: Iterable[tuple[dict[str, str], Any]]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        inner = ",".join(f'{key}="{label.translate(_ESCAPED)}"' for key, label in labels.items())
        lines.append(f"{name}{{{inner}}} {'+Inf' if value is None else value}" if inner else f"{name} {value}")
    return lines
