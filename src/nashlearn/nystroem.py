"""How far a linear model on Nyström's features is from the optimum of the kernel itself, with proof.

The features ``z(x)`` of scikit-learn's ``Nystroem`` are those of the projection onto the span of some rows, so that a
linear model on them is a function of the kernel's space, of norm ``|W|`` at most, and its objective ``P`` is one of the
exact problem too. So are the adversary's labels ``q``: with ``c_i = (q_i - y_i) / n`` they bound the optimum by

    D(q) = mean [min(L q_i) + mu H(q_i)] - <c, K c> / (2 alpha),

and the bound in the features differs from it by ``<c, (K - Z Z') c> / (2 alpha) >= 0`` alone, what they leave out. The
best labels between ``y``, whose bound is 0, and ``q`` bound it better where that is much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from nashlearn.estimators._labels import known_positions
from nashlearn.estimators._per_class import PerClassNash
from nashlearn.training.progress import relative_gap

__all__ = ["KernelGap", "kernel_gap"]

_BLOCK = 2048  # rows and columns of the Gram matrix that are made at a time
_TRIALS = 20  # of labels
_ROUNDED = 1e-8  # error of a Gaussian kernel's values up to which they are certified
_UNIT = float(np.finfo(np.float64).eps)


class KernelGap(NamedTuple):
    """A certificate of the exact kernel problem.

    Attributes
    ----------
    objective : float
        Of the model, an upper bound of the optimum.
    bound : float
        A lower bound of the optimum.
    gap : float
        Their distance, relative to ``objective`` as ``dual_gap_`` is.
    residual : float
        What of the kernel the features leave out takes from the bound, relative to ``objective`` too: more training
        gives none of it back, more features do.
    """

    objective: float
    bound: float
    gap: float
    residual: float


def kernel_gap(model: Any, features: Any, X: Any, y: Any) -> KernelGap:
    """Bounds of the exact kernel problem from a linear model on its Nyström features.

    The problem is that of ``alpha_``, the loss, the smoothing and the constant feature of ``model``, with the kernel of
    ``features`` and rows of equal weight. The smaller ``alpha_`` is, the more of the kernel must features keep: a gap
    near 1 says nothing about the model.

    Parameters
    ----------
    model : NashClassifier or NashAbstainer
        Linear, with the penalty ``"l2"`` and a smoothing above 0, fitted to ``features.transform(X)`` and ``y``. The
        labels of an exact game at given scores are one of many best replies, and bound nothing of use.
    features : sklearn.kernel_approximation.Nystroem
        Fitted; its kernel must be positive semidefinite.
    X, y : array or CSR matrix of shape (n, d), and array-like of shape (n,)
        The training data.

    Returns
    -------
    KernelGap
        ``(objective, bound, gap, residual)``.

    Notes
    -----
    Cost: half of the kernel's values, O(n^2 (d + k)) operations, and O(n (features + k)) memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from nashlearn import NashClassifier
    >>> from nashlearn.nystroem import kernel_gap
    >>> X, y = load_iris(return_X_y=True)
    >>> features = Nystroem(gamma=0.1, n_components=50, random_state=0).fit(X)
    >>> model = NashClassifier(alpha=1e-2).fit(features.transform(X), y)
    >>> kernel_gap(model, features, X, y).gap < 0.01
    True
    """
    _check(model, features, X, y)
    if _untrue(features, X) > _ROUNDED:
        raise ValueError(
            "the rows of X are so far from the origin that scikit-learn's Gaussian kernel has lost their differences: "
            "take their mean off before the features are made."
        )
    Z = features.transform(X)
    codes = known_positions(model.classes_, np.asarray(y), "is not among the classes")
    game, unit, alpha, n = model._game, model._unit, model.alpha_, len(codes)
    truth = game.labels.vertex(codes)
    scores = unit * model._scores(Z, np.float64)
    found = game.equilibria(scores, model._mu)
    loss = float(np.mean(found.value + found.gap - np.einsum("ij,ij->i", scores, truth))) / unit
    weights = model._stored()
    objective = 0.5 * alpha * _squared_norm(weights, features) + loss
    c = (found.q - truth) / n
    of_features = float(np.square(Z.T @ c).sum())
    constant = float(model._bias**2 * np.square(c.sum(axis=0)).sum())
    exact, wrong = _quadratic(lambda A, B: _values(features, A, B), X, c, _untrue(features, X))
    way, bound = _best_between(game, model._mu, unit, truth, found.q, (exact + wrong + constant) / (2.0 * alpha))
    residual = way**2 * max(exact + wrong - of_features, 0.0) / (2.0 * alpha)
    return KernelGap(objective, bound, relative_gap(objective, bound), residual / objective)


def _best_between(game: Any, mu: float, unit: float, y: np.ndarray, q: np.ndarray, price: float) -> tuple[float, float]:
    """How far to go from ``y`` to ``q`` for the best bound, and that; all the way costs ``price``."""

    def bound(t: float) -> float:
        labels = y + t * (q - y)
        secured = game.risk(labels) + mu * entr(labels).sum(axis=1)
        return float(np.mean(secured)) / unit - t**2 * price

    found = minimize_scalar(lambda t: -bound(t), bounds=(0.0, 1.0), method="bounded", options={"maxiter": _TRIALS})
    return max(((t, bound(t)) for t in (1.0, float(found.x))), key=lambda one: one[1])


def _check(model: Any, features: Any, X: Any, y: Any) -> None:
    if not isinstance(model, PerClassNash):
        raise TypeError(f"model must be a NashClassifier or a NashAbstainer; got {type(model).__name__}.")
    check_is_fitted(model)
    check_is_fitted(features, ("components_", "normalization_"))
    check_consistent_length(X, y)
    if not hasattr(model, "coef_") or model.penalty != "l2" or not model.smoothing_:
        raise ValueError("model must be linear in the features, with penalty='l2' and a smoothing above 0.")


def _values(features: Any, A: Any, B: Any) -> np.ndarray:
    """The kernel of ``features``, in double precision."""
    given = {name: getattr(features, name) for name in ("gamma", "coef0", "degree")}
    own = {} if callable(features.kernel) else {name: one for name, one in given.items() if one is not None}
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    return pairwise_kernels(A, B, metric=features.kernel, filter_params=True, **own, **(features.kernel_params or {}))


def _untrue(features: Any, X: Any) -> float:
    """How wrong values of the Gaussian kernel may be, whose exponents are differences of squared norms."""
    if features.kernel != "rbf":
        return 0.0
    gamma = 1.0 / X.shape[1] if features.gamma is None else features.gamma
    return 2.0 * (X.shape[1] + 4) * _UNIT * gamma * float(row_norms(X, squared=True).max())


def _squared_norm(weights: np.ndarray, features: Any) -> float:
    """That of the functions in the kernel's space, or of the weights where rounding makes this the larger."""
    C = weights[:, :-1] @ features.normalization_
    K = _values(features, features.components_, features.components_)
    spanned = np.einsum("kj,kj->", C @ K, C) + np.square(weights[:, -1]).sum()
    return float(max(spanned, np.square(weights).sum()))


def _quadratic(kernel: Callable[[Any, Any], np.ndarray], X: Any, c: np.ndarray, untrue: float) -> tuple[float, float]:
    """``<c, K c>``, by blocks on and above the diagonal, and how wrong rounding may have made it and the values."""
    some = np.flatnonzero(c.any(axis=1))
    X, c = X[some], c[some]
    total, sizes = 0.0, np.empty(some.size)
    for i in range(0, some.size, _BLOCK):
        rows = slice(i, i + _BLOCK)
        own = kernel(X[rows], X[rows])
        sizes[rows] = np.sqrt(np.maximum(np.diagonal(own), 0.0))
        total += float(np.vdot(c[rows], own @ c[rows]))
        for j in range(i + _BLOCK, some.size, _BLOCK):
            columns = slice(j, j + _BLOCK)
            total += 2.0 * float(np.vdot(c[rows], kernel(X[rows], X[columns]) @ c[columns]))
    most = float(np.square(sizes @ np.abs(c)).sum())
    return total, (_UNIT * (some.size + X.shape[1]) + untrue) * most
