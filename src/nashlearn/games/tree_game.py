"""The game over arborescences: the interior point method with cuts added as they are violated.

Both players choose points of the arborescence polytope, the loss counts wrong heads (or heads and labels):

    max_q min_p <theta, q> + sum_d c_d - <p, C q> - mu/2 |q|^2,     C = diag(c_d) over the arcs into token d.

Rows of the polytope are simplices; a cut ``x(arcs into S) >= 1`` joins where either player's strategy violates it, at
first those that the projection of the scores needs. The certificate needs best trees only:

    upper = max_y <theta - C p - mu q, y> + mu/2 |q|^2,     lower = <theta, q> - mu/2 |q|^2 - max_y <C q, y>,

each plus ``sum_d c_d``; at ``mu = 0`` they are what each player can secure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.interior import Saddle, saddle_point
from nashlearn.games.tree_cuts import Flow, flow_scratch, separate
from nashlearn.games.tree_map import Workspace, best_tree, workspace
from nashlearn.games.tree_projection import Cuts, cut_scratch, price_cuts

__all__ = [
    "TreeScratch",
    "best_labelled",
    "certify",
    "solve_each",
    "solve_tree",
    "solve_trees",
    "tree_entropy",
    "tree_scratch",
]

_ROUNDS = 30
_ITERATIONS = 100
_REACH = 1.0  # entries of a row that are looked at first, in units of the largest loss of a token
_SLACK = 0.05  # how far from worth using those may be that are looked at next, in the same unit


class TreeScratch(NamedTuple):
    """Arrays reused from sentence to sentence of up to ``n`` tokens."""

    work: Workspace
    cuts: Cuts
    flow: Flow
    arc: np.ndarray  # (n, n + 1) best score over labels
    other: np.ndarray  # (n, n + 1)
    label: np.ndarray  # (n, n + 1) and its label
    usable: np.ndarray  # (n, n + 1) whether some tree holds the arc
    lift: np.ndarray  # (n, n + 1) prices of the cuts that an arc crosses
    heads: np.ndarray  # (n,)
    sets: np.ndarray  # (K, n) the cuts of the game


def tree_scratch(n: int) -> TreeScratch:
    """Arrays for sentences of up to ``n`` tokens."""
    return TreeScratch(
        workspace(n),
        cut_scratch(n),
        flow_scratch(n),
        np.empty((n, n + 1)),
        np.empty((n, n + 1)),
        np.empty((n, n + 1), np.int64),
        np.empty((n, n + 1), np.bool_),
        np.empty((n, n + 1)),
        np.empty(n, np.int64),
        np.empty((6 * n + 16, n), np.bool_),
    )


@njit(cache=True, nogil=True)
def best_labelled(theta, n, single_root, arc, label, heads, work):
    """The best tree of ``theta`` (n, n + 1, labels); its score, or ``-inf`` where there is none."""
    for d in range(n):
        for h in range(n + 1):
            best, at = theta[d, h, 0], 0
            for j in range(1, theta.shape[2]):
                if theta[d, h, j] > best:
                    best, at = theta[d, h, j], j
            arc[d, h], label[d, h] = best, at
    if best_tree(arc, n, single_root, heads, work) == 0:
        return -np.inf
    total = 0.0
    for d in range(n):
        total += arc[d, heads[d]]
    return total


@njit(cache=True, nogil=True)
def _spread_from(sources, avoid, n, arc, flow):
    """Mark in ``flow.source`` the tokens reached from ``sources`` (1..n, in ``flow.queue``) without token ``avoid``."""
    last = sources
    first = 0
    while first < last:
        u = flow.queue[first]
        first += 1
        for d in range(n):
            if d + 1 != avoid and d + 1 != u and not flow.source[d + 1] and arc[d, u] > -np.inf:
                flow.source[d + 1] = True
                flow.queue[last] = d + 1
                last += 1
    return last


@njit(cache=True, nogil=True)
def find_usable(arc, n, single_root, usable, flow):
    """Which arcs of finite score some tree holds; there must be a tree. O(n^2), or O(n^3) with forbidden arcs."""
    complete = True
    for d in range(n):
        for h in range(n + 1):
            usable[d, h] = h != d + 1 and arc[d, h] > -np.inf
            complete = complete and (usable[d, h] or h == d + 1)
    if complete:
        return
    if single_root:  # only a token that reaches all others can be the root's
        for r in range(1, n + 1):
            if usable[r - 1, 0]:
                flow.source[: n + 1] = False
                flow.source[r] = True
                flow.queue[0] = r
                usable[r - 1, 0] = _spread_from(1, 0, n, arc, flow) == n
    for d in range(n):
        flow.source[: n + 1] = False
        m = 0
        for r in range(1, n + 1):
            if r != d + 1 and usable[r - 1, 0]:
                flow.source[r] = True
                flow.queue[m] = r
                m += 1
        _spread_from(m, d + 1, n, arc, flow)
        for h in range(1, n + 1):
            usable[d, h] = usable[d, h] and flow.source[h]


@njit(cache=True, nogil=True)
def tree_entropy(q, n, single_root, s):
    """``min_p <p, L q>`` of marginals ``q`` (n, n + 1): ``n`` less the hits of the tree that hits most."""
    for d in range(n):
        for h in range(n + 1):
            s.other[d, h] = q[d, h]
    best_tree(s.other, n, single_root, s.heads, s.work)
    secured = float(n)
    for d in range(n):
        secured -= q[d, s.heads[d]]
    return secured


@njit(cache=True, nogil=True)
def certify(theta, price, mu, n, single_root, p, q, s):
    """Upper and lower bound of the game's value from the strategies ``p`` and ``q`` (n, n + 1, labels)."""
    L = theta.shape[2]
    worth, square, fixed = 0.0, 0.0, 0.0
    for d in range(n):
        fixed += price[d]
        for h in range(n + 1):
            best, best_q = -np.inf, -np.inf
            for j in range(L):
                v = theta[d, h, j] - price[d] * p[d, h, j] - mu * q[d, h, j]
                if v > best:
                    best = v
                if q[d, h, j] != 0.0:
                    worth += theta[d, h, j] * q[d, h, j]
                    square += q[d, h, j] * q[d, h, j]
                if theta[d, h, j] > -np.inf and price[d] * q[d, h, j] > best_q:
                    best_q = price[d] * q[d, h, j]
            s.arc[d, h], s.other[d, h] = best, best_q
    upper, lower = fixed + 0.5 * mu * square, fixed + worth - 0.5 * mu * square
    best_tree(s.arc, n, single_root, s.heads, s.work)
    for d in range(n):
        upper += s.arc[d, s.heads[d]]
    best_tree(s.other, n, single_root, s.heads, s.work)
    for d in range(n):
        lower -= s.other[d, s.heads[d]]
    return upper, lower


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
def _take_near(theta, n, reach, take, s):
    """Take the entries within ``reach`` of the best of their row, prices added."""
    for d in range(n):
        top = -np.inf
        for h in range(n + 1):
            if h != d + 1:
                for j in range(theta.shape[2]):
                    top = max(top, theta[d, h, j] + s.lift[d, h])
        for h in range(n + 1):
            for j in range(theta.shape[2]):
                if theta[d, h, j] > -np.inf and theta[d, h, j] + s.lift[d, h] >= top - reach:
                    take[d, h, j] = True


