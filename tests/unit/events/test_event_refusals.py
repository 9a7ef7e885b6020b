"""Data and places that cannot be meant: refused by name, before anything is read or spent."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.events.queues import topic_of

BUDGET = dc.Budget(1.0, 1e-6)
TABLE = pa.table({"item": ["a", "b"], "who": [1, 2], "when": ["2026-11-15", "2026-11-16"], "list": [["a"], ["b"]]})


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "DISCREET_KAFKA_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def count(path, **how):
    return dc.count(dc.read(path, **how), BUDGET)


REFUSED = {
    "an endpoint of the web": (
        lambda: count("https://h.example/a.csv", endpoint="https://m.example"), ParameterError, "needs none",
    ),
    "an endpoint with a path": (
        lambda: count("s3://bucket/a.csv", endpoint="https://m.example/path"), ParameterError, "a URL without a path",
    ),
    "an endpoint without a scheme": (
        lambda: count("s3://bucket/a.csv", endpoint="m.example:9000"), ParameterError, "a URL without a path",
    ),
    "a password in a URL": (lambda: count("s3://me:secret@bucket/a.csv"), ParameterError, "must not hold credentials"),
    "no bucket": (lambda: count("s3:///a.csv"), ParameterError, "names no bucket"),
    "a pattern of the web": (lambda: count("https://h.example/*.csv"), ParameterError, "does not list its files"),
    "no account of Azure": (lambda: count("abfs://container/a.csv"), ParameterError, "no Azure account named"),
    "a topic without a name": (lambda: topic_of("kafka://broker:9092"), ParameterError, "is not a topic"),
    "a topic with a password": (lambda: topic_of("kafka://me:secret@broker:9092/t"), ParameterError, "is not a topic"),
    "a topic of another kind": (lambda: topic_of("amqp://broker/t"), ParameterError, "is not a topic"),
    "groups without by": (lambda: dc.count(TABLE, BUDGET, groups=["x"]), DiscreetError, "groups needs by"),
    "an empty group": (
        lambda: dc.count(TABLE, BUDGET, by="item", groups=["a", None]), DiscreetError, "empty value|null",
    ),
    "columns of other lengths": (
        lambda: dc.count({"a": [1], "b": [1, 2]}, BUDGET), DataError, "the same length",
    ),
    "a user without a column": (
        lambda: dc.top_k(["a", "b"], 1, BUDGET, user="who"), DiscreetError, "user|column",
    ),
    "lists with other columns": (
        lambda: dc.top_k(TABLE, 1, BUDGET, column=["item", "list"], user="who"), DiscreetError, "list",
    ),
    "no column": (
        lambda: dc.top_k(TABLE, 1, BUDGET, column="itm"), DiscreetError, "no column 'itm'.*did you mean 'item'",
    ),
    "a column that is not there": (
        lambda: dc.count(TABLE, BUDGET, by="grp"), DiscreetError, "no column 'grp'; its columns are",
    ),
    "no condition": (lambda: dc.count(TABLE, BUDGET, where="SELECT 1"), DiscreetError, "cannot be read"),
    "a condition without an end": (lambda: dc.count(TABLE, BUDGET, where="item ="), DiscreetError, "cannot be read"),
    "a time without spans": (lambda: dc.count(TABLE, BUDGET, time="when"), DiscreetError, "time needs every"),
    "spans without a time": (lambda: dc.count(TABLE, BUDGET, every="1d"), DiscreetError, "every needs time"),
    "no span": (lambda: dc.count(TABLE, BUDGET, every="1x", time="when"), DiscreetError, "every must be a whole"),
    "no zone": (
        lambda: dc.count(TABLE, BUDGET, every="1d", time="when", zone="Mars"), DiscreetError, "no time zone named",
    ),
    "a file that is not there": (lambda: count("nothing.csv"), DiscreetError, "nothing.csv"),
    "no format": (lambda: count("a.csv", format="xyz"), DiscreetError, "format|xyz"),
    "no encoding": (lambda: count("a.csv", encoding="latin-99"), DiscreetError, "latin-99|encoding"),
    "nulls of another rule": (lambda: dc.top_k(TABLE, 1, BUDGET, column="item", nulls="keep"), DiscreetError, "nulls"),
    "no such plan of bad rows": (lambda: dc.count(TABLE, BUDGET, bad_rows="drop"), DiscreetError, "bad_rows"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what):
    call, kind, words = REFUSED[what]
    with pytest.raises(kind, match=words) as refused:
        call()
    assert "secret" not in str(refused.value)


def test_a_table_of_a_database_may_have_its_schema():
    """It is read when it is asked; files have none."""
    dc.read("postgresql://h.example/db", sql="SELECT item FROM public.logs WHERE item = 'a'")
    dc.read("postgresql://h.example/db", sql="SELECT item FROM logs")
    with pytest.raises(ParameterError, match="a schema or a catalog before a table"):
        dc.read("logs.csv", sql="SELECT item FROM public.logs")
    with pytest.raises(ParameterError, match="a schema or a catalog before a table"):
        dc.read("postgresql://h.example/db", sql="SELECT item FROM other.public.logs")
