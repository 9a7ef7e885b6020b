"""Heavy hitters at every tick, in bounded memory and without knowing the items."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet._data_class import dataclass
from discreet.continual._base import ListedOverTime, State, items_of_plain, plain_items
from discreet.continual._doubling import EPOCHS, Doubling, epoch_of
from discreet.continual._factors import MAX_HORIZON, Buffered, Factor, highest_ended, levels
from discreet.errors import CorruptStateError, ParameterError
from discreet.events.items import Item, prepare_column, read, rules, without_bad
from discreet.events.values import items_array, taken
from discreet.noise import RandomSource
from discreet.noise.source import Integers, offset_draw
from discreet.privacy.calibration.composition import repeated_share
from discreet.privacy.calibration.discovery import discovery_calibration
from discreet.privacy.calibration.offset_cut import offset_threshold
from discreet.privacy.calibration.tails import chan_threshold
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.privacy.calibration.zcdp import zcdp_rho
from discreet.privacy.checks import whole_number, whole_or_none
from discreet.releases.error_model import ErrorModel, Noise, Stretch, Stretches
from discreet.releases.release import Release
from discreet.summaries import ExactCounts, MisraGries
from discreet.summaries.counters import RawCounts, ValuesSeen, update_all
from discreet.summaries.memory import COUNTERS, SKETCH_MEMORY, Memory, counters_in

if TYPE_CHECKING:
    from typing_extensions import Self

    from discreet.privacy import Budget
    from discreet.privacy.ledger import Account


MECHANISMS = {"discover": COUNTERS, "offset": COUNTERS, "chan": 4096}
"""With the counters of each by default."""
_Lacking: TypeAlias = tuple[int, tuple[int, ...]]  # the offset of an item's nodes, and the nodes that did not list it
_MOST_BASE = 16
_BLOCKS = 64  # so often in a horizon items are looked for, by default
_MOST_EPSILON = 20.0  # beyond, integer Gaussian noise is no less, and Laplace noise is none


@dataclass(frozen=True)
class _Node:
    """The release of the ticks `first` to `last`. Everything in it is public."""

    first: int
    last: int
    offset: int
    counts: dict[Item, int]
    scale: Fraction  # of its noise
    threshold: int


@dataclass(frozen=True)
class NodePlan:
    """How a number of ticks is divided into nodes, and what each of them has: its noise, and its cut."""

    every: int
    base: int
    levels: int
    scale: Fraction
    threshold: int


@dataclass(frozen=True)
class Part:
    """What a release said of an item for the ticks `first` to `last`, and that release's offset. All public."""

    first: int
    last: int
    count: int
    offset: int


