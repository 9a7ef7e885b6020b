"""The Python examples of the documentation run."""

import inspect
import json
import math
import re
from pathlib import Path

import pytest

import discreet as dc
from discreet_audit import core

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in [
        "README.md",
        "clients/js/README.md",
        *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    ]
    if "```python" in (ROOT / page).read_text() and page != "docs/cookbook.md"  # which has a test of its own
]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if page in ("docs/api/audit.md", "docs/add-a-mechanism.md"):  # which add a row
        core.cases()
        monkeypatch.setattr(core, "_CASES", dict(core._CASES))
    examples = blocks(page)
    assert examples
    names = {}
    for number, code in enumerate(examples, 1):
        exec(compile(code, f"{page}, block {number}", "exec"), names)
    assert "my rare disease" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [{"capacity": 1024}, {"unit": dc.User(5)}, {"unit": dc.User(100)}], ids=["events", "few", "many"]
)
def test_the_plans_shown_are_those_computed(options):
    plan = str(dc.plan(10**6, dc.Budget(1.0, 1e-9), published=True, **options))
    shown = "\n".join(line.rstrip() for line in plan.splitlines())
    assert shown in (ROOT / "docs/choosing.md").read_text()


def test_the_plan_of_parties_shown_is_the_one_computed():
    plan = dc.multiparty.plan(1000, 10**6, 1.0, 120, universe_size=10_000, zipf=1.5)
    shown = "\n".join(line.rstrip() for line in str(plan).splitlines())
    assert shown in (ROOT / "docs/multiparty.md").read_text()


def test_the_pan_private_estimators_have_what_their_page_promises():
    page = (ROOT / "docs/pan.md").read_text()
    named = [getattr(dc.pan, name) for name in re.findall(r"^\| `(\w+)\(", page, flags=re.MULTILINE)]
    every = re.search(r"^Each has (.*?)\.\sAll of them also have\s`(\w+)`.*?`(\w+)\(", page, re.M | re.S)
    assert len(named) >= 6
    assert every
    for estimator in named:
        for method in re.findall(r"`(\w+)", every[1]):
            assert hasattr(estimator, method), (estimator, method)
        for method in (every[2], every[3]):
            assert hasattr(estimator, method), (estimator, method)


def test_the_rooms_of_the_house_exist():
    """Every file and link that docs/architecture.md names."""
    page = (ROOT / "docs/architecture.md").read_text()
    files = set(re.findall(r"`([a-z_/]+\.py)`", page))
    assert len(files) > 40
    roots = [ROOT / "src/discreet", ROOT / "src/discreet_audit", ROOT / "src/discreet/multiparty"]
    assert not [name for name in files if not any((root / name).is_file() for root in roots)]
    assert not [link for link in re.findall(r"\]\(([^)]+)\)", page) if not (ROOT / "docs" / link).exists()]


def test_the_odds_shown_are_those_of_epsilon():
    page = (ROOT / "docs/promise.md").read_text()
    (head,) = re.findall(r"^\| thought before \| (.*) \|$", page, re.MULTILINE)
    epsilons = [float(cell.removeprefix("epsilon ")) for cell in head.split(" | ")]
    rows = re.findall(r"^\| (\d+) % \| (.*) \|$", page, re.MULTILINE)
    assert [before for before, _ in rows] == ["1", "10", "50"]
    for before, cells in rows:
        for epsilon, cell in zip(epsilons, cells.split(" | "), strict=True):
            odds = math.exp(epsilon) * int(before) / (100 - int(before))
            assert 0 <= float(cell.removesuffix(" %")) - 100 * odds / (1 + odds) <= 0.1


def test_every_name_of_the_reference_has_an_example():
    for page in sorted((ROOT / "docs/api").glob("*.md")):
        for part in page.read_text().split("\n## ")[1:]:
            name, _, text = part.partition("\n")
            examples = re.findall(r"^```python.*?\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
            used = [code for code in examples if re.search(rf"\b{name}\b(?!\.__doc__)", code)]
            assert page.stem == "more" or used, (page.name, name)


def test_every_public_name_is_in_the_reference():
    told = "\n".join(page.read_text() for page in (ROOT / "docs/api").glob("*.md") if page.stem != "more")
    rooms = ["privacy", "releases", "summaries", "central", "continual", "pan", "multiparty", "audit"]
    missing = [
        f"{module.__name__}.{name}"
        for module in (dc, *(getattr(dc, room) for room in rooms))
        for name in module.__all__
        if not name.startswith("_") and not inspect.ismodule(getattr(module, name))
        if not re.search(rf"^## {name}$", told, re.MULTILINE)
    ]
    assert not missing


def test_the_version_is_the_same_everywhere():
    """`_version.py` is the source; the package and the site read it from there."""
    assert f"\nversion: {dc.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert json.loads((ROOT / "clients/js/package.json").read_text())["version"] == dc.__version__
    sections = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[:2] == ["Unreleased", dc.__version__]
    assert f"From {sections[-1]} on" in (ROOT / "docs/stability.md").read_text()


def test_the_hosted_workflow_runs_what_must_pass():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    wanted = re.findall(r"^make (\w+.*)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert len(wanted) > 10
    assert not [target for target in wanted if f"- run: make {target}\n" not in workflow]


def test_the_links_of_the_documentation_lead_somewhere():
    """Within the repository; `make docs` checks the anchors, too."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").rglob("*.md")]
    broken = []
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in link and "node_modules" not in page.parts and not (page.parent / link).exists():
                broken.append((page.name, link))
    assert not broken


def test_the_readme_is_short_and_begins_with_two_commands():
    page = (ROOT / "README.md").read_text()
    assert page.count("\n") < 100
    assert all(len(line) <= 100 or line.startswith("|") for line in page.splitlines())
    for command in ("make demo", "make test"):
        assert f"    {command}  " in page


def test_the_cuts_shown_are_those_computed():
    page = (ROOT / "docs/choosing.md").read_text()
    central, epsilons = dc.central, (0.1, 0.5, 1.0, 2.0)
    rows = {
        "offset release": lambda budget: central.Offset(budget, 1024),
        "private Misra-Gries, as published": lambda budget: dc.published.PrivateMisraGries(
            budget, 1024, calibration="paper"
        ),
        "stability histogram of exact counts (unbounded": central.Stability,
    }
    for name, made in rows.items():
        (cells,) = re.findall(rf"^\| \**{re.escape(name)}.*?\| (.*) \|$", page, re.MULTILINE)[:1]
        shown = [int(cell.strip("* ")) for cell in cells.split("|")]
        assert shown == [made(dc.Budget(epsilon, 1e-9)).threshold for epsilon in epsilons], name
