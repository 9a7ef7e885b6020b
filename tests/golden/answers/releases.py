"""Cases of `discreet.releases`: all that every kind of answer says of itself, in every format, and in pictures."""

import datetime
import functools
import io
import json
import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.conftest import repeat_from
from tests.golden.answers.pin import digest, each, steady, told, tried
from tests.golden.answers.questions import BUDGET, PAGES, RHO, SKIP, TABLE, reports

import discreet as dc
from discreet.noise import seeded_source
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.releases.error_model import ErrorModel, Noise, chance_of_each
from discreet.releases.explain import explanation, several_spans
from discreet.releases.formats import describe_estimate, estimate_table, formats_of, tick_text
from discreet.releases.html import as_html
from discreet.releases.labels import cut, readable, short
from discreet.releases.line_chart import Point, line_chart
from discreet.releases.over_time import OverTime, Term
from discreet.releases.payment import answer_of, kind_of_answer
from discreet.releases.plot import plot_over_time
from discreet.releases.registry import registry_entry, registry_yaml
from discreet.releases.release import Release, free_names
from discreet.releases.sheet import paid_by, released, sign_off_sheet
from discreet.releases.simplex import on_simplex, within_simplex

ODD = ["a", "<b>&\"'", "two\nlines", "x" * 70, "x" * 60 + "yy" * 9, "ü\u202eb", "", "=1+1", "日本", "a,b", "tab\t"]


def ask(function, *given, data=None, budget=BUDGET, **words):
    data = TABLE if data is None else data
    if function == "quantiles":
        given, words = (), {**words, "quantiles": given[0]}
    return getattr(dc, function)(data, *given, budget=budget, source=seeded_source(5), **words)


def small(sketch):
    """A sketch so narrow that items collide: bounds have to say so."""
    sketch.update(many("a", "b", "c", "d", "e") * 9)
    return dc.release(sketch, BUDGET)


def many(*items):
    return [item for place, item in enumerate(items) for _ in range(60 + 9 * place)]


def streams(kind, ticks=4, *given, step=None, **words):
    """The releases of a stream, one a tick."""
    random.seed(1)
    made = getattr(dc.continual, kind)(6, BUDGET, *given, source=seeded_source(2), **words)
    found = []
    for tick in range(ticks):
        for item in "abcab"[: 3 + tick % 3] * 60 if step is None else step(tick):
            made.add([item])
        found.append(made.step())
    return found


