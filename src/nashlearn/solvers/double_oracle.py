"""The game of any two polytopes, by growing a matrix game from the players' best replies.

Among the vertices found so far, ``v_j`` of the labels and ``u_i`` of the options, the game is that of the
matrix ``A_ij = <u_i, L v_j>`` with scores ``<theta, v_j>``, which the simplex method of
:mod:`nashlearn.games.rows.cost` solves. Each player's best reply to the other's mixture then either enters, or
proves that nothing better exists: the replies' values bound the game's from both sides [mcmahan2003]_.
The polytopes are finite, so this ends; how many vertices it needs is known from experience only.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from nashlearn.game import Equilibrium, inner
from nashlearn.games.rows import kernels
from nashlearn.games.rows.cost import cost_params

if TYPE_CHECKING:
    from nashlearn.game import Game, Polytope

__all__ = ["solve"]


def solve(
    game: Game, scores: np.ndarray, tol: float = 1e-9, max_iter: int = 1000, start: Equilibrium | None = None
) -> Equilibrium:
    """Equilibrium of every row of ``scores`` (n, dim), in their precision.

    A row ends at a gap of ``tol max(1, |value|)``, or where rounding hides every better reply; a row that
    ``max_iter`` iterations leave above it is answered with its gap and a ``ConvergenceWarning``.
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or scores.shape[1] != game.loss.shape[1]:
        raise ValueError(f"scores must have shape (n, {game.loss.shape[1]}); got {scores.shape}")
    dtype = np.float32 if scores.dtype == np.float32 else np.float64
    n = scores.shape[0]
    value, gap = np.empty(n), np.empty(n)
    q, p = np.empty((n, game.loss.shape[1])), np.empty((n, game.loss.shape[0]))
    for i, row in enumerate(scores.astype(np.float64)):
        value[i], q[i], p[i], gap[i] = _solve_row(game, row, tol, max_iter)
    missed = gap > tol * np.maximum(1.0, np.abs(value))
    if missed.any():
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{missed.sum()} of {n} games stopped at a gap of up to {gap[missed].max():.1e}, "
            f"above tol={tol:g}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Equilibrium(value.astype(dtype), q.astype(dtype), p.astype(dtype), gap.astype(dtype))


def _solve_row(game: Game, theta: np.ndarray, tol: float, max_iter: int) -> tuple[Any, Any, Any, Any]:
    """Value, both strategies and gap of one row."""
    if np.isnan(theta).any():
        return np.nan, np.nan, np.nan, np.nan
    V = _reply(game.labels, theta)
    U = _reply(game.options, -(game.loss @ V[0]))
    A = U @ np.asarray(game.loss @ V.T)
    for _ in range(max_iter):
        worth = inner(theta, V)
        restricted, mu, nu = _matrix_game(A, worth)
        q, p = mu @ V, nu @ U
        reward, cost = theta + game.loss.T @ p, game.loss @ q
        v, u = _reply(game.labels, reward), _reply(game.options, -cost)
        upper, lower = inner(reward, v)[0], inner(theta, q[None])[0] + (u @ cost)[0]
        gap = max(upper - lower, 0.0)
        if gap <= tol * max(1.0, abs(lower)):
            break
        rounding = 1e-15 * (np.abs(A).max() + np.abs(worth).max())
        new_label, new_option = upper > restricted + rounding, lower < restricted - rounding
        if not (new_label or new_option):
            break
        if new_label:
            A = np.hstack([A, U @ np.asarray(game.loss @ v.T)])
            V = np.vstack([V, v])
        if new_option:
            A = np.vstack([A, u @ np.asarray(game.loss @ V.T)])
            U = np.vstack([U, u])
    return lower, q, p, gap


def _reply(polytope: Polytope, reward: np.ndarray) -> np.ndarray:
    """The vertex (1, dim) with the largest reward."""
    return polytope.vertex(polytope.argmax(reward[None]))


def _matrix_game(A: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value and both strategies of ``max_mu <scores, mu> + min_i (A mu)_i``; ``A`` may have any sign."""
    value, gap = np.empty(1), np.empty(1)
    mu, nu = np.empty((1, A.shape[1])), np.empty((1, A.shape[0]))
    kernels.solve_rows(cost_params(A), scores[None], value, mu, nu, gap)
    return value[0], mu[0], nu[0]
