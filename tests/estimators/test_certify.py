"""Certificates on new data: the losses are those of the answers, the bounds those of ``mean_bounds``."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import make_classification

from nashlearn import (
    NashAbstainer,
    NashClassifier,
    NashMarkovNetwork,
    NashMatcher,
    NashOrdinalClassifier,
    NashParser,
    NashPredictor,
    NashTagger,
    games,
)
from nashlearn.metrics import Certified, mean_bounds

X, Y = make_classification(900, 6, n_informative=4, n_classes=3, flip_y=0.1, class_sep=1.5, random_state=0)
TRAIN, HELD = slice(0, 300), slice(300, None)
COSTS = np.array([[0.0, 1.0, 8.0], [1.0, 0.0, 2.0], [3.0, 0.5, 0.0]])


def sequences(n, seed):
    """Runs of three states, 2 to 9 positions long, seen through noise."""
    rng = np.random.default_rng(seed)
    y = [np.cumsum(rng.random(length) < 0.4) % 3 for length in rng.integers(2, 10, size=n)]
    return [np.eye(3)[states] + rng.normal(scale=0.7, size=(states.size, 3)) for states in y], y


def fitted(model):
    return model.fit(X[TRAIN], Y[TRAIN])


@pytest.mark.parametrize(
    ("model", "costs"),
    [
        (NashClassifier(), 1 - np.eye(3)),
        (NashClassifier(5.0 * (1 - np.eye(3))), 5 * (1 - np.eye(3))),
        (NashClassifier(COSTS), COSTS),
        (NashClassifier(COSTS[:2]), COSTS[:2]),
        (NashOrdinalClassifier(), np.abs(np.subtract.outer(range(3), range(3))).astype(float)),
        (NashClassifier(kernel="rbf"), 1 - np.eye(3)),
    ],
)
def test_rows(model, costs):
    fitted(model)
    answers, p = model.predict(X[HELD]), model.strategy(X[HELD])
    two = np.unique(costs).size == 2
    paid = costs[answers, Y[HELD]]
    assert model.certify(X[HELD], Y[HELD]) == mean_bounds(paid, costs.min(), costs.max(), binary=two)
    assert model.certify(X[HELD], Y[HELD], 0.8).loss == pytest.approx(model.task_loss(X[HELD], Y[HELD]))
    expected = np.array([row @ costs[:, label] for row, label in zip(p, Y[HELD], strict=True)])
    mixed = model.certify(X[HELD], Y[HELD], of="strategy")
    assert np.allclose(mixed, mean_bounds(expected, costs.min(), costs.max()))


def test_labels_that_only_the_costs_name_count():
    costs = {a: {b: float(abs(a - b)) for b in range(4)} for a in range(4)}
    model = fitted(NashClassifier(costs))
    found = model.certify(X[HELD], np.where(Y[HELD] == 2, 3, Y[HELD]))
    assert found.upper <= 3 and found.loss == pytest.approx(
        np.abs(model.predict(X[HELD]) - np.where(Y[HELD] == 2, 3, Y[HELD])).mean()
    )


def test_abstention():
    model = fitted(NashAbstainer(0.2))
    answers = model.predict_or_abstain(X[HELD])
    given, y = answers != -1, Y[HELD]
    certify = {of: model.certify(X[HELD], y, of=of) for of in model._certifies}
    assert certify["predict_or_abstain"] == mean_bounds(np.where(given, answers != y, 0.2), 0, 1)
    assert certify["predict_or_abstain"] == model.certify(X[HELD], y)
    assert certify["answered"] == mean_bounds(answers[given] != y[given], 0, 1, binary=True)
    assert certify["abstentions"] == mean_bounds(~given, 0, 1, binary=True)
    assert certify["predict"] == mean_bounds(model.predict(X[HELD]) != y, 0, 1, binary=True)
    p = model.strategy(X[HELD])
    assert certify["strategy"].loss == pytest.approx((1 - p[:, -1] - p[np.arange(y.size), y] + 0.2 * p[:, -1]).mean())


AMOUNTS = np.minimum(np.random.default_rng(1).exponential(size=Y.size), 5.0)
MATRICES = AMOUNTS[:, None, None] * COSTS


@pytest.mark.parametrize(
    ("model", "costs", "bounds"),
    [
        (NashClassifier(), MATRICES, (0, 40)),
        (NashClassifier(COSTS), MATRICES, (0, 40)),
        (NashClassifier(COSTS), AMOUNTS, (0, 40)),
        (NashClassifier(), AMOUNTS, (0, 5)),
        (NashOrdinalClassifier(), AMOUNTS, (0, 10)),
        (NashAbstainer(0.2), AMOUNTS, (0, 5)),
    ],
)
def test_costs_of_rows(model, costs, bounds):
    """Answers and prices are for the rows' own costs, and the range is the one that was given."""
    model.fit(X[TRAIN], Y[TRAIN], costs=costs[TRAIN])
    own, y = costs[HELD], Y[HELD]
    options = model._answers(X[HELD], own)
    matrices = own if own.ndim == 3 else own[:, None, None] * model._game.costs
    paid = matrices[np.arange(y.size), options, y]
    found = model.certify(X[HELD], y, costs=own, bounds=bounds)
    assert np.allclose(found, mean_bounds(paid, *bounds))
    assert found.loss == pytest.approx(model.task_loss(X[HELD], y, costs=own))
    mixed = model.certify(X[HELD], y, costs=own, bounds=bounds, of="strategy")
    p = model.strategy(X[HELD], costs=own)
    assert np.allclose(mixed, mean_bounds(np.einsum("no,no->n", p, matrices[np.arange(y.size), :, y]), *bounds))


