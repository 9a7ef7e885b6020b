"""Where streams come from: Arrow, CSV, Parquet, JSON lines, text lines."""

from discreet.io.stream import FORMATS, Stream, open_stream

__all__ = ["FORMATS", "Stream", "open_stream"]
