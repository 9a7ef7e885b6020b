"""`discreet explain` reads a release in JSON, and nothing else."""

import json

import pytest

import discreet as dc
from discreet.cli.explain import explain as command

GUARANTEE = dc.Guarantee(dc.Event(), 1.0, 1e-9, "some mechanism").to_dict()


def explain(path):
    command([path], standalone_mode=False)


def test_the_command_reads_a_release(tmp_path, capsys):
    path = tmp_path / "release.json"
    path.write_text(json.dumps({"guarantee": GUARANTEE, "items": []}))
    explain(str(path))
    assert "What is protected" in capsys.readouterr().out
    for bad in ("{}", "[]", "nonsense", '{"guarantee": {}}', '{"guarantee": 3}'):
        path.write_text(bad)
        with pytest.raises(dc.DataError):
            explain(str(path))
    with pytest.raises(dc.DataError):
        explain(str(tmp_path / "missing.json"))
