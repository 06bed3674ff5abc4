"""The predictor's side: what a node's reply costs, and the best reply to what the rest of the network says.

With the other nodes' replies fixed, node ``v`` sees only the numbers ``c(a)``, ``eps`` times the logarithm of its
unnormalised marginal without its own reply, and minimises over the simplex

    eps log sum_a exp((c(a) + (L' p)(a)) / eps).

For the zero-one loss of weight ``w`` the answer is the sparsemax threshold, ``w p = [c - tau]_+``, whatever ``eps``;
for other losses a few Newton steps between pairs of options, from the reply that is there.
Numba dispatches on the class of the loss when it compiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

import nashlearn.kernels.replies as kernel
from nashlearn.games.networks.vectors import dot, largest, product, total
from nashlearn.solvers.threshold import shifted_threshold

__all__ = ["Hamming", "NodeCosts", "expected", "gain", "reach", "reply", "risk", "settle", "tilt"]

_PAIR_STEPS = 8  # at a visit: the next sweep goes on from there
_PAIR_TOL = 1e-13


class Hamming(NamedTuple):
    """The zero-one loss with a weight for each node."""

    weights: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.Hamming(np.ascontiguousarray(self.weights, dtype=np.float64))

    def of(self, nodes: np.ndarray) -> Hamming:
        """The loss of some nodes."""
        return Hamming(self.weights[nodes])


class NodeCosts(NamedTuple):
    """Any cost matrix, options by labels, times a weight for each node, of which it may use the leading options."""

    weights: np.ndarray
    L: np.ndarray
    n_options: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.NodeCosts(
            np.ascontiguousarray(self.weights, dtype=np.float64),
            np.ascontiguousarray(self.L, dtype=np.float64),
            np.ascontiguousarray(self.n_options, dtype=np.intp),
        )

    def of(self, nodes: np.ndarray) -> NodeCosts:
        """The loss of some nodes."""
        return NodeCosts(self.weights[nodes], self.L, self.n_options[nodes])


def reach(loss, v, eps):  # pragma: no cover - compiled
    """Return how far below the best ``c`` a label of node ``v`` may lie and still matter to the reply."""
    raise NotImplementedError


def gain(loss, v, p, k, g, row):  # pragma: no cover - compiled
    """Write ``L' p`` for the ``k`` labels of node ``v`` into a row of ``g`` and return its largest entry."""
    raise NotImplementedError


def reply(loss, v, c, k, eps, p, g):  # pragma: no cover - compiled
    """Write the best reply to ``c`` (1, k) into row ``v`` of ``p``, from the one there; ``g`` (2, k) is scratch."""
    raise NotImplementedError


def tilt(loss, v, p, base, k, eps, g, node, row):  # pragma: no cover - compiled
    """Write ``base exp((L' p - t) / eps)`` into a row of ``node``; return ``t``, no less than ``L' p``."""
    raise NotImplementedError


def settle(loss, v, c, best, k, eps, base, p, g, node, row):  # pragma: no cover - compiled
    """:func:`reply` to ``eps log(c / best)``, ``best`` the largest of ``c`` (1, k), which is lost; :func:`tilt`."""
    raise NotImplementedError


def risk(loss, v, q, k):  # pragma: no cover - compiled
    """Return ``min_i (L q)_i`` for row ``v`` of ``q``."""
    raise NotImplementedError


def expected(loss, v, p, q, k):  # pragma: no cover - compiled
    """Return ``<p, L q>`` for the rows ``v``."""
    raise NotImplementedError


@overload(reach)
def _reach(loss, v, eps):
    if loss.instance_class is Hamming:
        return lambda loss, v, eps: loss.weights[v]
    return lambda loss, v, eps: loss.weights[v] * loss.L.max() + 40.0 * eps


@overload(gain)
def _gain(loss, v, p, k, g, row):
    if loss.instance_class is Hamming:

        def write(loss, v, p, k, g, row):
            for a in range(k):
                g[row, a] = loss.weights[v] * (1.0 - p[v, a])
            return largest(g, row, k)

        return write

    def write_costs(loss, v, p, k, g, row):
        for a in range(k):
            g[row, a] = 0.0
        for i in range(loss.n_options[v]):
            s = loss.weights[v] * p[v, i]
            if s > 0.0:
                for a in range(k):
                    g[row, a] += s * loss.L[i, a]
        return largest(g, row, k)

    return write_costs


@njit(cache=True, nogil=True, forceinline=True)
def _share(g, few, top, w):
    """Turn the ``few`` candidates in the first row of ``g`` into shares of the threshold at ``w`` below ``top``."""
    if few == 1:
        g[0, 0] = 1.0
        return
    t = shifted_threshold(g[0], few, top, w)
    mass = 0.0
    for i in range(few):
        g[0, i] = max(g[0, i] - top - t, 0.0)
        mass += g[0, i]
    for i in range(few):
        g[0, i] /= mass


@njit(cache=True, nogil=True, forceinline=True)
def _candidates(c, k, least, top, g):
    """Copy entries of ``c`` above ``least``, and their labels, to the front of ``g``; the largest if there is none."""
    few = 0
    for a in range(k):  # no branches: which labels enter cannot be foreseen
        g[0, few], g[1, few] = c[0, a], a
        few += c[0, a] > least
    if few == 0:
        for a in range(k):
            if c[0, a] == top:
                g[0, 0], g[1, 0] = top, a
        few = 1
    return few


