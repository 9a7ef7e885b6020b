"""Where streams come from: files, tables, growing inputs; one reader of items."""
