"""What leaves: releases with their guarantee, their error and their picture."""

from discreet.privacy.estimate import Estimate
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Release

__all__ = ["ErrorModel", "Estimate", "Histogram", "Noise", "Release"]

Histogram = Release  # its name before there were histograms over time
