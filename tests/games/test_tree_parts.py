"""Trees with parts: a bound on the game over trees, tight without parts, and exact best trees."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import tree_heads
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from nashlearn import games
from nashlearn.games.trees.parts import all_grandparents, all_siblings

TOL = 1e-7
few = settings(max_examples=25, deadline=None)


def exact_value(game, scores, part_scores, every) -> float:
    """The game over trees, both players mixing them: a matrix game with scores."""
    arcs, parts = game.labels.views(game.vertex(every))
    worth = np.where(arcs > 0, scores, 0.0).sum(axis=(1, 2)) + parts @ part_scores
    loss = (every[:, None, :] != every[None, :, :]).sum(axis=2)
    m = len(every)
    found = linprog(
        np.r_[-worth, -1.0],
        np.c_[-loss, np.ones(m)],
        np.zeros(m),
        np.r_[np.ones(m), 0.0][None],
        [1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )
    return -found.fun


@st.composite
def cases(draw):
    n, single_root = draw(st.integers(2, 4)), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    every = all_siblings(n) + all_grandparents(n)
    chosen = rng.choice(len(every), size=min(len(every), draw(st.integers(0, 12))), replace=False)
    game = games.tree_parts(n, [every[i] for i in chosen], single_root)
    scores = draw(st.sampled_from([0.3, 1.0, 4.0])) * rng.normal(size=(n, n + 1))
    if draw(st.booleans()):
        scores[rng.integers(n), rng.integers(1, n + 1)] = -np.inf
    return game, scores, draw(st.sampled_from([0.5, 2.0])) * rng.normal(size=len(chosen)), tree_heads(n, single_root)


def allowed(every, scores):
    return every[np.isfinite(np.take_along_axis(scores[None], every[:, :, None], axis=2)).all(axis=(1, 2))]


@few
@given(cases())
def test_bounds_the_game_over_trees(case):
    game, scores, part_scores, every = case
    every = allowed(every, scores)
    found = game.solve((scores[None], part_scores[None]))
    exact = exact_value(game, scores, part_scores, every)
    assert 0 <= found.gap[0] <= TOL
    assert found.value[0] >= exact - TOL
    assert game.is_exact == (not game.labels.parts)
    if game.is_exact:
        assert found.value[0] == pytest.approx(exact, abs=TOL)
    without = game.solve((scores[None], 0 * part_scores[None]))
    plain = games.arborescence(game.options.n, game.options.single_root).solve(scores[None])
    assert without.value[0] == pytest.approx(plain.value[0], abs=TOL)


@few
@given(cases())
def test_bounds_its_own_loss_and_stays_local(case):
    game, scores, part_scores, every = case
    every = allowed(every, scores)
    found = game.solve((scores[None], part_scores[None]))
    losses = game.loss_value(np.repeat(game.labels.packed(scores[None], part_scores[None]), len(every), 0), every)
    arcs, _ = game.labels.views(game.vertex(every))
    assert (losses >= game.options.n - (arcs * found.p[0]).sum(axis=(1, 2)) - TOL).all()
    q, z = found.q[0][0], found.q[1][0]
    for part, x in zip(game.labels.parts, z, strict=True):
        ends = np.array([q[arc] for arc in part])
        assert -TOL <= x <= ends.min() + TOL and x >= ends.sum() - len(part) + 1 - TOL
    assert np.abs(found.p[0].sum(axis=1) - 1).max() <= TOL


@few
@given(cases())
def test_best_trees_are_exact(case):
    game, scores, part_scores, every = case
    every = allowed(every, scores)
    arcs, parts = game.labels.views(game.vertex(every))
    worth = np.where(arcs > 0, scores, 0.0).sum(axis=(1, 2)) + parts @ part_scores
    best = game.argmax((scores[None], part_scores[None]))
    own, own_parts = game.labels.views(game.vertex(best))
    reached = np.where(own > 0, scores, 0.0).sum() + own_parts @ part_scores
    assert reached == pytest.approx(worth.max(), abs=TOL)


@few
@given(cases(), st.integers(0, 10**6))
def test_offsets_that_all_trees_share_cost_no_digits(case, seed):
    game, scores, part_scores, _ = case
    scores = np.round(scores * 2**16) / 2**16
    offset = np.random.default_rng(seed).integers(-(2**26), 2**26, size=(game.options.n, 1)).astype(float)
    near, far = game.solve((scores[None], part_scores[None])), game.solve(((scores + offset)[None], part_scores[None]))
    assert far.value[0] - offset.sum() == pytest.approx(near.value[0], abs=1e-7)
    assert far.gap[0] <= TOL


def test_the_bound_can_be_strict_and_bad_parts_are_refused():
    """Three siblings that exclude one another in every tree can all be half present in the relaxation."""
    n = 4
    game = games.tree_parts(n, all_siblings(n) + all_grandparents(n))
    rng, strict = np.random.default_rng(0), 0
    for _ in range(10):
        scores, part_scores = rng.normal(size=(n, n + 1)), 3 * rng.normal(size=len(game.labels.parts))
        bound = game.solve((scores[None], part_scores[None])).value[0]
        strict += bound > exact_value(game, scores, part_scores, tree_heads(n, False)) + 1e-4
    assert strict > 0
    with pytest.raises(ValueError, match=r"parts\[0\] holds \(0, 1\), which is no arc"):
        games.tree_parts(2, [((0, 1),)])
    with pytest.raises(ValueError, match="different arcs"):
        games.tree_parts(2, [((0, 2), (0, 2))])
    with pytest.raises(ValueError, match="scores of parts must have shape"):
        games.tree_parts(2, all_siblings(2)).solve((np.zeros((1, 2, 3)), np.zeros((1, 5))))
    with pytest.raises(ValueError, match="smoothing must be 0 for trees with parts"):
        game.solve(np.zeros((1, *game.shape)), smoothing=0.1)
    assert len(all_siblings(3)) == 6 and len(all_grandparents(2)) == 2
