"""What every pan-private estimator shares: the budget's split, updates, releases, intrusions, states.

The argument, once for all of them, is in docs/privacy/pan.md: at most one set of cells depends on an element, whose law
is at every time within e^epsilon_state of that without it (a look); any change of these cells moves an output by at
most the sensitivity, plus noise, whatever they are (epsilon_output). Together: epsilon_state + epsilon_output for one
intrusion and one output, whatever the element did before, between and after them.
"""

from __future__ import annotations

import json
import math
import struct
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import CorruptStateError, OldStateError, ParameterError
from discreet.events.items import prepare_column, rules
from discreet.noise import RandomSource, fresh_source
from discreet.noise.source import MAX_SCALE, Integers
from discreet.pan.charge import StateCharge, saved_charge
from discreet.pan.element_law import BitCell, ElementLaw
from discreet.pan.responses import Response
from discreet.pan.settings import KEPT, MOST_INTRUSIONS, Options, Settings, fewest
from discreet.privacy import Budget, Element, Estimate, Guarantee
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.privacy.rounding import rounded_up
from discreet.releases.payment import Bill, check_payer
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

    from discreet.privacy.ledger import Account

_VERSION = 2


@dataclass(frozen=True, repr=False)
class PanEstimate(Estimate):
    """An estimate cut to the values that are possible; `unbiased` is the one before, for averages over many."""

    unbiased: float = math.nan


