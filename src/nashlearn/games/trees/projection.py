"""Euclidean projection onto the arborescence polytope, exact and certified.

The polytope is the product of one simplex a token (its heads) cut by ``x(arcs into S) >= 1`` for every set ``S`` of
tokens, and by equality for the set of all tokens where the root has one arc [edmonds1967]_. With a multiplier ``lam``
for each cut in use, each row is a projection onto the simplex,

    x_d = simplex(w_d + sum_{S containing d} lam_S [h not in S]),

and the dual is piecewise quadratic in ``lam``: semismooth Newton steps projected to ``lam >= 0``. Cuts come from the
contracted sets of the best tree, which are the duals of the linear programme, then from maximum flows at the
solution. The certificate is the Frank-Wolfe gap ``max_y <w - x, y> - <w - x, x>``, which bounds
``(|x - w|^2 - |x* - w|^2) / 2``; where it stays above the tolerance, Wolfe's method for the nearest point takes over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.trees.best import Workspace, best_labelled, best_tree, contracted_sets
from nashlearn.games.trees.cuts import Flow, separate
from nashlearn.games.trees.nearest import nearest_point
from nashlearn.solvers.dense import cholesky, cholesky_solve
from nashlearn.solvers.threshold import shifted_threshold

__all__ = ["Cuts", "cut_scratch", "frank_wolfe_gap", "price_cuts", "project_labelled", "project_tree", "project_trees"]

_NEWTON = 60  # steps for one set of cuts
_ROUNDS = 40  # of cuts
_LOOSE = 1e-3


class Cuts(NamedTuple):
    """Cuts in use, their multipliers, and the arrays of the Newton steps."""

    members: np.ndarray  # (K, n) tokens of each set
    inner: np.ndarray  # (K, n + 1) the same as 0 and 1, with the root: without branches in the inner loops
    lam: np.ndarray  # (K,) multipliers
    free: np.ndarray  # (K,) whether an equality
    grad: np.ndarray  # (K,)
    trial: np.ndarray  # (K,) multipliers tried
    trial_grad: np.ndarray  # (K,)
    step: np.ndarray  # (K,)
    H: np.ndarray  # (K, K)
    inside: np.ndarray  # (K,) scratch: cuts that an arc crosses
    crossing: np.ndarray  # (K,)
    a: np.ndarray  # (n + 1,) one row of shifted scores
    x: np.ndarray  # (n, n + 1)
    slope: np.ndarray  # (n, n + 1)


@njit(cache=True, nogil=True)
def cut_scratch(n: int) -> Cuts:
    """Room for ``3 n + 8`` cuts of sentences of up to ``n`` tokens."""
    K = 3 * n + 8
    return Cuts(
        np.empty((K, n), np.bool_),
        np.empty((K, n + 1)),
        np.empty(K),
        np.empty(K, np.bool_),
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty((K, K)),
        np.empty(K, np.int64),
        np.empty(K),
        np.empty(n + 1),
        np.empty((n, n + 1)),
        np.empty((n, n + 1)),
    )


@njit(cache=True, nogil=True)
def _primal(w, n, k, cuts, lam, grad):
    """The dual's value and gradient at ``lam``; ``cuts.x`` becomes the rows' solution."""
    members, inner, a, x, support, close = cuts.members, cuts.inner, cuts.a, cuts.x, cuts.inside, cuts.crossing
    total = 0.0
    for c in range(k):
        total -= lam[c]
        grad[c] = -1.0
    for d in range(n):
        out = x[d]
        lift = 0.0
        for h in range(n + 1):
            a[h] = w[d, h]
        for c in range(k):
            if members[c, d] and lam[c] != 0.0:
                price, within = lam[c], inner[c]
                lift += price
                for h in range(n + 1):
                    a[h] -= price * within[h]
        a[d + 1] = -np.inf
        top = a[0]
        for h in range(1, n + 1):
            top = max(top, a[h])
        near = 0  # entries below top - 1 are 0
        for h in range(n + 1):
            out[h] = 0.0
            if a[h] > top - 1.0:
                support[near], close[near] = h, a[h]
                near += 1
        t = top + shifted_threshold(close, near, top, 1.0)
        square, mass, m = 0.0, 0.0, 0
        for i in range(near):
            v = close[i] - t
            if v > 0.0:
                out[support[i]] = v
                square += v * v
                mass += v
                support[m] = support[i]
                m += 1
        total += t * mass + 0.5 * square + lift
        for c in range(k):
            if members[c, d]:
                for i in range(m):
                    grad[c] += out[support[i]] * (1.0 - inner[c, support[i]])
    return total


@njit(cache=True, nogil=True)
def _curvature(n, k, cuts):
    """The generalised Hessian: over rows, the covariance of "the arc crosses the cut" on the row's support."""
    members, H, x, inside, crossing = cuts.members, cuts.H, cuts.x, cuts.inside, cuts.crossing
    H[:k, :k] = 0.0
    for d in range(n):
        count = 0
        for h in range(n + 1):
            if x[d, h] > 0.0:
                count += 1
        if count < 2:
            continue
        crossing[:k] = 0.0
        for h in range(n + 1):
            if x[d, h] > 0.0:
                m = 0
                for c in range(k):
                    if members[c, d] and (h == 0 or not members[c, h - 1]):
                        inside[m] = c
                        m += 1
                        crossing[c] += 1.0
                for i in range(m):
                    for j in range(i + 1):
                        H[inside[i], inside[j]] += 1.0
        for i in range(k):
            if crossing[i] > 0.0:
                share = crossing[i] / count
                for j in range(i + 1):
                    H[i, j] -= share * crossing[j]


