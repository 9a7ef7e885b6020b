"""Ports for servers that tests start."""

import contextlib
import random
import socket


def free_port() -> int:
    """A port that stays free until the server has it: not one of those that the system gives to whoever asks."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
