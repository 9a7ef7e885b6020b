"""The documentation site: `make docs` builds it from the pages beside this file, with warnings as errors."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from discreet import __version__

project = "discreet"
author = "the maintainers of discreet"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme = "furo"
html_title = f"discreet {release}"

# Notebooks are stored without their output, and run when the site is built.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True

myst_heading_anchors = 4
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_rtype = False
copybutton_prompt_text = "$ "

HERE = Path(__file__).parent
API = HERE / "api"
ROOMS = ["privacy", "releases", "summaries", "central", "continual", "pan", "multiparty", "audit"]
PACKAGES = ["discreet", *(f"discreet.{room}" for room in ROOMS)]

_SECTION = re.compile(r"(Args|Returns|Raises|Yields|Attributes|Examples?|Notes?):")
_FIELD = re.compile(r"([A-Z][A-Za-z ]{2,20}): (\S.*)")


def _plain(line: str) -> str:
    """Without the marks of reStructuredText, except code between backticks."""
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(part if part.startswith("`") else re.sub(r"([|*\\]|_(?=\W|$))", r"\\\1", part) for part in parts)


def docstring_lines(lines: list[str]) -> Iterator[str]:
    """A docstring as it is written here, as reStructuredText: "Noise: ..." is a field, a table is shown as it is."""
    before, section, table, fields = "", False, False, False
    for line in lines:
        if line.startswith("|"):
            if not table:
                yield from ("", "::", "")
            table = True
            yield f"    {line}"
            continue
        if table:
            yield ""
        table = False
        field = _FIELD.fullmatch(line)
        if _SECTION.fullmatch(line):
            section = True
            yield ""
        elif section and line and not line.startswith(" "):
            section = False
            yield ""
        elif not section and line and before:
            goes_on = bool(field) if not line.startswith(" ") else True
            same = goes_on if fields else before.startswith(" ") == line.startswith(" ") and not field
            if not same:
                yield ""
        if line and not line.startswith(" "):
            fields = field is not None and not section
        before = f":{field[1]}: {_plain(field[2])}" if field and not section else line
        yield before if field and not section else _plain(line)


def show_docstrings(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Before napoleon reads them, for which what comes before a colon is the type of a property."""
    if what in ("property", "attribute") and lines:
        lines[0] = lines[0].replace(": ", " - ")
    lines[:] = docstring_lines(lines)


def list_other_names(app: object) -> None:
    """A page for public names that no page has yet."""
    told = "\n".join(page.read_text() for page in API.glob("*.md") if page.name != "more.md")
    text = ["# Other names", "", "Those that have no place on another page yet."]
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(value) or re.search(rf"^## {name}$", told, re.MULTILINE):
                continue
            kind = "autoclass" if isinstance(value, type) else "autofunction"
            text += ["", f"## {package}.{name}", "", "```{eval-rst}", f".. {kind}:: {package}.{name}", "```"]
    (API / "more.md").write_text("\n".join(text) + "\n")


def list_other_pages(app: object) -> None:
    """A page that leads to those that the first page does not name yet."""
    named = set((HERE / "index.md").read_text().splitlines())
    pages = [path for folder in ("", "privacy", "papers", "notebooks") for path in sorted((HERE / folder).glob("*.*"))]
    names = [str(path.relative_to(HERE).with_suffix("")) for path in pages if path.suffix in (".md", ".ipynb")]
    others = [name for name in names if name not in named and name not in ("index", "more")]
    text = ["# More pages", "", "Those that have no other place yet.", "", "```{toctree}", "", *others, "```", ""]
    (HERE / "more.md").write_text("\n".join(text))


def links_out_of_the_site(app: object, page: str, source: list[str]) -> None:
    """Links to files of the repository that are no pages become their names; `tests/unit/test_docs.py` checks them."""
    folder = (HERE / page).parent

    def told(link: re.Match[str]) -> str:
        target = (folder / link[2].partition("#")[0]).resolve()
        if "://" in link[2] or link[2].startswith("#") or (target.is_relative_to(HERE) and not target.is_dir()):
            return link[0]
        return link[1] if link[1].startswith("`") else f"{link[1]} (`{link[2].lstrip('./')}`)"

    if (HERE / f"{page}.md").exists():
        source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", told, source[0])


def setup(app: object) -> None:
    app.connect("source-read", links_out_of_the_site)  # type: ignore[attr-defined]
    app.connect("builder-inited", list_other_pages)  # type: ignore[attr-defined]
    app.connect("builder-inited", list_other_names)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", show_docstrings, priority=400)  # type: ignore[attr-defined]
