"""Both doors of every game of the list: an estimator with a certificate, and a loss of PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cases import Case
from shipped_games import SHIPPED
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashPredictor

PLAYED = [case for case in SHIPPED if len(case.labels) > 1]


def draw(case: Case, n: int, d: int = 2):
    """Features of the entries of all scores, and the numbers of labels."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, case.dim, d)), rng.integers(len(case.labels), size=n)


@pytest.mark.parametrize("tol", [1e-2, pytest.param(1e-3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.id)
def test_an_estimator_whose_objective_is_the_mean_loss(case, tol):
    X, numbers = draw(case, 4)
    y, alpha = [case.label(i)[0] for i in numbers], 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is tested is that the numbers are true
        model = NashPredictor(case.game, alpha=alpha, tol=tol, max_iter=60).fit(X, y)
        values = case.game.solve(case.shaped(X @ model.coef_)).value
    losses = values - np.einsum("nd,nd->n", X @ model.coef_, case.labels[numbers])
    objective = 0.5 * alpha * model.coef_ @ model.coef_ + losses.mean()
    assert model.objective_ == pytest.approx(objective, abs=2e-5 * case.size(X @ model.coef_))
    size, nothing = case.size(X), case.shaped(np.zeros((1, case.dim)))
    assert model.objective_ <= case.game.solve(nothing).value[0] + tol * size
    assert 0 <= model.dual_gap_ * model.objective_ <= tol * size
    options = case.game.options.vertex(np.asarray(model.predict(X))).reshape(len(X), -1)
    assert model.task_loss(X, y) == pytest.approx(np.diagonal(case.cost(options, case.labels[numbers])).mean())


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.id)
def test_a_loss_of_pytorch_with_the_same_value_and_a_subgradient(case):
    torch = pytest.importorskip("torch")
    import nashlearn.torch as nt

    X, numbers = draw(case, 3, 1)
    scores, others = X[:, :, 0], draw(case, 3, 2)[0][:, :, 1]
    y = np.concatenate([case.label(i) for i in numbers])
    tensor = torch.tensor(case.shaped(scores), requires_grad=True)
    loss = nt.GameLoss(case.game, reduction="none")
    found = loss(tensor, torch.as_tensor(y))
    found.sum().backward()
    slack = 3e-5 * case.size(scores)
    assert np.abs(found.detach().numpy() - case.game.loss_value(case.shaped(scores), y)).max() <= slack
    change = tensor.grad.numpy().reshape(scores.shape)
    elsewhere = case.game.loss_value(case.shaped(others), y)
    least = found.detach().numpy() + np.einsum("nd,nd->n", others - scores, change)
    assert (elsewhere >= least - slack).all()
