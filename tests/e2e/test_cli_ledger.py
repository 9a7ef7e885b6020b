"""`discreet ledger`, as an operator runs it."""

import json
import re

import pytest

import discreet as dc


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budgets.sqlite"


def test_grant_show_history_export(discreet, path, tmp_path):
    granted = discreet("ledger", "grant", "--ledger", path, "--account", "searches", "--epsilon", 4, "--delta", 1e-7)
    assert (granted.returncode, granted.stdout) == (0, "")
    assert "epsilon=4, delta=1e-07" in granted.stderr
    account = dc.Ledger(path).account("searches")
    account.begin("monday", dc.Budget(1.0, 1e-9), mechanism="offset")
    account.store("monday", b'{"items": []}')
    account.charge(dc.Budget(0.5), charge_id="bare \x1b"[:4])

    shown = discreet("ledger", "show", "--ledger", path)
    assert shown.returncode == 0
    assert "searches" in shown.stdout
    assert "epsilon=4" in shown.stdout
    report = json.loads(discreet("ledger", "show", "--ledger", path, "--format", "json").stdout)
    (searches,) = report["accounts"]
    assert searches["charges"] == 2
    assert searches["spent"]["epsilon"] == pytest.approx(1.5, rel=1e-3)
    assert searches["remaining"]["epsilon"] == pytest.approx(2.5, rel=1e-2)

    history = discreet("ledger", "history", "--ledger", path, "--account", "searches")
    assert [word in history.stdout for word in ("grant", "monday", "offset", "epsilon=0.5")] == [True] * 4
    events = json.loads(discreet("ledger", "history", "--ledger", path, "--format", "json").stdout)["events"]
    assert [event["kind"] for event in events] == ["grant", "charge", "release", "charge"]

    lines = discreet("ledger", "export", "--ledger", path).stdout.splitlines()
    assert [json.loads(line).get("release") for line in lines] == [None, None, {"items": []}, None]
    out = tmp_path / "audit.jsonl"
    assert discreet("ledger", "export", "--ledger", path, "--output", out).stdout == ""
    assert out.read_text().splitlines() == lines


def test_verify_and_backup(discreet, path, tmp_path):
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(1.0))
    ledger.account("searches").charge(dc.Budget(0.5))
    verified = discreet("ledger", "verify", "--ledger", path)
    told = "verified 2 events: nothing was altered, and the totals are right\n"
    assert (verified.returncode, verified.stdout) == (0, told)
    copy = tmp_path / "copy.sqlite"
    done = discreet("ledger", "backup", "--ledger", path, "--output", copy)
    assert done.returncode == 0, done.stderr
    assert dc.Ledger(copy).history() == ledger.history()
    ledger.account("searches").charge(dc.Budget(0.25))
    again = discreet("ledger", "backup", "--ledger", path, "--output", copy)
    assert again.returncode == 1
    assert "never replaces" in again.stderr
    assert len(dc.Ledger(copy).history()) == 2


def test_what_is_said_is_said_once(discreet, path):
    """`show` and a refusal use the same words, with spent rounded up and remaining down."""
    ledger = dc.Ledger(path)
    ledger.grant("a", dc.Budget(4.0, 1e-8))
    account = ledger.account("a")
    account.charge(dc.Budget(1.0, 1e-9))
    assert "epsilon=1, delta=1e-09" in discreet("ledger", "show", "--ledger", path).stdout  # not the grant's delta
    account.charge(dc.Budget(1 / 3, 1e-9))
    shown = discreet("ledger", "show", "--ledger", path).stdout
    assert "epsilon=1.33334, delta=2e-09   epsilon=2.66666, delta=8e-09" in shown
    with pytest.raises(dc.BudgetExceededError) as caught:
        account.charge(dc.Budget(3.0, 1e-9))
    message = str(caught.value)
    assert "spent epsilon=1.33334, delta=2e-09 in 2 charges, remaining epsilon=2.66666, delta=8e-09" in message


def test_an_adaptive_grant(discreet, path):
    grant = ["ledger", "grant", "--ledger", path, "--account", "a", "--epsilon", 1]
    done = discreet(*grant, "--adaptive")
    assert done.returncode == 0, done.stderr
    assert "added up" in done.stderr
    assert "added up" in discreet(*grant).stderr  # it stays so
    assert "(adaptive)" in discreet("ledger", "show", "--ledger", path).stdout
    assert "(adaptive)" in discreet("ledger", "history", "--ledger", path).stdout
    (report,) = json.loads(discreet("ledger", "show", "--ledger", path, "--format", "json").stdout)["accounts"]
    assert report["adaptive"] is True


