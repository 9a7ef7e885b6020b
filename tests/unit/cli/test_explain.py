"""`discreet explain` reads a release in JSON, and nothing else."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import yaml
from tests.commands import run_here

import discreet as dc
from discreet.cli.explain import explain as command
from discreet.releases.explain import COUNTED
from discreet.releases.formats import formats_of, notes_of

GUARANTEE = dc.Guarantee(dc.Event(), 1.0, 1e-9, "some mechanism").to_dict()


def explain(path, *more):
    command([str(path), *map(str, more)], standalone_mode=False)


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


@pytest.fixture
def release(tmp_path):
    """A release of rows, as a file."""
    path = tmp_path / "release.json"
    path.write_text(dc.top_k(["a"] * 900 + ["b"] * 500, k=2, budget=dc.Budget(1.0, 1e-9)).to_json())
    return path


def test_a_sheet_has_what_somebody_signs(release, tmp_path, capsys):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("readers", dc.Budget(4.0, 1e-7))
    account = ledger.account("readers")
    top = dc.top_k(["a"] * 900, k=1, budget=dc.Budget(1.0, 1e-9), ledger=account, charge_id="monday")
    account.charge(dc.Budget(0.5), mechanism="another")
    release.write_text(top.to_json())
    explain(release, "--sheet", "--data", "search log", "--period", "week 12",
            "--ledger", tmp_path / "budgets.sqlite", "--account", "readers")  # fmt: skip
    sheet = capsys.readouterr().out
    facts = dict(line.split(":", 1) for line in sheet.splitlines() if ":" in line and not line.startswith("-"))
    said = {name: value.strip() for name, value in facts.items()}
    assert (said["Data set"], said["Period"], said["Account"], said["Charge id"]) == (
        "search log", "week 12", "readers", "monday",
    )  # fmt: skip
    assert said["All about these people"] == "epsilon=1.5, delta=1e-09 of epsilon=4, delta=1e-07"
    assert said["This release"].startswith("epsilon = 1, delta = 1e-09: a factor of 2.72")
    assert said["Threshold"].startswith(str(json.loads(release.read_text())["threshold"]))
    assert said["Version"] == f"discreet {dc.__version__}"
    assert "486 million" in sheet
    assert sheet.count("- [ ] ") >= 5
    assert "Signature" in sheet
    page = (Path(__file__).parents[3] / "docs" / "nist.md").read_text()
    fields = {line.split("|")[4].strip() for line in page.splitlines() if line.startswith("| ")} - {
        "field of the sheet"
    }
    assert len(fields) >= 10
    assert fields <= {*said}  # what the page about the guidelines of NIST refers to is there


def test_a_sheet_says_what_the_threshold_of_people_is_and_what_intervals_contain(tmp_path, capsys):
    """It is the cut of discovery, in people who have nothing else: a listed count may be lower."""
    table = {"who": [*range(3000)], "what": ["a", "b", "c"] * 1000, "worth": [2.0] * 3000}
    asked = {"column": "what", "user": "who"}
    for more, says in (
        ({}, "The intervals contain the true numbers: their upper ends allow for what was left out"),
        ({"count": "rows"}, "as long as people have up to 2 rows. The rows of people with more may be"),
        ({"value": "worth", "value_range": (0, 10)}, "as long as people have values of up to 20 in all."),
    ):
        path = tmp_path / "release.json"
        made = dc.top_k(table, 5, dc.Budget(1.0, 1e-6), **asked, **more)
        path.write_text(made.to_json())
        explain(path, "--sheet")
        sheet = " ".join(capsys.readouterr().out.split())
        assert f"Threshold: an item is found from about {made.threshold:g} people if they have no other items" in sheet
        assert "Listed counts may be below it" in sheet
        assert "what is below is not listed" not in sheet
        assert says in sheet
        explain(path)
        assert says in " ".join(capsys.readouterr().out.split())
        assert says in " ".join(made.notes())
        assert says in made._repr_html_()


def test_a_sheet_says_that_a_threshold_is_above_the_offset(release, capsys):
    explain(release, "--sheet")
    assert "more than the offset (what is below is not listed)" in capsys.readouterr().out


def test_a_sheet_leaves_open_what_it_does_not_know(release, capsys):
    explain(release, "--sheet")
    lines = {line.split(":")[0]: line for line in capsys.readouterr().out.splitlines()}
    for name in ("Data set", "Period", "All about these people", "Account", "Charge id"):
        assert lines[name].endswith("_____")


def test_nobody_signs_a_seeded_release(tmp_path, capsys):
    path = tmp_path / "release.json"
    path.write_text(json.dumps({"guarantee": {**GUARANTEE, "seeded": True}, "items": []}))
    explain(path, "--sheet")
    assert "NOT PRIVATE" in capsys.readouterr().out
    explain(path, "--registry")
    assert "NOT PRIVATE" in yaml.safe_load(capsys.readouterr().out)["deployment"]["basic"]["description"]


# The registry's schema: its fields, those that are required, and its enumerations.
FIELDS = {
    "basic": {"name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description",
              "publication_date", "data_product_sector"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "actors", "release_type", "release_type_details",
                         "data_source_type", "data_source_type_details", "access_type", "access_type_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "notes", "registry_authors"},
}  # fmt: skip
CHOICES = {
    ("basic", "data_product_type"): {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
                                     "Interactive API", "SQL queries"},
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
}  # fmt: skip


def fits_the_registry(entry):
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    deployment = entry["deployment"]
    assert set(deployment) <= set(FIELDS)
    assert FIELDS["basic"] - {"data_product_sector"} == set(deployment["basic"])
    for part, values in deployment.items():
        assert set(values) <= FIELDS[part]
        for name, value in values.items():
            assert value in CHOICES.get((part, name), [value])
            if name not in ("data_curators", "registry_authors", "privacy_parameters"):
                assert isinstance(value, str)
                assert value
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", deployment["basic"]["publication_date"])
    loss = deployment["privacy_loss"]["privacy_parameters"]
    assert set(loss) <= {"epsilon", "delta", "rho"}
    assert all(isinstance(value, float) for value in loss.values())
    return deployment


def test_the_entry_of_the_registry(release, capsys):
    explain(release, "--registry", "--data", "search log")
    entry = yaml.safe_load(capsys.readouterr().out)
    deployment = fits_the_registry(entry)
    assert entry["url_slug"] == "search-log"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-9}
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["privacy_loss"]["privacy_unit"] == dc.Event().describe()
    assert deployment["deployment_model"]["release_type"] == "One release"
    assert deployment["basic"]["intended_use"] == "FILL IN"


@pytest.mark.parametrize(
    "wrong",
    [["--sheet", "--registry"], ["--data", "x"], ["--account", "x"], ["--sheet", "--ledger", "x"],
     ["--registry", "--account", "x"]],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(release, wrong):
    with pytest.raises(dc.ParameterError):
        explain(release, *wrong)


ASKED = {  # a command, what its sheet must say, and the horizon of its entry
    "top v.csv --column page --unit row --epsilon 1 --delta 1e-6": ("counts of events, at most 100", "one release"),
    "top v.csv --column page --user who --epsilon 1 --delta 1e-6": ("counts of people", "one release"),
    "top v.csv --column page --by who --unit row --epsilon 1 --delta 1e-6": ("in every group", "one release"),
    "top v.csv --column page --where n>5 --unit row --epsilon 1 --delta 1e-6": ("of rows where n>5", "one release"),
    "count v.csv --user who --epsilon 1": ("the number of people", "one release"),
    "distinct v.csv --column page --user who --rho 0.1": ("the number of different values", "one release"),
    "histogram v.csv --column page --universe u.txt --epsilon 1": ("items with counts of events", "one release"),
    "quantiles v.csv --column n --quantile 0.5 --range 0 9 --epsilon 1": ("values from 0 to 9", "one release"),
    "report r.toml": ("to 2 questions (Count: the number of rows; Pages: items with counts of events", "one release"),
    "watch v.csv --column page --rows 100 --horizon 24 --once --state a --epsilon 1 --delta 1e-6": ("ticks 1 to 9", 24),
    "watch v.csv --rows 100 --horizon 24 --once --state b --total --rho 0.1": ("the number of rows so far", 24),
    "watch v.csv --rows 100 --once --state c --total --rho 0.1": (
        "any number of ticks, for which",
        "any number of ticks",
    ),
    "pan distinct v.csv --column who --epsilon 1": ("one number (DistinctCount)", None),
    "party aggregate --round round.json m --top 2": ("parties: counts of items", "one release"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_releases_of_every_command_have_a_sheet_and_an_entry(asked, tmp_path):
    (tmp_path / "u.txt").write_text("a\nb\n")
    (tmp_path / "r.toml").write_text(
        'epsilon = 1\n[data]\nfiles = "v.csv"\n[[questions]]\nkind = "count"\n[[questions]]\ntitle = "Pages"\n'
        'kind = "histogram"\ncolumn = "page"\nuniverse = "u.txt"\n'
    )
    rows = "".join(f"{'ab'[n % 2]},w{n % 300},{n % 10}\n" for n in range(900))
    (tmp_path / "v.csv").write_text("page,who,n\n" + rows)
    words = asked.split()
    if words[0] == "party":
        (tmp_path / "m").mkdir()
        run_here("party", "round", "round.json", "--round-id", "w", "--epsilon", 1, "--universe", "u.txt", cwd=tmp_path)
        told = ("--party", 1, "--column", "page", "v.csv", "--output", "m/1.msg")
        assert run_here("party", "encode", "--round", "round.json", *told, cwd=tmp_path).returncode == 0
    as_json = () if words[0] == "watch" else ("--format", "json")
    made = run_here(*words, *as_json, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    what, horizon = ASKED[asked]
    sheet = run_here("explain", "-", "--sheet", input=made.stdout)
    assert sheet.returncode == 0, sheet.stderr
    assert what in sheet.stdout
    assert f"discreet {dc.__version__}" in sheet.stdout
    assert "None" not in sheet.stdout
    is_pure = "delta" not in asked and "rho" not in asked
    assert ("promise never fails" in " ".join(sheet.stdout.split())) == is_pure
    entry = fits_the_registry(yaml.safe_load(run_here("explain", "-", "--registry", input=made.stdout).stdout))
    assert entry["deployment_model"]["release_type"] == ("Many releases" if words[0] == "watch" else "One release")
    details = entry["deployment_model"].get("release_type_details", "")
    assert words[0] != "watch" or str(horizon) in details
    assert entry["basic"]["description"][1:-1] in sheet.stdout


@pytest.mark.parametrize("asked", [*ASKED][:8])
def test_the_charge_of_a_release_is_found_in_its_ledger(asked, tmp_path):
    rows = "".join(f"{'ab'[n % 2]},w{n % 300},{n % 10}\n" for n in range(900))
    (tmp_path / "v.csv").write_text("page,who,n\n" + rows)
    (tmp_path / "u.txt").write_text("a\nb\n")
    dc.Ledger(tmp_path / "l.sqlite").grant("them", dc.Budget(50.0, 1e-3))
    paying = ("--ledger", "l.sqlite", "--account", "them")
    made = run_here(*asked.split(), *paying, "--charge-id", "monday", "--format", "json", cwd=tmp_path).stdout
    sheet = run_here("explain", "-", "--sheet", *paying, input=made, cwd=tmp_path).stdout
    assert re.search(r"^Charge id: +monday$", sheet, re.MULTILINE)
    other = json.loads(made)
    other["guarantee"]["epsilon"] = 3.0
    sheet = run_here("explain", "-", "--sheet", *paying, input=json.dumps(other), cwd=tmp_path).stdout
    assert re.search(r"^Charge id: +_+$", sheet, re.MULTILINE)


PEOPLE = {"who": [f"w{n % 300}" for n in range(1200)], "page": [f"p{n % 3}" for n in range(1200)], "n": [5.0] * 1200}
WHO = {"user": "who"}
OF_PEOPLE = {  # questions, and the bounds that their sheet must name
    "top": (dc.Top(column="page"), ""),
    "top of values": (dc.Top(column="page", value="n", value_range=(0, 9), **WHO), "values from 0 to 9"),
    "histogram": (
        dc.Histogram(column="page", universe=["p0"], max_items=2), "at most 2 items of a person count",
    ),
    "sum": (dc.Sum(column="n", range=(-1, 9)), "values from -1 to 9"),
    "count by group": (dc.Count(by="page"), ""),
    "sum by group": (dc.Sum(column="n", range=(0, 9), by="page"), "values from 0 to 9"),
    "quantiles": (dc.Quantiles(column="n", range=(0, 9)), "values from 0 to 9"),
}  # fmt: skip


@pytest.mark.parametrize("asked", [*OF_PEOPLE, "all of them in a report"])
def test_a_sheet_says_what_bounds_and_what_is_missing(asked, tmp_path, capsys):
    """Of a report for each of its answers: anyone who signs would take "none" for nothing is missing."""
    budget, path = dc.Budget(20.0, 1e-6), tmp_path / "release.json"
    if asked in OF_PEOPLE:
        question, bounds = OF_PEOPLE[asked]
        answers, named = {"": dc.answer(dataclasses.replace(question, **WHO), PEOPLE, budget)}, {"": bounds}
        made = answers[""]
    else:
        made = dc.Report({name: each for name, (each, _) in OF_PEOPLE.items()}, budget, **WHO).answer(PEOPLE)
        answers = {f"{part.title}: ": part.answer for part in made.parts}
        named = {f"{name}: ": bounds for name, (_, bounds) in OF_PEOPLE.items()}
    path.write_text(made.to_json() if hasattr(made, "to_json") else formats_of(made)["json"](made, 0.95, None))
    explain(path, "--sheet")
    sheet = " ".join(capsys.readouterr().out.split())
    for title, answer in answers.items():
        assert f"{title}{named[title]}" in sheet
        if getattr(answer, "left_out", None) is not None:
            assert f"{title}about {100 * answer.left_out.value:.2g} % of contributions, by bounding" in sheet
            for note in notes_of(answer):
                told = note.removeprefix(f"Counts are {COUNTED.get(getattr(answer, 'counted', ''))}. ")
                assert f"- {title}{told.rstrip('.')}" in sheet
        if getattr(answer, "threshold", None):
            assert f"{title}an item is found from about {answer.threshold:g} people" in sheet
    assert ("Bounds: none" in sheet) == (not any(named.values()))
