"""Where streams come from: Arrow, CSV, Parquet, JSON lines, text lines."""
