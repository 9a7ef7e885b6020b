"""The comparison with other libraries scores right, chooses the best m, and runs without any of them."""

import importlib
import math
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRUTH = {"a": 100, "b": 50, "c": 20, "d": 20, "e": 5}


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("peers")


def test_hits_and_error_are_of_the_k_largest_published(peers):
    found = peers.score({"a": 110.0, "e": 10.0, "b": 40.0}, TRUTH, k=2)
    assert found.hits == 2
    assert found.error == pytest.approx((0.1 + 0.2) / 2)
    assert peers.score({"a": 110.0, "e": 60.0, "b": 40.0}, TRUTH, k=2).hits == 1


def test_items_as_frequent_as_the_last_of_the_top_are_hits(peers):
    assert peers.score({"a": 100.0, "b": 50.0, "d": 20.0}, TRUTH, k=3) == (3, 0.0, 0.0)
    assert peers.score({"a": 100.0, "b": 50.0, "c": 20.0}, TRUTH, k=3) == (3, 0.0, 0.0)
    assert peers.score({"a": 100.0, "b": 50.0, "e": 5.0}, TRUTH, k=3) == (2, 0.0, 0.0)


def test_with_fewer_items_than_k_all_are_of_the_top(peers):
    assert peers.score(dict.fromkeys(TRUTH, 1.0), TRUTH, k=100).hits == len(TRUTH)


def test_an_empty_list_has_no_error(peers):
    assert peers.score({}, TRUTH) == (0, None, 0.0)
    both = peers.mean([peers.Score(0, None, 1.0), peers.Score(4, 0.5, 3.0)])
    assert both == (2, 0.5, 2.0)


@pytest.mark.parametrize(("best", "most"), [(1, 200), (5, 200), (10, 200), (100, 200), (20, 12), (1, 1)])
def test_the_oracle_finds_the_best_m(peers, best, most):
    seen = []

    def release(m):
        seen.append(m)
        return peers.Score(100 - abs(math.log(m / best)), 0.1)

    assert peers.best_m(release, most) == best
    assert max(seen) <= next(m for m in (*peers.GRID, 1_000) if m >= most or m == peers.GRID[-1])


def test_the_oracle_looks_beyond_lists_that_are_empty(peers):
    assert peers.best_m(lambda m: peers.Score(m == 100, None), 1_000) == 100
    assert peers.best_m(lambda m: peers.Score(m == 1, None), 1_000) == 1


def test_of_equal_lists_the_smaller_error_is_better(peers):
    assert peers.best_m(lambda m: peers.Score(7, 0.1 + abs(m - 20)), 1_000) == 20


def test_ours_alone_on_a_small_file(peers, tmp_path, capsys, monkeypatch):
    path, page = tmp_path / "visits.dat", tmp_path / "page.md"
    path.write_text("1 2 3\n" * 900 + "1 2\n" * 300 + "4\n")
    page.write_text("before\n<!-- files: begin -->\nold\n<!-- files: end -->\nafter\n")
    monkeypatch.setattr(peers, "write", lambda text, of, write=peers.write: write(text, of, page))
    monkeypatch.chdir(tmp_path)
    peers.main(["--only", "none", "--data", "visits.dat", "--peers", "--repeats", "1", "--epsilons", "4", "--write"])
    out = capsys.readouterr().out
    assert "PipelineDP left out, OpenDP left out, Tumult Analytics left out" in out
    assert "| visits.dat | 1,201 | 4 | 3, " in out
    assert "No other library took part: nothing was compared." in out
    assert page.read_text() == f"before\n<!-- files: begin -->\n{out}<!-- files: end -->\nafter\n"


def test_a_page_without_a_place_for_the_table_stays_as_it_is(peers, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# No marks\n")
    with pytest.raises(SystemExit, match="has no place for the table"):
        peers.write("a table", "files", page)
    assert page.read_text() == "# No marks\n"


def test_the_page_has_a_place_for_both_tables(peers):
    text = peers.PAGE.read_text()
    for of in ("made up", "files"):
        assert text.count(f"<!-- {of}: begin -->\n") == text.count(f"<!-- {of}: end -->\n") == 1
