"""What every protocol shares: public parameters, and parties that speak once.

A message is made of one party's items and of public numbers only, by a mechanism that is epsilon-DP for replacing one
of its items; parties draw independently and nobody answers. docs/privacy/multiparty.md has the argument, protocol by
protocol.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet._data_class import dataclass, fields, replace
from discreet.errors import DataError, DiscreetError, MessageError, ParameterError
from discreet.events.items import item_of
from discreet.events.universe import Universe, Words
from discreet.multiparty.aggregator import Aggregator, Limits
from discreet.multiparty.estimates import Numbers, most_of
from discreet.multiparty.wire import MAX_NUMBER, Heard, Message, pack, unpack
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Guarantee, Replace
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.releases.payment import Bill, check_payer, is_stored, pay_and_draw

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

USUAL_MAX_ITEMS = 2**16
"""Most items of a party, unless a round says otherwise. A liar can add as many to any count, so a round says as few as
its parties may honestly have."""


@dataclass(frozen=True)
class Protocol:
    """The public parameters of a round or a stream, the same for every party and the aggregator.

    Holds no data and no secret. What parties and aggregators do with them: `Round`, and `BlockStream`.

    Args:
        round_id: The name of the round, or of the stream. All public randomness is derived from it; a round's items
            must not depend on it.
        budget: Pure epsilon: what a party's message may tell about one of its items.
        universe: A size n (the integers 0 to n - 1), a range, a list of different items, or "integers", "strings" or
            "bytes" for any item of that kind.
    """

    round_id: str
    budget: Budget
    universe: Any

    family: ClassVar[int]
    name: ClassVar[str]
    reference: ClassVar[str] = (
        "[MDP] Huang, Qiu, Yi, Cormode: Frequency estimation under multiparty differential privacy"
    )
    unbiased: ClassVar[bool] = True
    needs_bounded: ClassVar[bool] = False
    names_items: ClassVar[bool] = False  # messages name items, so that the heavy ones are found without levels
    items_at_once: ClassVar[int] = 2**14  # that are estimated between two chances to interrupt
    _listener: ClassVar[type[Any]]  # the class of its aggregators

    if TYPE_CHECKING:
        party: ClassVar[Callable[..., Any]]
        aggregator: ClassVar[Callable[..., Any]]
        restore: ClassVar[Callable[..., Any]]
        open: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        text = item_of(self.round_id) if isinstance(self.round_id, str) else None
        if not isinstance(text, str) or not 1 <= len(text.encode()) <= 1024:
            raise ParameterError("round_id must be a text (Unicode) of 1 to 1024 bytes")
        as_budget(self.budget).pure(self.name)
        object.__setattr__(self, "universe", self.read_universe(self.universe))
        if self.needs_bounded and not self.universe.bounded:
            raise ParameterError(f"{type(self).__name__} needs a bounded universe: a size, a range or a list")
        self._check()

    # ---- public parameters -----------------------------------------------------------------------------------------

    @staticmethod
    def read_universe(given: object) -> Any:
        """The universe from what is given, or from its description."""
        universe = Universe.from_dict(given) if isinstance(given, dict) else Universe.of(given)
        if universe.kind == "uint64" or (universe.size or 0) > 2**62:
            raise ParameterError("a universe of numbers must fit int64 and have at most 2**62; 'integers' is unbounded")
        return universe

    @property
    def domain(self) -> Universe:
        """`universe`, by its name of the version before."""
        universe: Universe = self.universe
        return universe

    @property
    def epsilon(self) -> float:
        """What a message may tell about one item."""
        assert self.budget.epsilon is not None
        return self.budget.epsilon

    @property
    def guarantee(self) -> Guarantee:
        """What every party is promised."""
        return self._guarantee(False)

    def _guarantee(self, seeded: bool) -> Guarantee:
        return Guarantee(
            unit=Replace(),
            epsilon=self.epsilon,
            delta=0.0,
            mechanism=self.name,
            reference=self.reference,
            assumptions=(
                "each message is private by itself, whatever the aggregator and the other parties do",
                "a party speaks once in a round; how many items it has is public",
                *self._assumptions(),
            ),
            trust="multiparty",
            seeded=seeded,
        )

    def to_dict(self) -> dict[str, Any]:
        """The parameters as JSON-ready values: what is handed to every party."""
        return {"protocol": type(self).__name__, "round_id": self.round_id, **self._described()}

    def _described(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("round_id", "budget", "universe")}
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in own.items()}
        return {"epsilon": self.epsilon, "universe": self.universe.to_dict(), "parameters": plain}

    @cached_property
    def digest(self) -> bytes:
        """Eight bytes that change with any parameter but the round id."""
        described = json.dumps([type(self).__name__, self._described()], sort_keys=True, allow_nan=False)
        return blake2b(described.encode(), digest_size=8, person=b"parameters").digest()

    @cached_property
    def round_digest(self) -> bytes:
        """Eight bytes that change with the round id."""
        return blake2b(self.round_id.encode(), digest_size=8, person=b"round").digest()

    def _public_seed(self, size: int, *parts: int) -> int:
        """Public randomness: a function of the round, the protocol and these numbers."""
        text = b"".join(part.to_bytes(8, "little") for part in (self.family, *parts)) + self.round_id.encode()
        return int.from_bytes(blake2b(text, digest_size=size, person=b"public seed").digest(), "little")

    def _public_key(self, *parts: int) -> tuple[int, int]:
        """The same as the key of a hash function."""
        seed = self._public_seed(16, *parts)
        return seed & (2**64 - 1), seed >> 64

    def charge_id(self, number: int) -> str:
        """The id under which all that a party sends in this round is charged."""
        return f"{self.round_digest.hex()}-{self.digest.hex()}-{number}"

    @property
    def bill(self) -> Bill:
        """What all that a party sends costs, for its ledger."""
        return Bill(self.budget, self.name, self.guarantee.unit)

    # ---- for the protocols -----------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Checks the protocol's own parameters."""

    def _assumptions(self) -> tuple[str, ...]:
        return ()

    @property
    def _exact_epsilon(self) -> Fraction:
        return Fraction(self.epsilon)

    @property
    def _identity(self) -> bytes:
        return bytes([self.family]) + self.round_digest + self.digest

    def _pack(self, message: Message) -> bytes:
        return pack(self.family, self.round_digest, self.digest, message)

    def _unpack(self, data: bytes) -> Message:
        return unpack(self.family, self.round_digest, self.digest, data)


