"""
Native kernels of discreet. Not private by themselves; use the classes of the package.
"""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class BadItems(enum.Enum):
    """What becomes of rows that cannot be items."""

    error = 0

    skip = 1

    skip_all = 2

class CheckedBatch:
    """A batch that was checked and hashed, for update() to count."""

def grid_places(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], edges: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Writes the bin of every value, none of which is NaN, between ascending edges.
    """

def count_in_grid(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], edges: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Adds the values to the counts of their bins; NaN is in none."""

class CountMin:
    def __init__(self, width: int, depth: int, tracked: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def merge(self, arg: CountMin, /) -> None: ...

    def estimate(self, item: object | None) -> int: ...

    def estimates(self, data: object) -> bytes:
        """Estimates of many items, as the bytes of int64."""

    def places(self, data: object) -> bytes:
        """
        For every item and row the cell (row * width + column), with the top bit set where events count negatively; as the bytes of uint32.
        """

    def cells(self) -> bytes:
        """All cells, row by row, as the bytes of int64."""

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> CountMin: ...

    @property
    def width(self) -> int: ...

    @property
    def depth(self) -> int: ...

    @property
    def tracked(self) -> int: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

class CountSketch:
    def __init__(self, width: int, depth: int, tracked: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def merge(self, arg: CountSketch, /) -> None: ...

    def estimate(self, item: object | None) -> int: ...

    def estimates(self, data: object) -> bytes:
        """Estimates of many items, as the bytes of int64."""

    def places(self, data: object) -> bytes:
        """
        For every item and row the cell (row * width + column), with the top bit set where events count negatively; as the bytes of uint32.
        """

    def cells(self) -> bytes:
        """All cells, row by row, as the bytes of int64."""

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> CountSketch: ...

    @property
    def width(self) -> int: ...

    @property
    def depth(self) -> int: ...

    @property
    def tracked(self) -> int: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

def buffered_noise(state: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], z: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], omega: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coefficient_bits: int, fraction_bits: int) -> None:
    """Advance state and noise, in place, by as many steps as z has rows."""

def toeplitz_sums(past: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], used: int, coefficients: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coefficient_bits: int, out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """For each row the rounded sum of c_j times its latest values."""

class Credits:
    """How many values can be credited to people. NOT private."""

    def __init__(self, pairs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def credited(self, most: int) -> tuple[int, bytes, bytes, bytes]:
        """
        (how many values are decided; the people and the values of the pairs that are not; the room of people).
        """

def key_hashes(data: object, seed: int) -> bytes:
    """
    The 64-bit hashes of a column's items under a seed, as bytes: the order of zero counters.
    """

def probe_floor(data: object, keys: object, capacity: int, seed: int) -> int:
    """
    Looks every item of a column up in a table of `keys`, each given once, and returns how many it found.
    """

def reseal_state(data: bytes) -> bytes:
    """
    The same state with the length and checksum that fit it; to test what readers check after those.
    """

class ExactCounts:
    def __init__(self, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def merge(self, arg: ExactCounts, /) -> None: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> ExactCounts: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

class Interner:
    """Numbers for values, in the order of their first appearance."""

    def __init__(self, max_key_bytes: int, seed: int, any_kind: bool = False) -> None:
        """
        Of texts or of bytes; with any_kind of all that may be an item, in one sequence.
        """

    def number(self, data: object, skip_nulls: bool = True) -> bytes:
        """
        The number of every row (int32); -1 for one without a value, or with one that cannot be an item.
        """

    def hashes(self) -> bytes:
        """
        A keyed hash (uint64) of every value, by number: it depends on the value alone.
        """

    @property
    def size(self) -> int: ...

    def keys(self, numbers: Sequence[int]) -> tuple[str, bytes, bytes, bytes, bytes]:
        """The values with these numbers, as raw counters."""

    @property
    def bytes(self) -> int: ...

class IntegerInterner:
    """Numbers for integers, in the order of their first appearance."""

    def __init__(self, seed: int) -> None: ...

    def number(self, data: object, skip_nulls: bool = True) -> bytes:
        """
        The number of every row (int32); -1 for one without a value, or with one that cannot be an item.
        """

    def hashes(self) -> bytes:
        """
        A keyed hash (uint64) of every value, by number: it depends on the value alone.
        """

    @property
    def size(self) -> int: ...

    def values(self) -> bytes:
        """All values (64 bits each), by number."""

    @property
    def bytes(self) -> int: ...

def joined_offsets(fixed: Sequence[Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]], texts: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None]], out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Writes where the keys of rows begin, and where the last ends."""

def join_rows(fixed: Sequence[Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]], texts: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None]], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Writes the keys of rows: the fixed parts, the lengths of all texts but the last in four bytes, and the texts.
    """