def test_bounds_of_row_costs_are_not_read_off_the_rows():
    model = fitted(NashClassifier())
    given = {"costs": MATRICES[HELD], "bounds": (0, 40)}
    assert model.certify(X[HELD], Y[HELD], **given).upper < model.certify(
        X[HELD], Y[HELD], **{**given, "bounds": (0, 80)}
    ).upper  # fmt: skip
    for bounds in (None, 40, (1, 2, 3), "ab"):
        with pytest.raises(ValueError, match=r"bounds must be .* known before these rows' costs"):
            model.certify(X[HELD], Y[HELD], **{**given, "bounds": bounds})
    dear = MATRICES[HELD].copy()
    dear[7, 0, 1] = 41.0  # whether or not that is the answer
    with pytest.raises(ValueError, match="within bounds, 0 to 40; row 7 has 0 to 41"):
        model.certify(X[HELD], Y[HELD], costs=dear, bounds=(0, 40))
    with pytest.raises(ValueError, match="within bounds, 0 to 4; row"):
        model.certify(X[HELD], Y[HELD], costs=AMOUNTS[HELD], bounds=(0, 4))
    with pytest.raises(ValueError, match="within bounds, 1 to 40; row 0 has 0 to"):
        model.certify(X[HELD], Y[HELD], costs=MATRICES[HELD], bounds=(1, 40))
    with pytest.raises(ValueError, match="low <= high"):
        model.certify(X[HELD], Y[HELD], costs=MATRICES[HELD] * 0, bounds=(0, np.inf))
    with pytest.raises(ValueError, match="bounds are for costs"):
        model.certify(X[HELD], Y[HELD], bounds=(0, 40))
    with pytest.raises(ValueError, match="costs must have one matrix for each of the 600 rows"):
        model.certify(X[HELD], Y[HELD], costs=MATRICES, bounds=(0, 40))
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="costs must be None where X is a Dask collection"):
        model.certify(da.from_array(X[HELD]), da.from_array(Y[HELD]), costs=AMOUNTS[HELD], bounds=(0, 40))