class Discovered:
    """Items whose names are public: what was found of them before, and a counter each that begins when they are.

    An event of one of the items is in one counter, at one tick: rho-zCDP for all of them together, as for `Counter`.
    """

    def __init__(self, factor: Factor, rho: float) -> None:
        self.factor = factor
        self.sigma: Fraction = self.factor.sigma(rho)
        self.tick = 0
        self.index: dict[Item, int] = {}
        self.parts: list[Part] = []
        self.since: Integers = np.zeros(0, np.int64)  # true counts after the item was found
        self.ages: Integers = np.zeros(0, np.int64)  # ticks of its counter
        self._noise = factor.start(0)
        self.carried: Integers = np.zeros(0, np.int64)  # what the counters of a first run had published
        self.carried_error = 0.0  # the standard deviation of the noise in that
        self.carried_below = 0.0  # what it may lack

    def take(self, items: list[Item], counts: Integers) -> npt.NDArray[np.bool_]:
        """Count the events of the next tick, of those of different items that are public; which of them are."""
        places = np.array([self.index.get(item, -1) for item in items], np.int64)
        public = np.asarray(places >= 0)
        self.since[places[public]] += counts[public]
        return public

    def advance(self, tick: int, source: RandomSource) -> None:
        """The noise of the next tick."""
        self.tick = tick
        if self.index or isinstance(self.factor, Doubling):  # epochs begin for nobody, too
            self.factor.advance(self._noise, tick, self.sigma, source)
            self.ages += 1

    def join(self, first: int, last: int, counts: dict[Item, int], offset: int) -> None:
        """A release of these ticks; what it says of an item replaces what a smaller one inside of it said.

        An item has one part: after the first that has it events go to its counter, so that others with the item contain
        the first.
        """
        for item, count in counts.items():
            part, place = Part(first, last, count, offset), self.index.setdefault(item, len(self.parts))
            self.parts[place : place + 1] = [part]
        more = len(self.parts) - len(self.since)
        if not more:
            return
        self.since, self.ages, self.carried = (
            np.pad(array, (0, more)) for array in (self.since, self.ages, self.carried)
        )
        fresh = self.factor.start(more, self.tick)
        self._noise = {name: np.concatenate([old, fresh[name]], axis=-1) for name, old in self._noise.items()}

    def counts(self) -> tuple[Integers, Integers]:
        """(private count, how much of it came after the item was found) of every item.

        The first is its parts and the second, which is its counter with noise, after those of runs before.
        """
        followed = self.carried + self.since + self.factor.to_counts(self._noise["noise"])
        return np.array([part.count for part in self.parts], np.int64) + followed, followed

    def begin_again(self, published: dict[Item, int], missing: float, error: float) -> None:
        """Begin counters with new noise. Beside its parts an item keeps what was published, whatever nodes say later.

        `missing` is what the published counts may lack. Parts lack the same, unless another draw was published. `error`
        is the standard deviation of the noise of the counters so far.
        """
        drawn, followed = self.counts()
        parts = drawn - followed
        if any(published.get(item, drawn[place]) != drawn[place] for item, place in self.index.items()):
            self.carried_below += missing
        for item, place in self.index.items():
            if item in published:
                self.carried[place] = published[item] - parts[place]
        self.carried_error = error
        self.since, self.ages = np.zeros((2, len(self.parts)), np.int64)
        self._noise = self.factor.start(len(self.parts), self.tick)

    def saved(self) -> tuple[dict[str, Any], dict[str, Integers]]:
        """The state: a part of the header, and arrays. Not private."""
        kind, items = plain_items(self.index)
        parts = [[(part.first, part.last, part.count, part.offset)] for part in self.parts]  # there was more, once
        header = {"kind": kind, "items": items, "parts": parts, "carried": [self.carried_error, self.carried_below]}
        return header, {"since": self.since, "ages": self.ages, "carried": self.carried, **self._noise}

    def load(self, header: dict[str, Any], arrays: dict[str, Integers], tick: int) -> None:
        """The inverse of `saved`, at that tick."""
        self.tick = tick
        items = items_of_plain(header["kind"], header["items"])
        self.index = {item: place for place, item in enumerate(items)}
        self.parts = [Part(*map(int, part)) for (part,) in header["parts"]]
        self._noise = self.factor.loaded(arrays, len(items), tick)
        self.since, self.ages, self.carried = arrays["since"], arrays["ages"], arrays["carried"]
        self.carried_error, self.carried_below = map(float, header["carried"])
        one = (len(items),)
        if len(self.index) != len(items) or len(self.parts) != len(items):
            raise CorruptStateError("the state has counters of other items")
        if any(array.shape != one for array in (self.since, self.ages, self.carried)):
            raise CorruptStateError("the state has counters of another size")


