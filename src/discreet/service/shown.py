"""What is shown of streams and releases: JSON, CSV, Arrow, Prometheus. Only what is released, and what is public."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from discreet._version import __version__
from discreet.releases.formats import csv_writer
from discreet.service.checking import warnings_of
from discreet.service.kinds import description_of_round
from discreet.service.running import Service
from discreet.service.streams import LiveStream, moment

__all__ = ["described", "metrics", "releases_as_arrow", "releases_as_csv", "releases_as_json"]

_HEAD = ("stream", "tick", "begins", "ends", "missed")
_LISTED = ("item", "count", "lower", "upper")
_NUMBER = ("value", "lower", "upper")


def described(stream: LiveStream, whole: bool = False) -> dict[str, Any]:
    """A stream as `/v1/streams` shows it; `whole` with its definition."""
    definition, run = stream.definition, stream.run
    ends = stream.begins + definition.horizon * run
    ended = stream.ended
    budgets = [definition.budget_of(number) for number in range(1, run + 1)]
    spent = {"epsilon": sum(b.epsilon or 0.0 for b in budgets), "delta": sum(b.delta for b in budgets)}
    budget = definition.budget_of(run)
    following = None
    if run < stream.runs:
        then = definition.budget_of(run + 1)
        following = {"begins": moment(ends), "epsilon": then.epsilon, "delta": then.delta}
    shown: dict[str, Any] = {
        "name": stream.name,
        "kind": definition.kind,
        "title": definition.title or stream.name,
        "protects": definition.protects,
        "max_items": definition.max_items,
        "tick_seconds": definition.tick,
        "ticks": definition.ticks * run,
        "begins": moment(stream.begins + definition.horizon * (run - 1)),
        "ends": moment(ends),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "k": definition.k,
        "trust": "local" if definition.kind == "survey" else definition.trust,
        "public": definition.public,
        "open": definition.open,
        "digest": definition.digest,
        "promise": definition.promise(run),
        "guarantee": stream.guarantee.to_dict(),
        # All of a run is charged before its first event counts.
        "budget": {"granted": spent, "spent": spent},
        "state": "ended" if ended else "running" if run == 1 else "following",
        "following": following,
        "run": run,
        "ticks_published": stream.tick,
        "next_tick": None if ended else moment(stream.starts(stream.open_tick + 1)),
        "latest": stream.latest,
        "warnings": warnings_of(stream.name, definition, run),
    }
    if definition.kind == "survey":
        shown["question"], shown["options"] = definition.question, list(definition.options or ())
        shown["protocol"] = description_of_round(definition, stream.name, stream.open_run)
    if whole:
        shown["definition"] = definition.public_form()
    return shown


def releases_as_json(name: str, texts: Sequence[str], following: int | None) -> bytes:
    """Releases are JSON already."""
    more = "" if following is None else f',"next":{following}'
    return f'{{"stream":{json.dumps(name)},"releases":[{",".join(texts)}]{more}}}'.encode()


def _rows(texts: Iterable[str]) -> tuple[list[str], list[list[Any]]]:
    names: list[str] = []
    rows = []
    for text in texts:
        release = json.loads(text)
        listed = "items" in release
        names = [*_HEAD, *(_LISTED if listed else _NUMBER)]
        head = [release[name] for name in _HEAD]
        rows += [[*head, *(row[n] for n in names[5:])] for row in (release["items"] if listed else [release])]
    return names, rows


def releases_as_csv(stream: LiveStream, texts: Sequence[str]) -> bytes:
    """One row an item and tick, or a tick."""
    names, rows = _rows(texts)
    out = io.StringIO(newline="")
    writer = csv_writer(out)
    writer.writerow(names or _names_of(stream))
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return out.getvalue().encode()


def _names_of(stream: LiveStream) -> list[str]:
    return [*_HEAD, *(_LISTED if stream.definition.kind in ("top", "survey") else _NUMBER)]


def _plain(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    # What spreadsheets would run as a formula is shown as text.
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def releases_as_arrow(stream: LiveStream, texts: Sequence[str]) -> bytes:
    """The same rows as an Arrow stream."""
    rows = _rows(texts)[1]
    names = _names_of(stream)
    kinds = {
        "stream": pa.string(),
        "begins": pa.string(),
        "ends": pa.string(),
        "missed": pa.bool_(),
        "item": pa.string(),
    }
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


# ---- Prometheus -----------------------------------------------------------------------------------------------------


def metrics(service: Service, streams: Sequence[LiveStream]) -> str:
    """Released values and public facts: nothing that counts requests, rows, bytes or errors."""
    uptime = time.monotonic() - service.begun
    lines = [
        *_metric("discreet_info", "gauge", "The version that runs.", [({"version": __version__}, 1)]),
        *_metric("discreet_uptime_seconds", "gauge", "How long it has been running.", [({}, round(uptime, 3))]),
    ]
    names = [({"stream": stream.name}, stream) for stream in streams]
    ticks = [(label, stream.tick) for label, stream in names]
    lines += _metric("discreet_ticks_published_total", "counter", "Ticks that were published.", ticks)
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
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, text: str, values: Iterable[tuple[dict[str, str], Any]]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        inner = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        lines.append(f"{name}{{{inner}}} {'+Inf' if value is None else value}" if inner else f"{name} {value}")
    return lines


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