MADE = {
    "rows": lambda: ask("top_k", 4, column="page", **SKIP),
    "total share": lambda: ask("top_k", 3, column="page", total_share=0.25, **SKIP),
    "odd items": lambda: ask("top_k", 20, data=many(*ODD)),
    "bytes": lambda: ask("top_k", 5, data=many(b"a", b"\xff\x00")),
    "mixed": lambda: ask("top_k", 9, data=many("a", 1, b"a", 2**63, -5)),
    "nothing": lambda: ask("top_k", 4, data=["a"]),
    "nothing of people": lambda: ask("top_k", 4, data=TABLE.slice(0, 3), column="page", user="who"),
    "offset": lambda: ask("top_k", 4, column="page", mechanism="offset", capacity=5, **SKIP),
    "stability": lambda: ask("top_k", 4, column="page", mechanism="stability", **SKIP),
    "shards": lambda: ask("top_k", 9, column="page", workers=2, capacity=9, **SKIP),
    "count-min": lambda: ask("top_k", 4, column="page", mechanism="count_min", **SKIP),
    "count sketch": lambda: ask("top_k", 4, column="page", mechanism="count_sketch", **SKIP),
    "small count-min": lambda: small(dc.CountMin(128, 3, tracked=8, seed=1)),
    "small count sketch": lambda: small(dc.CountSketch(400, 5, tracked=8, seed=1)),
    "days": lambda: ask("top_k", 4, column="day"),
    "prices": lambda: ask("top_k", 4, column="price"),
    "two columns": lambda: ask("top_k", 4, column=["status", "country"]),
    "by": lambda: ask("top_k", 2, column="page", by="country", **SKIP),
    "by listed groups": lambda: ask("top_k", 2, column="page", by="country", groups=["de", "jp"], **SKIP),
    "by two": lambda: ask("top_k", 2, column="page", by=["country", "yes"], **SKIP),
    "by day": lambda: ask("top_k", 2, column="page", every="2d", time="ts", **SKIP),
    "people": lambda: ask("top_k", 4, column="page", user="who", **SKIP),
    "rows of people": lambda: ask("top_k", 4, column="page", user="who", count="rows", **SKIP),
    "sums of people": lambda: ask("top_k", 4, column="page", user="who", value="ms", value_range=(0, 50), **SKIP),
    "pairs": lambda: ask("top_k", 3, column="page", user="who", pairs=2, **SKIP),
    "people by": lambda: ask("top_k", 2, column="page", user="who", by="country", **SKIP),
    "histogram": lambda: ask("histogram", column="page", universe=PAGES, **SKIP),
    "histogram by": lambda: ask("histogram", column="page", universe=PAGES[:2], by="yes", groups=[True, False], **SKIP),
    "count": lambda: ask("count"),
    "count of people": lambda: ask("count", user="who", **SKIP),
    "distinct": lambda: ask("distinct", column="page", user="who", **SKIP),
    "sum": lambda: ask("sum", column="size", range=(-5, 60)),
    "mean": lambda: ask("mean", column="ms", range=(0, 900), user="who", **SKIP),
    "counts by": lambda: ask("count", by="country"),
    "counts by day": lambda: ask("count", every="1d", time="ts"),
    "counts by hour": lambda: ask("count", every="12h", time="ts"),
    "counts by two": lambda: ask("count", by=["country", "status"]),
    "sums by": lambda: ask("sum", column="size", range=(-5, 60), by="country", groups=["de", "jp"]),
    "means by people": lambda: ask("mean", column="ms", range=(0, 900), by="country", user="who", **SKIP),
    "no groups": lambda: ask("count", by="page", data=TABLE.slice(0, 5)),
    "quantiles": lambda: ask("quantiles", [0.25, 0.5, 0.9], column="size", range=(-5, 60)),
    "quantiles of days": lambda: ask("quantiles", [0.5], column="day", range=("2025-06-01", "2025-07-01")),
    "quantiles of people": lambda: ask("quantiles", [0.5], column="ms", range=(0, 900), user="who", **SKIP),
    "quantiles by": lambda: ask("quantiles", [0.5], column="ms", range=(0, 900), by="country", **SKIP),
    "zcdp": lambda: ask("histogram", column="page", universe=PAGES, budget=RHO, **SKIP),
    "people over time": lambda: streams("HeavyHitters", 3, 8)[-1],
    "a list over time": lambda: streams("Histogram", 3, ["a", "b", "c"], 1)[-1],
}


def made(name):
    """An answer, the same whichever case asks first: all randomness from here on follows from its name."""
    repeat_from(f"releases: made {name}")
    return _made(name)


@functools.cache
def _made(name):
    return MADE[name]()


def of_json(text):
    return steady(json.loads(text))


def text(value):
    """Text without the moment at which it was asked."""
    moment = (
        r"20(2[6-9]|[3-9]\d)-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?)?|\d\d? [A-Z][a-z]+ 20(2[6-9]|[3-9]\d)"
    )
    import re

    from discreet import __version__

    return re.sub(moment, "(time)", value).replace(__version__, "(version)")


def parquet(data):
    read = pq.read_table(io.BytesIO(data))
    return [told(read.replace_schema_metadata(None)), sorted(of_json(read.schema.metadata[b"discreet"]))]


