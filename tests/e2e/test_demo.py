"""`make demo` does what the README shows."""

import json
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_runs_from_log_to_refusal(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/budgets.sqlite").write_text("what an earlier run left")
    done = subprocess.run([sys.executable, DEMO, "100000"], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "private top list" in done.stdout
    assert "are in the exact top" in done.stdout
    assert "Refused with exit code 3" in done.stdout
    assert "synthetic person 7" in done.stdout.split("Without --user", 1)[1]  # what rows do not hide
    release = json.loads((tmp_path / "out/top.json").read_text())
    assert len(release["items"]) == 20
    assert release["guarantee"]["unit"]["name"] == "User"
    assert not any("synthetic person" in row["item"] for row in release["items"])
    assert (tmp_path / "out/top.png").read_bytes().startswith(b"\x89PNG")
