"""Mutates every golden state, message and stored release, and reads it: an answer or a typed error, nothing else.

    python tests/sanitize/fuzz_states.py SECONDS [SEED]

The envelope is sealed anew after most mutations, so that what lies behind the checksum is reached. `make fuzz` runs it
with the sanitizers in the native module; a failure prints the seed and the round to run again.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import discreet as dc
from discreet.multiparty import protocol_from_dict
from discreet.multiparty.block_stream import BlockStream

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.reference.states import _first_hash

NUMBERS = (0, 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1)
GOLDEN = Path(__file__).parents[1] / "golden"
SUMMARIES = {
    "count_min": dc.CountMin,
    "count_sketch": dc.CountSketch,
    "exact_counts": dc.ExactCounts,
    "misra_gries": dc.MisraGries,
    "sharded_misra_gries": dc.ShardedMisraGries,
    "space_saving": dc.SpaceSaving,
    "user_misra_gries": dc.UserMisraGries,
}
CONTINUAL = {
    "counter": dc.continual.Counter,
    "distinct": dc.continual.DistinctCount,
    "heavy": dc.continual.HeavyHitters,
    "histogram": dc.continual.Histogram,
}
PAN = {
    "cropped": dc.pan.CroppedMean,
    "density": dc.pan.Density,
    "distinct": dc.pan.DistinctCount,
    "heavy": dc.pan.HeavyFraction,
    "incidence": dc.pan.Incidence,
    "modular": dc.pan.ModularIncidence,
    "occurrences": dc.pan.Occurrences,
}


def reads_summary(cls: type) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        summary = cls.from_bytes(data)  # type: ignore[attr-defined]
        summary.not_private_counts()
        return cls.from_bytes(summary.to_bytes())  # type: ignore[attr-defined]

    return read


def decoders() -> Iterator[tuple[str, bytes, Callable[[bytes], object]]]:
    """(name, what was written, how it is read) of every decoder."""
    for path in sorted(GOLDEN.glob("*.state")):
        yield path.name, path.read_bytes(), reads_summary(SUMMARIES[path.name.split("-")[0]])
    for kind, classes in (("continual", CONTINUAL), ("pan", PAN)):
        for path in sorted((GOLDEN / kind).glob("*.state")):
            yield f"{kind}/{path.name}", path.read_bytes(), classes[path.name.split("-")[0]].from_bytes
    for path in sorted((GOLDEN / "multiparty").glob("*.json")):
        protocol = protocol_from_dict(json.loads(path.read_text())["round"])
        message, state = path.with_suffix(".message").read_bytes(), path.with_suffix(".state").read_bytes()
        limits = {} if isinstance(protocol, BlockStream) else {"max_reports": None}
        yield (
            f"multiparty/{path.stem}.message",
            message,
            lambda data, p=protocol, o=limits: p.aggregator(**o).receive(data),
        )
        yield f"multiparty/{path.stem}.state", state, protocol.restore
        if path.with_suffix(".party").exists():
            party = path.with_suffix(".party").read_bytes()
            yield f"multiparty/{path.stem}.party", party, protocol.restore_party  # type: ignore[attr-defined]
    for path in sorted((GOLDEN / "releases").glob("*.payload")):
        yield f"releases/{path.name}", path.read_bytes(), dc.Release.from_payload


def sealed(state: bytes) -> bytes:
    """The envelope's length and checksum made right for what follows it."""
    head, payload = state[:16] + len(state[32:]).to_bytes(8, "little"), state[32:]
    return head + _first_hash(payload, _first_hash(head, 0x5BD1E995A3C59AC3)).to_bytes(8, "little") + payload


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(out)) if out else 0
        match chance.randrange(7):
            case 0:
                out[at : at + 1] = bytes([chance.randrange(256)])
            case 1 if out:
                out[at] ^= 1 << chance.randrange(8)
            case 2:  # a number of 8 bytes that is large, negative or just wrong
                out[at : at + 8] = chance.choice(NUMBERS).to_bytes(8, "little")
            case 3:
                del out[at:]
            case 4:
                del out[at : at + chance.randrange(1, 17)]
            case 5:
                out[at:at] = chance.randbytes(chance.randrange(1, 17))
            case _:
                other = chance.choice(others)
                begin = chance.randrange(len(other))
                out[at : at + 16] = other[begin : begin + 16]
    return bytes(out)


def main(seconds: float, seed: int) -> None:
    every = list(decoders())
    others = [data for _, data, _ in every]
    for name, data, read in every:
        read(data)  # what was written is read
        assert sealed(data) == data or not data.startswith(b"DSCREET1"), name
    end, rounds, accepted = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        for name, data, read in every:
            chance = random.Random(f"{seed} {rounds} {name}")
            bad = mutated(data, others, chance)
            if data.startswith(b"DSCREET1") and chance.random() < 0.9:
                bad = sealed(data[:16] + bytes(16) + bad[32:])
            try:
                read(bad)
                accepted += 1
            except dc.DiscreetError:
                pass
            except BaseException:
                print(f"seed {seed}, round {rounds}, {name}: {bad!r}", file=sys.stderr)
                raise
        rounds += 1
    print(f"{len(every)} decoders, {rounds} rounds, {accepted} of {rounds * len(every)} inputs accepted")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32))
