"""The game over arborescences: the interior point method with cuts added as they are violated.

Both players choose points of the arborescence polytope, the loss counts wrong heads (or heads and labels):

    max_q min_p <theta, q> + sum_d c_d - <p, C q> - mu Omega(q),     C = diag(c_d) over the arcs into token d,

with ``Omega(q) = (|q|^2 - <1, q>)/2``, which is 0 at every tree.

Rows of the polytope are simplices; a cut ``x(arcs into S) >= 1`` joins where either player's strategy violates it, at
first those that the projection of the scores needs. The certificate needs best trees only:

    upper = max_y <theta - C p - mu (q - 1/2), y> + mu/2 |q|^2,     lower = <theta, q> - mu Omega(q) - max_y <C q, y>,

each plus ``sum_d c_d``; at ``mu = 0`` they are what each player can secure.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.best import best_labelled, best_tree
from nashlearn.games.trees.cuts import separate
from nashlearn.games.trees.entries import take_near, take_priced, take_replies, taken_entries, tree_scratch
from nashlearn.games.trees.inside import into_polytope
from nashlearn.games.trees.projection import price_cuts
from nashlearn.games.trees.shift import shifted
from nashlearn.solvers.interior import Saddle, saddle_point

__all__ = ["certify", "solve_trees"]

_ROUNDS = 30
_ITERATIONS = 100
_REACH = 1.0  # entries of a row that are looked at first, in units of the largest loss of a token
_SLACK = 0.05  # how far from worth using those may be that are looked at next, in the same unit


@njit(cache=True, nogil=True)
def _secured(theta, price, mu, n, single_root, q, s):
    """What ``q`` secures, its part without the scores (the entropy), and of that the risk ``min_p <p, L q>``."""
    worth, spread, risk = 0.0, 0.0, 0.0
    for d in range(n):
        risk += price[d]
        for h in range(n + 1):
            best = -np.inf
            for j in range(theta.shape[2]):
                x = q[d, h, j]
                if x != 0.0:
                    worth += theta[d, h, j] * x
                    spread += x * (1.0 - x)
                if theta[d, h, j] > -np.inf and price[d] * x > best:
                    best = price[d] * x
            s.other[d, h] = best
    best_tree(s.other, n, single_root, s.heads, s.work)
    for d in range(n):
        risk -= s.other[d, s.heads[d]]
    entropy = risk + 0.5 * mu * spread
    return worth + entropy, entropy, risk


@njit(cache=True, nogil=True)
def certify(theta, price, mu, n, single_root, p, q, s):
    """Upper and lower bound of the game's value from the strategies ``p`` and ``q`` (n, n + 1, labels).

    Then what the lower one consists of beside the scores: the entropy, and of that the risk ``min_p <p, L q>``.
    """
    upper = 0.0
    for d in range(n):
        upper += price[d]
        for h in range(n + 1):
            best = -np.inf
            for j in range(theta.shape[2]):
                x = q[d, h, j]
                best = max(best, theta[d, h, j] - price[d] * p[d, h, j] - mu * (x - 0.5))
                upper += 0.5 * mu * x * x
            s.arc[d, h] = best
    best_tree(s.arc, n, single_root, s.heads, s.work)
    for d in range(n):
        upper += s.arc[d, s.heads[d]]
    lower, entropy, risk = _secured(theta, price, mu, n, single_root, q, s)
    return upper, lower, entropy, risk


@njit(cache=True, nogil=True)
def _pure(n, p, q, s):
    """Both players on the tree ``s.heads`` with its best labels."""
    p[:n, : n + 1] = 0.0
    q[:n, : n + 1] = 0.0
    for d in range(n):
        h = s.heads[d]
        p[d, h, s.label[d, h]] = 1.0
        q[d, h, s.label[d, h]] = 1.0


@njit(cache=True, nogil=True)
def _seed(n, single_root, s):
    """Project the best arcs' scores, roughly: the cuts that this needs, and what they add to each arc (``s.lift``)."""
    s.other[:n, : n + 1] = s.arc[:n, : n + 1]
    k, _ = price_cuts(s.other, n, single_root, True, s.heads, s.work, s.cuts, s.flow)
    s.lift[:n, : n + 1] = 0.0
    K = 0
    for c in range(k):
        for d in range(n):
            if s.cuts.members[c, d]:
                s.lift[d, 0] += s.cuts.lam[c]
                for h in range(n):
                    if not s.cuts.members[c, h]:
                        s.lift[d, h + 1] += s.cuts.lam[c]
        if not s.cuts.free[c] and s.cuts.lam[c] > 0.0:
            s.sets[K, :n] = s.cuts.members[c, :n]
            K += 1
    return K


@njit(cache=True, nogil=True)
def _incidence(at, K, one, n, sets):
    """For each entry the cuts that it crosses, in compressed rows; constraint 0 is the single root where ``one``."""
    m = at.shape[1]
    first = np.empty(m + 1, np.int64)
    member = np.empty(m * (K + one), np.int64)
    t = 0
    for e in range(m):
        first[e] = t
        d, h = at[0, e], at[1, e]
        if one and h == 0:
            member[t] = 0
            t += 1
        for c in range(K):
            if sets[c, d] and (h == 0 or not sets[c, h - 1]):
                member[t] = c + one
                t += 1
    first[m] = t
    return first, member[:t].copy()


