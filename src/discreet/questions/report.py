"""Report: several questions about the same people, with one budget, one charge and one page.

    report = dc.Report(
        {"Top pages": dc.Top(column="path", k=20), "Visitors": dc.Count()},
        dc.Budget(1.0, 1e-7), user="ip", title="October",
    )
    report.answer(dc.read("access.log", format="combined"), ledger=account, charge_id="october")

A report is a question itself, so `answer` checks, charges, draws and stores it as one.

**How the budget is split.** Question i has a share s_i, shares add up to 1, and its mechanism gets (s_i epsilon,
s_i delta), or s_i rho. By composition all answers together cost the budget. Two or more questions that are answered
with Gaussian noise are a pool: it has the sum of their shares, and within it rhos add up instead of epsilons, so that
each of them gets more. The argument: docs/privacy/reports.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass, field, fields, replace
from discreet.errors import DataError, ParameterError, WordError, nearest
from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.budget import Budget, as_budget
from discreet.privacy.calibration.zcdp import pure_rho, zcdp_rho
from discreet.privacy.checks import numbered, probability
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.rounding import rounded_down, rounded_up
from discreet.questions import KINDS, kind_of
from discreet.questions.question import PERSON, ROW, Question, Way, Worded, way_to
from discreet.questions.words import from_text, plain, share, word, words_of

if TYPE_CHECKING:
    from discreet.noise import RandomSource
    from discreet.privacy.ledger import Account
    from discreet.questions.answer import Data
    from discreet.releases.report_release import ReportRelease

POOLED_DELTA = Fraction(1, 2)
"""How much of the delta of a pool its mechanisms get; what is left pays for adding up their rhos."""
_ROUNDS = 4  # in which the budgets of a pool are raised
_SPANS = 30  # of time, where nobody says how many there are
_PASSED_ON = ("user", "unit", "nulls", "bad_rows")
TIME = "time"  # the column of times, where neither the report nor the question names one
_OF_SPANS = ("time", "zone")  # passed on to questions that have `every`
_OF_DAYS = (*_OF_SPANS, "period")  # passed on where what a person did within a span is hidden


def _as_of_questions(name: str) -> Any:
    """A word that means the same for all questions of a report."""
    each = next(each for each in fields(Question) if each.name == name)
    return field(default=each.default, metadata=each.metadata)


@dataclass(frozen=True, init=False, kw_only=True)
class Report(Worded):
    """Several questions about the same people, asked at once.

    Argument: docs/privacy/reports.md.

    Args:
        questions: A mapping of titles to questions, or a list of questions, whose words then make their titles.
        budget: What all answers together may cost.
        shares: How much of the budget each question gets, by title or in order. Questions without a share divide what
            is left: in proportion to the root of how many numbers they publish (a mean or a quantile counts as 25),
            which makes the sum of the relative errors about least.
        words: Those that questions share: `user`, `unit`, `nulls`, `bad_rows`, `period` where days are hidden, `time`
            (the column "time" where nothing names one) and `zone` of questions with `every`, and `where`, which is
            joined with that of a question by AND. Besides `title` (of the page), and `confidence` (of all intervals
            together).
    """

    name: ClassVar[str] = "report"
    no_other_answer: ClassVar[frozenset[str]] = frozenset()

    title: str = word("Report", "Title of the page.", plain())
    user: str | None = _as_of_questions("user")
    unit: Any = _as_of_questions("unit")
    time: str | None = _as_of_questions("time")
    zone: str | None = _as_of_questions("zone")
    period: Any = _as_of_questions("period")
    where: str | None = _as_of_questions("where")
    nulls: str = _as_of_questions("nulls")
    bad_rows: str = _as_of_questions("bad_rows")
    confidence: float = word(0.95, "Probability with which all intervals hold together.", share())
    questions: Mapping[str, Question] = word(None, "The questions by their titles.", plain(), in_python_only=True)
    shares: tuple[Fraction, ...] = word((), "The part of the budget of each.", plain(), in_python_only=True)
    budget: Budget = word(None, "What all answers together may cost.", plain(), in_python_only=True)

    def __init__(
        self,
        questions: Mapping[str, Question] | Sequence[Question],
        budget: Budget,
        *,
        shares: Mapping[str, float] | Sequence[float | None] | None = None,
        **words: Any,
    ) -> None:
        known = {each.name: each.default for each in words_of(type(self)) if not each.in_python_only}
        if unknown := [name for name in words if name not in known]:
            raise TypeError(f"a report has no word {unknown[0]!r}{nearest(unknown[0], known)}")
        named = _by_title(questions, words.get("user"))
        for name, value in {**known, **words, "budget": as_budget(budget), "questions": named, "shares": ()}.items():
            object.__setattr__(self, name, value)
        super().__post_init__()
        asked = {title: self._passed_on(title, each) for title, each in named.items()}
        object.__setattr__(self, "questions", asked)
        object.__setattr__(self, "shares", _divided(asked, shares))

    # ---- what follows from the words ---------------------------------------------------------------------------------

    @cached_property
    def each_confidence(self) -> float:
        """Of the intervals of one question: what may fail is divided evenly (a union bound)."""
        many = len(self.questions)
        return self.confidence if many == 1 else 1.0 - (1.0 - self.confidence) / many

    def to_dict(self) -> dict[str, Any]:
        """The questions as they are asked; the words that they share are among theirs. JSON-ready."""
        asked = [self.told(title) for title in self.questions]
        return {"title": self.title, "confidence": self.confidence, "questions": asked}

    def told(self, title: str) -> dict[str, Any]:
        """A question with its title and its share, JSON-ready."""
        question = self.questions[title]
        place = list(self.questions).index(title)
        return {"title": title, "kind": question.name, **question.to_dict(), "share": float(self.shares[place])}

    @property
    def guarantee(self) -> Guarantee:
        """What all answers together promise; they add what they rest on."""
        many = len(self.questions)
        name = f"report of {many} question{'s' * (many != 1)}"
        unit = self.unit or (ROW if self.user is None else PERSON)
        return Guarantee.of(self.budget, unit, name, "docs/privacy/reports.md")

    def _passed_on(self, title: str, question: Question) -> Question:
        """A question with the words that the report says for all."""
        has, said = {each.name for each in words_of(type(question))}, dict[str, Any]()
        days = (
            _OF_DAYS
            if self.unit is not None and self.unit.spans is not None
            else _OF_SPANS
            if "every" in question.given
            else ()
        )
        if self.period is not None and question.period not in (None, self.period):
            raise WordError(
                f"{_plain(title)}: {{period}} must be the same as the report's: one charge covers one period"
            )
        for name in (*_PASSED_ON, *days):
            if name in self.given and name in has and name not in question.given:
                said[name] = getattr(self, name)
        if question.every is not None and question.time is None:
            said.setdefault("time", TIME)
        if self.user is not None and question.user not in (None, self.user):
            raise WordError(f"{_plain(title)}: {{user}} must be the same as the report's: one charge hides one unit")
        if question.max_bad is not None:
            raise WordError(
                f"{_plain(title)}: {{max_bad}} cannot be used in a report, which is a single charge; ask the "
                f"question on its own"
            )
        if "confidence" in question.given:
            raise WordError(
                f"{_plain(title)}: {{confidence}} belongs to the report, whose intervals hold together; set it there"
            )
        if self.where is not None:
            own = question.where
            said["where"] = self.where if own is None else f"({self.where}) AND ({own})"
        if "confidence" in has:
            said["confidence"] = self.each_confidence
        with _about(title):
            return replace(question, **said)

    # ---- how it is answered ------------------------------------------------------------------------------------------

    def answer(
        self,
        data: Any,
        *,
        ledger: Account | None = None,
        charge_id: str | None = None,
        request: str | None = None,
        source: RandomSource | None = None,
    ) -> ReportRelease:
        """Check, read, charge once, draw, store: see `discreet.answer`, and `dc.top_k` for what the words mean."""
        from discreet.questions.answer import answer
        from discreet.releases.payment import Payer

        payer = Payer(ledger, charge_id, source, request=request)
        found: ReportRelease = answer(self, _for_several(data), self.budget, payer)
        return found

    def ways(self, data: Data, budget: Budget) -> dict[str, tuple[Way, Budget]]:
        """How each question is answered, and with which budget. Nothing is read."""
        quiet = replace(data, watch=lambda rows: lambda: None)
        _ = quiet.events  # what cannot be opened is no fault of a question
        parts = [part_of(budget, share) for share in self.shares]
        tried = self._made(quiet, parts)
        pool = [place for place, way in enumerate(tried) if way.costs() is not None]
        if budget.delta and len(pool) > 1:
            parts = self._raised(quiet, budget, parts, pool)
        ways = self._made(data, parts)
        hidden = [way.hides or way.unit for way in ways]
        for title, unit in zip(self.questions, hidden, strict=True):
            if unit != hidden[0] or (self.unit is not None and unit != self.unit):
                raise WordError(
                    f"{_plain(title)} hides {unit.describe()}; all questions of a report must hide the same unit; "
                    "give {user} to the report, or to none of its questions"
                )
        return dict(zip(self.questions, zip(ways, parts, strict=True), strict=True))

    def _made(self, data: Data, parts: Sequence[Budget]) -> list[Way]:
        made = []
        for (title, question), part in zip(self.questions.items(), parts, strict=True):
            with _about(title):
                made.append(way_to(question, data, part))
        return made

    def _raised(self, data: Data, budget: Budget, parts: list[Budget], pool: list[int]) -> list[Budget]:
        """The same parts, where those of a pool are larger by one factor: their rhos and deltas still fit together.

        The factor is found from what mechanisms say they cost, which public numbers decide. The first guess is that of
        equal Gaussians, whose rhos grow with the square of the factor.
        """
        assert budget.epsilon is not None
        whole = sum(self.shares[place] for place in pool)
        epsilon, delta = rounded_down(whole * Fraction(budget.epsilon)), rounded_down(whole * Fraction(budget.delta))
        titles, best, most = list(self.questions), parts, 1.0
        factor = float(whole) / math.sqrt(sum(float(self.shares[place]) ** 2 for place in pool))
        for _ in range(_ROUNDS):
            raised = list(parts)
            for place in pool:
                part = self.shares[place] * Fraction(factor) * Fraction(budget.epsilon)
                less = self.shares[place] * POOLED_DELTA * Fraction(budget.delta)
                raised[place] = Budget(rounded_down(part), rounded_down(less))
            tally = Tally()
            for place in pool:
                question = self.questions[titles[place]]
                cost = question.way(data, raised[place]).costs()
                if cost is None:
                    return best
                tally = tally.plus(cost)
            if factor > most and tally.cost(delta) <= epsilon:
                best, most = raised, factor
            left = float(Fraction(delta) - tally.total_delta)
            if left <= 0.0:
                return best
            change = 0.9995 * math.sqrt(zcdp_rho(epsilon, left) / float(tally.total_rho))
            if 0.998 < change < 1.0 and best is raised:
                return best
            factor *= change
        return best

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.events.one_pass import one_pass
        from discreet.questions.answer import told_of
        from discreet.releases.report_release import ReportPart, ReportRelease

        ways = self.ways(data, budget)
        units = {way.unit for way, _ in ways.values()}
        hides = next(way.hides or way.unit for way, _ in ways.values())
        unit = units.pop() if len(units) == 1 else hides

        def count() -> list[Any]:
            done: list[Callable[[], None]] = []

            def counted(title: str, way: Way) -> Any:
                with _about(title):
                    found = way.count()
                done.append(partial(way.close, found))
                return found

            try:
                return one_pass(data.events, [partial(counted, title, way) for title, (way, _) in ways.items()])
            except BaseException:
                for close in done:
                    close()
                raise

        def draw(found: list[Any], source: RandomSource) -> ReportRelease:
            parts = []
            for counted, (title, (way, part)) in zip(found, ways.items(), strict=True):
                told = told_of(self.questions[title], data, way)
                parts.append(ReportPart(title, self.told(title), part, way.draw(counted, source), told))
            assumed = dict.fromkeys(each for part in parts for each in part.answer.guarantee.assumptions)
            promised = replace(self.guarantee, unit=hides, assumptions=tuple(assumed), seeded=source.seeded)
            return ReportRelease(self.title, tuple(parts), promised, self.confidence, self.each_confidence)

        def close(found: list[Any]) -> None:
            for counted, (way, _) in zip(found, ways.values(), strict=True):
                way.close(counted)

        return Way(
            self.guarantee.mechanism, unit, count, draw, hides, close=close, costs=lambda: composed(list(ways.values()))
        )


def _for_several(data: Any) -> Any:
    """Data that can be gone through more than once: what is handed out once is kept, when a question first asks."""
    once = isinstance(data, Iterator) or type(data).__name__ == "RecordBatchReader"
    if not once:
        return data
    from discreet.events.tables import as_arrow, events_of
    from discreet.questions.answer import Data

    @cache
    def opened() -> Any:
        return events_of(as_arrow(data).read_all() if hasattr(data, "read_all") else list(data))

    return Data(opened)


# ---- the budget ------------------------------------------------------------------------------------------------------


def part_of(budget: Budget, share: Fraction) -> Budget:
    """This share of a budget, rounded down: shares that add up to 1 never cost more than all of it, exactly."""
    if budget.rho is not None:
        return Budget.zcdp(rounded_down(share * Fraction(budget.rho)))
    assert budget.epsilon is not None
    return Budget(rounded_down(share * Fraction(budget.epsilon)), rounded_down(share * Fraction(budget.delta)))


def composed(ways: Sequence[tuple[Way, Budget]]) -> Charge | None:
    """What answers cost together, as rho and delta, for accounts that add those up: sums of what each has."""
    if len(ways) == 1:
        return ways[0][0].costs()
    delta, rho = Fraction(0), Fraction(0)
    for way, part in ways:
        said = way.costs() or Charge.of(part)
        delta += Fraction(said.delta)
        rho += Fraction(said.rho if said.epsilon is None else pure_rho(said.epsilon))  # type: ignore[arg-type]
    return Charge(None, rounded_up(delta), rho=rounded_up(rho))


_OF_VALUES = ("quantiles", "sum", "mean", "variance")
_HARDER = 25  # this many times as wide are intervals that depend on a range of values, about, as those of a count


def numbers(question: Question) -> int:
    """About how many counts are as hard as the answer to a question, from its words alone."""
    many = (getattr(question, "k", None) or 1) * (_HARDER if question.name in _OF_VALUES else 1)
    many *= len(getattr(question, "quantiles", None) or (0,))
    universe, groups = getattr(question, "universe", None), getattr(question, "groups", None)
    many *= getattr(universe, "size", None) or 1
    if groups is not None:
        return many * len(groups)
    return many * (_SPANS if getattr(question, "every", None) or getattr(question, "by", None) else 1)


def _divided(questions: Mapping[str, Question], given: Any) -> tuple[Fraction, ...]:
    """The share of every question: as given, and of the others what is left."""
    if isinstance(given, Mapping):
        if unknown := [title for title in given if title not in questions]:
            raise ParameterError(f"shares: no question is called {unknown[0]!r}{nearest(unknown[0], questions)}")
        given = [given.get(title) for title in questions]
    given = [None] * len(questions) if given is None else list(given)
    if len(given) != len(questions):
        raise ParameterError(
            f"shares has {numbered(len(given), 'number')} for {numbered(len(questions), 'question')}; give one for each"
        )
    said = [None if each is None else _share(each, len(questions)) for each in given]
    total = sum((each for each in said if each is not None), Fraction(0))
    open_ = [place for place, each in enumerate(said) if each is None]
    if (open_ and total >= 1) or (not open_ and abs(total - 1) > Fraction(1, 10**9)) or total > 1 + Fraction(1, 10**9):
        must = "leave some for the questions without one" if open_ else "make them add up to 1"
        raise ParameterError(f"shares add up to {float(total):g}: {must}")
    if not open_:
        return tuple(each / total for each in said if each is not None)
    roots = {place: Fraction(math.isqrt(10**6 * numbers(each))) for place, each in enumerate(questions.values())}
    left, all_roots = 1 - total, sum(roots[place] for place in open_)
    return tuple(left * roots[place] / all_roots if each is None else each for place, each in enumerate(said))


def _share(given: Any, many: int) -> Fraction:
    return Fraction(1) if many == 1 and given == 1 else Fraction(probability("share", given))


# ---- titles and errors -----------------------------------------------------------------------------------------------


def heading(question: Question, user: str | None = None) -> str:
    """What a question asks, in a few words, where nobody says a title; `user` is that of the report."""
    told = question.to_dict()
    what = {"top": f"top {told.get('k')}", "distinct": "different values"}.get(question.name, question.name)
    column = told.get("column")
    of = "" if column is None else f" of {column if isinstance(column, str) else ' and '.join(column)}"
    user = question.user or user
    if question.name in ("count", "distinct") and user is not None and column in (None, user):
        what, of = "people", ""
    by = told.get("by")
    groups = [*([] if by is None else [by] if isinstance(by, str) else by)]
    more = f" by {' and '.join(groups)}" if groups else ""
    more += f" every {told['every']}" if "every" in told else ""
    more += f" where {told['where']}" if "where" in told else ""
    return f"{what[:1].upper()}{what[1:]}{of}{more}"  # names of columns and texts of a condition stay as they are


def _by_title(questions: Mapping[str, Question] | Sequence[Question], user: str | None) -> dict[str, Question]:
    """The questions by their titles, no two of them the same."""
    pairs = list(questions.items()) if isinstance(questions, Mapping) else [(None, each) for each in questions]
    if not pairs:
        raise ParameterError("a report needs at least one question, such as dc.Count()")
    found: dict[str, Question] = {}
    for title, question in pairs:
        if not isinstance(question, Question) or isinstance(question, Report):
            raise ParameterError(f"a report takes questions, such as dc.Count(), not {type(question).__name__}")
        if title is not None and not isinstance(title, str):
            raise ParameterError(f"a title must be text, not {type(title).__name__}")
        title = heading(question, user) if title is None else title
        number = 2
        while title in found:
            title, number = f"{title.removesuffix(f' ({number - 1})')} ({number})", number + 1
        found[title] = question
    return found


def _plain(title: str) -> str:
    """A title in a message whose words stand in braces."""
    return f"question {title!r}".replace("{", "(").replace("}", ")")


@contextmanager
def _about(title: str) -> Iterator[None]:
    """What goes wrong says in which question."""
    try:
        yield
    except WordError as error:
        raise WordError(f"{_plain(title)}: {error.text}") from None
    except (DataError, ParameterError) as error:
        raise type(error)(f"{_plain(title)}: {error}") from None


# ---- TOML ------------------------------------------------------------------------------------------------------------


def read_report(told: Mapping[str, Any]) -> tuple[Report, dict[str, Any]]:
    """A report of what TOML has, and how its data are read: the words of `dc.read`, "files" among them."""
    import inspect

    from discreet.questions.answer import read

    reading = [name for name in inspect.signature(read).parameters if name not in ("paths", "watch")]
    words = [each.name for each in words_of(Report) if not each.in_python_only]
    money = ["epsilon", "delta", "rho"]
    _check_keys("the report", told, [*words, *money, "data", "questions"])
    _check_keys("[data]", _table(told, "data"), ["files", *reading])
    asked = told.get("questions")
    if not isinstance(asked, list) or not asked or not all(isinstance(each, dict) for each in asked):
        raise ParameterError('the report has no questions; add one with [[questions]] and kind = "count"')
    named, shares = [], []
    for place, each in enumerate(asked, 1):
        question, title = _question(place, each, told), each.get("title")
        named.append((heading(question, told.get("user")) if title is None else title, question))
        shares.append(each.get("share"))
    if len({title for title, _ in named}) < len(named):
        raise ParameterError("two questions have the same title; give each its own")
    said = {name: told[name] for name in words if name in told}
    report = Report(dict(named), _budget(told), shares=shares, **said)
    return report, _table(told, "data")


def _question(place: int, told: Mapping[str, Any], report: Mapping[str, Any]) -> Question:
    """The question of a table of TOML, with the words that the report says for all."""
    where, name = f"question {place}", told.get("kind")
    if name not in KINDS:
        given = "" if name is None else nearest(str(name), KINDS)
        raise ParameterError(f"{where}: kind must be one of {', '.join(KINDS)}{given.partition('; there')[0]}")
    kind = kind_of(str(name))
    words = [each.name for each in words_of(kind) if not each.in_python_only]
    _check_keys(where, told, ["kind", "title", "share", *words])
    of_days = str(told.get("unit", report.get("unit"))).startswith("person-")
    passed = (*_PASSED_ON, *(_OF_DAYS if of_days else _OF_SPANS if "every" in told else ()))
    said = {key: report[key] for key in passed if key in report and key in words}
    said |= {key: value for key, value in told.items() if key not in ("kind", "title", "share")}
    texts = {key: value for key, value in said.items() if isinstance(value, str)}
    with _about(str(told.get("title") or where)):
        return kind(**{**said, **from_text(kind, texts)})


def _budget(told: Mapping[str, Any]) -> Budget:
    if "rho" in told:
        if "epsilon" in told or "delta" in told:
            raise ParameterError("rho cannot be combined with epsilon or delta; give one or the other")
        return Budget.zcdp(told["rho"])
    if "epsilon" not in told:
        raise ParameterError(
            "no budget given; add epsilon (and delta), or rho. A smaller epsilon is stronger; 1 is a common choice"
        )
    return Budget(told["epsilon"], told.get("delta", 0.0))


def _table(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name, {})
    if not isinstance(found, dict):
        raise ParameterError(f"{name} must be a table: [{name}]")
    return dict(found)


def _check_keys(where: str, told: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in told:
        if key not in known:
            raise ParameterError(f"{where} has no word {key!r}{nearest(key, known)}")
