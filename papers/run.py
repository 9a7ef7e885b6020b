"""Every figure and table of the five papers: `make papers`, or `make papers FULL=1` with the papers' sizes.

    python papers/run.py [--full] [--data FILE ...] [--out DIR] [NAME ...]

Runs the scripts of this folder one after the other and lists what each says at the end; exits with 1 if one of them
found a sentence that is not as noted.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SAVES = re.compile(r"^ *figure\.save\(\)$", re.MULTILINE)  # whoever does draws a figure; the others are shared
SCRIPTS = [path.stem for path in sorted(HERE.glob("*.py")) if SAVES.search(path.read_text())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCRIPTS)}; all by default")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--data", action="append", default=[], help="clicks, names or addresses; repeat it")
    parser.add_argument("--out", default="out/papers")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(SCRIPTS)
    if unknown:
        parser.error(f"no such script: {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}")
    options = ["--out", arguments.out, *(["--full"] if arguments.full else [])]
    options += [part for path in arguments.data for part in ("--data", path)]
    wrong = []
    for name in arguments.names or SCRIPTS:
        started = time.perf_counter()
        if subprocess.run([sys.executable, HERE / f"{name}.py", *options], check=False).returncode:
            wrong.append(name)
        print(f"  ({time.perf_counter() - started:.0f} s)", flush=True)
    print(f"\npictures, numbers and verdicts are in {arguments.out}")
    if wrong:
        sys.exit(f"not as noted: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
