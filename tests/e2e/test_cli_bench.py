import json


def test_every_way_is_timed(discreet):
    done = discreet("bench", "--items", 10_000, "--capacity", 64, "--rounds", 1, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["items"] == 10_000
    rows = {(row["input"], row["what"]): row for row in found["rows"]}
    assert len(rows) == len(found["rows"]) == 16
    assert all(row["million_items_per_second"] > 0 for row in rows.values())
    peers = [row for row in found["rows"] if row["what"].startswith("pyarrow")]
    assert [row["ratio"] for row in peers] == [1.0, 1.0]


def test_the_table_and_wrong_numbers(discreet):
    done = discreet("bench", "--items", 10_000, "--capacity", 64, "--rounds", 1)
    assert done.returncode == 0
    assert "MisraGries, 2 workers" in done.stdout
    wrong = discreet("bench", "--items", 5)
    assert wrong.returncode == 2
    assert not wrong.stdout
