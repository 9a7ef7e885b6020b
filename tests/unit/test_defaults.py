"""One word has one default, wherever it is given, and values do not change: the exceptions are few, and stand here."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

import discreet as dc

PACKAGES = ("", ".central", ".continual", ".pan", ".multiparty", ".published", ".questions", ".releases", ".privacy")

DEFAULTS = {
    # what may be said of a release
    "confidence": 0.95, "trust": "central", "seeded": False, "chosen_because": "", "notes": (), "assumptions": (),
    "reference": "", "in_list_order": False,
    # what is read
    "nulls": "error", "bad_rows": "skip", "bad_items": "skip", "header": True, "oversized": "error",
    "rows_of_the_result_are_the_events": False,
    # what is asked
    "k": 100, "mechanism": "auto", "quantiles": (0.25, 0.5, 0.75), "scale": "linear", "by": (), "listed": 100,
    "max_rows": 1, "max_items": 65536, "most": 30, "kind": "bars", "counted": "events",
    # summaries
    "depth": 5, "tracked": 0, "max_key_bytes": 4096, "max_bytes": 2**30,
    # budgets and what they are spent on
    "delta": 0.0, "delta_share": 1.0, "from_zcdp": False, "timeout": 60.0, "different_people": False, "spurious": 0.01,
    "length_share": 0.05, "noise": "gaussian", "stream_length": "noisy", "parts_per_user": 1, "sketches": 1,
    "distinct": False, "calibration": "exact", "may_charge": (), "may_read": (), "mechanisms": (), "published": False,
    "charges": (), "about": "",
    # over time
    "remember": 0, "restored": False, "switches": 1, "max_weight": 1, "keep_discovered": False, "method": "auto",
    "max_items_per_event": 1, "items": (), "events": (), "users": (), "passed": 1,
    # private also while it runs
    "buckets": 2**14, "levels": 24, "rho": 1.0, "primes": 5, "collision": 0.25, "shift": "auto", "solver": "fft",
    # parties
    "max_reports": 1, "minimum_reports": 0, "protocol": "IndependentSketches", "epoch_steps": 1, "rows": 1,
    "sample_share": 0.5, "start": 0, "expected": (), "track": 0, "items_per_column": 1.0, "separation_share": 0.4,
    "bytes_per_party": 1000.0, "window": False, "universe_size": 2**20, "zipf": 1.2, "capacity": 64, "columns": 1024,
}  # fmt: skip
EXCEPTIONS = {
    ("Occurrences", "buckets"): 2**16,
    ("HeavyHitters", "listed"): 1,
    ("plan_questions", "max_items"): 1,
    ("plot_over_time", "most"): 5,
    ("Stability", "noise"): "laplace",
    ("OracleHeavyHitters", "noise"): "laplace",
    ("PrivateSpaceSaving", "length_share"): 0.1,
    ("Incidence", "method"): "squares",
    ("Separation", "items_per_column"): 16.0,
    ("MergedSketch", "rows"): 3,
    ("MergedMisraGriesStream", "sample_share"): 0.0,
    **{(name, "delta"): 1e-8 for name in ("HadamardResponse", "LocalHashing", "LocalSketch")},
}


def public():
    """(name, callable) of all that is exported, and the public methods of classes."""
    for package in PACKAGES:
        module = importlib.import_module(f"discreet{package}")
        for name in module.__all__:
            found = getattr(module, name)
            if callable(found):
                yield name, found
            for method in dir(found) if inspect.isclass(found) else ():
                made = inspect.getattr_static(found, method)
                made = getattr(made, "__func__", made)
                if not method.startswith("_") and inspect.isfunction(made):
                    yield name, made


def defaults_of(function):
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of the kernels
        return {}
    plain = (bool, int, float, str, tuple)
    return {each.name: each.default for each in given if isinstance(each.default, plain)}


def test_one_word_has_one_default():
    found = {(name, word): default for name, function in public() for word, default in defaults_of(function).items()}
    assert len(found) > 200
    wrong = {
        place: default
        for place, default in found.items()
        if (default, type(default)) != ((expected := EXCEPTIONS.get(place, DEFAULTS.get(place[1]))), type(expected))
    }
    assert wrong == {}


def test_no_exception_is_stale():
    found = {(name, word): default for name, function in public() for word, default in defaults_of(function).items()}
    assert {place for place in EXCEPTIONS if found.get(place) != EXCEPTIONS[place]} == set()


def modules():
    for each in pkgutil.walk_packages(dc.__path__, "discreet."):
        if not any(part in each.name for part in ("__main__", "spark", "_native", "postgres", "polars", "pandas")):
            yield importlib.import_module(each.name)


@pytest.mark.parametrize("word", ["confidence"])
def test_an_interval_holds_with_95_percent_unless_something_else_is_said(word):
    """In every function and class of the package, exported or not."""
    seen, other = 0, []
    for module in modules():
        for name, found in vars(module).items():
            if getattr(found, "__module__", "") != module.__name__ or not callable(found):
                continue
            inside = [found, *(vars(found).values() if inspect.isclass(found) else ())]
            for function in inside:
                function = getattr(function, "__func__", function)
                default = defaults_of(function).get(word) if callable(function) else None
                seen += default is not None
                other += [f"{module.__name__}.{name}"] if default not in (None, DEFAULTS[word]) else []
    assert seen > 30
    assert other == []


CHANGING = ("_Flat", "_Block", "LiveBatch", "TextRows", "_Voice", "Steps", "RowsRead", "Arrival", "Surroundings",
            "_Held", "Ticker", "Watcher", "RawCounts")  # fmt: skip


def test_values_are_frozen():
    """What was checked when it was made stays so; what is said of a release or a charge does not change afterwards."""
    kinds = [
        found
        for module in modules()
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__ and "__dataclass_params__" in vars(found)
    ]
    assert len(kinds) > 150
    changing = {kind.__name__ for kind in kinds if not kind.__dataclass_params__.frozen}
    assert changing <= {*CHANGING}
    event = dc.Budget(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.epsilon = 2.0