def formats(name):
    """What is written of an answer, in every format, wide and narrow, and surer and less sure."""

    def answered():
        answer, found = made(name), {}
        for kind, write in formats_of(answer).items():
            for sure, width in ((0.95, None), (0.5, 40)):
                if (kind not in ("table", "csv") and width) or (not hasattr(answer, f"to_{kind}") and kind == "html"):
                    continue
                out = tried(write, answer, sure, width)
                if isinstance(out, Exception):  # of numbers there is no Parquet
                    found[f"{kind} {sure}"] = out
                    continue
                shown = parquet(out) if isinstance(out, bytes) else of_json(out) if kind == "json" else text(out)
                found[f"{kind} {sure}"] = digest(shown.encode()) if kind == "html" else shown
        return found

    return answered


def says(name):
    """What an answer says of itself, and what can be asked of it."""

    def answered():
        answer, found = made(name), {}
        found["repr"] = text(repr(answer))
        found["guarantee"] = getattr(answer, "guarantee", None) and answer.guarantee.sentence()
        for say in ("explain", "notes"):
            found[say] = tried(lambda say=say: getattr(answer, say)()) if hasattr(answer, say) else None
        if hasattr(answer, "_repr_html_"):
            found["html"] = digest(text(answer._repr_html_()).encode())
        for field in (
            "names",
            "by",
            "counted",
            "count_name",
            "threshold",
            "offset",
            "offsets",
            "total",
            "left_out",
            "in_list_order",
            "steps",
            "shards",
            "kind",
            "of",
            "value_name",
            "value_heading",
            "is_private",
        ):
            if hasattr(answer, field):
                found[field] = told(getattr(answer, field))
        if hasattr(answer, "to_payload"):
            again = answer_of(answer.to_payload())
            found["payload"] = [
                kind_of_answer(answer.to_payload()),
                told(again) == told(answer),
                repr(again) == repr(answer),
            ]
            read = tried(type(answer).from_json, answer.to_json()) if hasattr(answer, "to_json") else None
            found["json again"] = read if isinstance(read, Exception) else told(read) == told(answer)
        if isinstance(answer, Release):
            found |= of_release(answer)
        if hasattr(answer, "to_arrow"):
            found["arrow"] = told(answer.to_arrow())
            found["pandas"] = {
                name: str(kind) for name, kind in answer.to_pandas().dtypes.items() if str(kind) != "str"
            }
        return found

    return answered


def of_release(answer):
    items = answer.items
    return {
        "bounds": [answer.bounds(sure) for sure in (0.5, 0.999)],
        "rest": [answer.rest(sure) for sure in (0.5, 0.95)],
        "heads": [[len(answer.head(n)), len(answer.first(n)), answer.first(n).items[:1]] for n in (0, 1, 2, 99)],
        "head": answer.head(1).items,
        "groups": [[group, found.items] for group, found in answer.groups.items()],
        "of an item": tried(lambda: answer[items[0]]) if items else None,
        "of others": [
            tried(lambda: answer["never"]),
            "never" in answer,
            ["a"] in answer,
            1.0 in answer,
            tried(lambda: answer[:2]),
        ],
        "columns": answer.columns(0.9),
        "noise": [
            answer.error_model.noise_scale,
            answer.error_model.random_parts,
            tried(answer.error_model.noise_bound, 0.1),
        ],
        "distances": [tried(answer.error_model.distances, sure, answer.offset) for sure in (0.1, 0.95, 0.9999)],
        "laws": answer.error_model.to_dict(),
        "html of few": digest(text(as_html(answer, 0.5, 2)).encode()),
        "html of a page": digest(text(as_html(answer, of_page=True)).encode()),
        "increase": tried(lambda: answer.increase(1)),
        "relisted": tried(lambda: answer.in_order_of(np.arange(len(answer))[::-1].astype(np.int64)).items),
        "named": tried(lambda: answer.with_items(pa.array([f"n{place % 3}" for place in range(len(answer))])).items),
        "read only": [
            tried(lambda: answer.counts.__setitem__(0, 1)),
            tried(lambda: answer.with_items(pa.array(["a"] * 999))),
        ],
    }


