"""Where items enter."""