@overload(reply)
def _reply(loss, v, c, k, eps, p, g):
    if loss.instance_class is Hamming:

        def threshold(loss, v, c, k, eps, p, g):
            w, top = loss.weights[v], largest(c, 0, k)
            few = _candidates(c, k, top - w, top, g)  # only labels within w of the best can enter
            _share(g, few, top, w)
            for a in range(k):
                p[v, a] = 0.0
            for i in range(few):
                p[v, int(g[1, i])] = g[0, i]

        return threshold

    def pairs(loss, v, c, k, eps, p, g):
        _pair_steps(loss.L, loss.weights[v], loss.n_options[v], c[0], k, eps, p[v], g[0], g[1])

    return pairs


@njit(cache=True, nogil=True)
def _pair_steps(L, w, options, c, k, eps, p, lift, q):
    """Newton steps that move mass from the dearest option in use to the cheapest, until they cost the same."""
    lift[:k] = 0.0
    for i in range(options):
        if p[i] > 0.0:
            for a in range(k):
                lift[a] += w * p[i] * L[i, a]
    for _ in range(_PAIR_STEPS):
        top = -np.inf
        for a in range(k):
            top = max(top, c[a] + lift[a])
        norm = 0.0
        for a in range(k):
            q[a] = np.exp((c[a] + lift[a] - top) / eps)
            norm += q[a]
        cheap, dear = -1, -1
        low, high = np.inf, -np.inf
        for i in range(options):
            cost = 0.0
            for a in range(k):
                cost += w * L[i, a] * q[a]
            cost /= norm
            if cost < low:
                low, cheap = cost, i
            if p[i] > 0.0 and cost > high:
                high, dear = cost, i
        if high - low <= _PAIR_TOL * w or cheap == dear:
            break
        mean, square = low - high, 0.0
        for a in range(k):
            square += q[a] / norm * (w * (L[cheap, a] - L[dear, a]) - mean) ** 2
        step = p[dear] if square <= 0.0 else min(p[dear], (high - low) * eps / square)
        # The curve may bend more sharply further on: halve until the cost falls enough.
        before = top + eps * np.log(norm)
        for _ in range(60):
            mass, peak = 0.0, -np.inf
            for a in range(k):
                peak = max(peak, c[a] + lift[a] + step * w * (L[cheap, a] - L[dear, a]))
            for a in range(k):
                mass += np.exp((c[a] + lift[a] + step * w * (L[cheap, a] - L[dear, a]) - peak) / eps)
            if peak + eps * np.log(mass) <= before - 0.1 * step * (high - low):
                break
            step *= 0.5
        p[cheap] += step
        p[dear] = max(p[dear] - step, 0.0)
        for a in range(k):
            lift[a] += step * w * (L[cheap, a] - L[dear, a])


@overload(tilt)
def _tilt(loss, v, p, base, k, eps, g, node, row):
    if loss.instance_class is Hamming:

        def scale(loss, v, p, base, k, eps, g, node, row):
            w, few = loss.weights[v], 0
            for a in range(k):
                node[row, a] = base[row, a]
                g[0, few] = a
                few += p[v, a] > 0.0
            for i in range(few):
                a = int(g[0, i])
                node[row, a] *= np.exp(-w * p[v, a] / eps)
            return w

        return scale

    def scale_costs(loss, v, p, base, k, eps, g, node, row):
        top = gain(loss, v, p, k, g, 0)
        for a in range(k):
            node[row, a] = np.exp((g[0, a] - top) / eps)
        product(node, row, base, row, k, node, row)
        return top

    return scale_costs


@overload(settle)
def _settle(loss, v, c, best, k, eps, base, p, g, node, row):
    if loss.instance_class is Hamming:

        def share(loss, v, c, best, k, eps, base, p, g, node, row):
            w = loss.weights[v]
            few = _candidates(c, k, best * np.exp(-w / eps), best, g)
            for i in range(few):
                g[0, i] = eps * np.log(g[0, i] / best)
            _share(g, few, 0.0, w)
            for a in range(k):
                p[v, a] = 0.0
                node[row, a] = base[row, a]
            for i in range(few):
                if g[0, i] > 0.0:
                    a = int(g[1, i])
                    p[v, a] = g[0, i]
                    node[row, a] *= np.exp(-w * g[0, i] / eps)
            return w

        return share

    def step(loss, v, c, best, k, eps, base, p, g, node, row):
        least = best * np.exp(-reach(loss, v, eps) / eps)
        for a in range(k):
            c[0, a] = eps * np.log(c[0, a] / best) if c[0, a] > least else -np.inf
        reply(loss, v, c, k, eps, p, g)
        return tilt(loss, v, p, base, k, eps, g, node, row)

    return step


@overload(risk)
def _risk(loss, v, q, k):
    if loss.instance_class is Hamming:
        return lambda loss, v, q, k: loss.weights[v] * (total(q, v, k) - largest(q, v, k))

    def bayes(loss, v, q, k):
        best = np.inf
        for i in range(loss.n_options[v]):
            best = min(best, dot(loss.L, i, q, v, k))
        return loss.weights[v] * best

    return bayes


@overload(expected)
def _expected(loss, v, p, q, k):
    if loss.instance_class is Hamming:
        return lambda loss, v, p, q, k: loss.weights[v] * (total(q, v, k) - dot(p, v, q, v, k))

    def cost(loss, v, p, q, k):
        s = 0.0
        for i in range(loss.n_options[v]):
            if p[v, i] > 0.0:
                s += p[v, i] * dot(loss.L, i, q, v, k)
        return loss.weights[v] * s

    return cost
