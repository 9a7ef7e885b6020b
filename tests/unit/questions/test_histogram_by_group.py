"""A histogram by group has the noise of all that a person adds, in all groups together."""

import pytest

import discreet as dc
from discreet.central import UniverseHistogram
from discreet.noise import seeded_source

TABLE = {
    "who": [f"visitor {n % 500}" for n in range(3000)],
    "page": [f"page {n % 4}" for n in range(3000)],
    "kind": ["a" if n % 3 else "b" for n in range(3000)],
}
PAGES = [f"page {n}" for n in range(4)]


@pytest.mark.parametrize("max_items", [1, 3, 8])
@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget(1.0, 1e-6), dc.Budget.zcdp(0.1)], ids=str)
def test_its_noise_is_that_of_the_mechanism_over_all_pairs(budget, max_items):
    words = {"column": "page", "user": "who", "universe": PAGES, "by": "kind", "groups": ["a", "b"]}
    release = dc.histogram(TABLE, budget, **words, max_items=max_items, source=seeded_source(2))
    claimed = UniverseHistogram(budget, range(8), dc.User(), max_items)
    assert release.error_model.noise == claimed.error_model.noise
    alone = UniverseHistogram(budget, range(8), dc.User(), 1)
    assert (claimed.scale > alone.scale) == (max_items > 1)