@njit(cache=True, nogil=True)
def _take_priced(theta, slack, y, lam, K, n, take, s):
    """Take the entries that either player would use at the potentials of the game played without them."""
    one = lam.shape[1] - K
    for d in range(n):
        for h in range(n + 1):
            price_p, price_q = y[0, d], y[1, d]
            if h == 0:
                for c in range(one):
                    price_p += lam[0, c]
                    price_q += lam[1, c]
            for c in range(K):
                if s.sets[c, d] and (h == 0 or not s.sets[c, h - 1]):
                    price_p += lam[0, c + one]
                    price_q += lam[1, c + one]
            for j in range(theta.shape[2]):
                if theta[d, h, j] > -np.inf and (price_p > slack or theta[d, h, j] + price_q >= -slack):
                    take[d, h, j] = True


@njit(cache=True, nogil=True)
def _take_replies(theta, n, single_root, take, s):
    """Take the trees that :func:`certify` has just found against either player: while there is a gap, one is new."""
    for scores in (s.arc, s.other):
        best_tree(scores, n, single_root, s.heads, s.work)
        for d in range(n):
            for j in range(theta.shape[2]):
                if theta[d, s.heads[d], j] > -np.inf:
                    take[d, s.heads[d], j] = True


@njit(cache=True, nogil=True)
def _entries(theta, n, single_root, take, s):
    """Tokens, heads and labels of the entries that are taken.

    Arcs that no tree among them holds are left out, as the interior point method must have it.
    """
    L = theta.shape[2]
    at = np.empty((3, n * (n + 1) * L), np.int64)
    for d in range(n):
        for h in range(n + 1):
            s.other[d, h] = 0.0 if take[d, h].any() else -np.inf
    find_usable(s.other, n, single_root, s.usable, s.flow)
    m = 0
    for d in range(n):
        for h in range(n + 1):
            if s.usable[d, h]:
                for j in range(L):
                    if take[d, h, j]:
                        at[0, m], at[1, m], at[2, m] = d, h, j
                        m += 1
    return at[:, :m].copy()


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
def _known(candidate, K, n, sets):
    for c in range(K):
        same = True
        for d in range(n):
            if sets[c, d] != candidate[d]:
                same = False
                break
        if same:
            return True
    return False


