"""Fit the buffers of `continual._buffered_table`: for T = 2^2, 2^3, ... the smallest worst error of four buffers.

The result is stored in the package; privacy does not rest on it. Takes several minutes.

    python benchmarks/fit_buffers.py [largest power]
"""

from __future__ import annotations

import sys

import numpy as np
from scipy import optimize

from discreet.privacy.calibration.tick_noise import geometric_squares

BUFFERS = 4
ONE = 2.0**40


def log_error(parameters: np.ndarray, horizon: int) -> float:
    """log of (column norm of C) times (norm of the last row of A C^-1)."""
    gaps, omega = np.exp(parameters[:BUFFERS]), np.exp(parameters[BUFFERS:])
    if (gaps >= 1.0).any():
        return 1e3
    s = np.sqrt(omega)
    poles, vectors = np.linalg.eigh(np.diag(gaps) + np.outer(s, s))
    if (poles >= 1.9).any():
        return 1e3
    weights = (vectors.T @ s) ** 2 / poles
    column = 1.0 + geometric_squares(omega, gaps, horizon - 1)
    row = geometric_squares(np.append(weights, 1.0 - weights.sum()), np.append(poles, 0.0), horizon)
    return 0.5 * float(np.log(column * row)) if np.isfinite(column * row) and row > 0.0 else 1e3


def fit(horizon: int, before: np.ndarray | None) -> np.ndarray:
    """The best of a few starting points, each refined by two methods in turn."""
    gaps = np.geomspace(0.6 / horizon, 0.6, BUFFERS)
    omega = np.sqrt(gaps)
    starts = [np.log(np.concatenate([gaps, omega * 0.5 / omega.sum()]))]
    if before is not None:
        slower = before.copy()
        slower[:BUFFERS] -= np.linspace(1.0, 0.0, BUFFERS) * 0.5
        starts += [before, slower]
    found = []
    for point in starts:
        for _ in range(3):
            for method, options in (
                ("Nelder-Mead", {"maxfev": 6000, "xatol": 1e-7, "fatol": 1e-12, "adaptive": True}),
                ("BFGS", {"gtol": 1e-9}),
            ):
                result = optimize.minimize(log_error, point, args=(horizon,), method=method, options=options)
                point = result.x if result.fun <= log_error(point, horizon) else point
        found.append(point)
    best = min(found, key=lambda point: log_error(point, horizon))
    order = np.argsort(best[:BUFFERS])
    return np.concatenate([best[:BUFFERS][order], best[BUFFERS:][order]])


def main() -> None:
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    point = None
    for power in range(2, largest + 1):
        point = fit(2**power, point)
        gaps, omega = np.exp(point[:BUFFERS]), np.exp(point[BUFFERS:])
        theta = [round((1.0 - gap) * ONE) for gap in gaps]
        print(f"2^{power}: error {np.exp(log_error(point, 2**power)):.4f}, theta {theta},", end=" ")
        print(f"omega {[round(value * ONE) for value in omega]}", flush=True)


if __name__ == "__main__":
    main()
