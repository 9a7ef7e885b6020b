"""The two plans of the Spark engine side by side: what they publish, what they move, and which one to take."""

from __future__ import annotations

from discreet._data_class import dataclass
from discreet.central import Mechanism, Merged, Offset, ShardedOffset, Summed, UserSketch
from discreet.central._base import choose_capacity, counters_cost_no_noise, frequency_published
from discreet.errors import ParameterError
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.checks import whole_number

PLANS = ("auto", "shuffle", "merge")
KEY_BYTES = 32
ROW_BYTES = KEY_BYTES + 16  # a row of one string in a shuffle file, or a counter with its key in a state
MOST_TOGETHER = 2**22  # counters that one task adds up: about 200 MB
MOST_ON_DRIVER = 2**24  # counters that the driver has by default: 128 MB, without their items
LEAST_COUNTERS = 4096  # of a sketch by default, however many there are
SLACK = 1.1  # how much more frequent an item may have to be for the plan that moves less
SHUFFLE_LIMIT = 2**37  # bytes of a partition: 20 minutes of a disk with 100 MB a second
CONFIDENCE = 0.95


@dataclass(frozen=True)
class SparkPlan:
    """One way to compute a release. Everything in it follows from public numbers.

    Attributes:
        plan: "shuffle" or "merge".
        mechanism: What draws the noise, on the driver.
        partitions: Shards of the shuffle plan, map-side sketches (at most) of the merge plan.
        capacity: The counters of each of them.
        published_from: With probability 0.95 every item that occurs at least this often is published. In the shuffle
            plan for shards of equal length.
        bytes_moved: About what goes over the network at most, before compression; None if the shuffle plan's length is
            unknown. The shuffle plan counts before it moves, so frequent items move a few times and not in every row;
            if no item came twice, every row would move twice: to be counted, and to its shard.
        because: Why this plan.
    """

    plan: str
    mechanism: Mechanism
    partitions: int
    capacity: int
    published_from: int
    bytes_moved: int | None
    because: str = "it was asked for"


def spark_plans(
    budget: Budget,
    *,
    k: int = 100,
    unit: Unit | None = None,
    length: int | None = None,
    partitions: int = 200,
    capacity: int | None = None,
    memory: str | None = None,
    users: bool = False,
) -> dict[str, SparkPlan]:
    """The best release of each plan, by its name. No data is read.

    Args:
        budget: What the release may spend.
        k: How many items are wanted.
        unit: Whose presence is hidden; `Event()` by default.
        length: A public number of events, about or at most; not a count of the data.
        partitions: How many tasks make a sketch.
        capacity: The counters of each; by default as for `discreet.plan`, for the part of the stream that one sees.
        memory: In place of it, where noise does not grow with the counters: a size such as "2GB" for the Python process
            of a task, and as many counters as it has room for.
        users: Whether rows are grouped by user, so that the merge plan counts users' sets.
    """
    unit = Event() if unit is None else unit
    partitions = whole_number("partitions", partitions, 1, 2**20)
    length = None if length is None else whole_number("length", length)
    if capacity is not None and memory is not None:
        raise ParameterError("capacity and memory both set the number of counters; give one of them")
    if capacity is not None:
        capacity = whole_number("capacity", capacity)
    each = None if length is None else -(-length // partitions)

    def size(kind: type[Mechanism], events: int | None, together: int = 1, most: int = MOST_TOGETHER) -> int:
        """The counters of one sketch, of which one process holds this many; of all of them there are at most `most`."""
        if capacity is not None:
            return capacity
        counters, _ = choose_capacity(k, budget, unit, events, kind, memory, together)
        if counters_cost_no_noise(kind) and memory is None:
            counters = min(counters, max(LEAST_COUNTERS, 1 << max(most // partitions, 1).bit_length() - 1))
        return counters

    def row(plan: str, mechanism: Mechanism, counters: int, events: int | None, moved: int | None) -> SparkPlan:
        rare = frequency_published(mechanism, events or 0, counters, CONFIDENCE)
        return SparkPlan(plan, mechanism, partitions, counters, rare, moved)

    counters = size(Offset, each, most=MOST_ON_DRIVER)
    sharded = ShardedOffset(budget, counters, partitions, unit)
    shuffle = row("shuffle", sharded, counters, each, None if length is None else 2 * length * ROW_BYTES)
    merges: list[Mechanism] = []
    if users:
        merges.append(UserSketch(budget, size(UserSketch, length), unit, stream_length=length))
    else:
        merges.append(Merged(budget, size(Merged, length), unit, stream_length=length))
        counters = size(Summed, length, together=partitions)
        if memory is not None or counters * partitions <= MOST_TOGETHER:
            merges.append(Summed(budget, counters, unit, stream_length=length, sketches=partitions))
    rows = []
    for mechanism in merges:
        counters = mechanism.capacity  # type: ignore[attr-defined]
        rows.append(row("merge", mechanism, counters, length, partitions * counters * ROW_BYTES))
    return {"shuffle": shuffle, "merge": min(rows, key=lambda row: row.published_from)}


def choose_plan(plan: str, plans: dict[str, SparkPlan], shuffle_limit: int | None = None) -> SparkPlan:
    """The plan that was asked for, or by the error of both and by what they move.

    The plan that publishes rarer items wins, with two exceptions in favour of moving less: the merge plan is taken if
    its items need to be at most a tenth more frequent, or if the shuffle could move more than `shuffle_limit` bytes, by
    default 128 GiB a partition. Reading and moving both grow with the rows of a partition, so that the length alone
    speaks for neither plan; but disks have an end. All of it is public: no size or estimate of the data is asked for.
    """
    from discreet._data_class import replace

    if plan not in PLANS:
        raise ParameterError(f"plan must be one of {', '.join(PLANS)}, not {plan!r}")
    if plan != "auto":
        return plans[plan]
    shuffle, merge = plans["shuffle"], plans["merge"]
    shuffle_limit = SHUFFLE_LIMIT * shuffle.partitions if shuffle_limit is None else shuffle_limit
    compared = (
        f"published from about {shuffle.published_from:,} events on by shuffle, {merge.published_from:,} by merge"
    )
    if merge.published_from <= SLACK * shuffle.published_from:
        return replace(merge, because=f"merge plan: {compared}; it moves sketches instead of rows")
    if shuffle.bytes_moved is not None and max(merge.bytes_moved or 0, shuffle_limit) < shuffle.bytes_moved:
        moved = f"shuffle would move up to {shuffle.bytes_moved:,} bytes, merge {merge.bytes_moved:,}"
        return replace(merge, because=f"merge plan: {moved}; {compared}")
    return replace(shuffle, because=f"shuffle plan: {compared}")
