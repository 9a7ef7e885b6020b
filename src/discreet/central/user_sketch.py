"""The Gaussian release of a user-level sketch."""

from __future__ import annotations

from typing import Any, ClassVar

from discreet._data_class import dataclass
from discreet.central.merged_counters import CommonNoise
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.privacy import Budget, Unit, User
from discreet.privacy.checks import whole_number
from discreet.summaries import Summary, UserMisraGries


@dataclass(frozen=True)
class UserSketch(CommonNoise):
    """Gaussian noise, in part shared, on the counters of a sketch over users' sets, and a cut.

    Unit: one user with at most p lists (`parts_per_user`), each of at most m items (`User(m)`, m the summary's
        `max_items_per_user`).
    Guarantee: (epsilon, delta), also for merged sketches.
    Noise: c_x + (Z_x + eta)/2 for c_x > 0, Z and eta discrete Gaussian, one eta for all counters: the least that hides
        k counters p steps apart, as each list moves up to k counters, not m, by 1 in one direction (Lemma 27).
    Threshold: published iff the noisy count is at least it, before rounding; it grows about in proportion to p.
    Error: f - N/(k+1) <= c <= f, with N the distinct items of all users together, plus the noise, of a standard
        deviation of about (sqrt(k)+1)/2 times that of one counter's.
    Argument: [LT] Lemma 27, Corollary 28, and docs/privacy/central.md.

    Args:
        stream_length: N, where it is public; it makes the upper bounds finite.
        parts_per_user: p, how many lists one user may have, in all the sketches that were merged together: 1 if every
            user is in one of them, 2 if rows of a user are in two nodes, or on two days. The guarantee repeats it.
    """

    name: ClassVar[str] = "Gaussian release of a user-level Misra-Gries sketch"
    reference: ClassVar[str] = "[LT] Algorithm 4, Lemma 27; correlated noise: docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (UserMisraGries,)
    takes_merged: ClassVar[bool] = True

    budget: Budget
    capacity: int
    unit: Unit
    stream_length: int | None = None
    parts_per_user: int = 1

    def __post_init__(self) -> None:
        _ = self.spends
        whole_number("parts_per_user", self.parts_per_user)
        whole_number("capacity", self.capacity)
        self._check_length()
        if not isinstance(self.unit, User):
            raise ParameterError(f"{self.name} protects dc.User(m); got {type(self.unit).__name__}")

    @property
    def _steps(self) -> int:
        return self.parts_per_user

    @property
    def _assumed_of_users(self) -> tuple[str, ...]:
        if self.parts_per_user == 1:
            return ("every user is one list, in one of the sketches if several were merged",)
        return (f"no user has more than {self.parts_per_user} lists in all the sketches that were merged",)

    def empty_summary(self, max_key_bytes: int) -> UserMisraGries:
        assert isinstance(self.unit, User)
        return UserMisraGries(self.capacity, self.unit.limit, oversized="sample", max_key_bytes=max_key_bytes)

    def check(self, summary: Any) -> None:
        super().check(summary)
        assert isinstance(self.unit, User)
        if summary.max_items_per_user != self.unit.max_items:
            raise IncompatibleSummaryError(
                f"the unit allows {self.unit.max_items} items per user, but the summary allows "
                f"{summary.max_items_per_user}; make them equal"
            )
