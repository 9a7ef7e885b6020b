"""Evidence that the privacy claimed is the privacy delivered: `discreet_audit`, the house next door."""

from discreet_audit import *  # noqa: F403
from discreet_audit import __all__ as __all__
