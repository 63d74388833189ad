"""In worlds where a lemma's condition holds by construction, metrics side as mena2021 says."""

import pytest

import unskew as us

pytestmark = pytest.mark.slow

# What the observed order of items by precision, and by anti-precision, is to the true order.
EXPECTED = {
    "relevance-only": (True, True),  # Lemma 2: rating depends on liking alone
    "popular-good": (True, False),  # Lemma 3: on the item, and popular items are the better ones
    "inverted": (False, True),  # Lemma 3: on the item, and popular items are the worse ones
}
SYSTEMS = [
    us.recommend.Random(),
    us.recommend.Popularity(),
    us.recommend.AverageRating(),
    us.recommend.SmoothedAverage(mu=5),
    us.recommend.PositivePopularity(),
    us.recommend.OptimalPrecision(),
    us.recommend.OptimalAntiPrecision(),
]


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("name", EXPECTED)
def test_pairs_of_items_side_with_the_lemma(name, seed):
    overall = us.bias.item_pairs(us.world(name, seed=seed)).parts["true overall"]
    shares = [overall.row(quantity=metric).value for metric in ("P", "anti-P")]
    error = overall.row(quantity="P_less_anti-P").se
    for share, agrees in zip(shares, EXPECTED[name], strict=True):
        z = (share - 0.5) / error
        assert (z > 4.5) if agrees else (z < -4.5), (name, shares)


@pytest.mark.parametrize("name", ["popular-good", "inverted"])
def test_systems_side_with_the_lemma(name):
    plan = us.Plan(algorithms=SYSTEMS, metrics=["P@10", "anti-P@10"], seed=1)
    result = us.auditing.truth(us.world(name, seed=3), plan, resamples=0)
    taus = result.parts["agreement"].rows["value"].to_list()
    for tau, agrees in zip(taus, EXPECTED[name], strict=True):
        assert (tau > 0.5) if agrees else (tau < -0.5), (name, taus)
