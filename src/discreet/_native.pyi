"""
Native kernels of discreet. Not private by themselves; use the classes of the package.
"""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class CountMin:
    def __init__(self, width: int, depth: int, tracked: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool) -> None: ...

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

    def counters(self) -> tuple[str, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

class CountSketch:
    def __init__(self, width: int, depth: int, tracked: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool) -> None: ...

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

    def counters(self) -> tuple[str, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

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

    def update(self, data: object, skip_nulls: bool) -> None: ...

    def merge(self, arg: ExactCounts, /) -> None: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> ExactCounts: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

class MisraGries:
    def __init__(self, capacity: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool) -> None: ...

    def update_counts(self, data: object, weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def merge(self, arg: MisraGries, /) -> None: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> MisraGries: ...

    @property
    def decrements(self) -> int: ...

    @property
    def capacity(self) -> int: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

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

    def uniform_integers(self, high: int, size: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def sample_without_replacement(self, population: int, count: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def permutation(self, count: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

class Sign(enum.Enum):
    """How a law treats the sign of what it draws."""

    none = 0

    folded = 1

    reject_negative_zero = 2

class IntegerLaw:
    """A law on the integers, drawn by inversion of a table of enclosures."""

    def __init__(self, bounds: Sequence[int], bits: int, sign: Sign, block_bits: int, slopes: Sequence[int], curvature: int) -> None: ...

    def draw(self, source: RandomSource, size: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], list[tuple[int, bool, bool, int, int, int, int]]]:
        """
        The draws, and for those not decided: index, negative, block_known, bits, word, block, offset.
        """

class SpaceSaving:
    def __init__(self, capacity: int, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool) -> None: ...

    def merge(self, arg: SpaceSaving, /) -> None: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> SpaceSaving: ...

    @property
    def untracked_bound(self) -> int: ...

    @property
    def capacity(self) -> int: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...

def seal_state(family: int, version: int, payload: bytes) -> bytes: ...

def open_state(data: bytes) -> tuple[int, int, bytes]:
    """The family, version and payload of a state; raises CorruptStateError."""

class UserMisraGries:
    def __init__(self, capacity: int, max_items: int, sample: bool, max_key_bytes: int, seed: int) -> None: ...

    def update(self, data: object, skip_nulls: bool, source: RandomSource) -> None: ...

    def merge(self, arg: UserMisraGries, /) -> None: ...

    def to_bytes(self) -> bytes: ...

    @staticmethod
    def from_bytes(data: bytes) -> UserMisraGries: ...

    @property
    def users(self) -> int: ...

    @property
    def decrements(self) -> int: ...

    @property
    def capacity(self) -> int: ...

    @property
    def max_items(self) -> int: ...

    @property
    def sample(self) -> bool: ...

    def count(self, item: object | None) -> tuple[int, bool]: ...

    def counters(self) -> tuple[str, bytes, bytes, bytes]: ...

    @property
    def total(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def key_kind(self) -> str: ...

    @property
    def merged(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def max_key_bytes(self) -> int: ...
