"""The peers of the tree games do what they are said to do."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nashlearn import datasets, games, parsing
from nashlearn.training.designs.hashed_arcs import HashedArcs
from nashlearn.training.driver import train as trained_by
from nashlearn.training.methods.blocks import BlockProblem, Blocks
from reproduce.references.tree_frank_wolfe import frank_wolfe, frank_wolfe_compiled
from reproduce.references.tree_losses import averaged_perceptron, gibbs_games, hinge_games


@pytest.mark.parametrize("single_root", [False, True])
def test_frank_wolfe_approaches_the_projection(single_root):
    scores = np.random.default_rng(0).normal(size=(1, 6, 7))
    exact = games.arborescence(6, single_root).project(scores).point[0]
    for method in (frank_wolfe, frank_wolfe_compiled):
        few, many = (np.abs(method(scores[0], steps, single_root) - exact).max() for steps in (5, 3000))
        assert many <= 0.02 and many < few
    assert (
        np.abs(frank_wolfe(scores[0], 50, single_root) - frank_wolfe_compiled(scores[0], 50, single_root)).max() < 1e-9
    )


def sentences() -> list[datasets.Sentence]:
    """Each word hangs from the next, the last from the root; words repeat."""
    rng = np.random.default_rng(0)
    found = []
    for n in rng.integers(2, 4, size=20):
        words = [*rng.choice(["a", "b", "c"], size=n - 1), "z"]
        lines = [
            "\t".join([str(i + 1), word, word, word.upper(), "_", "_", str((i + 2) % (n + 1)), "x", "_", "_"])
            for i, word in enumerate(words)
        ]
        found += list(datasets.parse_conllu(lines))
    return found


def trees(n: int) -> list[np.ndarray]:
    found = []
    for heads in product(range(n + 1), repeat=n):
        reached = {0}
        for _ in range(n):
            reached |= {d + 1 for d in range(n) if heads[d] in reached}
        if len(reached) == n + 1 and heads.count(0) == 1:
            found.append(np.array(heads))
    return found


@pytest.mark.parametrize("loss", [hinge_games, gibbs_games])
def test_objectives_by_enumeration(loss):
    train = sentences()
    X, y = parsing.HashedSentences(train, bits=12), [one.heads for one in train]
    omega = np.full(len(y), 1 / X.sizes.sum())
    rng = np.random.default_rng(0)
    problem = BlockProblem(HashedArcs(X.attributes), y, omega, True, n_jobs=1, games=loss(y, True))
    trained = trained_by(problem, Blocks(), alpha=0.05, tol=0.05, max_iter=300, random_state=rng)
    assert 0 <= trained.dual_gap <= 0.05
    total = 0.0
    for theta, heads in zip(X.scores(trained.w), y, strict=True):
        every = trees(len(heads))
        tokens = np.arange(len(heads))
        score = np.array([theta[tokens, tree].sum() for tree in every])
        wrong = np.array([(tree != heads).sum() for tree in every])
        value = np.max(score + wrong) if loss is hinge_games else np.logaddexp.reduce(score)
        total += value - theta[tokens, heads].sum()
    expected = total / X.sizes.sum() + 0.025 * trained.w @ trained.w
    assert trained.objective == pytest.approx(expected, rel=1e-9)


def test_perceptron_separates():
    train = sentences()
    X, y = parsing.HashedSentences(train, bits=12), [one.heads for one in train]
    w = averaged_perceptron(X.attributes, y, 10, True, np.random.default_rng(0))
    for theta, heads in zip(X.scores(w), y, strict=True):
        assert (games.arborescence(len(heads), True).argmax(theta[None])[0] == heads).all()