class PanEstimator:
    """An estimator whose memory is private: anyone who reads it, once, learns no more than its budget says.

    Unit: all occurrences of one element of the universe. An update takes effect as a whole or not at all, and holds no
    item when it returns.
    """

    family: ClassVar[int]
    name: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ()
    """The names of its own parameters, which `_choose` checks in this order and keeps: `k` as `_k`."""
    reference: ClassVar[str] = "[PAN] Dwork, Naor, Pitassi, Rothblum, Yekhanin: Pan-private streaming algorithms"

    sized: ClassVar[str]
    """The number of its entries, an argument, which `for_accuracy` chooses."""

    _modulus: int = 1
    """Of the counters, where its table has one layer; 1 for bits alone."""

    _choose: Any
    _draft: Any  # of the other arguments: fills itself in as far as `_width` needs it; the least and the most entries
    _settings: Settings
    _table: _native.PanTable
    _source: RandomSource | None
    _seeded: bool
    _released: int
    _last: Any
    _answered: dict[str, Any]  # what the last release was asked
    _charge: StateCharge | None

    # ---- making one ----------------------------------------------------------------------------------------------

    @classmethod
    def for_accuracy(cls, alpha: float, beta: float, epsilon: float, **given: Any) -> Self:
        """The estimator with the fewest entries whose error is at most alpha except with probability beta.

        The docstring of the class says which error. `given` are the universe and what is asked, by name, and `Options`
        except confidence, which is 1 - beta, and output_share.
        """
        options: Any = {name: given.pop(name) for name in Options.__annotations__ if name in given}
        draft, kind = object.__new__(cls), cast(Any, cls)
        least, most = draft._draft(options, **given)
        entries = fewest(draft, f"_{cls.sized}", alpha, beta, epsilon, options, most, least)
        made: Self = kind(**given, **{cls.sized: entries}, budget=Budget(epsilon), **options)
        return made

    def _start(self, budget: Budget, options: Options) -> None:
        """Check everything, charge the ledger, and only then draw the state."""
        unknown = set(options) - set(Options.__annotations__)
        if unknown:
            raise ParameterError(f"{type(self).__name__} takes no argument {sorted(unknown)[0]!r}")
        account, charge_id, self._source = options.get("ledger"), options.get("charge_id"), options.get("source")
        check_payer(account, charge_id, self._source)
        self._settings = Settings.of(as_budget(budget).pure(self.name), options, self._width)
        self._seeded = self._source is not None and self._source.seeded
        self._released, self._last, self._answered = 0, None, {}
        self._lock = threading.Lock()
        _ = self.response  # which has to exist
        if self._sensitivity(1) > MAX_SCALE * self._settings.epsilon_output:
            raise ParameterError("epsilon is too small: the noise of a release would have a scale above 2**50")
        self._charge = StateCharge.begin(account, charge_id, self._bill(self._settings.epsilon), self._draw)

    def _draw(self) -> None:
        self._table = self._build(self._source or fresh_source())

    def _bill(self, epsilon: float) -> Bill:
        return Bill(Budget(epsilon), self.name, Element())

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        """The half-width of an interval in the worst case, to choose the split by; no data is involved."""
        raise ParameterError(f"use one of the estimators, not the bare {type(self).__name__}")

    def _build(self, source: RandomSource) -> _native.PanTable:
        """The table, every cell drawn."""
        raise ParameterError(f"use one of the estimators, not the bare {type(self).__name__}")

    def _read(self, source: RandomSource) -> Any:
        """One output from the table."""
        raise ParameterError(f"use one of the estimators, not the bare {type(self).__name__}")

    @property
    def parameters(self) -> dict[str, Any]:
        """Its own parameters: what, with the settings, restores the estimator around its table."""
        return {name: getattr(self, f"_{name}") for name in self.own}

    def _adopt(self, parameters: dict[str, Any]) -> None:
        """The inverse of `parameters`."""
        if self.own:
            self._choose(*(parameters[name] for name in self.own))

    # ---- the stream ----------------------------------------------------------------------------------------------

    def update(self, items: Any, *, nulls: str = "error") -> None:
        """Process a batch and forget it.

        The whole batch is checked before anything changes; it is held in memory until the call returns, so feed a long
        stream in batches. Items outside the universe are ignored.

        Args:
            items: An Arrow, NumPy, pandas or polars column of integers, strings or bytes, or an iterable of them.
            nulls: "error" refuses a batch with nulls, "skip" leaves them out.
        """
        self._table.update(prepare_column(items), rules(nulls)[0], self._native_source)

    def release(self) -> Any:
        """The estimate, with its interval and guarantee.

        Each call up to `releases` spends its own part of the budget, whether anything came since the one before or
        not: returning an old release then would tell that nothing did. `last` is the old one. The last release erases
        the table; later calls return it again, and later updates raise `ParameterError`.
        """
        return self._answer()

    def question(self) -> dict[str, Any]:
        """What a release would be asked, checked: nothing here; `t` or `k` where it may be chosen at the release."""
        return {}

    def _asked_before(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What a release was asked, checked; that it may be too late to ask it again does not matter."""
        ask: Any = self.question
        question: dict[str, Any] = ask(**asked)
        return question

    def _answer(self, **asked: Any) -> Any:
        """One release of the planned ones, for this question; what is wrong with it is refused before it is spent."""
        with self._lock:
            ask: Any = self.question  # which takes what its estimator may be asked
            question = ask(**asked)
            if self._released == self._settings.releases:
                if question != self._answered:
                    told = ", ".join(f"{name}={value}" for name, value in self._answered.items())
                    raise ParameterError(f"all {self._released} releases were made, the last one for {told}")
                return self._last
            # The same state, asked this: an estimator around the same table.
            asking = object.__new__(type(self))
            asking.__dict__.update(self.__dict__, **{f"_{name}": value for name, value in question.items()})
            self._last, self._answered = self._published(asking, question), question
            self._released += 1
            if self._released == self._settings.releases:
                self._table.erase()
            return self._last

    def _published(self, asking: PanEstimator, question: dict[str, Any]) -> Any:
        """The next release: drawn, or, where the ledger knows that a copy of this state made it, that one."""
        if self._charge is None or self._charge.account is None:
            return asking._read(self._source or fresh_source())
        number = self._released + 1

        def draw() -> bytes:
            estimate = self._pack(asking._read(fresh_source()))
            return json.dumps({"release": number, "answered": question, "estimate": estimate}, sort_keys=True).encode()

        made = json.loads(self._charge.published(number, draw))
        if made["answered"] != question:
            raise OldStateError(
                f"release {number} was made from a copy of this state, with another question; use the newer state",
                tick=number - 1,
                known=number,
            )
        return self._unpack(made["estimate"])

    def announce_intrusion(self) -> None:
        """Tell that the memory was read: every cell is re-randomised, so that a later look costs no more than a first.

        Call it right after the intrusion, before any update. Accuracy falls with every call: see docs/pan.md.
        Intrusions beyond `announced_intrusions` are handled the same way and raise the epsilon of the guarantee. Where
        a ledger paid, it is charged for each of them first; if the account cannot pay, nothing is re-randomised: the
        budget covers this look and no other, so drop the estimator.
        """
        with self._lock:
            if self.intrusions >= MOST_INTRUSIONS and not self._table.erased:  # before it is paid for
                raise ParameterError(f"at most {MOST_INTRUSIONS} intrusions can be announced; drop the estimator")
            if self._charge is not None and not self._table.erased:  # which cannot be announced, and costs nothing
                for what, bill in self._beyond_the_plan(self.intrusions + 1).items():
                    self._charge.add(what, bill)
            self._table.rerandomise(self._native_source)

    def _beyond_the_plan(self, intrusions: int) -> dict[str, Bill]:
        """What this many announced intrusions cost that the budget does not cover; what was paid costs nothing more."""
        s = self._settings
        numbers = range(s.announced_intrusions + 1, intrusions + 1)
        return {f"intrusion-{number}": self._bill(rounded_up(s.epsilon_state)) for number in numbers}

    @property
    def last(self) -> Any:
        """The last release, or None before the first; it costs nothing."""
        return self._last

    # ---- what is promised ----------------------------------------------------------------------------------------

    @property
    def epsilon_state(self) -> float:
        """The part of epsilon that one look at the memory may use."""
        return float(self._settings.epsilon_state)

    @property
    def epsilon_output(self) -> float:
        """The part of epsilon that one release uses."""
        return float(self._settings.epsilon_output)

    @property
    def intrusions(self) -> int:
        """How many intrusions were announced."""
        return self._table.rounds

    @property
    def guarantee(self) -> Guarantee:
        """For all announced intrusions so far, one unannounced after them, and every release together."""
        s = self._settings
        beyond = max(0, self.intrusions - s.announced_intrusions)
        return Guarantee(
            unit=Element(),
            epsilon=rounded_up(Fraction(s.epsilon) + beyond * s.epsilon_state),
            delta=0.0,
            mechanism=self.name,
            reference=self.reference,
            assumptions=self._assumptions(),
            trust="pan",
            seeded=self._seeded,
        )

    def _assumptions(self) -> tuple[str, ...]:
        s = self._settings
        covered = max(s.announced_intrusions, self.intrusions)
        return (
            f"the adversary sees the memory or the state once without announcement, after at most {covered} announced "
            f"intrusions, and {s.releases} output(s)",
            f"each look at the memory spends epsilon {self.epsilon_state:.6g}, each output {self.epsilon_output:.6g}",
            "a state written to bytes and shown counts as the look at the memory",
            "a batch is processed in one step that the adversary does not see inside",
        )

    # ---- states --------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole state, which may be shown to anyone once: the guarantee covers it."""
        with self._lock:
            header = {
                "settings": self._settings.to_list(),
                "parameters": self.parameters,
                "released": self._released,
                "last": None if self._last is None else self._pack(self._last),
                "seeded": self._seeded,
                "answered": self._answered,
                "charge": None if self._charge is None else self._charge.to_list(),
            }
            text = json.dumps(header, sort_keys=True, allow_nan=False).encode()
            return seal_state(self.family, _VERSION, struct.pack("<I", len(text)) + text + self._table.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, *, ledger: Account | None = None) -> Self:
        """Continue from a state; raises `CorruptStateError` for bytes that are not one of this class.

        Args:
            data: The state.
            ledger: The account that pays. One that paid for this state is charged nothing; any other is charged the
                whole budget, and epsilon_state for each announced intrusion beyond the planned ones.
        """
        _, payload = open_state(data, cls.family, _VERSION)
        made = object.__new__(cls)
        try:
            (length,) = struct.unpack_from("<I", payload)
            header = json.loads(payload[4 : 4 + length])
            made._table = _native.PanTable.from_bytes(payload[4 + length :])
            made._adopt(header["parameters"])
            made._settings = Settings.from_list(header["settings"], made._width)
            made._check_table()
            releases, last = made._settings.releases, header["last"]
            made._released = whole_number("released", header["released"], 0, releases)
            made._seeded = bool(header["seeded"])
            made._last = None if last is None else made._unpack(last)
            made._answered = {} if last is None else made._asked_before(header["answered"])
            saved = saved_charge(header["charge"])
            if (last is None) != (made._released == 0) or made._table.erased != (made._released == releases):
                raise CorruptStateError("state does not agree with itself about its releases")
        except (ParameterError, struct.error, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise CorruptStateError(f"state of {cls.__name__} cannot be read ({type(error).__name__})") from None
        made._source, made._lock = None, threading.Lock()
        bill, more = made._bill(made._settings.epsilon), made._beyond_the_plan(made.intrusions)
        made._charge = StateCharge.restored(saved, ledger, bill, made._seeded, more)
        return made

    def _check_table(self) -> None:
        """That the restored table is one this estimator would have built."""
        response, table = self.response, self._table
        if (table.unseen, table.seen) != (response.unseen, response.seen):
            raise CorruptStateError("state has a table made for another budget")
        moduli = [table.modulus(layer) for layer in range(table.layers)]
        if (table.entries, moduli) != (self._entries, self._layers):
            raise CorruptStateError("state has a table of another shape")

    @property
    def _entries(self) -> int:
        """How many entries its table has."""
        raise ParameterError(f"use one of the estimators, not the bare {type(self).__name__}")

    @property
    def _layers(self) -> list[int]:
        """What the counters of each layer of its table run modulo."""
        return [self._modulus]

    def _pack(self, estimate: Any) -> dict[str, Any]:
        return {name: getattr(estimate, name) for name in ("value", "lower", "upper", "unbiased")}

    def _unpack(self, packed: dict[str, Any]) -> Any:
        value, lower, upper, unbiased = (float(packed[name]) for name in ("value", "lower", "upper", "unbiased"))
        return PanEstimate(value, lower, upper, self.guarantee, unbiased)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_bytes, (self.to_bytes(),))

    def _describe(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()}, epsilon={self._settings.epsilon:g}) [pan-private]"

    # ---- what an audit looks at (`discreet.pan.element_law`) -------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """How epsilon is split, and what is promised."""
        return self._settings

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with besides its own parameters and the source."""
        s = self._settings
        kept = {name: getattr(s, name) for name in KEPT}
        return {"budget": Budget(s.epsilon), **kept, "output_share": s.share}

    def element_laws(self) -> list[ElementLaw]:
        """The law of one element's cells and of what a release counts of them, for each role an element may have."""
        return [self._law_of_bits(1)]

    def _law_of_bits(self, modulus: int) -> ElementLaw:
        """A bit of which the ones are counted, drawn at every `modulus`-th occurrence."""
        return ElementLaw((self._bit(modulus),), lambda bits: (float(bits[0]),), (self.noise_scale,))

    def _bit(self, modulus: int, step: int = 1) -> BitCell:
        return BitCell(*self.response.after(0), modulus, step)

    def seen_by_intruder(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The counters and the bits of every entry, as anyone who reads the memory finds them."""
        layers: list[Any] = [self._table.seen_by_intruder(layer) for layer in range(self._table.layers)]
        return [
            (tuple(c[i] for c, _ in layers if c), tuple(b[i] for _, b in layers if b))
            for i in range(self._table.entries)
        ]

    def counted(self, source: RandomSource, size: int, read: Callable[[Integers], Any]) -> Any:
        """Counts of the table with their noise, which `read` adds: all that a release takes from it.

        The noises are zeroed at the end: with them a released count would be exact.
        """
        noise = source.discrete_laplace(self.noise_scale, size)
        try:
            return read(noise)
        finally:
            noise[:] = 0

    # ---- for the estimators --------------------------------------------------------------------------------------

    @property
    def _native_source(self) -> _native.RandomSource | None:
        """None lets each call draw from a source of its own, so that no random words wait in memory."""
        return None if self._source is None else self._source._source.native

    def _sensitivity(self, intrusions: int) -> int:
        """How far any change of one element's cells moves the counts of one output, in l1.

        No less after announced intrusions than before.
        """
        return 1

    @property
    def noise_scale(self) -> Fraction:
        """Of the discrete Laplace noise on each count of a release."""
        return self._sensitivity(self.intrusions) / self._settings.epsilon_output

    @property
    def response(self) -> Response:
        """The coins of the bits."""
        return Response.of(self._settings.response, self._settings.epsilon_state)

    def _chances(self) -> tuple[float, float]:
        """P[1] of a cell not seen, and how much more it is for one seen, now."""
        p0, p1 = self.response.after(self.intrusions)
        return float(p0), float(p1 - p0)

    def _estimate(self, unbiased: float, lower: float, upper: float, most: float = 1.0) -> PanEstimate:
        """An estimate of something between 0 and `most`."""

        def cut(x: float) -> float:
            return min(max(x, 0.0), most)

        value = cut(unbiased)
        return PanEstimate(value, min(cut(lower), value), max(cut(upper), value), self.guarantee, unbiased)


def numbers(*values: int) -> npt.NDArray[np.uint64]:
    """Native arguments."""
    return np.array(values, np.uint64)
