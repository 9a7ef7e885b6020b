"""Trusted curator, a result at every tick."""
