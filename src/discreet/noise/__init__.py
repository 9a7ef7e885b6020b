"""Integer noise from the system's random source: the only randomness of a release.

`__all__` has what audits and tests of others need; the sources that a release draws from are for the packages above.
"""

from discreet.noise.source import RandomSource as RandomSource
from discreet.noise.source import fresh_source as fresh_source
from discreet.noise.source import seeded_source
from discreet.noise.source import system_source as system_source

__all__ = ["seeded_source"]
