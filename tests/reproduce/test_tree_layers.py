"""The published ways to train and project on trees do what they are said to do."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn import games
from nashlearn.training.designs.arcs import tree_problem
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent
from reproduce import parsers
from reproduce.parsers import DRAWS, grid, of_one_making
from reproduce.parsers_page import chosen, parsers_section, significance
from reproduce.references.tree_admm import admm_path, frank_wolfe_path
from reproduce.references.tree_layers import LAYERS, ArcViews, best_trees_of
from reproduce.store import Store
from reproduce.tree_figures import section


@pytest.fixture(scope="module")
def problem():
    """Frozen views of a few sentences and trees that a bilinear layer nearly gives."""
    rng = np.random.default_rng(0)
    sizes = (2, 3, 4, 5, 3, 4)
    design = ArcViews([rng.normal(size=(n, 4)) for n in sizes], [rng.normal(size=(n + 1, 4)) for n in sizes])
    theta = design.scores(rng.normal(size=16))
    return design, best_trees_of(theta + rng.normal(size=theta.size), design)


def objective(design, heads, w, lam):
    """Mean over sentences of the game's loss, with the ridge."""
    theta, total = design.scores(w), 0.0
    for i, (n, y) in enumerate(zip(design.sizes, heads, strict=True)):
        own = theta[design.offset[i] : design.offset[i + 1]].reshape(1, n, n + 1)
        total += games.arborescence(int(n), True).loss_value(own, y[None])[0]
    return total / design.sizes.size + 0.5 * lam * w @ w


def test_views_are_a_linear_design(problem):
    design, heads = problem
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=design.n_weights), rng.normal(size=design.offset[-1])
    assert design.scores(w) @ x == pytest.approx(w @ design.moments(x))
    part = design.part(np.array([4, 1]))
    expected = [design.scores(w)[design.offset[i] : design.offset[i + 1]] for i in (4, 1)]
    assert np.abs(part.scores(w) - np.concatenate(expected)).max() <= 1e-12
    assert design.vertices(heads).sum() == design.sizes.sum()


@pytest.mark.parametrize(
    ("method", "slack"), [pytest.param("marginal", 0.1, marks=pytest.mark.slow), ("stochastic", 0.15), ("game", 0.1)]
)
def test_published_training_lowers_the_games_objective(problem, method, slack):
    """Near the certified optimum, above it, and far below where it starts."""
    design, heads = problem
    lam, omega = 0.3, np.full(design.sizes.size, 1 / design.sizes.sum())
    exact = train(
        tree_problem(design, heads, omega, True),
        Descent([1e-3], 1e-3),
        alpha=lam / design.sizes.mean(),
        tol=1e-3,
        max_iter=500,
    ).w
    least, start = objective(design, heads, exact, lam), objective(design, heads, np.zeros(design.n_weights), lam)
    *_, w = LAYERS[method](design, heads, lam, 0.0 if method == "game" else 0.01, 300 if method == "game" else 600)
    assert least * (1 - 2e-2) <= objective(design, heads, w, lam) <= least + slack * start


def test_cross_entropy_is_minimised(problem):
    design, heads = problem

    def mean_loss(w):
        theta, total = design.scores(w), 0.0
        for i, (n, y) in enumerate(zip(design.sizes, heads, strict=True)):
            own = theta[design.offset[i] : design.offset[i + 1]].reshape(n, n + 1)
            own = np.where(np.eye(n, n + 1, 1) > 0, -np.inf, own)
            total += np.sum(np.logaddexp.reduce(own, axis=1) - own[np.arange(n), y])
        return total / design.sizes.sum()

    found = [mean_loss(w) for w in LAYERS["biaf"](design, heads, 0.0, 0.0, 200)]
    assert found[-1] < found[0] < mean_loss(np.zeros(design.n_weights))
    *_, w = LAYERS["biaf"](design, heads, 0.0, 0.0, 2000)
    rng = np.random.default_rng(2)
    assert all(mean_loss(w) <= mean_loss(w + 0.3 * rng.normal(size=w.size)) + 1e-3 for _ in range(20))


@pytest.mark.parametrize("single_root", [False, True])
def test_admm_reaches_the_projection_and_frank_wolfe_nears_it(single_root):
    rng = np.random.default_rng(0)
    for n, labels in ((2, 1), (3, 2), (4, 3)):
        scores = rng.uniform(-5, 5, size=(n, n + 1, labels))
        exact = games.arborescence(n, single_root, n_labels=labels).project(scores[None]).point[0]
        assert np.abs(admm_path(scores, 400, single_root)[-1] - exact).max() <= 1e-7
        path = frank_wolfe_path(scores, 1000, single_root)
        assert np.abs(path[-1] - exact).max() <= 1e-2
        assert np.abs(path.sum(axis=(2, 3)) - 1).max() <= 1e-9