class MadeColumn:
    """Items that native code has read and checked. NOT PRIVATE."""

    def __len__(self) -> int: ...

    def to_list(self) -> list[bytes]:
        """The bytes of every item."""

    @property
    def dictionary(self) -> MadeColumn | None:
        """The values that rows are indices of; None if rows hold their own."""

    @property
    def nulls(self) -> int:
        """How many rows beside the items were null."""

    @property
    def bad(self) -> int:
        """How many rows beside the items cannot be items."""

def gathered(pieces: Sequence[tuple[MadeColumn, int, int]], keep: object | None = None) -> tuple[bytes, bytes]:
    """
    (offsets, data) of the rows of these pieces (a column, where they begin, where they end), or of those to keep: the buffers of an Arrow column of texts or bytes.
    """

def codes_of(pieces: Sequence[tuple[MadeColumn, int, int]]) -> bytes:
    """The index (int32) of every row of pieces by the same dictionary."""

class MisraGries:
    def __init__(self, capacity: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def checked(self, data: object, skip_nulls: bool, bad_items: BadItems) -> CheckedBatch: ...

    def hash_made(self, made: MadeColumn) -> None: ...

    def update_counts(self, data: object, weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def merge(self, arg: MisraGries, /) -> None: ...

    @property
    def decrements(self) -> int: ...

    def copy(self) -> MisraGries:
        """An independent summary with the same state."""

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> MisraGries: ...

    @property
    def capacity(self) -> int: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

def item_words(data: object, kind: str, skip_nulls: bool, max_key_bytes: int, point: int) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]: ...

def sketch_estimates(words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], width: int, depth: int, seed: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def hadamard_bits(numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: int, key: tuple[int, int]) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]: ...

def hadamard_sums(numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: int, key: tuple[int, int]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def hash_buckets(numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], buckets: int, key: tuple[int, int]) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]: ...

