"""Where a summary runs: threads of one machine, or a cluster."""