class Round(Protocol):
    """A round: parties that speak once, and an aggregator that estimates from what they say."""

    _listener: ClassVar[type[Any]] = Aggregator

    # ---- the two sides ---------------------------------------------------------------------------------------------

    @property
    def local(self) -> bool:
        """Whether every item is a report of its own, with a number of its own."""
        return False

    @property
    def _oracle(self) -> Round:
        """What estimates frequencies: the protocol itself, or that of every level."""
        return self

    def party(self, number: int | None = None, *, source: RandomSource | None = None) -> Party:
        """One party; numbers are public and different, and a random one of 62 bits if none is given.

        A seeded source is for tests: its messages are not private.
        """
        return Party(self, number, source)

    def aggregator(
        self, *, max_items: int | None = None, max_reports: int | None = 1, minimum_reports: int = 0
    ) -> Aggregator:
        """An aggregator that has heard nothing yet.

        Args:
            max_items: The most items of one message, where the round's own limit is too large: what a liar adds to a
                count is at most that and the noise's reach.
            max_reports: Of local protocols: the most reports of one message. More than one is for parties with many
                items, and for relays that are trusted not to make reports up; None takes what the protocol allows.
            minimum_reports: Nothing is shown before this many parties were heard, of local protocols reports.
        """
        made: Aggregator = self._listener(self, Limits(max_items, max_reports, minimum_reports))
        return made

    def restore(self, data: bytes, **limits: Any) -> Aggregator:
        """The aggregator of a state; `CorruptStateError` for bytes that are not one of this protocol and round.

        The limits are as for `aggregator`: a state does not keep them.
        """
        restored: Aggregator = self._listener._restored(self, data, Limits(**limits))
        return restored

    # ---- what an audit looks at: `discreet.multiparty.party_seam` ----------------------------------------------------

    def open(self, message: bytes) -> tuple[Message, Any]:
        """A message and what it says, checked; `MessageError` if no honest party sends it."""
        opened = self._unpack(message)
        return opened, self._checked(opened)

    # ---- for the protocols -----------------------------------------------------------------------------------------

    def _check_items(self, items: int, own: bool = False) -> None:
        """`ParameterError` for a number of items that a party must not have; a relay's message may speak of more than
        its `own`."""
        most = getattr(self, "max_items", None)
        if most is not None and items > most:
            raise ParameterError(
                f"a party of this round has at most max_items={most} items: make a round with a larger max_items"
            )

    def _covered(self, message: Message) -> list[tuple[int, int]]:
        """Which numbers a message speaks for, as runs (first, count)."""
        return [(message.number, 1)]

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        raise ParameterError("use one of the protocols, not the bare Round")

    def _decode(self, message: Message) -> Any:
        """What a message says, checked; `MessageError` or `DataError` if it cannot be."""
        raise ParameterError("use one of the protocols, not the bare Round")

    def _estimate(self, heard: Heard, words: Words) -> tuple[Numbers, Numbers]:
        """Values and variances."""
        values, variances = np.zeros(len(words)), np.zeros(len(words))
        for value, variance in self._each(heard, words):
            values += value
            variances += variance
        return values, variances

    def _each(self, heard: Heard, words: Words) -> Iterator[tuple[Numbers, Numbers]]:
        """Values and variances of every message by itself, where the estimate is their sum."""
        raise ParameterError("use one of the protocols, not the bare Round")

    def _influence(self, heard: Heard, words: Words, count: int) -> tuple[Numbers, Numbers]:
        """What at most `count` of the parties heard add to each estimate, and what they take away from it."""
        return most_of(np.array([values for values, _ in self._each(heard, words)]), count)

    def _bias(self, heard: Heard) -> tuple[float, float]:
        """How much an estimate may be too low, at most, and too high, on average."""
        return 0.0, 0.0

    def _addends(self, heard: Heard, words: Words) -> Numbers:
        """What independent parts of what was heard add to the sum of all these words' estimates; here, the messages.

        One where all messages err together.
        """
        sums = np.zeros(len(heard))
        for start in range(0, len(words), self.items_at_once):
            sums += [values.sum() for values, _ in self._each(heard, words[start : start + self.items_at_once])]
        return sums

    # ---- for the aggregators ---------------------------------------------------------------------------------------

    def _checked(self, message: Message) -> Any:
        """What a message says; `MessageError` if no honest party sends it."""
        try:
            self._check_items(message.items)
        except ParameterError as error:
            raise MessageError(f"message states a number of items that is not allowed: {error}", "range") from None
        try:
            if any(first + count - 1 > MAX_NUMBER for first, count in self._covered(message)):
                raise MessageError("message has a number of more than 63 bits", "range")
            return self._decode(message)
        except MessageError:
            raise
        except DataError as error:
            raise MessageError(str(error), "range") from None

    def _consolidated(self, heard: Heard) -> Heard:
        """What was heard, in the form that is quickest to work with."""
        return heard

    def _estimates(self, heard: Heard, words: Words, liars: int | None = None) -> tuple[Numbers, Numbers]:
        """Values and variances of many words, with chances to interrupt; or what this many liars could have done."""
        first, second, at_once = np.zeros(len(words)), np.zeros(len(words)), self.items_at_once
        if liars is not None:  # there is a number for every message and item then
            at_once = max(1, min(at_once, 2**24 // max(len(heard), 1)))
        for start in range(0, len(words) if heard else 0, at_once):
            part = slice(start, start + at_once)
            told = self._estimate(heard, words[part]) if liars is None else self._influence(heard, words[part], liars)
            first[part], second[part] = told
        return first, second


class Party:
    """One party of a round. It speaks once: a second message would spend the budget again.

    Attributes:
        payment: How the latest message was paid: "charged", "charged before" or "replayed"; None without a ledger.
    """

    def __init__(self, protocol: Round, number: int | None, source: RandomSource | None) -> None:
        check_payer(None, None, source)
        self.protocol = protocol
        self._named = number is not None
        self.number = secrets.randbits(62) if number is None else whole_number("number", number, 0, MAX_NUMBER)
        self.payment: str | None = None
        self._source = source
        self._spoke = False
        self._lock = threading.Lock()

    @property
    def charge_id(self) -> str:
        """The id under which a ledger has the message, unless another one is given: round, parameters and party."""
        return self.protocol.charge_id(self.number)

    def encode(
        self, items: Any, *, nulls: str = "error", ledger: Account | None = None, charge_id: str | None = None
    ) -> bytes:
        """The message that tells the aggregator about these items, epsilon-DP for each of them.

        Args:
            items: An Arrow, NumPy, pandas or polars column, or an iterable of int, str or bytes.
            nulls: "error" refuses nulls, "skip" leaves them out; how many items are left is public.
            ledger: The account that pays. The budget is charged durably before anything is drawn, and the message is
                stored before it is returned: calling this again, in another process or after a crash, costs nothing
                more and returns the message that is stored, whatever the items are then.
            charge_id: Names the charge; `charge_id` of the party by default.
        """
        check_payer(ledger, charge_id, self._source)
        if ledger is not None and not self._named:
            raise ParameterError("with a ledger, give the party's number; a random one would be charged again")
        words = self.protocol.universe.words(items, nulls)
        self.protocol._check_items(len(words), own=True)
        if self.protocol.local and self.number + len(words) - 1 > MAX_NUMBER:
            raise ParameterError("every report has a number below 2**63; give the party a smaller one")
        charge_id = self.charge_id if charge_id is None else charge_id
        # A charge id that is given stands for this message, too, and for no other.
        bill = replace(self.protocol.bill, request={"message": self.charge_id})
        with self._lock:
            if self._spoke and not is_stored(ledger, charge_id):
                raise ParameterError(
                    "this party has already sent its message of this round; a second one would spend its budget again"
                )
            message, self.payment = pay_and_draw(
                ledger, charge_id, bill, lambda: self._draw(words), to_payload=bytes, from_payload=bytes
            )
            self._spoke = True
        return message

    def _draw(self, words: Words) -> bytes:
        source = system_source() if self._source is None else self._source
        payload = self.protocol._encode(words, self.number, source)
        return self.protocol._pack(Message(self.number, len(words), payload, source.seeded))

    def __repr__(self) -> str:
        return f"Party({self.number} of {type(self.protocol).__name__}, round {self.protocol.round_id!r})"


_KNOWN: dict[str, type[Protocol]] = {}
_PUBLISHED = ("MergedMisraGries", "MergedMisraGriesStream", "MergedSketch")
"""Protocols of `discreet.published`, which lies above this package: each is imported when a description names it."""


def known(kind: type[Protocol]) -> type[Protocol]:
    """Makes a protocol known to `protocol_from_dict`."""
    _KNOWN[kind.__name__] = kind
    return kind


def known_protocol(name: str) -> type[Protocol]:
    """The class of a protocol by its name."""
    if name in _PUBLISHED:
        getattr(import_module("discreet.published"), name)
    if name not in _KNOWN:
        raise ParameterError(f"protocol must be one of {', '.join(sorted({*_KNOWN, *_PUBLISHED}))}, not {name!r}")
    return _KNOWN[name]


def protocol_from_dict(values: dict[str, Any]) -> Protocol:
    """The protocol that `to_dict` describes."""
    try:
        return known_protocol(values["protocol"])(
            values["round_id"], Budget(values["epsilon"]), dict(values["universe"]), **values["parameters"]
        )
    except DiscreetError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ParameterError(f"not the description of a protocol ({type(error).__name__}: {error})") from None
