"""Integer noise from the system's random source: the only randomness of a release."""

from discreet.noise.source import RandomSource, fresh_source, seeded_source, system_source

__all__ = ["RandomSource", "fresh_source", "seeded_source", "system_source"]