def test_shares_of_answers_at_the_rows_own_costs_need_no_bounds():
    model = NashAbstainer(0.2).fit(X[TRAIN], Y[TRAIN], costs=AMOUNTS[TRAIN])
    own, y = {"costs": AMOUNTS[HELD]}, Y[HELD]
    answers = model.predict_or_abstain(X[HELD], **own)
    given = answers != -1
    assert model.certify(X[HELD], y, of="abstentions", **own) == mean_bounds(~given, 0, 1, binary=True)
    assert model.certify(X[HELD], y, of="answered", **own) == mean_bounds(answers[given] != y[given], 0, 1, binary=True)
    wrong = model.predict(X[HELD], **own) != y
    assert model.certify(X[HELD], y, of="predict", **own) == mean_bounds(wrong, 0, 1, binary=True)
    assert (model.predict_or_abstain(X[HELD]) != answers).any()


def shares(answers, truth):
    return np.array([np.mean(np.asarray(a) != np.asarray(b)) for a, b in zip(answers, truth, strict=True)])


@pytest.mark.parametrize("loss", ["zero_one", "absolute", COSTS])
def test_sequences(loss):
    S, y = sequences(80, 0)
    model = NashTagger(loss).fit(S[:40], y[:40])
    costs = {"zero_one": 1 - np.eye(3), "absolute": np.abs(np.subtract.outer(range(3), range(3)))}
    L = costs[loss] if isinstance(loss, str) else loss
    lost = np.array([L[a, b].mean() for a, b in zip(model.predict(S[40:]), y[40:], strict=True)])
    found = model.certify(S[40:], y[40:])
    assert np.allclose(found, mean_bounds(lost, L.min(), L.max()))
    mixed = model.certify(S[40:], y[40:], of="strategy")
    drawn = [(p @ L)[np.arange(len(b)), b].mean() for p, b in zip(model.strategy(S[40:]), y[40:], strict=True)]
    assert mixed.loss == pytest.approx(np.mean(drawn), abs=1e-4)
    hidden = [np.where(np.arange(b.size) == 0, -1, b).tolist() for b in y[40:]]
    hidden[0] = [-1] * y[40].size
    known = [L[a[1:], b[1:]].mean() for a, b in zip(model.predict(S[41:]), y[41:], strict=True)]
    found = model.certify(S[40:], hidden)
    assert (found.loss, found.n) == (pytest.approx(np.mean(known)), 39)


def test_graphs():
    rng = np.random.default_rng(0)
    square = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    y = [rng.integers(0, 2, 4) for _ in range(40)]
    G = [(np.eye(2)[b] + rng.normal(size=(4, 2)), square) for b in y]
    model = NashMarkovNetwork().fit(G[:20], y[:20])
    assert model.certify(G[20:], y[20:]) == mean_bounds(shares(model.predict(G[20:]), y[20:]), 0, 1)
    assert model.certify(G[20:], y[20:]).loss == pytest.approx(model.task_loss(G[20:], y[20:]))


@pytest.mark.parametrize("partial", [False, True])
def test_matchings(partial):
    rng = np.random.default_rng(0)
    M = list(rng.normal(size=(40, 3, 4 if partial else 3, 2)))
    game = games.partial_matching(3, 4) if partial else games.matching(3)
    noisy = [m[..., 0] + 0.5 * rng.normal(size=m.shape[:2]) for m in M]
    padded = [np.pad(s, ((0, 1), (0, 1))) if partial else s for s in noisy]
    y = [game.argmax(s[None])[0] for s in padded]
    model = NashMatcher().fit(M[:20], y[:20])
    assert model.certify(M[20:], y[20:]) == mean_bounds(shares(model.predict(M[20:]), y[20:]), 0, 1)
    lost = [1 - p[np.arange(3), own].mean() for p, own in zip(model.strategy(M[20:]), y[20:], strict=True)]
    assert model.certify(M[20:], y[20:], of="strategy").loss == pytest.approx(np.mean(lost))


