"""Nobody is trusted after an event is processed: the memory itself is private."""
