"""The one source of the version; pyproject.toml reads it from here."""

__version__ = "0.2.0"