def bucket_counts(numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], reports: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], buckets: int, key: tuple[int, int]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def row_cells(numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: int, key: tuple[int, int]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def row_sums(numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: int, key: tuple[int, int]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def write_integers(values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes: ...

def read_integers(data: bytes, count: int, bound: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

def pack_values(values: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], width: int) -> bytes: ...

def unpack_values(data: bytes, count: int, width: int, limit: int) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]: ...

class RandomSource:
    """
    Random words from the system, or from a seed. Safe to share by threads.
    """

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, seed: int) -> None: ...

    @overload
    def __init__(self, replay: Sequence[int]) -> None: ...

    @property
    def seeded(self) -> bool: ...

    def bytes(self, count: int) -> bytes: ...

    def uniform_integers(self, high: int, size: int) -> memoryview: ...

    def sample_without_replacement(self, population: int, count: int) -> memoryview: ...

    def permutation(self, count: int) -> memoryview: ...

class Sign(enum.Enum):
    """How a law treats the sign of what it draws."""

    none = 0

    folded = 1

    reject_negative_zero = 2

class IntegerLaw:
    """A law on the integers, drawn by inversion of a table of enclosures."""

    def __init__(self, bounds: Sequence[int], bits: int, sign: Sign, block_bits: int, slopes: Sequence[int], curvature: int) -> None: ...

    def draw(self, source: RandomSource, size: int) -> tuple[memoryview, list[tuple[int, bool, bool, int, int, int, int]]]:
        """
        The draws, and for those not decided: index, negative, block_known, bits, word, block, offset.
        """

def erfcx(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """exp(x^2) erfc(x)."""

def ndtr(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """P[N <= x] of a standard normal N."""

def log_ndtr(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """The logarithm of P[N <= x]."""

class Pairs:
    """Rows of people and items, grouped in memory. NOT private."""

    def __init__(self, entry: Pairs.Entry, length: int, most: int, threads: int) -> None: ...

    class Entry(enum.Enum):
        """
        What a pair says: that it is there, how often, or what its rows add up to.
        """

        present = 0

        times = 1

        sums = 2

    def add(self, users: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Add rows; those with a negative number are left out."""

    def group(self) -> None:
        """Group the rows; none can be added then."""

    def keep_each_once(self) -> int:
        """
        Sort the rows that were added, and keep each pair once: how many there are. More rows can be added.
        """

    def take_pairs(self) -> bytes:
        """
        Each pair once, in ascending order: a person << 32 | an item (int64). None is left.
        """

    def discovery(self, most_items: int, keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
        """For every item the sum of its people's weights (int64)."""

    def aimed(self, most_items: int, keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
        """
        The sums of scaled vectors of weights, over the items that take part in discovery (int64).
        """

    def holdings(self, index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[bytes, bytes]:
        """
        How many chosen items people have, and which, person by person (int64).
        """

    def votes(self, vote: int, most: int, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> bytes:
        """
        For every item the sum of what people's rows have, who share `most` votes (int64).
        """

    def lengths(self, index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
        """The squared lengths of people's vectors that are not zero (float64)."""

    def scaled_sums(self, index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], longest: float) -> bytes:
        """The sums of the scaled vectors (int64)."""

    @property
    def rows(self) -> int: ...

class PanTable:
    """A table of which every state is private; see discreet.pan."""

    @staticmethod
    def of_range(first: int, is_signed: bool, size: int, unseen: int, seen: int) -> PanTable: ...

    @staticmethod
    def of_integers(keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], is_signed: bool, unseen: int, seen: int) -> PanTable: ...

    @staticmethod
    def of_strings(keys: Sequence[bytes], text: bool, unseen: int, seen: int) -> PanTable: ...

    @staticmethod
    def of_hashes(seeds: Sequence[int], levels: int, buckets: int, unseen: int, seen: int) -> PanTable: ...

    def add_bits(self, modulus: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], step: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], source: RandomSource | None) -> None: ...

    def add_counters(self, modulus: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], step: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], cumulative: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], source: RandomSource | None) -> None: ...

    def add_square_counters(self, modulus: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], step: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], square: int, source: RandomSource | None) -> None: ...

    def update(self, data: object, skip_nulls: bool, source: RandomSource | None) -> None: ...

    def rerandomise(self, source: RandomSource | None) -> None: ...

    def erase(self) -> None: ...

    def noisy_ones(self, layer: int, begin: int, group: int, noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def noisy_weighted_ones(self, weights: Sequence[int], noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int: ...

    def noisy_signs(self, layer: int, low: int, high: int, noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int: ...

    def noisy_signs_by_counter(self, layer: int, group: int, noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def noisy_residues(self, layer: int, noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def noisy_squares(self, layer: int, target: int, noise: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def seen_by_intruder(self, layer: int) -> object: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> PanTable: ...

    def modulus(self, layer: int) -> int: ...

    @property
    def entries(self) -> int: ...

    @property
    def layers(self) -> int: ...

    @property
    def erased(self) -> bool: ...

    @property
    def unseen(self) -> int: ...

    @property
    def seen(self) -> int: ...

    @property
    def rounds(self) -> int: ...

class ParquetRun:
    def decode(self) -> MadeColumn:
        """The items of these pages, in the order of the rows. Raises DataError."""

class ParquetPages:
    @property
    def is_text(self) -> bool: ...

    @property
    def groups(self) -> int: ...

    def runs(self, group: int) -> list[ParquetRun] | None:
        """The runs of pages of a row group; None if they cannot be read here."""

def parquet_pages(descriptor: int, footer: bytes, column: str) -> ParquetPages | None:
    """
    The pages of a column of texts or bytes; None if it is none, or of a type that needs another reader.
    """

def parquet_columns(footer: bytes) -> list[str]:
    """The names of the columns of the table. Raises DataError."""

def parquet_chunks(footer: bytes, wanted: Sequence[str]) -> list[list[tuple[int, int, int, int, bool]]]:
    """
    For every row group the chunks of the wanted columns: which of them, the depth of its path, the number of values, the uncompressed bytes, whether there is a dictionary. Raises DataError.
    """

def plus_noise(counters: object, noises: object, shift: int) -> memoryview:
    """counters + noises + shift (int64)."""

def at_least(numbers: object, cut: int) -> memoryview:
    """Which numbers reach the cut."""

def places_of(flags: object) -> memoryview:
    """Where flags are set (int64)."""

def numbers_at(numbers: object, places: object) -> memoryview:
    """The numbers at these places (int64)."""

def bounds_of(counts: object, below: object, above: object, lowest: float, cut: float | None) -> tuple[memoryview, memoryview]:
    """
    (lower, upper): counts less and plus a distance, at least `lowest`; lower ends not above a cut are `lowest`.
    """

def keep_freed_memory() -> None:
    """
    Use memory that was freed again, up to 64 MiB of it, before giving it back to the system: for commands, which have the process for themselves.
    """

def open_libraries(paths: Sequence[str]) -> None:
    """
    Open the libraries of modules that will be imported in a thread of its own, while others are imported. A process may not end before they are open.
    """

def libraries_opened() -> None:
    """Wait until they are."""

class CellCondition:
    """
    A condition of rows of text: lists of steps in postfix notation, each (kind, place of its column, sign, what is written), that are joined by AND.
    """

    def __init__(self, conditions: Sequence[Sequence[tuple[str, int, str, str]]]) -> None: ...

    def said(self, columns: Sequence[object]) -> bytes:
        """
        What it says of rows of Arrow columns of text, a byte each: 0 no, 1 yes, 2 null, 3 that it cannot be computed, 4 that it does not know. None stands for a column that it does not look at.
        """

class TextBlock:
    """
    A piece of a text, in memory that is used again. It begins with what the one before it has after its last record. NOT PRIVATE.
    """

    def __init__(self, room: int, before: TextBlock | None = None) -> None: ...

    def room(self) -> Annotated[memoryview, dict(dtype='uint8', shape=(None,))]:
        """Where its next bytes are to be written."""

    def cut(self, count: int, last: bool, delimiter: int, quote: int) -> int:
        """
        This many bytes were written, and with last no more will come: how many are after the last record that ends there. Without a delimiter (0) records are lines; a quote of 0 is none.
        """

    def __len__(self) -> int: ...

    def skip(self, count: int) -> None:
        """Leave out this many bytes at its start."""

    def records(self) -> bytes:
        """The bytes of its records."""

    def waiting(self) -> bytes:
        """The bytes after them."""

    def line_items(self) -> tuple[MadeColumn, int] | None:
        """
        Its lines as items, and how many newlines there are; None if a line is no item.
        """

    def delimited_items(self, delimiter: int, columns: Sequence[int], quote: int, more: bool, condition: CellCondition | None = None) -> tuple[MadeColumn, int] | None:
        """
        The same of the cells of one column, as for delimited_rows; None if a row has no item. With a condition, which looks at the columns by their places, of the rows for which it holds; None if it does not know that of a row.
        """

    def delimited_rows(self, delimiter: int, columns: Sequence[int], quote: int, more: bool, condition: CellCondition | None = None) -> tuple[tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int, list[tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], bool]]], bool] | None:
        """
        As delimited_rows, and whether the condition knows of all rows whether it holds; None if a record is bad, or text is not UTF-8. Rows for which it does not hold are blank, and those for which it cannot be computed are of the kind 9; the others, of which some may stay that it knows nothing of, have their columns.
        """

    def web_log_items(self, combined: bool, places: Sequence[int]) -> tuple[MadeColumn, int] | None:
        """The same of one column of web_log_rows."""

    def json_items(self, wanted: str | None) -> tuple[MadeColumn, int] | None:
        """The same of one column of json_rows; None if a row has no text."""

def record_ends(text: bytes, delimiter: int, cell: int, quote: int = 34) -> tuple[bytes, int]:
    """
    The offsets (int64) after the records of delimited text, and how its last cell goes on: 0 at its start, 1 plain, 2 inside quotes, 3 after a quote that may have closed it.
    """

def record_bounds(text: bytes, delimiter: int, cell: int, quote: int = 34) -> tuple[int, int, int]:
    """
    The offsets after the first and after the last of them, 0 where none ends, and how its last cell goes on.
    """

def delimited_rows(text: bytes, delimiter: int, columns: Sequence[int], quote: int = 34, more: bool = False) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int, list[tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], bool]]]:
    """
    The kind of every record (uint8: 0 a row, 1 blank, 2 another number of cells, 3 unreadable), the offset after it (int64), how many newlines there are, and of the rows the wanted columns as text: kinds (uint8: 0 an empty cell without quotes, 1 text), offsets (int32), bytes, and whether these are ASCII. columns[i] is the place of cell i among them, or -1; with more a row may have cells after these. A quote of 0 is none.
    """

