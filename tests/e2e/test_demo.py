"""`make demo` does what the README shows."""

import json
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_runs_from_log_to_refusal(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/budgets.sqlite").write_text("what an earlier run left")
    done = subprocess.run([sys.executable, DEMO, "20000"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "private top list" in done.stdout
    assert "of 20 are in the exact top 20" in done.stdout
    assert "Refused with exit code 3" in done.stdout
    release = json.loads((tmp_path / "out/top.json").read_text())
    assert len(release["items"]) == 20
    assert not any("synthetic person" in row["item"] for row in release["items"])
    assert (tmp_path / "out/top.png").read_bytes().startswith(b"\x89PNG")
