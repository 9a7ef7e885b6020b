"""Starts services quickly, to be killed: everything is loaded once, and each service is a fork of this process.

Reads lines "STREAMS.toml FOLDER PORT" and answers each with the process id. Has no threads.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import discreet.service.server as serving
from discreet.service.definitions import load


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are killed
    for line in sys.stdin:
        file, folder, port = line.split()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serving.serve(load(Path(file)), Path(folder), port=int(port))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