@njit(cache=True, nogil=True)
def _add_violated(x, at, K, n, tol, s):
    """Add the cuts that a strategy violates; their number in all."""
    flat = s.other
    flat[:n, : n + 1] = 0.0
    for e in range(at.shape[1]):
        flat[at[0, e], at[1, e]] += x[e]
    new = separate(flat, n, s.cuts.members, tol, s.flow)
    for c in range(new):
        if s.sets.shape[0] > K and not _known(s.cuts.members[c], K, n, s.sets):
            s.sets[K, :n] = s.cuts.members[c, :n]
            K += 1
    return K


@njit(cache=True, nogil=True)
def solve_tree(
    theta: np.ndarray,
    price: np.ndarray,
    mu: float,
    n: int,
    single_root: bool,
    tol: float,
    p: np.ndarray,
    q: np.ndarray,
    s: TreeScratch,
) -> tuple[float, float]:
    """Solve one game into ``p`` and ``q`` (n, n + 1, labels); its value from below and gap, NaN where there is no tree.

    ``theta`` (n, n + 1, labels) is finite or ``-inf``; ``price`` (n,) is what a wrong head costs.
    """
    if best_labelled(theta, n, single_root, s.arc, s.label, s.heads, s.work) == -np.inf:
        return np.nan, np.nan
    _pure(n, p, q, s)
    upper, lower = certify(theta, price, mu, n, single_root, p, q, s)
    if upper - lower <= 1e-14 * (1.0 + abs(lower)):
        return lower, max(upper - lower, 0.0)
    best_labelled(theta, n, single_root, s.arc, s.label, s.heads, s.work)
    K = _seed(n, single_root, s)
    reach, take = _REACH * (price[:n].max() + mu), np.zeros(theta.shape, np.bool_)
    _take_near(theta, n, reach, take, s)
    value, gap, entries = lower, upper - lower, 0
    while gap > 100.0 * tol * (1.0 + abs(value)):
        at = _entries(theta, n, single_root, take, s)
        if at.shape[1] > entries:
            entries = at.shape[1]
            K, y, lam = _play(theta, price, mu, n, single_root, tol, at, K, p, q, s)
            upper, lower = certify(theta, price, mu, n, single_root, p, q, s)
            value, gap = lower, upper - lower
            _take_replies(theta, n, single_root, take, s)
            _take_priced(theta, _SLACK * price[:n].max(), y, lam, K, n, take, s)
        elif reach < np.inf:
            reach = 3.0 * reach if reach < 10.0 * price[:n].max() else np.inf
            _take_near(theta, n, reach, take, s)
        else:
            break
    return value, max(gap, 0.0)


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
    theta: np.ndarray,
    price: np.ndarray,
    mu: float,
    single_root: bool,
    tol: float,
    value: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    gap: np.ndarray,
    s: TreeScratch,
) -> None:
    """Solve a batch (b, n, n + 1, labels)."""
    for i in range(theta.shape[0]):
        value[i], gap[i] = solve_tree(theta[i], price, mu, theta.shape[1], single_root, tol, p[i], q[i], s)


@njit(cache=True, nogil=True)
def solve_each(
    theta: np.ndarray,
    sizes: np.ndarray,
    offset: np.ndarray,
    mu: float,
    single_root: bool,
    tol: float,
    start: int,
    stop: int,
    value: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    gap: np.ndarray,
    entropy: np.ndarray,
    s: TreeScratch,
) -> None:
    """Solve sentences ``start..stop-1`` of different sizes, whose arcs lie one after another from ``offset`` on.

    ``entropy`` gets what each ``q`` secures without the scores: their difference would be lost in rounding.
    """
    for i in range(start, stop):
        n, part = sizes[i], slice(offset[i], offset[i + 1])
        shape = (n, n + 1, 1)
        scores, own_p, own_q = theta[part].reshape(shape), p[part].reshape(shape), q[part].reshape(shape)
        value[i], gap[i] = solve_tree(scores, np.ones(n), mu, n, single_root, tol, own_p, own_q, s)
        entropy[i] = tree_entropy(own_q[:, :, 0], n, single_root, s)
