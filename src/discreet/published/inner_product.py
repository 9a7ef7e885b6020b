"""The inner-product counter: what a stream can do privately and a sketch of each participant cannot."""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import CorruptStateError, DataError, ParameterError
from discreet.events.items import read
from discreet.noise import RandomSource, fresh_source
from discreet.pan._base import PanEstimate
from discreet.pan.charge import StateCharge, saved_charge
from discreet.pan.responses import ONE, Response
from discreet.privacy import Budget, Guarantee, Replace
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import probability, whole_number
from discreet.releases.payment import Bill, check_payer
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

    from discreet.privacy.ledger import Account

_FAMILY = 127
Bits = npt.NDArray[np.int64]


class InnerProductCounter:
    """Votes fix a bit vector V; then the vectors X with <V, X> = 1 over GF(2) are counted.

    Unit: the bit that a participant votes, or the vector, replaced by another. Public are how many take part and for
        which position each votes: the paper assigns the positions.
    Guarantee: pure epsilon, against an adversary who reads the memory at every moment: an input is answered at once by
        randomised response (the tight pair), and the state is nothing but counts of the answers.
    Phase 1, `vote(positions, bits)`: V_i is the majority of the answers for position i. Phase 2, `update(vectors)`: the
        first call fixes V; each participant answers with <V, X>. No participant could answer in advance, without V:
        that is why no private sketch does this ([PAN] Theorem 7.2).
    Error: (ones - p0 n)/gap is within sqrt(n log(2/beta)/2)/gap; V_i is right for a clear majority of enough votes.
    Follows [PAN] section 7.
    Argument: docs/privacy/pan.md.

    Args:
        length: Of the vectors.
        budget: A pure epsilon.
        confidence: Of the interval of a release.
        source: A seeded source, for tests and audits.
        ledger: The account that pays. The budget is charged durably when the counter is made; it covers every look and
            every release.
        charge_id: Names the charge; a new id by default. It pays for one counter.

    Attributes:
        epsilon: What all that is kept tells about one input.
    """

    name = "pan-private inner-product counter"

    def __init__(
        self,
        length: int,
        *,
        budget: Budget,
        confidence: float = 0.95,
        source: RandomSource | None = None,
        ledger: Account | None = None,
        charge_id: str | None = None,
    ) -> None:
        check_payer(ledger, charge_id, source)
        self.length = whole_number("length", length, 1, 2**20)
        self.epsilon = as_budget(budget).pure(self.name)
        self.response = Response.of("tight", Fraction(self.epsilon))
        self.confidence = probability("confidence", confidence)
        self._source, self._seeded = source, source is not None and source.seeded
        self._ones, self._votes = np.zeros(self.length, np.int64), np.zeros(self.length, np.int64)
        self._vector: Bits | None = None
        self._count = self._vectors = 0
        self._lock = threading.Lock()
        self._charge = StateCharge.begin(ledger, charge_id, self._bill, lambda: None)

    @property
    def _bill(self) -> Bill:
        return Bill(Budget(self.epsilon), self.name, Replace())

    def vote(self, positions: npt.ArrayLike, bits: npt.ArrayLike) -> None:
        """One vote of 0 or 1 for one position from each participant; before the first vectors."""
        where, cast = read(positions, lambda: np.asarray(positions)), _bits_of(bits)
        try:
            if where.ndim != 1 or where.shape != cast.shape or where.dtype.kind not in "iu":
                raise DataError("positions and bits must be arrays of one dimension and equal length")
            if where.size and (where.min() < 0 or where.max() >= self.length):
                raise DataError(f"positions must be from 0 to {self.length - 1}")
            self.answer(cast)
            with self._lock:
                if self._vector is not None:
                    raise ParameterError(
                        "the vector was fixed when the first vectors arrived; no more votes are accepted"
                    )
                np.add.at(self._ones, where, cast)
                np.add.at(self._votes, where, 1)
        finally:
            cast[...] = 0

    def update(self, vectors: npt.ArrayLike) -> None:
        """A vector of 0s and 1s from each participant: an array with a row for each."""
        rows = _bits_of(vectors)
        products = np.zeros(len(rows) if rows.ndim else 0, np.int64)
        try:
            if rows.ndim != 2 or rows.shape[1] != self.length:
                raise DataError(f"vectors must be an array with {self.length} columns, a row for each participant")
            with self._lock:
                if self._vector is None:
                    self._vector = self._majority()
                np.matmul(rows, self._vector, out=products)
                np.remainder(products, 2, out=products)
                self.answer(products)
                self._count += int(products.sum())
                self._vectors += len(rows)
        finally:
            rows[...] = 0
            products[...] = 0

    @property
    def vector(self) -> Bits:
        """V as it stands; private like everything here."""
        return self._majority() if self._vector is None else self._vector.copy()

    def release(self) -> PanEstimate:
        """How many vectors have inner product 1 with `vector`; it costs nothing beyond the state."""
        from scipy.special import betaincinv

        n, ones, beta = self._vectors, self._count, 1 - self.confidence
        p0, gap = self.response.unseen / ONE, (self.response.seen - self.response.unseen) / ONE
        low = float(betaincinv(ones, n - ones + 1, beta / 2)) if ones > 0 else 0.0
        high = float(betaincinv(ones + 1, n - ones, 1 - beta / 2)) if ones < n else 1.0
        unbiased = (ones - p0 * n) / gap
        ends = (unbiased, n * (low - p0) / gap, n * (high - p0) / gap)
        value, lower, upper = (min(max(x, 0.0), float(n)) for x in ends)
        return PanEstimate(value, min(lower, value), max(upper, value), self.guarantee, unbiased)

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with besides the length and the source."""
        return {"budget": Budget(self.epsilon), "confidence": self.confidence}

    @property
    def parameters(self) -> dict[str, Any]:
        """Its own parameters."""
        return {"length": self.length}

    @property
    def answers(self) -> tuple[list[int], list[int], int]:
        """All that is kept: the votes of 1 and all votes of every position, and the vectors with product 1."""
        return self._ones.tolist(), self._votes.tolist(), self._count

    def announce_intrusion(self) -> None:
        """Nothing has to be done: nothing in the memory is secret, at any time."""

    @property
    def guarantee(self) -> Guarantee:
        """Of the state at every moment and of the release."""
        return Guarantee(
            unit=Replace(),
            epsilon=self.epsilon,
            delta=0.0,
            mechanism=self.name,
            reference="[PAN] section 7",
            assumptions=(
                "the adversary may see the memory at every moment between two batches",
                "a participant gives one vote or one vector",
                "how many take part, and for which position each votes, is public",
            ),
            trust="pan",
            seeded=self._seeded,
        )

    def to_bytes(self) -> bytes:
        """The whole state, which may be shown to anyone at any time."""
        with self._lock:
            state = {
                "length": self.length,
                "epsilon": self.epsilon,
                "confidence": self.confidence,
                "ones": self._ones.tolist(),
                "votes": self._votes.tolist(),
                "vector": None if self._vector is None else self._vector.tolist(),
                "count": self._count,
                "vectors": self._vectors,
                "seeded": self._seeded,
                **({} if self._charge is None else {"charge": self._charge.to_list()}),
            }
        return seal_state(_FAMILY, 1, json.dumps(state, sort_keys=True).encode())

    @classmethod
    def from_bytes(cls, data: bytes, *, ledger: Account | None = None) -> Self:
        """Continue from a state; raises `CorruptStateError` for bytes that are not one of this class.

        A `ledger` that paid for it is charged nothing; any other is charged the budget.
        """
        _, payload = open_state(data, _FAMILY, 1)
        try:
            state: dict[str, Any] = json.loads(payload)
            counter = cls(state["length"], budget=Budget(state["epsilon"]), confidence=state["confidence"])
            arrays = [np.array(state[name], np.int64) for name in ("ones", "votes")]
            counter._ones, counter._votes = arrays
            if state["vector"] is not None:
                counter._vector = _bits_of(np.array(state["vector"], np.int64))
                arrays.append(counter._vector)
            counter._vectors = whole_number("vectors", state["vectors"], 0)
            counter._count = whole_number("count", state["count"], 0, counter._vectors)
            counter._seeded = bool(state["seeded"])
            if any(array.shape != (counter.length,) for array in arrays):
                raise ParameterError("arrays of the wrong length")
            if (counter._ones < 0).any() or (counter._ones > counter._votes).any():
                raise ParameterError("more ones than votes")
            saved = saved_charge(state.get("charge"))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptStateError(f"state of {cls.__name__} cannot be read ({type(error).__name__})") from None
        counter._charge = StateCharge.restored(saved, ledger, counter._bill, counter._seeded)
        return counter

    def __repr__(self) -> str:
        return f"InnerProductCounter(length={self.length}, epsilon={self.epsilon:g}) [pan-private]"

    def _majority(self) -> Bits:
        bits: Bits = (2 * self._ones > self._votes).astype(np.int64)
        return bits

    def answer(self, bits: Bits) -> None:
        """Turn bits into answers, in place: each is flipped with probability unseen = 1 - seen.

        With the flips an answer would be the bit, so they are zeroed, and there are no other copies.
        """
        flips = (self._source or fresh_source()).bernoulli(Fraction(self.response.unseen, ONE), len(bits))
        np.bitwise_xor(bits, flips, out=bits)
        flips[...] = 0


def _bits_of(given: npt.ArrayLike) -> Bits:
    """A copy of our own, which the caller zeroes after use."""
    array = read(given, lambda: np.array(given))
    try:
        # Comparing with 0 and 1 would make two more copies of the bits.
        if array.dtype.kind not in "biu" or (array.size and (array.min() < 0 or array.max() > 1)):
            raise DataError("bits must be 0 or 1")
        return array.astype(np.int64)
    finally:
        array.fill(0)