def of_files(name):
    """The sheet, the entry of a registry and an explanation, from the JSON of an answer."""

    def answered():
        answer = made(name)
        said = json.loads(formats_of(answer)["json"](answer, 0.95, None))
        entry = registry_entry(said, data="Visits", period="June")
        return {
            "released": text(tried(lambda: released(said))),
            "entry": text(registry_yaml(entry)),
            "bare entry": text(registry_yaml(registry_entry(said))),
            "sheet": text(tried(lambda: sign_off_sheet(said))),
            "explained": explanation(said["guarantee"]),
            "spans": [several_spans(said["guarantee"], spans) for spans in (1, 7, 31)],
        }

    return answered


def figure_of(figure):
    """What is drawn, without what follows from fonts."""
    found = []
    for axes in figure.axes:
        found.append(
            {
                "lines": [
                    [
                        told(line.get_xdata()),
                        told(line.get_ydata()),
                        line.get_color(),
                        line.get_marker(),
                        str(line.get_linestyle()),
                    ]
                    for line in axes.lines
                ],
                "bars": [
                    [bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height(), told(bar.get_facecolor())]
                    for bar in axes.patches
                ],
                "bands": [
                    [told(path.vertices.round(6)) for path in drawn.get_paths()][:20] for drawn in axes.collections
                ],
                "texts": [
                    [note.get_text(), note.get_position(), note.get_ha(), note.get_va(), note.get_fontsize()]
                    for note in axes.texts
                ],
                "titles": [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()],
                "limits": [axes.get_xlim(), axes.get_ylim()],
                "labels": [
                    [label.get_text() for label in labels]
                    for labels in (axes.get_xticklabels(), axes.get_yticklabels())
                ]
                if axes.axison
                else None,
                "shown": [axes.axison, axes.spines["top"].get_visible(), axes.spines["right"].get_visible()],
                "legend": None
                if axes.get_legend() is None
                else [note.get_text() for note in axes.get_legend().get_texts()],
            }
        )
    above = [figure._suptitle, figure._supxlabel]
    return [
        found,
        [None if note is None else [note.get_text(), note.get_fontsize(), note.get_color()] for note in above],
    ]


def pictures(name, *ways):
    def answered(folder):
        answer, found = made(name), []
        for how in ways:
            figure = tried(lambda how=how: answer.plot(**how))
            shown = figure_of(figure) if hasattr(figure, "axes") else told(figure)
            found.append(
                shown if len(json.dumps(told(shown))) < 6000 else digest(json.dumps(_rounded(told(shown))).encode())
            )
        answer.plot(folder / "it.png")
        found.append((folder / "it.png").read_bytes()[:4])
        return [*found, tried(lambda: answer.plot(folder / "it.doc")), sorted(path.name for path in folder.iterdir())]

    return answered


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def picture_over_time():
    found = streams("HeavyHitters", 4, 8)
    shown = [plot_over_time(found), plot_over_time(found, times=[f"day {n}" for n in range(4)], most=1, confidence=0.5)]
    wrong = [
        ([], {}),
        (found, {"times": [1]}),
        (found, {"most": 0}),
        ([*found, made("people")], {}),
        (found, {"most": 99}),
    ]
    return [
        *map(figure_of, shown),
        *(tried(lambda g=given, h=how: len(plot_over_time(g, **h).axes)) for given, how in wrong),
    ]


def increases():
    found = []
    for kind, given in (("HeavyHitters", (8,)), ("Histogram", (["a", "b", "c"], 1))):
        one, *_, last = streams(kind, 4, *given)
        for sure in (0.95, 0.5):
            risen = last.increase(one, sure)
            found.append([risen.to_dict(), repr(risen), risen.rows(), told(risen.to_arrow()), of_json(risen.to_json())])
        found.append(
            [
                tried(lambda r=risen: r["a"]),
                tried(lambda r=risen: r["zz"]),
                tried(lambda o=one, x=last: o.increase(x)),
                tried(lambda o=one: o.increase(o)),
            ]
        )
        found.append(
            [
                tried(lambda x=last: x.increase(2)),
                tried(lambda x=last: x.increase(made("people"))),
                tried(lambda x=last: x.increase(0)),
            ]
        )
    return found


