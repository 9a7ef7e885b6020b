"""Trusted curator, one published result."""
