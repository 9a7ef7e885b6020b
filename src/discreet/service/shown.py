"""What is shown of streams and releases: JSON, CSV, Arrow, Prometheus. Only what is released, and what is public."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from discreet._version import __version__
from discreet.releases.formats import csv_writer
from discreet.service.checking import warnings_of
from discreet.service.kinds import description_of_round
from discreet.service.running import Service
from discreet.service.streams import LiveStream, moment

__all__ = ["Arrow", "Csv", "Json", "described", "metrics"]

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


class Json:
    """Releases are JSON already."""

    def __init__(self, name: str, following: int | None) -> None:
        more = "" if following is None else f',"next":{following}'
        self._before = f'{{"stream":{json.dumps(name)},"releases":['.encode()
        self._end = f"]{more}}}".encode()
        self._begun = False

    def some(self, releases: list[bytes]) -> bytes:
        """The next releases."""
        if not releases:
            return b"" if self._begun else self._before
        before = b"," if self._begun else self._before
        self._begun = True
        return before + b",".join(releases)

    def end(self) -> bytes:
        """With what follows."""
        return self._end


class Csv:
    """One row an item and tick, or a tick."""

    def __init__(self, stream: LiveStream) -> None:
        self._names = _names_of(stream)
        self._begun = False

    def some(self, releases: list[bytes]) -> bytes:
        """Their rows."""
        out = io.StringIO(newline="")
        writer = csv_writer(out)
        if not self._begun:
            writer.writerow(self._names)
            self._begun = True
        writer.writerows([_plain(cell) for cell in row] for row in _rows(self._names, releases))
        return out.getvalue().encode()

    def end(self) -> bytes:
        """Nothing."""
        return b""


class Arrow:
    """The same rows as an Arrow stream, with a batch for every piece."""

    def __init__(self, stream: LiveStream) -> None:
        self._names = _names_of(stream)
        texts = dict.fromkeys(("stream", "begins", "ends", "item"), pa.string())
        kinds = {**texts, "missed": pa.bool_()}
        self._schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in self._names])
        self._sink = _Pieces()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, "w"), self._schema)

    def some(self, releases: list[bytes]) -> bytes:
        """Their rows."""
        rows = list(_rows(self._names, releases))
        if rows:
            columns = zip(zip(*rows, strict=True), self._schema, strict=True)
            arrays = [pa.array(column, field.type) for column, field in columns]
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        return self._sink.taken()

    def end(self) -> bytes:
        """The mark of the end."""
        self._writer.close()
        return self._sink.taken()


class _Pieces(io.RawIOBase):
    """A file that is only written to, and handed on as it grows."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._size += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _rows(names: list[str], releases: list[bytes]) -> Iterator[list[Any]]:
    for text in releases:
        release = msgspec.json.decode(text)
        head = [release[name] for name in _HEAD]
        for row in release["items"] if "item" in names else [release]:
            yield [*head, *(row[name] for name in names[len(_HEAD) :])]


def _names_of(stream: LiveStream) -> list[str]:
    return [*_HEAD, *(_LISTED if stream.definition.kind in ("top", "survey") else _NUMBER)]


def _plain(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    # What spreadsheets would run as a formula is shown as text.
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


# ---- Prometheus -----------------------------------------------------------------------------------------------------


def metrics(service: Service, streams: Sequence[LiveStream]) -> str:
    """Released values and facts that no event decides: nothing that counts requests, rows, bytes or refusals."""
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
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, text: str, values: Iterable[tuple[dict[str, str], Any]]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        inner = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        lines.append(f"{name}{{{inner}}} {'+Inf' if value is None else value}" if inner else f"{name} {value}")
    return lines


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