def web_log_rows(text: bytes, combined: bool, places: Sequence[int]) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int, list[tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], bool]]]:
    """
    The same of lines of the common or the combined log format. places are those of ip, time, method, path, status, bytes, referrer and agent among the wanted columns, or -1.
    """

def json_rows(text: bytes, wanted: Sequence[str | None], lists: bool) -> tuple[tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int, list[tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], bool]]], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
    """
    The same of JSON lines. Kinds of values: 0 null, 1 text, 2 an integer of 64 bits with a sign, 3 without, 4 another number, 5 something else (true and false have their names as text). None is the only key beside the others. With lists the values of the first column are their elements, and two more arrays are the kinds (4 for a list without one) and offsets of the lists.
    """

class PlainItems:
    """
    Texts, bytes or whole numbers in memory of Python: Arrow's buffers without Arrow.
    """

    def __init__(self, kind: str, values: bytes, offsets: bytes) -> None: ...

    def __len__(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def values(self) -> bytes:
        """The numbers, or the bytes of all texts."""

    @property
    def offsets(self) -> bytes:
        """Of texts: where each begins and ends (int64). Of numbers nothing."""

    def to_pylist(self) -> list[object]:
        """The items as Python has them."""

    def at(self, places: object) -> PlainItems:
        """The items at these places."""

    def as_published(self) -> PlainItems:
        """The same items in a kind that depends on them alone."""

def release_order(items: object, counts: object) -> bytes:
    """
    Where rows stand (int64): the largest count first, of equals the smaller item.
    """

def texts_at(items: object, places: object) -> tuple[bytes, bytes]:
    """
    The texts or bytes of a plain column at these places: their bytes, and where each begins and ends (int64).
    """

class ShardedMisraGries:
    def __init__(self, capacity: int, shards: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def checked(self, data: object, skip_nulls: bool, bad_items: BadItems) -> CheckedBatch: ...

    def hash_made(self, made: MadeColumn) -> None: ...

    def update_batches(self, batches: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def merge(self, arg: ShardedMisraGries, /) -> None: ...

    def shard_of(self, item: object | None) -> int: ...

    @property
    def decrements(self) -> list[int]: ...

    @property
    def sizes(self) -> list[int]: ...

    @property
    def totals(self) -> list[int]: ...

    @property
    def shards(self) -> int: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> ShardedMisraGries: ...

    @property
    def capacity(self) -> int: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

class SpaceSaving:
    def __init__(self, capacity: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems) -> None: ...

    def merge(self, arg: SpaceSaving, /) -> None: ...

    @property
    def untracked_bound(self) -> int: ...

    def copy(self) -> SpaceSaving:
        """An independent summary with the same state."""

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> SpaceSaving: ...

    @property
    def capacity(self) -> int: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

def seal_state(family: int, version: int, parts: Sequence[object]) -> bytes:
    """The state with the bytes of these parts, one after the other."""

def open_state(data: bytes) -> tuple[int, int, bytes]:
    """The family, version and payload of a state; raises CorruptStateError."""

class UserMisraGries:
    def __init__(self, capacity: int, max_items: int, sample: bool, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, bad_items: BadItems, source: RandomSource) -> None: ...

    def merge(self, arg: UserMisraGries, /) -> None: ...

    @property
    def users(self) -> int: ...

    @property
    def decrements(self) -> int: ...

    @property
    def max_items(self) -> int: ...

    @property
    def sample(self) -> bool: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> UserMisraGries: ...

    @property
    def capacity(self) -> int: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def lineage(self) -> list[int]: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...
