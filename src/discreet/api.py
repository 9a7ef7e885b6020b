"""The facade: one call from a column to a private release."""