def report(name):
    def answered():
        answer = dict(reports())[name].answer(TABLE, source=seeded_source(3))
        page = text(answer.to_html())
        return {
            "table": [text(answer.to_table(width)) for width in (None, 50)],
            "csv": answer.to_csv(),
            "explain": answer.explain(),
            "titles": [answer.titles, answer.is_private],
            "again": repr(answer_of(answer.to_payload())) == repr(answer),
            "page": digest(page.encode()),
            "words of the page": _words(page),
        }

    return answered


def _words(page):
    import re

    return [
        line.strip()
        for line in re.sub(r"<(style|svg)[^>]*>.*?</\1>|<[^>]+>", "\n", page, flags=re.S).split("\n")
        if line.strip()
    ][:200]


def stored(folder):
    """Whether a ledger has paid for what a release says."""
    ledger, out = dc.Ledger(folder / "l.sqlite"), []
    ledger.grant("a", dc.Budget(9.0, 1e-3))
    account = ledger.account("a")
    answers = [dc.count(TABLE, BUDGET, ledger=account, charge_id=name, where="ms > 3") for name in ("one", "two")]
    for answer in (*answers, made("count")):
        said = json.loads(formats_of(answer)["json"](answer, 0.95, None))
        out.append(tried(paid_by, said, folder / "l.sqlite", "a"))
    return [out, tried(paid_by, said, folder / "l.sqlite", "b"), tried(paid_by, said, folder / "none.sqlite", "a")]


def damaged():
    """Text and bytes that are no release."""
    good = made("by listed groups")
    fields, said = json.loads(good.to_payload()), json.loads(good.to_json())
    changes = (
        {"version": 3},
        {"release": "list"},
        {"items": []},
        {"counts": []},
        {"item_type": "odd"},
        {"by": ["x"]},
        {"by": []},
        {"groups": [["a", "b"]]},
        {"guarantee": {}},
        {"error_model": {}},
        {"counted": "odd"},
        {"total": 5},
        {"shards": [0]},
        {"shard_offsets": [1]},
        {"places": [0]},
        {"followed": [1]},
        {"steps": "x"},
        {"item_columns": []},
        {"offset": "x"},
    )
    found = [
        [change, tried(lambda c=change: len(Release.from_payload(json.dumps({**fields, **c}).encode())))]
        for change in changes
    ]
    found += [[change, tried(lambda c=change: len(Release.from_json(json.dumps({**said, **c}))))] for change in changes]
    for cls in (Release, type(made("quantiles")), type(made("counts by"))):
        for data in (b"", b"{}", b"[]", b"null", b'{"release": "histogram"}', b"\xff", made("quantiles").to_payload()):
            found.append(
                [
                    cls.__name__,
                    tried(lambda c=cls, d=data: len(c.from_payload(d))),
                    tried(lambda c=cls, d=data: len(c.from_json(d))),
                ]
            )
    return found


TICK = {
    "tick": 2,
    "covers": {"first_tick": 1, "last_tick": 2},
    "start": "2025-06-02",
    "end": "2025-06-03",
    "confidence": 0.95,
    "items": [
        {"item": "a", "count": 1200, "lower": 900, "upper": 1500.5},
        {"item": "b\n", "count": 3, "lower": 1, "upper": None},
    ],
}
TICKS = {
    "items": TICK,
    "people": {**TICK, "counted": "people", "threshold": 12},
    "no items": {**TICK, "items": []},
    "no people": {**TICK, "items": [], "counted": "people", "threshold": 1234},
    "one tick": {**TICK, "covers": {"first_tick": 2, "last_tick": 2}},
    "a window": {**TICK, "covers": {"first_tick": 2, "last_tick": 5}},
    "older": {key: TICK[key] for key in ("tick", "items", "confidence")},
    "total": {"tick": 1, "total": 5, "standard_deviation": 3.0},
    "distinct": {"tick": 1, "people": 5000, "standard_deviation": 2.5, "covers": {"first_tick": 1, "last_tick": 1}},
    "risen": {
        "tick": 4,
        "total": 900,
        "standard_deviation": 3.0,
        "increase": {"since": 2, "confidence": 0.9, "value": 7000, "lower": -3, "upper": 9},
    },
    "items risen": {
        **TICK,
        "increase": {
            "since": 1,
            "confidence": 0.95,
            "items": [{"item": "a", "increase": -5000, "lower": -7, "upper": None}],
        },
    },
}


