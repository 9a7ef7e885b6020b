"""Numbers that formats, documents and proofs rest on: whoever changes one says so here.

A number that is a matter of speed is not in the list. Where one name stands for several numbers, all of them are.
"""

import ast
import functools
from fractions import Fraction
from pathlib import Path

import discreet as dc

NUMBERS = {
    # privacy: warnings, shares of budgets, rounding to the safe side
    "LARGEST_EPSILON": {20.0}, "LARGEST_DELTA": {1e-3}, "SAFETY": {1e-12}, "FFT_ERROR": {1e-12},
    "SLACK": {1.1, Fraction(1, 10**12)}, "DELTA_SHARE": {0.25}, "TOTALS_SHARE": {0.25},
    "POOLED_DELTA": {Fraction(1, 2)}, "USUAL_DELTA": {1e-8}, "EPOCHS": {24}, "SHARE": {0.05}, "FOR_INTERVALS": {0.25},
    "_MOST_EPSILON": {20.0}, "_LARGEST_CHANGES": {10**7}, "_LARGEST_RATE": {700.0}, "_LARGEST_PLD_EPSILON": {100.0},
    "_OF_DIFFERENCE": {0.9}, "ONE": {2**64}, "_ONE": {2**64}, "_PRIME": {2**61 - 1}, "_MAX_SIGMA": {2.0**40},
    "MAX_SCALE": {2**50}, "MAX_BINOMIAL_MEAN": {2**31}, "LARGEST_PRIME": {2**31 - 1}, "COEFFICIENT_BITS": {40},
    "_ITEM_BITS": {32}, "LENGTH": {2**24}, "VOTE": {2**24}, "RUNGS": {2}, "_BITS": {192, 200}, "CONFIDENCE": {0.95},
    "_FINEST": {10_000},
    # what may be asked
    "MAX_CAPACITY": {2**30}, "MAX_WIDTH": {2**30}, "MAX_DEPTH": {255}, "MAX_SHARDS": {128}, "MAX_HORIZON": {2**24},
    "MAX_TICKS": {2**24}, "MAX_SQUARE_ROOT": {2**20}, "MAX_SIZE": {2**40, 2**27}, "MAX_CELLS": {2**31, 2**26},
    "MAX_K": {4096}, "MAX_T": {2**40}, "MAX_NUMBER": {2**63 - 1}, "MAX_TIME": {2**48}, "MAX_OPTIONS": {1000},
    "MAX_ITEMS": {10}, "MAX_FIELD_BYTES": {1000}, "MAX_DIGITS": {8192}, "MAX_BLOCKS": {2**16},
    "MAX_EMPTY_BYTES": {2**30}, "_MAX_KEY_BYTES": {2**30}, "_MAX_BRANCHING": {2**16}, "_MAX_LEVELS": {64},
    "_MAX_PARTS": {2**24}, "_MAX_SIZE": {2**62}, "MOST_BINS": {2**20}, "MOST_BYTES": {2**30},
    "MOST_COMBINATIONS": {2**20}, "MOST_COUNT": {64}, "MOST_GROUPS": {2**15}, "MOST_INTRUSIONS": {16},
    "MOST_IN_GROUPS": {2**16}, "MOST_ITEMS": {256, 2**63}, "MOST_LISTED": {2**20, 2**24}, "MOST_REMEMBERED": {10_000},
    "MOST_ROWS": {100, 2**20}, "MOST_STEPS": {2**40, 2**45}, "_MOST_KEY": {200}, "_MOST_IDS": {100},
    "_MOST_LISTED": {10**7}, "LONGEST_RECORD": {2**26}, "DEFAULT_MAX_KEY_BYTES": {4096}, "USUAL_MAX_ITEMS": {2**16},
    "BINS": {2**16}, "PARTS": {2**16}, "CELLS": {16}, "DEFAULT_SAMPLE": {100_000},
    # what is stored and sent
    "APPLICATION_ID": {1684239474}, "EVENT_VERSION": {3}, "MOVED_VERSION": {4}, "SCHEMA_VERSION": {2},
    "PAYLOAD_VERSION": {4}, "_NEWEST_STATE": {3}, "VERSION": {1}, "_VERSION": {1, 2}, "FAMILY": {150, 160},
    "_FAMILY": {127, 151, 152}, "PARTY_STATE": {201}, "SEEDED": {128}, "HEADER_BYTES": {20},
    "KEY_BYTES": {32}, "_KEY_BYTES": {32}, "_CHECKSUM_BYTES": {4}, "_ENVELOPE": {28}, "_PACKET": {34},
    "_DAY": {86_400}, "_MICROSECONDS": {10**6}, "_EXACT": {2**53}, "_FOR_EVER": {2**62},
}  # fmt: skip


@functools.cache
def numbers():
    """{name: values} of the numbers that modules begin with."""
    found = {}
    for path in sorted(Path(dc.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(
                    ast.Name(id=name), value=value
                ):
                    pass
                case _:
                    continue
            try:
                said = ast.unparse(value) if value is not None else "None"
                number = eval(said, {"__builtins__": {}, "Fraction": Fraction})
            except Exception:  # something else
                continue
            if name in NUMBERS and isinstance(number, (int, float, Fraction)):
                found.setdefault(name, set()).add(number)
    return found


def test_they_are_what_they_were():
    found = numbers()
    assert {name: values - NUMBERS[name] for name, values in found.items() if values - NUMBERS[name]} == {}


def test_most_of_them_are_there():
    assert len(numbers()) > 0.8 * len(NUMBERS)
