"""Integer noise from the system's random source: the only randomness of a release."""