def ticks(told_of):
    guarantee = made("rows").guarantee
    return [tick_text(told_of, horizon, guarantee, width) for horizon, width in ((None, None), (5, 30))]


def noises():
    from fractions import Fraction

    found = []
    for law in ("laplace", "gaussian"):
        for scale in (Fraction(1, 3), Fraction(5), Fraction(1000)):
            for draws in (1, 10, 10**6):
                one = Noise(law, scale, draws=draws)
                found.append(
                    [
                        str(one),
                        one.to_dict(),
                        Noise.from_dict(one.to_dict()) == one,
                        [tried(one.bound, beta) for beta in (1e-9, 0.05, 0.9)],
                        [tried(one.bound, beta) for beta in (1e-9, 0.05)],
                    ]
                )
    return [found, [chance_of_each(beta, draws) for beta in (0.05, 1e-12, 0.9) for draws in (1, 2, 1000)]]


def models():
    """Distances of laws put together."""
    from fractions import Fraction

    laplace, gaussian = Noise("laplace", Fraction(3), draws=5), Noise("gaussian", Fraction(3), draws=5)
    made_of = [
        ErrorModel(laplace),
        ErrorModel(gaussian),
        ErrorModel(laplace, shared=laplace),
        ErrorModel(gaussian, shared=gaussian),
        ErrorModel(laplace, offset_noise=laplace, summary_above=7.0),
        ErrorModel(laplace, summary_below=2.0, lowest=0),
        ErrorModel(gaussian, of_published=True),
        ErrorModel(laplace, summary_above=math.inf),
    ]
    return [
        [
            one.to_dict(),
            ErrorModel.from_dict(one.to_dict()) == one,
            one.random_parts,
            one.noise_scale,
            one.noise_bound(0.05),
            tried(one.distances, 0.95),
            tried(one.distances, 0.5, 11),
            one.of_all.noise_bound(0.05),
            one.of_at_least(99).noise_bound(0.05),
        ]
        for one in made_of
    ]


def over_time():
    noise = TickNoise("tree", 8, 3.0, base=2)
    one, other = OverTime(2, "r", (Term("n", noise, 2),)), OverTime(5, "r", (Term("n", noise, 5),))
    return [
        one.to_dict(),
        OverTime.from_dict(one.to_dict()) == one,
        other.since(one),
        one.alone(),
        one.shares(other),
        OverTime(1, "").shares(OverTime(2, "")),
        OverTime(5, "q", other.terms).since(one),
        OverTime(5, "r").since(one),
    ]


def points(values, times=None):
    times = range(len(values)) if times is None else times
    return [Point(time, value, value - 2.5, value + 2.5) for time, value in zip(times, values, strict=True)]