def test_trees():
    rng = np.random.default_rng(0)
    T = [rng.normal(size=(n, n + 1, 2)) for n in rng.integers(2, 7, size=40)]
    noisy = [t[..., 0] + rng.normal(size=t.shape[:2]) for t in T]
    y = [games.arborescence(len(s), single_root=True).argmax(s[None])[0] for s in noisy]
    model = NashParser().fit(T[:20], y[:20])
    assert model.certify(T[20:], y[20:]) == mean_bounds(shares(model.predict(T[20:]), y[20:]), 0, 1)
    lost = [1 - p[np.arange(own.size), own].mean() for p, own in zip(model.strategy(T[20:]), y[20:], strict=True)]
    assert model.certify(T[20:], y[20:], of="strategy").loss == pytest.approx(np.mean(lost))


def test_any_game_that_says_what_it_can_cost():
    rng = np.random.default_rng(0)
    M, game = rng.normal(size=(30, 4, 4, 2)), games.matching(4)
    y = game.argmax(M[..., 0] + rng.normal(size=(30, 4, 4)))
    model = NashPredictor(game).fit(M[:15], y[:15])
    wrong = [np.count_nonzero(a != b) for a, b in zip(model.predict(M[15:]), y[15:], strict=True)]
    assert model.certify(M[15:], y[15:]) == mean_bounds(wrong, 0, 4)
    assert model.certify(M[15:], y[15:], bounds=(0, 8)).upper > model.certify(M[15:], y[15:]).upper
    assert model.certify(M[15:], y[15:], of="strategy").loss < 4
    assert games.cost(COSTS).loss_bounds() == (0, 8)
    any_size = NashPredictor(lambda n, m: games.matching(n)).fit(M[:15], y[:15])
    with pytest.raises(ValueError, match="bounds must be"):
        any_size.certify(M[15:], y[15:])


def test_dask_collections_are_gathered():
    da = pytest.importorskip("dask.array")
    db = pytest.importorskip("dask.bag")
    model = fitted(NashClassifier(COSTS))
    cut = da.from_array(X[HELD], chunks=(170, 6)), da.from_array(Y[HELD], chunks=170)
    assert model.certify(*cut) == model.certify(X[HELD], Y[HELD])
    S, y = sequences(40, 0)
    tagger = NashTagger().fit(S[:20], y[:20])
    bags = [db.from_sequence(part[20:], npartitions=3) for part in (S, y)]
    assert tagger.certify(*bags) == tagger.certify(S[20:], y[20:])


def test_bad_input_is_named():
    model, held = fitted(NashClassifier()), (X[HELD], Y[HELD])
    for confidence in (0, 1, 1.5, np.nan):
        with pytest.raises(ValueError, match="confidence must lie"):
            model.certify(*held, confidence)
    with pytest.raises(ValueError, match=r"of must be one of .*'predict', 'strategy'"):
        model.certify(*held, of="scores")
    with pytest.raises(ValueError, match="0 sample"):
        model.certify(X[:0], Y[:0])
    with pytest.raises(ValueError, match="label 7, which was not seen"):
        model.certify(X[HELD], np.full(600, 7))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.certify(X[HELD], Y[:10])
    S, y = sequences(10, 0)
    tagger = NashTagger().fit(S, y)
    with pytest.raises(ValueError, match="no example to certify"):
        tagger.certify(S, [[None] * len(b) for b in y])
    with pytest.raises(ValueError, match="no example to certify 'answered'"):
        fitted(NashAbstainer(0.001)).certify(X[HELD][:3] * 0, Y[HELD][:3], of="answered")


def test_it_reads_well():
    assert repr(Certified(0.25, 0.5, 0.125, 8)) == "Certified(loss=0.25, upper=0.5, lower=0.125, n=8)"