class HeavyHitters(ListedOverTime):
    """The frequent items of the whole stream, or of the last `window` ticks, at every tick.

    Unit: one event (one item at one tick).
    Guarantee: (epsilon, delta) for all ticks together.
    Mechanism: a tree over ticks. A node at level i covers r^i blocks of ticks and is one Misra-Gries sketch of its
        events, released once. "discover", for the whole stream: a release of a node makes items public; from then on
        their events go past the sketches to exact counters with factorised noise. An event is in the nodes of L levels
        or in one counter, and both may spend the whole budget. "offset": a tick's result adds up the nodes that cover
        it; "chan" releases nodes with noise k/epsilon instead.
    Noise: "discover": discrete Gaussian on a node's counters and offset, for the L nodes of an event, and factorised
        noise on counters. Else each node gets the (epsilon, delta) of which L compose to the budget
        (`calibration.composition`).
    Threshold: of each node: an item is in its release iff count - offset >= threshold.
    Error: `Release.bounds` has all of it, item by item: the noises of nodes and counters, what a sketch may
        overestimate, n/(k+1), and at most offset + threshold and some noise of each node that did not release the item.
    Without a horizon: epochs of 1, 2, 4, ... ticks have a tree of nodes each, and counters double as `Counter` does. A
        window needs no epochs: an event leaves it.
    Memory: L sketches of `capacity` counters; what was released of the nodes in use comes on top.
    Argument: docs/privacy/continual.md.

    Args:
        horizon: The number of ticks; None if it is not known.
        budget: For all ticks together; needs a delta.
        capacity: The counters of each sketch: 65,536 by default, which are there as items come; 4096 for "chan", whose
            noise grows with them.
        memory: A size such as "1GB" that decides the counters of all sketches together, in place of `capacity`, for
            items of 32 bytes.
        window: Count only the last ticks, this many of them.
        mechanism: "discover", or "offset" with a window (and where epsilon is above 20), or "chan" for the baseline.
        base: The base of the tree; by default four levels of nodes for "discover", and else the base with the least
            noise at the worst tick.
        every: Of "discover": the ticks after which items are looked for. The rarer, the fewer events an item needs. By
            default a 64th of the horizon, and sooner at first: after 1, 2, 4, ... ticks, which costs nothing.
        remember, ledger, charge_id, source: As for `Counter`.
    """

    family: ClassVar[int] = 141
    _arguments: ClassVar[tuple[str, ...]] = ("capacity", "window", "mechanism", "base")
    mechanism_name: ClassVar[str] = "continual heavy hitters"
    reference: ClassVar[str] = "[LT] Algorithm 1 and section 1, [CO] Algorithm 3; docs/privacy/continual.md"

    def __init__(
        self,
        horizon: int | None,
        budget: Budget,
        capacity: int | None = None,
        window: int | None = None,
        *,
        mechanism: str | None = None,
        base: int | None = None,
        every: int | None = None,
        memory: str | None = None,
        remember: int = 0,
        ledger: Account | None = None,
        charge_id: str | None = None,
        source: RandomSource | None = None,
    ) -> None:
        super().__init__(horizon, budget, ledger, charge_id, source, remember)
        self._promise = self.budget.approximate("a release of heavy hitters")
        self.window = whole_or_none("window", window, 1, self.horizon or MAX_HORIZON)
        if mechanism is None:
            mechanism = "discover" if window is None and self._promise[0] <= _MOST_EPSILON else "offset"
        if mechanism not in MECHANISMS:
            raise ParameterError(f"mechanism must be one of {', '.join(MECHANISMS)}, not {mechanism!r}")
        self.mechanism = mechanism
        self._asked = whole_or_none("base", base, 2), every
        self._in_epochs = self.horizon is None and self.window is None
        # Not in an epoch, which follows others, and not where looks are given: they might cost another level of nodes.
        self._looks_early = mechanism == "discover" and every is None and not self._in_epochs
        self.discovered: Discovered | None = None
        if mechanism == "discover":
            if self.window is not None:
                raise ParameterError('mechanism "discover" covers the whole stream; for a window use "offset"')
            if self._in_epochs and every is not None:
                raise ParameterError("every needs a horizon; without one, items are looked for 64 times an epoch")
            factor = (
                Buffered(self.horizon) if self.horizon is not None else Doubling(lambda ticks, share: Buffered(ticks))
            )
            self.discovered = Discovered(factor, zcdp_rho(*self._promise))
        elif every is not None:
            raise ParameterError('every works with mechanism "discover" only')
        if memory is not None:
            if capacity is not None:
                raise ParameterError("memory and capacity both set the number of counters; give one of them")
            if mechanism == "chan":
                raise ParameterError('the noise of mechanism "chan" grows with its counters; give capacity, not memory')
            room = Memory(memory, SKETCH_MEMORY).room
            spans = [2**epoch for epoch in range(EPOCHS)] if self._in_epochs else [self.window or self.horizon or 1]
            capacity = counters_in(room // max(self._shape(span)[2] for span in spans))
        self.capacity = whole_number("capacity", MECHANISMS[mechanism] if capacity is None else capacity, 1, 2**30)
        self._plan = cache(self.plan)
        self._adopt(1)
        # The order of a tick's events means nothing: they are counted first and taken in the order of their hashes
        # under this seed, so that neighbouring ticks are streams that differ by one inserted event.
        self._order = self._source.uniform_integers(2**63)
        self._seed = self._source.uniform_integers(2**63)  # another: a table fills badly in the order of its hashes
        self._sketches = self.new_sketches()
        self._nodes: list[_Node] = []

    def _adopt(self, first: int) -> None:
        """Begin the ticks from `first` on: all of them, or an epoch."""
        # Epoch e has the ticks 2^e, ..., 2^(e+1) - 1.
        self._first, plan = first, self._plan(first if self._in_epochs else self.window or self.horizon or 1)
        self.every, self.base, self.levels = plan.every, plan.base, plan.levels
        self.scale, self.threshold = plan.scale, plan.threshold

    def _shape(self, span: int) -> tuple[int, int, int]:
        """(every, base, levels) for this many ticks."""
        base, every = self._asked
        if self.mechanism == "discover":
            every = max(1, span // _BLOCKS) if every is None else whole_number("every", every, 1, span)
            blocks = self._looks(span, every)
            # Four levels; the last is about the whole stream.
            base = max(2, int(blocks ** (1 / 3) + 1e-9)) if base is None else base
            return every, base, levels(blocks, base)
        base = _best_base(*self._promise, span) if base is None else base
        return 1, base, levels(span, base)

    def _looks(self, ticks: int, every: int) -> int:
        """How many blocks have ended after this many ticks: at 1, 2, 4, ... below `every`, then at its multiples."""
        return ticks // every + (min(ticks, every - 1).bit_length() if self._looks_early else 0)

    def _end_of(self, block: int) -> int:
        """The last tick of a block, counted from 1; 0 for the block before the first."""
        early = (self.every - 1).bit_length() if self._looks_early else 0
        return (block - early) * self.every if block > early else 2**block // 2

    def plan(self, span: int) -> NodePlan:
        """The nodes of this many ticks: of all, or of an epoch."""
        (epsilon, delta), (every, base, count) = self._promise, self._shape(span)
        if self.mechanism == "discover":
            sigma, t = discovery_calibration(epsilon, delta, count)
            return NodePlan(every, base, count, Fraction(sigma), 1 + t)
        each_epsilon, each_delta = repeated_share(epsilon, delta, count)
        if self.mechanism == "offset":
            scale, threshold = 1 / Fraction(each_epsilon), 1 + offset_threshold(each_epsilon, each_delta)
        else:
            scale = self.capacity / Fraction(each_epsilon)
            threshold = chan_threshold(each_epsilon, each_delta, self.capacity)
        return NodePlan(every, base, count, scale, threshold)

    def _enter(self) -> None:
        """Without a horizon: begin the epoch of the next tick, if it is another. Its nodes have all of the budget."""
        first = epoch_of(self.tick + 1)[1]
        if first != self._first:
            self._adopt(first)
            self._sketches = self.new_sketches()

    def _renew(self) -> None:
        """The noise of a node is drawn when it is released, and what was released is public; counters begin again."""
        if self.discovered is not None and self._last is not None:
            published = dict(zip(self._last.items, self._last.counts.tolist(), strict=True))
            # What an item may have in nodes that did not release it, except for their noise.
            missing = float(sum(max(node.offset + node.threshold - 1, 0) for node in self._nodes))
            self.discovered.begin_again(published, missing, self._error_of_counters(self.discovered, self.tick))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The arguments that, with the horizon and the budget, make the same heavy hitters again."""
        looks = {} if self.discovered is None else {"every": self._asked[1]}
        own = {"base": self._asked[0]} if self._in_epochs else {}  # epochs choose their own
        return {**super().parameters, **own, **looks}

    def anew(self, source: RandomSource | None = None, **changes: Any) -> Self:
        """As for every mechanism; with the same hash seeds, so that neighbours can be compared."""
        made = super().anew(source, **changes)
        made._order, made._seed = self._order, self._seed
        made._sketches = made.new_sketches()
        return made

    @property
    def memory_bytes(self) -> int:
        """Bytes held by the sketches."""
        return sum(sketch.memory_bytes for sketch in self._sketches)

    def add(self, items: Any, *, nulls: str = "error") -> None:
        """Take events of the tick that `step` will publish next, as they come; only the sketches are kept.

        They are counted in the order in which they are added, so one event more is one inserted event, as the guarantee
        needs, if the others come in the same order with it and without it.
        """
        self._is_repeated(None)
        if self._in_epochs:
            self._enter()
        if self.discovered is not None and self.discovered.index:
            # Events of public items are counted, and the others stay in their order. Not in an order of their own:
            # where one call ends and the next begins may depend on every event before.
            seen = ValuesSeen("items")
            rows = seen.of(items, nulls)
            rows, found = rows[rows >= 0], seen.column()
            public = self.discovered.take(found.to_pylist(), np.bincount(rows, minlength=len(found)))
            items = taken(found, rows[~public[rows]])
        items, how = prepare_column(items), rules(nulls)
        if hasattr(items, "__arrow_c_stream__"):  # every sketch reads it
            items = read(items, lambda: pa.chunked_array(items))
        elif isinstance(items, Iterator):
            items = list(items)
        # The highest level first: it has seen whatever the others have, so what it accepts all accept.
        update_all(reversed(self._sketches), items, how)

    def step(
        self,
        items: Any = (),
        tick: int | None = None,
        *,
        nulls: str = "error",
        save: Callable[[Release], None] | None = None,
    ) -> Release:
        """Add the events of one tick, one item each, after those of `add`, and return the private counts up to it.

        `items` is a column or an iterable as for `MisraGries.update`. With `tick`, its number from 1, a tick that was
        published is returned as it was, and `items` are ignored. `save` as for `Counter.step`.
        """
        if self._is_repeated(tick):
            return self.last  # type: ignore[no-any-return]
        raw = None  # `add` took all there is
        if not isinstance(items, tuple) or items:
            counted = ExactCounts(seed=self._order)
            counted.update(without_bad(prepare_column(items)), nulls=nulls)
            raw = counted.not_private_counts()
        return self._step(lambda: self._draw(raw), save)  # type: ignore[no-any-return]

    def take(self, raw: RawCounts) -> None:
        """Events: those of items that are public go to their counters, all others to the sketches."""
        items, counts = raw.items, raw.counts
        if self.discovered is not None and self.discovered.index:
            public = self.discovered.take(items.to_pylist(), counts)
            items, counts = items.filter(pa.array(~public)), counts[~public]
        # The highest level first: it has seen whatever the others have, so what it accepts all accept.
        for sketch in reversed(self._sketches):
            sketch.update_counts(items, counts)

    def _draw(self, raw: RawCounts | None) -> None:
        if self._in_epochs:
            self._enter()
        if raw is not None:
            self.take(raw)
        now = self.tick + 1
        if self.discovered is not None:
            self.discovered.advance(now, self._source)  # before items join: their counters begin with the next tick
        block = self._looks(now - self._first + 1, self.every)
        if self._first - 1 + self._end_of(block) == now:
            self._end_nodes(now, block)
        self.tick = now
        self._last = self._sum(self._cover(now)) if self.discovered is None else self._listed(self.discovered)

    def _end_nodes(self, now: int, block: int) -> None:
        """Release what ends with this tick and this block, and begin what follows."""
        done = highest_ended(block, self.base, self.levels)
        # The whole stream only ever uses the largest node that ends now; a window slides over the smaller ones too.
        for level in range(done + 1) if self.window is not None else (done,):
            first = self._first + self._end_of(block - self.base**level)
            self._nodes.append(self.release_node(self._sketches[level], first, now))
        self._sketches[: done + 1] = [self._empty.copy() for _ in range(done + 1)]
        newest = self._nodes[-1]
        if self.discovered is not None:
            self.discovered.join(newest.first, newest.last, newest.counts, newest.offset)
        if self.window is None:
            # A node that the new one contains is not used again.
            self._nodes = [node for node in self._nodes if node.last < newest.first or node is newest]
        else:
            self._nodes = [node for node in self._nodes if node.first > now - self.window]

    def new_sketches(self) -> list[MisraGries]:
        """What all ticks, or an epoch, begin with: an empty sketch for each level."""
        self._empty = MisraGries(self.capacity, seed=self._seed)
        return [self._empty.copy() for _ in range(self.levels)]

    def release_node(self, sketch: MisraGries, first: int, last: int) -> _Node:
        """Release the sketch of the ticks `first` to `last`, once."""
        raw, alpha = sketch.not_private_counts(), sketch.not_private_offset
        counts, items = raw.counts, raw.items
        if self.mechanism == "discover":
            offset = alpha + self._source.discrete_gaussian(self.scale)
            v = counts + alpha + self._source.discrete_gaussian(self.scale, len(counts))
            kept = v - offset >= self.threshold
        elif self.mechanism == "offset":
            offset, *drawn = offset_draw(counts, alpha, self.scale, self.threshold, self._source)
            v, kept = map(np.asarray, drawn)
        else:
            v = counts + self._source.discrete_laplace(self.scale, len(counts))
            offset, kept = 0, (v >= self.threshold) & (counts > 0)
        names = items.filter(np.asarray(kept)).to_pylist()
        found = dict(zip(names, v[kept].tolist(), strict=True))
        return _Node(first, last, offset, found, self.scale, self.threshold)

    def _cover(self, now: int) -> list[_Node]:
        """The fewest nodes that make up the ticks to publish."""
        if self.window is None:
            return self._nodes
        by_start: dict[int, _Node] = {}
        for node in self._nodes:
            if node.first not in by_start or node.last > by_start[node.first].last:
                by_start[node.first] = node
        cover, first = [], max(1, now - self.window + 1)
        while first <= now:
            cover.append(by_start[first])
            first = cover[-1].last + 1
        return cover

    def _check_nodes(self) -> None:
        """That the nodes of a state are those from which later ticks are made up."""
        firsts = sorted(node.first for node in self._nodes if node.first <= node.last <= self.tick)
        if self.window is None:
            follow = [1, *(node.last + 1 for node in self._nodes)]
            block = self._looks(self.tick - self._first + 1, self.every)
            whole = [*firsts, self._first + self._end_of(block)] == follow
        else:  # one begins at every tick of the window
            oldest = max(1, self.tick - self.window + 1)
            whole = not self.tick or (firsts[0] == oldest and len(set(firsts)) == self.tick - oldest + 1)
        if len(firsts) != len(self._nodes) or not whole:
            raise CorruptStateError("the state has nodes of other ticks")

    def _sum(self, nodes: list[_Node]) -> Release:
        total: dict[Item, int] = {}
        for node in nodes:
            for item, count in node.counts.items():
                total[item] = total.get(item, 0) + count
        m, scale = len(nodes), max((node.scale for node in nodes), default=self.scale)
        # Of an item at most m noises add up, and the cuts decide which of them are in its count: one of 2^m sets. Twice
        # that, since sums of these sets are not independent: -ln(1 - beta) <= 2 beta.
        noise = Noise("laplace", scale, 2 * self.capacity * m * 2**m, terms=m)
        counts = np.fromiter(total.values(), np.int64, len(total))
        if self.mechanism == "chan":
            return self._release(total, counts, ErrorModel(noise, summary_below=math.inf))
        offset = sum(node.offset for node in nodes)
        lacking = [(offset, tuple(at for at, node in enumerate(nodes) if item not in node.counts)) for item in total]
        released = tuple(Stretch(node.offset, node.threshold) for node in nodes)
        lacks, places = _places_of(lacking)
        model = ErrorModel(noise, offset_noise=Noise("laplace", scale, terms=m), stretches=Stretches(released, lacks))
        return self._release(total, counts, model, offset=offset, places=places)

    def _listed(self, known: Discovered) -> Release:
        """All items that are public, with what nodes and counters say of them."""
        counts, followed = known.counts()
        released = tuple(
            Stretch(node.offset, node.threshold, Noise("gaussian", node.scale, max(1, len(node.counts))))
            for node in self._nodes
        )
        # What an item had before the node that it is released by is in nodes that begin before.
        starts = [node.first for node in self._nodes]
        lacking = [(part.offset, tuple(range(bisect_left(starts, part.first)))) for part in known.parts]
        offset = max((part.offset for part in known.parts), default=0)
        lacks, places = _places_of(lacking)
        model = self._error_model(known, self.tick, len(known.parts), known.carried_below, released, lacks)
        return self._release(known.index, counts, model, offset=offset, places=places, followed=followed)

    def _release(self, items: Iterable[Item], counts: Integers, model: ErrorModel, **told: Any) -> Release:
        over_time = self._over_time(self.tick)
        return Release(
            items_array(items), counts, self.guarantee, model, threshold=self.threshold, over_time=over_time, **told
        )

    def _tick_noises(self, t: int) -> tuple[tuple[str, TickNoise, int], ...] | None:
        """Those of the oldest counter that there may be: one that began later has less noise in every difference.

        Nodes and windows have no such law.
        """
        if self.discovered is None:
            return None
        age = t if self._in_epochs else max(t - self._end_of(1), 0)
        return self.discovered.factor.tick_noises(age, self.discovered.sigma)

    def error_model(self, t: int, listed: int = 1) -> ErrorModel:
        """How far counts of tick t may lie from the truth, of items that had no events before those they were found by.

        For "discover". What others may have had before is known at the tick: a release says it. `listed` is how many
        items are listed (docs/privacy/continual.md, "Intervals of heavy hitters").
        """
        if self.discovered is None:
            raise ParameterError('only "discover" knows the error of a tick before it is published')
        return self._error_model(self.discovered, whole_number("t", t, 1, self.horizon), listed)

    def _error_model(
        self,
        known: Discovered,
        t: int,
        listed: int,
        carried: float = 0.0,
        released: tuple[Stretch, ...] = (),
        lacks: tuple[_Lacking, ...] = (),
    ) -> ErrorModel:
        epochs = range(epoch_of(t)[0] + 1) if self._in_epochs else ()
        scale = max((self._plan(2**epoch).scale for epoch in epochs), default=self.scale)
        nodes = max(1, t if self._in_epochs else self._looks(t, self.every))
        error = self._error_of_counters(known, t)
        return ErrorModel(
            Noise("gaussian", scale, max(1, listed)),
            shared=Noise("gaussian", Fraction(error), max(1, listed)) if error else None,
            summary_below=carried,
            summary_above=carried,
            # As many counters of nodes have got noise up to tick t, at most: one node is released at a time.
            stretches=Stretches(released, lacks, self.capacity * nodes),
        )

    def _error_of_counters(self, known: Discovered, t: int) -> float:
        """The standard deviation of the noise of the oldest counter that there may be at tick t.

        Without a horizon no less than that.
        """
        oldest = t - (1 if self._in_epochs else self._end_of(1))
        noise = known.factor.error(t if self._in_epochs else oldest, known.sigma) if oldest > 0 else 0.0
        return math.hypot(known.carried_error, noise)

    def _state(self) -> State:
        parameters = self.parameters
        blobs = {f"sketch.{level}": sketch.to_bytes() for level, sketch in enumerate(self._sketches)}
        known, arrays = ({}, {}) if self.discovered is None else self.discovered.saved()
        header = {
            **parameters,
            "order": str(self._order),
            "seed": str(self._seed),
            **({"first": self._first} if self._in_epochs else {}),
            "nodes": [
                [node.first, node.last, node.offset, *plain_items(node.counts), list(node.counts.values())]
                for node in self._nodes
            ],
            **({} if self.discovered is None else {"known": known}),
        }
        return State(header, arrays, {**blobs, **self._saved_releases()})

    @classmethod
    def _given(cls, header: dict[str, Any]) -> dict[str, Any]:
        return {**super()._given(header), "every": header.get("every")}

    def _load(self, state: State) -> None:
        header, arrays, blobs = state
        self._order, self._seed = int(header["order"]), int(header["seed"])
        if self._in_epochs:
            # That of the latest tick or, when events of the next one were added, of that.
            ticks = (max(self.tick, 1), self.tick + 1)
            if header["first"] not in [epoch_of(tick)[1] for tick in ticks]:
                raise CorruptStateError("the state is of another epoch")
            self._adopt(header["first"])
        sketches = [MisraGries.from_bytes(blobs[f"sketch.{level}"]) for level in range(self.levels)]
        if any(sketch.capacity != self.capacity or sketch.was_merged for sketch in sketches):
            raise CorruptStateError("the state has sketches of another kind")
        self._sketches, self._empty = sketches, MisraGries(self.capacity, seed=self._seed)
        for first, last, offset, kind, items, numbers in header["nodes"]:
            counts = dict(zip(items_of_plain(kind, items), map(int, numbers), strict=True))
            plan = self._plan(epoch_of(max(int(first), 1))[1]) if self._in_epochs else self
            self._nodes.append(_Node(int(first), int(last), int(offset), counts, plan.scale, plan.threshold))
        self._check_nodes()
        if self.discovered is not None:
            self.discovered.load(header["known"], arrays, self.tick)
        self._load_releases(blobs)

    def __repr__(self) -> str:
        ticks = "any number" if self.horizon is None else self.horizon
        return f"HeavyHitters(tick {self.tick} of {ticks}, capacity={self.capacity}) [state NOT PRIVATE]"


def _places_of(lacking: list[_Lacking]) -> tuple[tuple[_Lacking, ...], npt.NDArray[np.int32]]:
    """The different ones, for `Stretches`, and at which of them every item is."""
    index = {place: at for at, place in enumerate(sorted({*lacking}))}
    return tuple(index), np.array([index[place] for place in lacking], np.int32)


def _best_base(epsilon: float, delta: float, span: int) -> int:
    """The base with the least standard deviation of the sum of all nodes of the worst tick: (r-1) L nodes."""

    def noise(base: int) -> float:
        count = levels(span, base)
        return math.sqrt((base - 1) * count) / repeated_share(epsilon, delta, count)[0]

    return min(range(2, _MOST_BASE + 1), key=noise)
