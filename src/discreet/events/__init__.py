"""Where streams come from: files, tables, growing inputs; one reader of items."""

from discreet.events.stream import FORMATS, Stream, open_stream

__all__ = ["FORMATS", "Stream", "open_stream"]