JUNE = [datetime.date(2025, 6, day) for day in range(1, 8)]
CHARTS = {
    "one": {"a": points([1, 5, 3])},
    "none": {},
    "one point": {"a": points([1])},
    "below zero": {"a": points([-5, -1])},
    "zeros": {"a": points([0, 0])},
    "two": {"a": points([1, 5, 3]), "b<": points([2, 2, 9])},
    "many": {f"n{n}": points([n, n + 1]) for n in range(8)},
    "days": {"a": points([10, 900, 45], JUNE[:3]), "b": points([3, 4], [JUNE[0], JUNE[6]])},
    "hours": {"a": points([1.5, 2], [datetime.datetime(2025, 6, 1, 12, 30), datetime.datetime(2025, 6, 2)])},
    "unknown": {"a": [Point(0, 3, -math.inf, math.inf), Point(1, 4, 1, math.inf)]},
    "long": {"x" * 60: points([1, 2]), "x" * 59 + "y": points([1, 3])},
    **{f"as high as {top}": {"a": points([1, top - 2.5])} for top in (4, 5, 11, 12.5, 19, 29, 41, 61, 99, 1e6)},
}
TEXTS = (
    ["a", "b"],
    ["abcdefghij", "abcdefghik", "abcdefghij"],
    ["abcdefgh"] * 3 + ["abcdefgh (1)"],
    ["", ""],
    ["x" * 9, "x" * 8],
)
ESTIMATES = [dc.Estimate(5, 3, 8), dc.Estimate(1234567.8, -1.5, math.inf), dc.Estimate(0.000123, 0.0, 0.25)]


CASES = {
    **{f"formats of {name}": formats(name) for name in MADE},
    **{f"{name} says": says(name) for name in MADE},
    **{f"files of {name}": of_files(name) for name in MADE if name not in ("odd items", "mixed", "bytes")},
    "a picture": pictures("rows", {}, {"kind": "lines"}, {"most": 2, "confidence": 0.5}, {"kind": "pie"}, {"most": 0}),
    "a picture of odd items": pictures("odd items", {}, {"kind": "lines"}),
    "a picture with the rest": pictures("total share", {}, {"kind": "lines", "most": 1}),
    "a picture of a sketch": pictures("count-min", {}, {"kind": "lines"}),
    "a picture of people": pictures("people", {"most": 3}),
    "a picture of nothing": pictures("nothing", {}, {"kind": "lines"}),
    "a picture of groups": pictures("by", {}, {"kind": "lines"}, {"most": 1}, {"ax": 1}),
    "a picture of listed groups": pictures("by listed groups", {}, {"kind": "lines"}),
    "a picture of two groupings": pictures("by two", {}),
    "a picture of counts": pictures("counts by", {}),
    "a picture of days": pictures("counts by day", {}),
    "a picture of two columns": pictures("counts by two", {}),
    "a picture of means": pictures("means by people", {"confidence": 0.95}),
    "a picture of no groups": pictures("no groups", {}),
    "pictures over time": picture_over_time,
    "increases": increases,
    **{f"report of {name}": report(name) for name, _ in reports()},
    "stored": stored,
    "damaged": damaged,
    **{f"tick of {name}": lambda told_of=told_of: ticks(told_of) for name, told_of in TICKS.items()},
    "noises": noises,
    "models": models,
    "over time": over_time,
    **{f"chart of {name}": lambda name=name: line_chart("Visits & more", CHARTS[name]) for name in CHARTS},
    "labels": lambda: [[cut(texts, most), short(texts, most)] for texts in TEXTS for most in (5, 8, 9)],
    "readable": lambda: [
        readable(item) for item in (*ODD, ("a", 1), b"\xff", None, 1.5, True, "\u200d", datetime.date(2025, 1, 2))
    ],
    "free names": lambda: [
        free_names(names) for names in (["a", "a"], ["count", "count_"], ["lower", "x", "shard"], ["a", "a_", "a"])
    ],
    "estimates": lambda: [[describe_estimate(one, 0.9), estimate_table("density", one, 0.9, 50)] for one in ESTIMATES],
    "on a simplex": lambda: [
        [on_simplex(np.array(v), 2.0), within_simplex(np.array(v), 2.0)]
        for v in ([0.5, 0.5], [3.0, 1.0, -1.0], [-1.0, -2.0], [0.1])
    ],
    "limits of confidence": lambda: each(lambda sure: made("rows").bounds(sure)[0], 1e-9, 0.999999999, 0, 1, "x"),
}