def test_calibrate_gives_a_price_and_keeps_the_model():
    model = fitted(NashAbstainer(0.3))
    chosen = model.calibrate(X[HELD], Y[HELD], 0.25)
    assert model.abstain_cost == 0.3 and np.isnan(chosen.worst_case_risk()) and np.isfinite(model.worst_case_risk())
    assert chosen.certify(X[HELD], Y[HELD], of="answered").loss < 0.25
    assert np.array_equal(chosen.decision_function(X), model.decision_function(X))
    easy = model.calibrate(X[HELD], Y[HELD], 0.6)
    share = [one.certify(X[HELD], Y[HELD], of="abstentions").loss for one in (easy, chosen)]
    assert share[0] <= share[1] and easy.abstain_cost >= chosen.abstain_cost
    dearer = [model._priced_at(price)._answers(X) == 3 for price in (0.05, 0.2, 0.5, 0.9)]
    assert all((b <= a).all() for a, b in pairwise(dearer))


def test_calibrate_refuses_what_it_cannot_promise():
    model = fitted(NashAbstainer(0.3))
    with pytest.raises(ValueError, match="No price can be certified"):
        model.calibrate(X[HELD][:20], Y[HELD][:20], 0.01)
    with pytest.raises(ValueError, match="max_loss must lie"):
        model.calibrate(X[HELD], Y[HELD], 1.0)
    with pytest.raises(ValueError, match="prices must increase"):
        model.calibrate(X[HELD], Y[HELD], 0.2, prices=[0.5, 0.1])
    with pytest.raises(ValueError, match="smoothing > 0"):
        fitted(NashAbstainer(0.3, smoothing=0)).calibrate(X[HELD], Y[HELD], 0.2)


def test_calibrate_tests_prices_in_their_order():
    """Against the definition: binomial tests of scipy, levels that are passed on."""
    model, y = fitted(NashAbstainer(0.3)), Y[HELD]
    prices = [0.05, 0.1, 0.2, 0.3, 0.5]
    for max_loss in (0.12, 0.2, 0.25):
        level, best = 0.0, None
        for price in prices:
            answers = model._priced_at(price).predict_or_abstain(X[HELD])
            given = answers != -1
            errors = int((answers[given] != y[given]).sum())
            level += 0.1 / len(prices)
            if given.any() and binomtest(errors, int(given.sum()), max_loss, "less").pvalue <= level:
                best = price
            else:
                level = 0.0
        if best is None:
            with pytest.raises(ValueError, match="No price"):
                model.calibrate(X[HELD], y, max_loss, 0.9, prices=prices)
        else:
            assert model.calibrate(X[HELD], y, max_loss, 0.9, prices=prices).abstain_cost == best


@pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying")
@pytest.mark.parametrize("price", [0.3, 0.8, 2.0, [0.1, 0.3]])
def test_calibrate_for_two_labels_and_any_price_of_training(price):
    """With two labels a price above 1/2 is never worth paying: from there on all labels are given."""
    y = (Y > 0).astype(int)
    model = NashAbstainer(price).fit(X[TRAIN], y[TRAIN])
    always = [model._priced_at(dear).certify(X[HELD], y[HELD], of="abstentions").loss for dear in (0.55, 1.0)]
    assert always == [0, 0]
    chosen = model.calibrate(X[HELD], y[HELD], 0.12)
    assert chosen.certify(X[HELD], y[HELD], of="answered").loss < 0.12 and np.ndim(chosen.abstain_cost) == 0


def test_calibrate_a_model_that_was_trained_with_costs_of_rows():
    model = NashAbstainer(0.3).fit(X[TRAIN], Y[TRAIN], costs=AMOUNTS[TRAIN])
    chosen = model.calibrate(X[HELD], Y[HELD], 0.25)
    answers = chosen.predict_or_abstain(X[HELD])
    given = answers != -1
    assert given.any() and (answers[given] != Y[HELD][given]).mean() < 0.25
