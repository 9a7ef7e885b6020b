"""Integer noise from the system's random source: the only randomness of a release."""

from discreet.noise.source import RandomSource, seeded_source, system_source

__all__ = ["RandomSource", "seeded_source", "system_source"]
