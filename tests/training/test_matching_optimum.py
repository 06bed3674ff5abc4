"""Matchings: the trained objective against a quadratic program over all matchings, and the planes of each pass."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qp_reference import vertex_optimum

from nashlearn.games import matching, partial_matching
from nashlearn.training.designs.pairs import Example, matching_problem
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent

SCHEDULE = (0.1, 0.02, 0.004, 0.0008, 0.0)


def matchings(n1: int, n2: int, partial: bool, allowed: np.ndarray | None = None) -> np.ndarray:
    """All matchings (count, n1) of allowed pairs."""
    if partial:
        every = (y for y in product(range(-1, n2), repeat=n1) if len({*y} - {-1}) == sum(j >= 0 for j in y))
    else:
        every = permutations(range(n1))
    answers = [y for y in every if allowed is None or all(j < 0 or allowed[i, j] for i, j in enumerate(y))]
    return np.array(answers, dtype=np.int64).reshape(len(answers), n1)


def problem(rng, partial: bool, masked: bool = False, count: int = 5):
    """Random examples of several sizes with their truths, weights, and all their matchings."""
    examples, truths, lists = [], [], []
    while len(examples) < count:
        n1, n2 = rng.integers(1, 4, size=2) if partial else (int(rng.integers(2, 5)),) * 2
        allowed = rng.random((n1, n2)) < 0.7 if masked else None
        every = matchings(n1, n2, partial, allowed)
        if not len(every):
            continue
        alone = (rng.normal(size=(n1, 2)), rng.normal(size=(n2, 1))) if partial else (None, None)
        examples.append(Example(rng.normal(size=(n1, n2, 3)), *alone, allowed))
        truths.append(int(rng.integers(len(every))))
        lists.append(every)
    weight = rng.integers(1, 4, size=count).astype(float)
    omega = weight / (weight @ [len(e.pairs) for e in examples])
    return examples, truths, lists, omega


def reference(examples, truths, lists, omega, alpha: float) -> float:
    """The optimum over all matchings; features by hand, entry by entry."""
    features, vertices = [], []
    for example, every in zip(examples, lists, strict=True):
        n1, n2, d = example.pairs.shape
        partial = example.partial
        widths = [d, 2, 1] if partial else [d]
        phi = np.zeros((n1 + partial, n2 + partial, sum(widths)))
        phi[:n1, :n2, :d] = example.pairs
        if partial:
            phi[:n1, n2, d : d + 2], phi[n1, :n2, d + 2 :] = example.leave, example.enter
        game = partial_matching(n1, n2) if partial else matching(n1)
        features.append(phi.reshape(-1, sum(widths)))
        vertices.append(game.vertex(every).reshape(len(every), -1))
    return vertex_optimum(
        features,
        vertices,
        truths,
        omega,
        alpha,
        lambda i: (lists[i][:, None] != lists[i][None]).sum(axis=2).astype(float),
    )


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1.0, 0.1, 0.01]))
def test_objective_is_the_optimum_to_the_certified_gap(partial, masked, seed, alpha):
    examples, truths, lists, omega = problem(np.random.default_rng(seed), partial, masked)
    answers = [every[t] for every, t in zip(lists, truths, strict=True)]
    trained = train(matching_problem(examples, answers, omega), Descent(SCHEDULE), alpha=alpha, tol=1e-3, max_iter=1000)
    optimum = reference(examples, truths, lists, omega, alpha)
    assert trained.dual_gap <= 1e-3
    assert optimum - 1e-7 <= trained.objective <= optimum + trained.dual_gap * trained.objective + 1e-7


@pytest.mark.parametrize("partial", [False, True])
@given(seed=st.integers(0, 10**6), smoothing=st.sampled_from([0.0, 0.05, 0.5]))
def test_planes_support_the_loss_and_smoothing_raises_it(partial, seed, smoothing):
    rng = np.random.default_rng(seed)
    examples, truths, lists, omega = problem(rng, partial)
    answers = [every[t] for every, t in zip(lists, truths, strict=True)]
    training = matching_problem(examples, answers, omega)
    w, other = rng.normal(size=(2, training.n_weights))
    here, there = training.evaluate(w, smoothing), training.evaluate(other, smoothing)
    assert here.penalty <= 1e-9
    assert here.loss == pytest.approx(here.gradient @ w + here.entropy - here.penalty, abs=1e-6)
    assert there.loss >= here.gradient @ other + here.entropy - here.penalty - 1e-7
    assert here.loss >= training.evaluate(w, 0.0).loss - 1e-7


def test_any_number_of_threads_gives_the_same():
    examples, truths, lists, omega = problem(np.random.default_rng(3), True, count=40)
    answers = [every[t] for every, t in zip(lists, truths, strict=True)]
    fits = [
        train(
            matching_problem(examples, answers, omega, n_jobs=n_jobs),
            Descent([0.1], 0.1),
            alpha=0.01,
            tol=1e-3,
            max_iter=100,
        )
        for n_jobs in (1, 3)
    ]
    assert np.array_equal(fits[0].w, fits[1].w)
    assert fits[0].dual_gap == fits[1].dual_gap
