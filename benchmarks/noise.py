"""Draws a second of the exact samplers on one core, from the system's random source, beside OpenDP when it is there.

    python benchmarks/noise.py [--draws 200000] [--repeat 50]

Each figure is the median of several short runs, in turns with the peer's; "first" is the time of the first single draw,
which builds the law's table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import calls_in_turns, machine, took

from discreet.noise import laws, system_source


def peers(kind: str, scale: float, draws: int) -> Callable[[], Any] | None:
    """OpenDP's secure sampler of the same law on a vector of 64-bit integers, or None."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric = dp.l1_distance(T="i64") if kind == "discrete_laplace" else dp.l2_distance(T="f64")
    make = dp.m.make_laplace if kind == "discrete_laplace" else dp.m.make_gaussian
    measurement, zeros = make(domain, metric, scale=scale), np.zeros(draws, np.int64)
    return lambda: measurement(zeros)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=50)
    options = parser.parse_args()
    source = system_source()

    print(f"{machine()}; medians of {options.repeat} in turns")
    bytes_drawn = calls_in_turns({"bytes": lambda: source.bytes(8 * options.draws)}, options.repeat)["bytes"]
    nanoseconds = bytes_drawn.seconds / options.draws * 1e9
    print(f"random bytes: {nanoseconds:.1f} ns per 8\n")
    print(f"{'law':<18}{'scale':>8}{'million/s':>11}{'first ms':>10}{'opendp us':>11}{'ratio':>8}")
    cases = [("discrete_laplace", 1 / epsilon) for epsilon in (2, 1, 0.5, 0.1, 0.01, 1e-6)]
    cases += [("discrete_gaussian", sigma) for sigma in (1.0, 10.0, 100.0, 1000.0, 1e9)]
    for kind, scale in cases:
        draw = getattr(source, kind)
        laws.laplace_law.cache_clear()
        laws.gaussian_law.cache_clear()
        first = took(lambda draw=draw, scale=scale: draw(scale)).seconds  # type: ignore[misc]
        few = max(1, options.draws // 100)
        calls = {"ours": lambda draw=draw, scale=scale: draw(scale, options.draws)}
        if (peer := peers(kind, scale, few)) is not None:
            calls["theirs"] = peer
        costs = calls_in_turns(calls, options.repeat)
        ours = costs["ours"].seconds
        row = f"{kind:<18}{scale:>8.3g}{options.draws / ours / 1e6:>11.1f}{first * 1e3:>10.2f}"
        if "theirs" in costs:
            each = costs["theirs"].seconds / few
            row += f"{each * 1e6:>11.2f}{each / (ours / options.draws):>8.0f}"
        print(row)

    scores = (1e6 / np.arange(1, 100_001)).astype(np.int64)
    print("\nexponential mechanism, 100 000 scores:")
    for epsilon in (1.0, 0.01, 0.0001):
        for k in (1, 100):
            call = {"choice": lambda e=epsilon, k=k: source.exponential_mechanism(scores, e, k=k)}
            print(f"  epsilon {epsilon:<7} k {k:<4} {calls_in_turns(call, 3)['choice'].seconds * 1e3:8.2f} ms")


if __name__ == "__main__":
    main()
