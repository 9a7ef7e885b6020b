"""Each party is trusted with its own items only: every message is private on its own."""
