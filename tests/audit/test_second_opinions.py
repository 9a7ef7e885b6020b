"""Every mechanism has a law of its own in tests/reference, and a test that compares what ships with it.

The table is held against what the packages offer, what the audit has rows for and all that a random source draws: what
is added without a law fails here. That tests/reference imports nothing of the package, and tests/exhaustive nothing of
the audit, is in tests/exhaustive/test_second_opinion.py.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from discreet import central, continual, multiparty, pan, published
from discreet.continual import one_shot
from discreet.noise import RandomSource
from discreet_audit.core import cases

ROOT = Path(__file__).parents[1]
COUNTERS, QUESTIONS, PARTIES, TIME, PAN, NAIVE = (
    "counter_laws", "question_laws", "party_laws", "time_laws", "pan_laws", "naive_laws",
)  # fmt: skip
OF_COUNTERS, OF_QUESTIONS, OF_PEOPLE, OF_PARTIES, OF_TIME, OF_MEMORY, SECOND = (
    f"exhaustive/test_{name}.py"
    for name in ("counter_laws", "question_laws", "people_laws", "party_laws", "time_laws", "pan_memory",
                 "second_opinion")
)  # fmt: skip
CELLS = "test_every_cell_has_the_law_and_a_release_counts_what_is_there"
STREAMS = "test_all_that_a_stream_sends"

# Mechanism: (file of tests/reference, its law), (file of tests, the test that compares).
TABLE = {
    "central.Offset": (NAIVE, "offset_law", SECOND, "test_the_offset_release"),
    "central.ShardedOffset": (
        COUNTERS, "sharded_law", OF_COUNTERS, "test_shards_publish_what_their_offset_releases_do"),
    "central.Stability": (NAIVE, "stability_delta", SECOND, "test_stability"),
    "central.Merged": (
        COUNTERS, "common_noise_law", OF_COUNTERS, "test_noise_that_counters_share_is_shown_in_half_counts"),
    "central.UserSketch": (
        COUNTERS, "common_noise_delta", OF_COUNTERS, "test_noise_that_counters_share_hides_a_step_of_all_of_them"),
    "central.ReducedMisraGries": (
        COUNTERS, "reduced_law", OF_COUNTERS, "test_entries_behind_a_cut_are_rounded_first"),
    "central.Summed": (COUNTERS, "listed_law", OF_COUNTERS, "test_entries_over_a_list"),
    "central.CountMinHeavyHitters": (COUNTERS, "cells_law", OF_COUNTERS, "test_estimates_from_noisy_cells"),
    "central.CountSketchHeavyHitters": (COUNTERS, "cells_law", OF_COUNTERS, "test_estimates_from_noisy_cells"),
    "central.NoisyCount": (QUESTIONS, "numbers_law", OF_QUESTIONS, "test_a_count"),
    "central.UniverseHistogram": (QUESTIONS, "listed_of_people", OF_QUESTIONS, "test_a_list"),
    "central.BadShare": (QUESTIONS, "refusal_law", OF_QUESTIONS, "test_a_test_of_bad_rows"),
    "central.CreditedDistinct": (QUESTIONS, "most_credited", OF_QUESTIONS, "test_different_values_of_people"),
    "central.ChosenDistinct": (
        QUESTIONS, "chosen_credit_law", OF_QUESTIONS, "test_how_many_values_to_credit_is_chosen_privately"),
    "central.QuantileTree": (QUESTIONS, "nodes", OF_QUESTIONS, "test_the_nodes_of_quantiles"),
    "central.QuantileChoice": (
        NAIVE, "quantile_choice_law", "exhaustive/test_quantile_choice_exhaustive.py",
        "test_the_law_is_the_one_defined_and_costs_what_it_may"),
    "central.RowMoments": (QUESTIONS, "groups_law", OF_QUESTIONS, "test_all_that_is_published_of_groups"),
    "central.PersonVectors": (QUESTIONS, "people_delta", OF_PEOPLE, "test_all_steps_of_people_together"),
    "central.PersonPairs": (QUESTIONS, "pairs_of", OF_PEOPLE, "test_vectors_of_pairs"),
    "central.PersonMoments": (
        QUESTIONS, "gaussian_delta", OF_PEOPLE, "test_sums_of_people_over_a_list"),
    "questions.Report": (
        QUESTIONS, "several_counts_delta", "exhaustive/test_report_exhaustive.py",
        "test_two_counts_of_a_report_together_keep_the_budget"),
    "groups (by)": (
        COUNTERS, "top_of_groups", "exhaustive/test_groups_exhaustive.py",
        "test_all_groups_together_cost_one_release"),
    "person-days": (
        QUESTIONS, "days_of", "exhaustive/test_person_days_exhaustive.py", "test_pairs_are_those_of_the_law"),
    "continual.Counter": (TIME, "tree_law", OF_TIME, "test_all_that_a_counter_publishes"),
    "continual.DistinctCount": (TIME, "comings_and_goings", OF_TIME, "test_noise_for_all_that_a_person_can_do"),
    "continual.Histogram": (TIME, "hidden_law", OF_TIME, "test_all_that_is_published_of_an_item_that_comes"),
    "continual.Histogram, sparse": (TIME, "sparse_run", OF_TIME, "test_the_top_that_is_chosen_again"),
    "continual.Histogram, trees": (TIME, "tree_of_releases", OF_TIME, "test_trees_of_releases"),
    "continual.one_shot.known_gauss": (TIME, "known_gauss", OF_TIME, "test_one_release"),
    "continual.one_shot.known_gumbel": (TIME, "known_gumbel", OF_TIME, "test_one_release"),
    "continual.one_shot.unknown_noisy": (TIME, "unknown_noisy", OF_TIME, "test_one_release"),
    "continual.one_shot.unknown_gumbel": (TIME, "unknown_gumbel", OF_TIME, "test_one_release"),
    "continual.HeavyHitters": (NAIVE, "gaussian_shifts", SECOND, "test_what_several_nodes_discover"),
    "pan.Density": (PAN, "bit", OF_MEMORY, CELLS),
    "pan.CroppedMean": (PAN, "bit", OF_MEMORY, CELLS),
    "pan.ModularIncidence": (PAN, "shifted", OF_MEMORY, CELLS),
    "pan.Incidence": (PAN, "square_and_zero", OF_MEMORY, CELLS),
    "pan.HeavyFraction": (PAN, "sign_below", OF_MEMORY, "test_tables_of_a_heavy_fraction"),
    "pan.DistinctCount": (PAN, "ones", OF_MEMORY, "test_buckets"),
    "pan.Occurrences": (PAN, "signs_by_counter", OF_MEMORY, "test_buckets"),
    "multiparty.HadamardResponse": (PARTIES, "reports", OF_PARTIES, "test_hadamard_response"),
    "multiparty.LocalHashing": (PARTIES, "best_buckets", OF_PARTIES, "test_local_hashing"),
    "multiparty.LocalSketch": (PARTIES, "cells_law", OF_PARTIES, "test_a_row_of_one_item"),
    "multiparty.IndependentSketches": (PARTIES, "summed_cells", OF_PARTIES, "test_sketches_of_parties"),
    "multiparty.Separation": (PARTIES, "separation_law", OF_PARTIES, "test_heavy_and_light_items_apart"),
    "multiparty.Hierarchy": (PARTIES, "prefixes", OF_PARTIES, "test_every_level_is_paid_for"),
    "multiparty.GridHierarchy": (PARTIES, "prefixes", OF_PARTIES, "test_every_level_is_paid_for"),
    "multiparty.Stream": (PARTIES, "samples_law", OF_PARTIES, STREAMS),
    "multiparty.HierarchicalStream": (PARTIES, "block_epsilon", OF_PARTIES, STREAMS),
    "multiparty.ShuffledReports": (
        PARTIES, "shuffled_delta", OF_PARTIES, "test_shuffled_reports_cost_no_less_than_a_batch_shows"),
    "published.PrivateMisraGries": (
        NAIVE, "shared_law", SECOND, "test_the_release_with_one_noise_for_all_counters"),
    "published.TextbookMisraGries": (COUNTERS, "textbook_law", OF_COUNTERS, "test_the_textbook_release"),
    "published.PrivateSpaceSaving": (
        COUNTERS, "space_saving_noisy_law", OF_COUNTERS, "test_the_space_saving_release"),
    "published.GaussianSparseHistogram": (
        COUNTERS, "noise_for_each_law", OF_COUNTERS, "test_the_gaussian_sparse_histogram"),
    "published.ChanMisraGries": (COUNTERS, "chan_cut", OF_COUNTERS, "test_the_baseline_behind_a_cut"),
    "published.OracleHeavyHitters": (COUNTERS, "unreached", OF_COUNTERS, "test_an_oracle_of_ones_own"),
    "published.InnerProductCounter": (PARTIES, "inner_product_law", OF_PARTIES, "test_votes_and_inner_products"),
    "published.MergedSketch": (PARTIES, "sketch_scale", OF_PARTIES, "test_sketches_of_parties"),
    "published.MergedMisraGries": (PARTIES, "counters_law", OF_PARTIES, "test_counters_of_parties"),
    "published.MergedMisraGriesStream": (PARTIES, "replacement", OF_PARTIES, "test_counters_over_a_stream"),
}  # fmt: skip

DRAWS, TABLES = "statistical/sampler_groups.py", "exhaustive/test_noise_laws.py"
SAMPLERS = {
    "discrete_laplace": (NAIVE, "laplace", TABLES, "test_tables_of_noise"),
    "discrete_gaussian": (NAIVE, "gaussian", TABLES, "test_tables_of_noise"),
    "geometric": ("noise_laws", "geometric", TABLES, "test_tables_of_waiting"),
    "discrete_laplace_at_least": ("noise_laws", "laplace_above", DRAWS, "_at_least"),
    "discrete_gaussian_at_least": ("noise_laws", "gaussian_above", DRAWS, "_gaussian_at_least"),
    "discrete_laplace_exceedances": ("noise_laws", "tail_of_laplace", DRAWS, "groups"),
    "discrete_gaussian_exceedances": ("noise_laws", "successes", DRAWS, "groups"),
    "binomial": ("noise_laws", "successes", DRAWS, "_binomials"),
    "bernoulli": ("noise_laws", "coin", DRAWS, "groups"),
    "bytes": ("noise_laws", "even", DRAWS, "_plain"),
    "uniform_integers": ("noise_laws", "even", DRAWS, "_plain"),
    "permutation": ("noise_laws", "even", DRAWS, "_plain"),
    "sample_without_replacement": ("noise_laws", "even", DRAWS, "_plain"),
    "exponential_mechanism": (TIME, "choices_law", OF_TIME, "test_choices_by_scores"),
    "choose_in_blocks": (TIME, "choices_law", OF_TIME, "test_choices_by_scores"),
}

# Offered beside mechanisms: grids, lists, sketches that are brought, and what is done with releases.
NO_MECHANISM = {"Grid", "StepGrid", "Universe", "Mechanism", "merge_releases", "FrequencyOracle", "TrackedOracle",
                "Strings", "plan", "protocol_from_dict"}  # fmt: skip
PACKAGES = {"central": central, "continual": continual, "pan": pan, "multiparty": multiparty, "published": published}


def offered():
    """All mechanisms of the packages and of the audit, by package and name."""
    names = {
        f"{package}.{name}"
        for package, module in PACKAGES.items()
        for name in (getattr(module, "_WHERE", None) or module.__all__)
        if name not in NO_MECHANISM
    }
    rows = {case.mechanism for case in cases()}
    packages = {row: row.__module__.split(".")[1] for row in rows}
    blocks = {
        f"continual.one_shot.{name}"
        for name, function in inspect.getmembers(one_shot, inspect.isfunction)
        if function.__module__ == one_shot.__name__ and {"source", "draw"} & {*inspect.signature(function).parameters}
    }
    return names | {f"{package}.{row.__name__}" for row, package in packages.items()} | blocks


def drawn():
    return {name for name, _ in inspect.getmembers(RandomSource, inspect.isfunction) if not name.startswith("_")}


def test_every_mechanism_has_a_row():
    more = {"groups (by)", "person-days", "continual.Histogram, sparse", "continual.Histogram, trees"}
    # The choice that a sampler of `known_gumbel` makes alone.
    assert offered() - {"continual.one_shot.select_gumbel"} == {*TABLE} - more
    assert drawn() == {*SAMPLERS}


def test_every_mechanism_has_a_row_of_the_audit_and_names_a_page_that_is_there():
    """What blocks of a release over time are made of is audited in it; shuffled reports are the audit's own."""
    rows = {case.mechanism for case in cases()}
    found = {f"{row.__module__.split('.')[1]}.{row.__name__}": row for row in rows}
    mechanisms = {name for name in offered() if ".one_shot." not in name and name != "multiparty.ShuffledReports"}
    assert mechanisms <= {*found}
    for name in mechanisms:
        pages = re.findall(r"docs/[a-z/-]+\.md", f"{found[name].__doc__} {getattr(found[name], 'reference', '')}")
        assert pages, name
        assert not [page for page in pages if not (ROOT.parent / page).is_file()], name