def test_the_page_chooses_by_the_development_set():
    records = [
        {"key": [0] * 6 + [0.0], "fits": [{"dev": 0.9, "uas": 0.1}]},
        {"key": [0] * 6 + [0.1], "fits": [{"dev": 0.5, "uas": 0.9}, {"dev": 0.6, "uas": 0.2}]},
    ]
    assert chosen(records, tuned=True)["uas"] == 0.2 and chosen(records, tuned=False)["uas"] == 0.1
    assert chosen([], tuned=True) is None
    a = np.array([1.0, 2.0, 3.0, 4.0])
    assert significance(a, a) == 1.0 and significance(a, a + np.array([1.0, 1.1, 0.9, 1.0])) < 0.01
    assert significance(a, a + np.array([1.0, -1.0, 1.0, -1.0])) > 0.5


def test_the_page_tells_what_is_stored_and_what_is_not(tmp_path):
    """Chosen on the development set, marked where the paired test says so, and of one making of the features."""
    store = Store(tmp_path / "parsers.jsonl")
    for draw in range(DRAWS):
        where = ["forms", "Turkish IMST", 10, draw]
        measures = dict.fromkeys(("uas", "las", "ucm", "lcm"), 0.2 + 0.01 * draw)
        store.add({"key": ["backbone", *where], "made": "a", "dev": 0.2, **measures, "seconds": 1.0})
        for method, lead in (("biaf", 0.0), ("marginal", 0.05 + 0.001 * draw), ("game", 0.3)):
            for lam in grid(method, 10)[0]:
                fit = {"mu": 0.0, "dev": lam, "at": 1, "seconds": 1.0, **{k: v + lead for k, v in measures.items()}}
                made = "b" if method == "game" else "a"
                store.add({"key": ["layer", *where, method, lam], "made": made, "fits": [fit]})
    text = parsers_section(tmp_path)
    row = next(line for line in text.splitlines() if line.startswith("| 10 | UAS"))
    assert row.split(" | ")[3:7] == ["22.00 ± 1.58", "22.00 ± 1.58", "22.00 ± 1.58", "27.20 ± 1.74 †"]
    assert row.split(" | ")[9] == "–", "layers on other features are not compared"
    lead = next(line for line in text.splitlines() if line.startswith("| Turkish IMST, forms | 10"))
    assert lead.split(" | ")[2:5] == ["+0.00 (1)", "+5.20 (2e-07) / +5.20 (2e-07)", "–"]
    assert "*Marginal* +5.20 (significantly better in 1, worse in 0 of 1;" in text
    assert "stochastic at m = 10 (forms)" in text and "longer at m = 1000" not in text, "what is not asked for"
    assert parsers_section(tmp_path / "nothing") == "" and section(tmp_path / "nothing") == ""


@pytest.mark.data
@pytest.mark.parametrize("inputs", list(parsers.INPUTS))
def test_a_layer_is_trained_on_the_features_of_its_backbone(tmp_path, monkeypatch, inputs):
    pytest.importorskip("torch")
    monkeypatch.setenv("NASHLEARN_FEATURES", str(tmp_path))
    monkeypatch.setattr(parsers, "_EPOCHS", {10: 5})
    monkeypatch.setattr(parsers, "STEPS", 20)
    whole = parsers.load_treebank
    monkeypatch.setattr(parsers, "_read", lambda name, split: whole(name, split)[: 100 if split == "train" else 20])
    store, where = Store(tmp_path / "parsers.jsonl"), [inputs, "Turkish IMST", 10, 0]
    store.add(parsers.backbone(["backbone", *where]))
    frozen, _, made = parsers.load(where)
    assert frozen["test"].dependents.shape[1] == frozen["train"].heads.shape[1] == 101
    assert frozen["train"].sizes.size == 10 and frozen["dev"].sizes.size == 20
    record = parsers.layer(["layer", *where, "marginal", 0.1])
    assert record["made"] == made and of_one_making(store, record)
    assert [fit["mu"] for fit in record["fits"]] == list(grid("marginal", 10)[1])
    assert all(0.0 <= fit["las"] <= fit["uas"] <= 1.0 and fit["norm"] > 0 for fit in record["fits"])
    store.add({**store[["backbone", *where]], "made": "another"})
    assert not of_one_making(store, record)
