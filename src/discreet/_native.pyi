"""
Native kernels of discreet. Not private by themselves; use the classes of the package.
"""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class RandomSource:
    """
    Random words from the system, or from a seed. Safe to share by threads.
    """

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, seed: int) -> None: ...

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