def test_a_grant_of_rhos_for_budgets_chosen_as_one_goes(discreet, path):
    grant = ["ledger", "grant", "--ledger", path, "--account", "a", "--epsilon", 4, "--delta", 1e-5]
    done = discreet(*grant, "--accounting", "zcdp")
    assert done.returncode == 0, done.stderr
    assert "zcdp, adaptive, at most rho=0.364112 (zCDP), delta=2.5e-06" in done.stderr
    dc.Ledger(path).account("a").charge(dc.Budget(0.5, 1e-6))
    shown = discreet("ledger", "show", "--ledger", path).stdout
    assert "zcdp (adaptive" in shown
    assert re.search(r"epsilon=\S+ or rho=\S+ \(zCDP\), delta=1\.5e-06", shown)
    assert "costs rho=" in discreet("ledger", "history", "--ledger", path).stdout
    (report,) = json.loads(discreet("ledger", "show", "--ledger", path, "--format", "json").stdout)["accounts"]
    assert (report["accounting"], report["filter"]["delta_share"]) == ("zcdp", 0.25)
    assert min(report["remaining"][scale] for scale in ("epsilon", "delta", "rho")) > 0.0
    assert discreet(*grant, "--delta-share", 0.5).returncode == 1  # there is a charge
    assert discreet(*grant[:-2], "--accounting", "zcdp").returncode == 2  # no delta


def test_a_zcdp_grant(discreet, path):
    assert discreet("ledger", "grant", "--ledger", path, "--account", "a", "--rho", 0.5).returncode == 0
    assert dc.Ledger(path).account("a").granted == dc.Budget.zcdp(0.5)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show"], 2),
        (["show", "--ledger", "missing.sqlite"], 1),
        (["show", "--ledger", "no/such/directory.sqlite"], 1),
        (["show", "--ledger", "garbage.sqlite"], 1),
        (["show", "--ledger", "{path}", "--account", "typo"], 1),
        (["history", "--ledger", "{path}", "--account", "typo"], 1),
        (["grant", "--ledger", "{path}", "--account", "a"], 2),
        (["grant", "--ledger", "{path}", "--account", "a", "--epsilon", "-1"], 2),
        (["grant", "--ledger", "{path}", "--account", "a", "--epsilon", "1", "--delta", "2"], 2),
        (["grant", "--ledger", "{path}", "--account", "a", "--epsilon", "1", "--rho", "1"], 2),
        (["grant", "--ledger", "{path}", "--account", "", "--epsilon", "1"], 2),
        (["grant", "--ledger", "{path}", "--account", "spent", "--epsilon", "0.1"], 1),
        (["export", "--ledger", "{path}", "--output", "no/such/directory.jsonl"], 1),
        (["backup", "--ledger", "{path}", "--output", "no/such/directory.sqlite"], 1),
        (["backup", "--ledger", "{path}", "--output", "{path}"], 1),
        (["backup", "--ledger", "{path}"], 2),
        (["verify", "--ledger", "garbage.sqlite"], 1),
        (["verify", "--ledger", "missing.sqlite"], 1),
        (["reset", "--ledger", "{path}"], 2),
    ],
)
def test_errors_have_codes_and_no_tracebacks(discreet, path, tmp_path, arguments, code):
    ledger = dc.Ledger(path)
    ledger.grant("spent", dc.Budget(1.0))
    ledger.account("spent").charge(dc.Budget(1.0))
    (tmp_path / "garbage.sqlite").write_bytes(b"x" * 5000)
    before = ledger.history()
    done = discreet("ledger", *[argument.format(path=path) for argument in arguments], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "missing.sqlite").exists()
    assert ledger.history() == before


def test_terminal_codes_in_names_are_not_sent_to_the_terminal(discreet, path):
    """Names are checked when they are made; a payload made elsewhere is shown as JSON, which escapes them."""
    with pytest.raises(dc.ParameterError):
        dc.Ledger(path).grant("\x1b[2J", dc.Budget(1.0))


def test_an_account_is_moved_by_command(discreet, tmp_path):
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    for command in (("create", "--ledger", new), ("grant", "--ledger", old, "--account", "a", "--epsilon", 1)):
        assert discreet("ledger", *command).returncode == 0
    moved = discreet("ledger", "move", "--ledger", old, "--account", "a", "--to", new)
    assert (moved.returncode, "moved 1 event of account 'a' to " in moved.stderr) == (0, True)
    shown = discreet("ledger", "show", "--ledger", old)
    assert "moved to" in shown.stdout
    again = discreet("ledger", "grant", "--ledger", old, "--account", "a", "--epsilon", 2)
    assert again.returncode == 1
    assert "was moved to" in again.stderr
    roles = discreet("ledger", "create", "--ledger", new, "--may-charge", "job")
    assert roles.returncode == 2
    assert "a ledger file has no roles" in roles.stderr
    other = discreet("ledger", "show", "--ledger", "mysql://host/db")
    assert other.returncode == 2
