"""Exact calibration: which noise, which threshold, which delta. Every rounding goes to the safe side.

Names are loaded on first use: `zcdp` needs nothing heavy, the others need numpy and scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.privacy.calibration.correlated import (
        correlated_calibration,
        discrete_correlated_delta,
    )
    from discreet.privacy.calibration.gaussian import (
        discrete_gaussian_delta,
        discrete_gaussian_sigma,
        discrete_gaussian_sigma_any,
        discrete_gaussian_tail,
        gaussian_delta,
        gaussian_sigma,
    )
    from discreet.privacy.calibration.misra_gries import (
        chan_threshold,
        pmg_geometric_threshold,
        pmg_paper_threshold,
        pmg_threshold,
        reduced_paper_threshold,
        reduced_sensitivity,
        reduced_threshold,
        textbook_paper_threshold,
        textbook_threshold,
        universe_cut,
    )
    from discreet.privacy.calibration.offset import (
        offset_delta,
        offset_threshold,
    )
    from discreet.privacy.calibration.space_saving import (
        space_saving_delta,
        space_saving_noisy_delta,
        space_saving_noisy_threshold,
        space_saving_paper_margin,
        space_saving_threshold,
    )
    from discreet.privacy.calibration.sparse import (
        discrete_gshm_delta,
        gshm_calibration,
        gshm_delta,
    )
    from discreet.privacy.calibration.stability import (
        stability_delta,
        stability_threshold,
    )
    from discreet.privacy.calibration.tails import (
        log_sum_tail,
        log_tail,
    )
    from discreet.privacy.calibration.zcdp import (
        gaussian_rho,
        pure_rho,
        zcdp_delta,
        zcdp_epsilon,
        zcdp_rho,
    )

_WHERE = {
    **dict.fromkeys(["correlated_calibration", "discrete_correlated_delta"], "correlated"),
    **dict.fromkeys(
        [
            "discrete_gaussian_delta",
            "discrete_gaussian_sigma",
            "discrete_gaussian_sigma_any",
            "discrete_gaussian_tail",
            "gaussian_delta",
            "gaussian_sigma",
        ],
        "gaussian",
    ),
    **dict.fromkeys(
        [
            "chan_threshold",
            "pmg_geometric_threshold",
            "pmg_paper_threshold",
            "pmg_threshold",
            "reduced_paper_threshold",
            "reduced_sensitivity",
            "reduced_threshold",
            "textbook_paper_threshold",
            "textbook_threshold",
            "universe_cut",
        ],
        "misra_gries",
    ),
    **dict.fromkeys(["offset_delta", "offset_threshold"], "offset"),
    **dict.fromkeys(["discrete_gshm_delta", "gshm_calibration", "gshm_delta"], "sparse"),
    **dict.fromkeys(
        [
            "space_saving_delta",
            "space_saving_noisy_delta",
            "space_saving_noisy_threshold",
            "space_saving_paper_margin",
            "space_saving_threshold",
        ],
        "space_saving",
    ),
    **dict.fromkeys(["stability_delta", "stability_threshold"], "stability"),
    **dict.fromkeys(["log_sum_tail", "log_tail"], "tails"),
    **dict.fromkeys(["gaussian_rho", "pure_rho", "zcdp_delta", "zcdp_epsilon", "zcdp_rho"], "zcdp"),
}

__all__ = [
    "chan_threshold",
    "correlated_calibration",
    "discrete_correlated_delta",
    "discrete_gaussian_delta",
    "discrete_gaussian_sigma",
    "discrete_gaussian_sigma_any",
    "discrete_gaussian_tail",
    "discrete_gshm_delta",
    "gaussian_delta",
    "gaussian_rho",
    "gaussian_sigma",
    "gshm_calibration",
    "gshm_delta",
    "log_sum_tail",
    "log_tail",
    "offset_delta",
    "offset_threshold",
    "pmg_geometric_threshold",
    "pmg_paper_threshold",
    "pmg_threshold",
    "pure_rho",
    "reduced_paper_threshold",
    "reduced_sensitivity",
    "reduced_threshold",
    "space_saving_delta",
    "space_saving_noisy_delta",
    "space_saving_noisy_threshold",
    "space_saving_paper_margin",
    "space_saving_threshold",
    "stability_delta",
    "stability_threshold",
    "textbook_paper_threshold",
    "textbook_threshold",
    "universe_cut",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