@cache
def parsed(path):
    return ast.parse((ROOT / path).read_text())


def functions(path):
    return {node.name: node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)}


def names_in(node):
    """All names and attributes that a piece of code uses."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def used_by(path, test):
    """What a test uses, itself or by the functions and tables of its file."""
    tree = parsed(path)
    tables = {
        target.id: node
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    kinds = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    known, found, waiting = {**tables, **kinds, **functions(path)}, set(), [test]
    while waiting:
        more = names_in(known[waiting.pop()]) - found
        found |= more
        waiting += [name for name in more if name in known]
    return found


@pytest.mark.parametrize("row", [*TABLE, *SAMPLERS])
def test_the_law_is_there_and_a_test_compares_with_it(row):
    law_file, law, test_file, test = (TABLE | SAMPLERS)[row]
    assert law in functions(f"reference/{law_file}.py")
    assert test in functions(test_file)
    used = used_by(test_file, test)
    assert law in used or ((law_file, law) == (NAIVE, test_file and law) and "getattr" in used)
    named = row.split(",")[0].rpartition(".")[2]
    if row in TABLE and named not in ("groups (by)", "person-days", "ShuffledReports") and named not in used:
        # A mechanism for which another one stands that shares its calibration.
        assert named in {name for node in functions(test_file).values() for name in names_in(node)}


def test_a_mechanism_without_a_law_would_be_noticed():
    """The check itself: a row that names no law, a test that does not use it."""
    assert "offset_law" in used_by(SECOND, "test_the_offset_release")
    assert "offset_law" not in used_by(SECOND, "test_stability")
    assert "no_such_law" not in functions("reference/naive_laws.py")
