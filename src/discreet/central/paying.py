"""What is checked before a central release is paid, and what its charge stands for."""

from __future__ import annotations

import json
from collections.abc import Sequence

from discreet.central._base import Mechanism
from discreet.errors import ParameterError
from discreet.noise.source import MAX_SCALE
from discreet.releases.error_model import Noise
from discreet.summaries import Summary

__all__ = ["check_noise", "release_request", "top_k_request"]


def check_noise(mechanism: Mechanism, total_noise: Noise | None = None) -> None:
    """Calibrate now, so that nothing can fail for its parameters once the ledger is charged."""
    model = mechanism.error_model
    _ = mechanism.threshold
    for noise in (model.noise, model.shared, model.offset_noise, total_noise):
        if noise is not None and noise.scale > MAX_SCALE:
            raise ParameterError(f"the budget is too small: the noise would have a scale above 2**50, {mechanism.name}")


def release_request(
    summary: Summary | Sequence[Summary],
    stream_length: int | None,
    request: str | None,
    parts_per_user: int | None = None,
) -> dict[str, object]:
    """What is public of a release of summaries beside the mechanism, which is part of the charge anyway."""
    parts = [summary] if isinstance(summary, Summary) else summary
    sizes = [[type(part).__name__, getattr(part, "capacity", None)] for part in parts]
    lengths = {"stream_length": stream_length, "parts_per_user": parts_per_user}
    return {"summary": sizes, **lengths, "request": request}


def top_k_request(k: int, nulls: str, request: str | None, **more: object) -> str:
    """What a list of k items adds: a repetition may not ask for more or fewer, either."""
    return json.dumps([k, nulls, request, {name: value for name, value in more.items() if value is not None}])