@njit(cache=True, nogil=True)
def _optimality(k, cuts, lam, grad):
    """The largest violation of the dual's optimality conditions."""
    worst = 0.0
    for c in range(k):
        if cuts.free[c] or lam[c] > 0.0:
            worst = max(worst, abs(grad[c]))
        else:
            worst = max(worst, -grad[c])
    return worst


@njit(cache=True, nogil=True)
def _direction(k, cuts, ridge, longest):
    """The projected Newton step into ``cuts.step``, by Cholesky on the multipliers that may move."""
    H, step, grad, lam, index, solution = cuts.H, cuts.step, cuts.grad, cuts.lam, cuts.inside, cuts.crossing
    m = 0
    for c in range(k):
        step[c] = 0.0
        if cuts.free[c] or lam[c] > 0.0 or grad[c] < 0.0:
            index[m], solution[m] = c, -grad[c]
            for j in range(m + 1):
                H[m, j] = H[c, index[j]]
            H[m, m] += ridge
            m += 1
    m = cholesky(H, H, 0, m, 0.0)  # a multiplier that rounding makes dependent on those before it waits
    cholesky_solve(H, m, solution)
    for i in range(m):
        step[index[i]] = solution[i]
    size = 0.0
    for c in range(k):
        size = max(size, abs(step[c]))
    if size > longest:
        for c in range(k):
            step[c] *= longest / size


@njit(cache=True, nogil=True)
def _newton(w, n, k, cuts, spread, tol):
    """Multipliers of ``k`` cuts; what is left of the optimality conditions."""
    lam, grad, trial, trial_grad, step = cuts.lam, cuts.grad, cuts.trial, cuts.trial_grad, cuts.step
    for c in range(k):
        cuts.inner[c, 0] = 0.0
        for j in range(n):
            cuts.inner[c, j + 1] = 1.0 if cuts.members[c, j] else 0.0
    value = _primal(w, n, k, cuts, lam, grad)
    worst = _optimality(k, cuts, lam, grad)
    for _ in range(_NEWTON):
        if worst <= tol:
            break
        _curvature(n, k, cuts)
        _direction(k, cuts, 1e-12 + 1e-3 * min(worst, 0.01), 2.0 * spread + 1.0)
        t, moved = 1.0, False
        for _ in range(40):
            slope = 0.0
            for c in range(k):
                trial[c] = lam[c] + t * step[c]
                if trial[c] < 0.0 and not cuts.free[c]:
                    trial[c] = 0.0
                slope += grad[c] * (trial[c] - lam[c])
            new = _primal(w, n, k, cuts, trial, trial_grad)
            left = _optimality(k, cuts, trial, trial_grad)
            if new <= value + 1e-4 * slope or left <= 0.5 * worst:
                moved = True
                break
            curve = 2.0 * (new - value - slope)
            t *= min(0.5, max(0.1, -slope / curve)) if curve > 0.0 else 0.5
        if not moved:
            _primal(w, n, k, cuts, lam, grad)
            break
        value, worst = new, left
        lam[:k] = trial[:k]
        grad[:k] = trial_grad[:k]
    return worst


@njit(cache=True, nogil=True)
def _start(n, count, single_root, work, cuts):
    """The contracted sets of the best tree with their prices; with one root the set of all tokens comes first."""
    k = 0
    if single_root:
        cuts.members[0, :n] = True
        cuts.free[0], cuts.lam[0] = True, 0.0
        k = 1
    new = contracted_sets(n, count, work, cuts.members[k:], cuts.lam[k:])
    for c in range(k, k + new):
        everything = single_root
        for d in range(n):
            everything = everything and cuts.members[c, d]
        if everything:
            cuts.lam[0] = cuts.lam[c]
        else:
            cuts.members[k, :n] = cuts.members[c, :n]
            cuts.lam[k] = max(cuts.lam[c], 0.0)
            cuts.free[k] = False
            k += 1
    return k


