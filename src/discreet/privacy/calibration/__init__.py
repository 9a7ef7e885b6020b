"""Exact calibration: which noise, which threshold, which delta. Every rounding goes to the safe side."""

from discreet.privacy.calibration.zcdp import gaussian_rho, pure_rho, zcdp_delta, zcdp_epsilon, zcdp_rho

__all__ = ["gaussian_rho", "pure_rho", "zcdp_delta", "zcdp_epsilon", "zcdp_rho"]
