"""The choice between the Spark engine's plans, from public numbers; and the engine where there is no Spark."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc
from discreet.central import Merged, ShardedOffset, Summed, UserSketch
from discreet.central._base import frequency_published
from discreet.engines._spark_plans import choose_plan, spark_plans

BUDGET = dc.Budget(1.0, 1e-9)


def test_the_shuffle_plan_publishes_rarer_items_and_moves_more():
    plans = spark_plans(BUDGET, length=10**9, partitions=100, capacity=4096)
    shuffle, merge = plans["shuffle"], plans["merge"]
    assert isinstance(shuffle.mechanism, ShardedOffset)
    assert shuffle.mechanism.shards == 100
    # A shard has a hundredth of the events, and so has its sketch a hundredth of the error.
    assert shuffle.published_from < 10**7 / 4097 + 100
    assert merge.published_from > 10**9 / 4097
    assert merge.bytes_moved < shuffle.bytes_moved / 1000
    assert choose_plan("auto", plans).plan == "shuffle"


def test_merging_sums_sketches_unless_there_are_too_many():
    assert isinstance(spark_plans(BUDGET, partitions=100)["merge"].mechanism, Summed)
    assert isinstance(spark_plans(BUDGET, partitions=5000)["merge"].mechanism, Merged)
    summed = spark_plans(BUDGET, length=10**6, partitions=100, capacity=1000)["merge"]
    merged = Merged(BUDGET, 1000, stream_length=10**6)
    assert summed.published_from < frequency_published(merged, 10**6, 1000, 0.95)


def test_auto_takes_the_merge_plan_where_it_is_about_as_good_or_the_shuffle_is_too_large():
    one = spark_plans(BUDGET, length=10**10, partitions=1, capacity=1000)
    assert one["merge"].published_from <= 1.1 * one["shuffle"].published_from
    chosen = choose_plan("auto", one)
    assert chosen.plan == "merge"
    assert "moves sketches instead of rows" in chosen.because
    many = spark_plans(BUDGET, length=10**12, partitions=200)
    chosen = choose_plan("auto", many)
    assert chosen.plan == "merge"
    assert "would move up to 96,000,000,000,000 bytes" in chosen.because
    assert choose_plan("auto", many, shuffle_limit=2**60).plan == "shuffle"
    # Five times the cluster has five times the disks.
    large = spark_plans(BUDGET, length=10**12, partitions=1000)
    assert choose_plan("auto", large).plan == "shuffle"
    assert choose_plan("auto", large, shuffle_limit=2**40).plan == "merge"
    assert choose_plan("shuffle", many).because == "it was asked for"
    with pytest.raises(dc.ParameterError, match="plan must be one of"):
        choose_plan("best", many)


def test_counters_of_a_sketch():
    """65,536 while the driver has room for those of all shards; or what a task's memory has room for."""
    assert [spark_plans(BUDGET, partitions=p)["shuffle"].capacity for p in (2, 256, 1024, 10**5)] == [
        *(2**16, 2**16, 2**14, 2**12),
    ]
    small, large = (spark_plans(BUDGET, partitions=200, memory=size) for size in ("300MB", "3GB"))
    assert 2**16 < small["shuffle"].capacity < large["shuffle"].capacity
    # One task adds up the sketches of the merge plan, so all of them share its memory.
    assert isinstance(large["merge"].mechanism, Summed)
    assert 100 * large["merge"].capacity < large["shuffle"].capacity
    with pytest.raises(dc.ParameterError, match="give one of them"):
        spark_plans(BUDGET, memory="1GB", capacity=100)
    with pytest.raises(dc.ParameterError, match="too small"):
        spark_plans(BUDGET, memory="10MB")


def test_the_table_of_the_documentation_is_that_of_the_plans():
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text()
    rows = re.findall(r"^\| (shuffle|merge) \| ([\d,]+|any) \| ([\d,]+) \|.*\| ([\d,]+) \|$", page, re.MULTILINE)
    assert len(rows) == 6
    for plan, partitions, capacity, published in rows:
        size = 200 if partitions == "any" else int(partitions.replace(",", ""))
        counters = int(capacity.replace(",", ""))
        found = spark_plans(BUDGET, length=10**12, partitions=size, capacity=counters)[plan]
        assert f"{found.published_from:,}" == published


def test_users_of_many_items_go_to_the_user_level_sketch():
    few, many = (spark_plans(BUDGET, unit=dc.User(m), users=True, partitions=10) for m in (2, 200))
    assert isinstance(few["merge"].mechanism, UserSketch)
    assert choose_plan("auto", few).plan == "shuffle"
    assert choose_plan("auto", many).plan == "merge"
    assert many["merge"].capacity >= 200


@pytest.mark.parametrize(("items", "plan"), [(2, "shuffle"), (100, "merge")])
def test_the_door_for_frames_takes_the_plan_for_users(monkeypatch, items, plan):
    """The merge plan counts users' sets then, with less noise than rows need."""
    asked = {}
    pytest.importorskip("pyspark")
    from discreet.engines import spark as door

    monkeypatch.setattr(door, "Frame", lambda dataframe, **words: dataframe)
    monkeypatch.setattr(dc, "top_k", lambda frame, k, budget, **words: asked.update(words))
    words = {"user": "who", "unit": dc.User(items), "column": "item", "capacity": 1000, "partitions": 2}
    door.top_k(None, 10, dc.Budget(1.0, 1e-6), **words)
    found = {
        users: choose_plan(
            "auto",
            spark_plans(dc.Budget(1.0, 1e-6), k=10, unit=dc.User(items), partitions=2, capacity=1000, users=users),
        ).plan
        for users in (True, False)
    }
    assert found == {True: plan, False: "shuffle"}
    assert asked["mechanism"] == {"shuffle": "offset", "merge": "user"}[plan]


@pytest.mark.parametrize("wrong", [{"partitions": 0}, {"capacity": 0}, {"length": -1}, {"unit": dc.Element()}])
def test_parameters_are_checked(wrong):
    with pytest.raises(dc.ParameterError):
        spark_plans(BUDGET, **wrong)


@pytest.mark.parametrize("module", ["spark", "spark_streaming"])
def test_without_pyspark_the_import_says_what_to_install(module):
    program = f"import sys; sys.modules['pyspark'] = None\nimport discreet.engines.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "pip install 'discreet[spark]'" in done.stderr


def test_nothing_else_loads_spark():
    program = (
        "import sys, discreet as dc, discreet.engines; dc.top_k(['a'], 1, dc.Budget(1.0, 1e-9)); "
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