@njit(cache=True, nogil=True)
def _forget_idle(n, k, cuts):
    """Drop the cuts without a multiplier."""
    kept = 0
    for c in range(k):
        if cuts.free[c] or cuts.lam[c] > 0.0:
            if kept != c:
                cuts.members[kept, :n] = cuts.members[c, :n]
                cuts.lam[kept], cuts.free[kept] = cuts.lam[c], cuts.free[c]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def frank_wolfe_gap(w, x, n, single_root, slope, heads, work):
    """``max_y <w - x, y> - <w - x, x>`` over trees; arcs of score ``-inf`` do not count. ``slope`` is scratch."""
    inside = 0.0
    for d in range(n):
        for h in range(n + 1):
            slope[d, h] = w[d, h] - x[d, h]
            if x[d, h] != 0.0:
                inside += slope[d, h] * x[d, h]
    best_tree(slope, n, single_root, heads, work)
    best = 0.0
    for d in range(n):
        best += slope[d, heads[d]]
    return best - inside


@njit(cache=True, nogil=True)
def price_cuts(
    w: np.ndarray, n: int, single_root: bool, loose: bool, heads: np.ndarray, work: Workspace, cuts: Cuts, flow: Flow
) -> tuple[int, float]:
    """The cuts that the projection of ``w`` needs, with their multipliers in ``cuts.lam`` and the point in ``cuts.x``.

    ``loose`` multipliers are good to three digits. ``w`` is changed: each row is shifted to the largest score 0, which
    moves no projection. Answers the number of cuts, -1 where there is no tree, and what counts as exact.
    """
    spread = 0.0
    for d in range(n):
        top, low = -np.inf, np.inf
        for h in range(n + 1):
            if h != d + 1 and w[d, h] > -np.inf:
                top, low = max(top, w[d, h]), min(low, w[d, h])
        if top == -np.inf:
            return -1, 0.0
        spread = max(spread, top - low)
        for h in range(n + 1):
            w[d, h] -= top
        w[d, d + 1] = -np.inf
    count = best_tree(w, n, single_root, heads, work)
    if count == 0:
        return -1, 0.0
    exact = 1e-14 * (1.0 + spread) * n
    k = _start(n, count, single_root, work, cuts)
    goal = _LOOSE  # cuts that are plainly violated need no exact multipliers
    for _ in range(_ROUNDS):
        worst = _newton(w, n, k, cuts, spread, goal)
        if worst > 10.0 * goal:
            break
        k = _forget_idle(n, k, cuts)
        new = separate(cuts.x, n, cuts.members[k:], max(1e-12 * n * (1.0 + spread), 10.0 * goal), flow)
        if new == 0:
            if loose or goal == exact:
                break
            goal = exact
        cuts.lam[k : k + new] = 0.0
        cuts.free[k : k + new] = False
        k += new
    return k, exact


@njit(cache=True, nogil=True)
def project_tree(
    w: np.ndarray, n: int, single_root: bool, x: np.ndarray, heads: np.ndarray, work: Workspace, cuts: Cuts, flow: Flow
) -> float:
    """Project ``w`` (n, n + 1), finite or ``-inf`` and changed, into ``x``; the certified gap, -1 without a tree."""
    k, exact = price_cuts(w, n, single_root, False, heads, work, cuts, flow)
    if k < 0:
        return -1.0
    x[:n, : n + 1] = cuts.x[:n, : n + 1]
    gap = frank_wolfe_gap(w, x, n, single_root, cuts.slope, heads, work)
    if not abs(gap) <= 10.0 * exact:
        again = np.empty((n, n + 1, 1))
        gap = nearest_point(w[:n, : n + 1].copy().reshape(n, n + 1, 1), n, single_root, again, heads, work)
        x[:n, : n + 1] = again[:, :, 0]
    return max(gap, 0.0)


@njit(cache=True, nogil=True)
def project_trees(
    w: np.ndarray, single_root: bool, x: np.ndarray, gap: np.ndarray, work: Workspace, cuts: Cuts, flow: Flow
) -> None:
    """Project a batch (b, n, n + 1), which is changed, into ``x``; ``gap`` (b,) is -1 where there is no tree."""
    n = w.shape[1]
    heads = np.empty(n, np.int64)
    for i in range(w.shape[0]):
        gap[i] = project_tree(w[i], n, single_root, x[i], heads, work, cuts, flow)


@njit(cache=True, nogil=True)
def project_labelled(w: np.ndarray, single_root: bool, x: np.ndarray, gap: np.ndarray, work: Workspace) -> None:
    """The same for labelled arcs, ``w`` and ``x`` (b, n, n + 1, labels), by Wolfe's method alone."""
    n, heads = w.shape[1], np.empty(w.shape[1], np.int64)
    arc, label = np.empty((n, n + 1)), np.empty((n, n + 1), np.int64)
    for i in range(w.shape[0]):
        for d in range(n):
            top = w[i, d].max()
            if top > -np.inf:
                w[i, d] -= top
        gap[i] = -1.0
        if best_labelled(w[i], n, single_root, arc, label, heads, work) > -np.inf:
            gap[i] = max(nearest_point(w[i], n, single_root, x[i], heads, work), 0.0)
