"""Ticks of a streaming query: exactly one release a batch, whatever is repeated."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DiscreetError

# Noise of this budget is 0, but for a probability far below 1e-9 a count.
PLENTY = dc.Budget(400.0, 1e-2)


@pytest.fixture
def make(spark):
    from discreet.engines.spark_streaming import Ticks

    return Ticks


def write(folder, *batches):
    """One file a batch, read in this order: 10 a and 5 b of each, and what is given."""
    (folder / "in").mkdir(exist_ok=True)
    first = len(list((folder / "in").iterdir()))
    for number, more in enumerate(batches, start=first):
        path = folder / "in" / f"{number:03d}.txt"
        path.write_text("\n".join(["a"] * 10 + ["b"] * 5 + list(more)) + "\n")
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def run(spark, folder, ticks):
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    query = stream.writeStream.foreachBatch(ticks).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def account_of(folder):
    ledger = dc.Ledger(folder / "ledger.sqlite")
    ledger.grant("rows", PLENTY)
    return ledger.account("rows")


def shown(release):
    return dict(zip(release.items, release.counts.tolist(), strict=True))


def test_a_driver_that_is_killed_goes_on_from_the_checkpoint(spark, make, tmp_path):
    """Killed after the state was written and before Spark wrote its commit; then a new driver."""
    write(tmp_path, [], [], [])
    account = account_of(tmp_path)
    script = Path(__file__).with_name("stream_until_killed.py")
    killed = subprocess.run(
        [sys.executable, script, tmp_path],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=240,
        check=False,
    )
    assert killed.returncode == -9
    assert {path.name for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit()} == {"0"}
    before = dict(line.split(b" ", 1) for line in (tmp_path / "seen").read_bytes().splitlines())
    assert set(before) == {b"0", b"1"}
    seen = {}
    ticks = make(
        dc.continual.HeavyHitters(8, PLENTY, 16, ledger=account),
        "value",
        tmp_path / "state",
        lambda release, batch_id: seen.setdefault(batch_id, release),
    )
    run(spark, tmp_path, ticks)
    assert set(seen) == {1, 2}
    assert seen[1].to_payload() == before[b"1"]
    assert shown(seen[1]) == {"a": 20, "b": 10}
    assert shown(seen[2]) == {"a": 30, "b": 15}
    assert [event.kind for event in account.history()].count("charge") == 1
    assert "batches are public" in seen[2].guarantee.assumptions[-1]


def test_failures_before_and_after_the_state_is_written(spark, make, tmp_path, monkeypatch):
    """A query that stops between draw, state and delivery publishes every batch once, and counts every event once."""
    from discreet.storage import StateFile

    write(tmp_path, ["c"] * 30, [], [])
    account = account_of(tmp_path)
    published, drawn = {}, []
    replace = StateFile.replace

    def attempt(fail_at, fails):
        def replacing(kept, data):
            if fail_at == "save" and drawn:
                raise OSError("the disk is full")
            replace(kept, data)

        def deliver(release, batch_id):
            published.setdefault(batch_id, []).append(release.to_payload())
            if fail_at == "deliver":
                raise RuntimeError("the network is down")

        mechanism = dc.continual.Histogram(8, PLENTY, max_items_per_event=1, ledger=account)
        drawn.clear()
        step = dc.continual.Histogram.step
        monkeypatch.setattr(
            dc.continual.Histogram, "step", lambda *given, **named: drawn.append(1) or step(*given, **named)
        )
        monkeypatch.setattr(StateFile, "replace", replacing)
        ticks = make(mechanism, "value", tmp_path / "state", deliver)
        if fails:
            with pytest.raises(Exception, match=r"disk is full|network is down"):
                run(spark, tmp_path, ticks)
        else:
            run(spark, tmp_path, ticks)
        monkeypatch.undo()
        return len(drawn)

    assert attempt("save", fails=True) == 1
    assert published == {}
    assert attempt("deliver", fails=True) == 1
    assert attempt("deliver", fails=True) == 0
    assert attempt("", fails=False) == 2
    assert len(published[0]) == 3
    assert all(len(set(payloads)) == 1 for payloads in published.values())
    last = dc.Release.from_payload(published[2][0])
    assert shown(last) == {"a": 30, "b": 15, "c": 30}
    assert [event.kind for event in account.history()].count("charge") == 1


def test_what_does_not_belong_together_is_refused(spark, make, tmp_path):
    def batch(values):
        return spark.createDataFrame(pa.table({"value": pa.array(values)}))

    seen = []
    settings = {"column": "value", "state": tmp_path / "state", "deliver": lambda *given: seen.append(given)}
    ticks = make(dc.continual.HeavyHitters(2, PLENTY, 16), **settings)
    with pytest.raises(dc.DataError, match="nulls"):
        ticks(batch(["secret", None]), 0)
    with pytest.raises(DiscreetError, match="after 0 batches, Spark is at batch 3"):
        ticks(batch(["a"]), 3)
    ticks(batch(["a"] * 90), 0)
    ticks(batch(["other rows"]), 0)
    assert [shown(release) for release, _ in seen] == [{"a": 90}] * 2
    with pytest.raises(dc.ParameterError, match="other settings"):
        make(dc.continual.HeavyHitters(2, PLENTY, 17), **settings)(batch(["a"]), 1)
    with pytest.raises(dc.DataError, match="one item per row"):
        ticks(batch([["a"]]), 1)
    used = dc.continual.HeavyHitters(2, PLENTY, 16)
    used.step(["a"])
    with pytest.raises(dc.ParameterError, match="before its first tick"):
        make(used, **settings)
    with pytest.raises(dc.ParameterError, match="HeavyHitters or"):
        make(dc.continual.Counter(2, PLENTY), **settings)
    skipping = make(dc.continual.HeavyHitters(2, PLENTY, 16), **settings, nulls="skip")
    skipping(batch(["a"] * 5 + [None]), 1)
    assert shown(seen[-1][0]) == {"a": 95}
    with pytest.raises(dc.ParameterError, match="horizon"):
        ticks(batch(["a"]), 2)
    (tmp_path / "state").write_bytes(b"nonsense")
    with pytest.raises(dc.CorruptStateError):
        ticks(batch(["a"]), 2)
    assert "secret" not in repr(ticks)


def test_a_state_of_another_query(spark, make, tmp_path):
    """A deleted checkpoint starts at batch 0 again: its rows must not be taken for those that were published."""
    write(tmp_path, [])
    new = lambda: make(dc.continual.HeavyHitters(4, PLENTY, 16), "value", tmp_path / "state", lambda *given: None)  # noqa: E731
    run(spark, tmp_path, new())
    (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="another query"):
        run(spark, tmp_path, new())


def test_events_of_several_items(spark, make, tmp_path):
    seen = []
    mechanism = dc.continual.Histogram(4, PLENTY, max_items_per_event=2)
    ticks = make(mechanism, "value", tmp_path / "state", lambda release, batch_id: seen.append(shown(release)))
    ticks(spark.createDataFrame(pa.table({"value": [["a", "b"], ["a", "a", "c", "d"]] * 20})), 0)
    assert seen == [{"a": 40, "b": 20, "c": 20}]


def test_the_example_of_the_documentation_runs(spark, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()
    (example,) = [code for code in re.findall(r"```python spark\n(.*?)```", page, re.DOTALL) if "Ticks" in code]
    write(tmp_path, [])
    seen = threading.Event()
    names = {
        "dc": dc,
        "account": account_of(tmp_path),
        "stream": spark.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "query"),
        "publish": lambda release, batch_id: seen.set(),
    }
    exec(compile(example.replace("/durable", str(tmp_path)), "docs/engines.md", "exec"), names)
    try:
        assert seen.wait(300)
    finally:
        names["query"].stop()


def test_an_old_state_and_checkpoint_copied_back(spark, make, tmp_path):
    """With a ledger the batches that were released are not drawn again; a second run hands them out and pays."""
    budget = dc.Budget(1.0, 1e-6)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(3.0, 1e-5))
    account = ledger.account("rows")
    seen = []

    def ticks(restored=False):
        mechanism = dc.continual.HeavyHitters(8, budget, 16, ledger=account)
        deliver = lambda release, batch_id: seen.append((batch_id, release.to_payload()))  # noqa: E731
        return make(mechanism, "value", tmp_path / "state", deliver, restored=restored)

    write(tmp_path, ["a"] * 500, ["a"] * 500)
    run(spark, tmp_path, ticks())
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "old checkpoint")
    shutil.copy(tmp_path / "state", tmp_path / "old state")
    write(tmp_path, ["a"] * 500, ["a"] * 500)
    run(spark, tmp_path, ticks())
    published = dict(seen)
    assert sorted(published) == [0, 1, 2, 3]
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "old checkpoint", tmp_path / "checkpoint")
    shutil.copy(tmp_path / "old state", tmp_path / "state")
    seen.clear()
    with pytest.raises(Exception, match="at step 2, and step 4 was published"):
        run(spark, tmp_path, ticks())
    assert not seen
    write(tmp_path, ["a"] * 500)
    run(spark, tmp_path, ticks(restored=True))
    assert [batch_id for batch_id, _ in seen] == [2, 3, 4]
    assert dict(seen)[2] == published[2]
    assert dict(seen)[3] == published[3]
    assert [event.kind for event in account.history()].count("charge") == 2


def test_a_state_that_is_lost_after_the_first_delivery(spark, make, tmp_path):
    """Spark repeats batch 0, whose commit it did not write: no second release of it, and no second charge."""
    write(tmp_path, [])
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(800.0, 2e-2))
    seen = []

    def failing(release, batch_id):
        seen.append(release)
        raise RuntimeError("the network is down")

    def ticks():
        mechanism = dc.continual.HeavyHitters(8, PLENTY, 16, ledger=ledger.account("rows"))
        return make(mechanism, "value", tmp_path / "state", failing)

    with pytest.raises(Exception, match="network is down"):
        run(spark, tmp_path, ticks())
    (tmp_path / "state").unlink()
    with pytest.raises(Exception, match="at step 0, and step 1 was published"):
        run(spark, tmp_path, ticks())
    assert len(seen) == 1
    assert [event.kind for event in ledger.history("rows")].count("charge") == 1