@njit(cache=True, nogil=True)
def _add_violated(x, at, K, n, tol, s):
    """Add the cuts that a strategy violates; their number in all."""
    flat = s.other
    flat[:n, : n + 1] = 0.0
    for e in range(at.shape[1]):
        flat[at[0, e], at[1, e]] += x[e]
    new = separate(flat, n, s.cuts.members, tol, s.flow)
    for c in range(new):
        known = False
        for other in range(K):
            known = known or (s.sets[other, :n] == s.cuts.members[c, :n]).all()
        if s.sets.shape[0] > K and not known:
            s.sets[K, :n] = s.cuts.members[c, :n]
            K += 1
    return K


@njit(cache=True, nogil=True)
def _settle(theta, price, mu, n, single_root, tol, p, q, s):
    """Play the game of ``theta``, from which :func:`shifted` has taken what trees share; its bounds, as certified.

    Entries are added until these are within ``10 tol (1 + sum_d (c_d + mu))``, or until there are no more; how many
    there are at the end comes last, 0 for a tree that both players choose. Without a tree there is nothing to be had:
    ``-inf``, with a gap of ``inf``.
    """
    if best_labelled(theta, n, single_root, s.arc, s.label, s.heads, s.work) == -np.inf:
        return np.inf, -np.inf, np.nan, np.nan, 0
    _pure(n, p, q, s)
    upper, lower, entropy, risk = certify(theta, price, mu, n, single_root, p, q, s)
    if upper - lower <= 1e-14 * (1.0 + abs(lower)):
        return upper, lower, entropy, risk, 0
    best_labelled(theta, n, single_root, s.arc, s.label, s.heads, s.work)
    K = _seed(n, single_root, s)
    reach, take = _REACH * (price[:n].max() + mu), np.zeros(theta.shape, np.bool_)
    take_near(theta, n, reach, take, s)
    entries = 0
    while upper - lower > 10.0 * tol * (1.0 + price[:n].sum() + n * mu):
        at = taken_entries(theta, n, single_root, take, s)
        if at.shape[1] > entries:
            entries = at.shape[1]
            K, y, lam = _play(theta, price, mu, n, single_root, tol, at, K, p, q, s)
            upper, lower, entropy, risk = certify(theta, price, mu, n, single_root, p, q, s)
            take_replies(theta, n, single_root, take, s)
            take_priced(theta, _SLACK * price[:n].max(), y, lam, K, n, take, s)
        elif reach < np.inf:
            reach = 3.0 * reach if reach < 10.0 * price[:n].max() else np.inf
            take_near(theta, n, reach, take, s)
        else:
            break
    return upper, lower, entropy, risk, entries


@njit(cache=True, nogil=True)
def _play(theta, price, mu, n, single_root, tol, at, K, p, q, s):
    """The interior point method on the entries ``at``, with cuts as they are violated; their number, and potentials."""
    m = at.shape[1]
    reward, weight = np.empty(m), np.empty(m)
    for e in range(m):
        reward[e] = theta[at[0, e], at[1, e], at[2, e]]
        weight[e] = price[at[0, e]]
    # One root arc: an equality, unless a single token may have it, whose row says as much.
    one = 1 if single_root and s.usable[:n, 0].sum() > 1 else 0
    x, y, lam = np.zeros((2, m)), np.zeros((2, n)), np.zeros((2, K + one))
    for r in range(_ROUNDS):
        first, member = _incidence(at, K, one, n, s.sets)
        equality = np.zeros(K + one, np.bool_)
        equality[:one] = True
        game = Saddle(reward, np.zeros(m), weight, 0.0, mu, at[0], n, first, member, equality)
        saddle_point(game, tol, _ITERATIONS, r > 0, x, y, lam)
        before = K
        K = _add_violated(x[0], at, K, n, 10.0 * tol, s)
        K = _add_violated(x[1], at, K, n, 10.0 * tol, s)
        if before == K:
            break
        longer = np.zeros((2, K + one))
        longer[:, : before + one] = lam
        lam = longer
    p[:n, : n + 1] = 0.0
    q[:n, : n + 1] = 0.0
    for e in range(m):
        p[at[0, e], at[1, e], at[2, e]] = x[0, e]
        q[at[0, e], at[1, e], at[2, e]] = x[1, e]
    return K, y, lam


@njit(cache=True, nogil=True)
def solve_trees(
    scores: np.ndarray,
    price: np.ndarray,
    mu: float,
    single_root: bool,
    tol: float,
    start: int,
    stop: int,
    value: np.ndarray,
    q: np.ndarray,
    p: np.ndarray,
    gap: np.ndarray,
    entropy: np.ndarray,
    risk: np.ndarray,
) -> None:
    """Solve the sentences ``start`` to ``stop`` of a batch (b, n, n + 1, labels).

    A gap of ``inf`` says that no tree is allowed; a sentence with NaN gives NaN. Where arcs have no labels and none is
    forbidden, ``q`` is moved into the polytope. What it secures is what is reported then; the bound of what ``p`` may
    lose holds for linear bounds of the smoothing at any point, so for those at ``q`` before it was moved.
    """
    n = scores.shape[1]
    theta, s = np.empty(scores.shape[1:]), tree_scratch(n)
    for i in range(start, stop):
        if np.isnan(scores[i]).any():
            value[i] = gap[i] = entropy[i] = risk[i] = np.nan
            q[i] = p[i] = np.nan
            continue
        offset = shifted(scores[i], n, single_root, theta)
        upper, lower, entropy[i], risk[i], entries = _settle(theta, price, mu, n, single_root, tol, p[i], q[i], s)
        if entries and scores.shape[3] == 1 and (theta == -np.inf).sum() == n:
            into_polytope(q[i, :, :, 0], n, single_root, s.cuts.members, s.flow)
            lower, entropy[i], risk[i] = _secured(theta, price, mu, n, single_root, q[i], s)
        value[i], gap[i] = offset + lower, max(upper - lower, 0.0)
