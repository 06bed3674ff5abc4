"""Other losses of trees on the same hashed features, trained by the same block steps as the game.

The structured hinge (``H(q) = <1 - y, q>``: loss-augmented best trees), the conditional random field (``H`` the entropy
of the Gibbs distribution over trees, by the matrix-tree theorem), and the averaged perceptron.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.best import best_tree
from nashlearn.games.trees.gibbs import gibbs_tree
from nashlearn.training.designs.hashed_arcs import WIDTH, Attributes, arc_indices, scale_of, score_sentence

__all__ = ["averaged_perceptron", "play_gibbs", "play_hinge"]


@njit(cache=True, nogil=True)
def play_hinge(w, data, part, offset, single_root, tol, truth, theta, reply, entropy, upper, s):
    """Loss-augmented best trees as replies; their loss in the place of an entropy."""
    index = np.empty(WIDTH, np.uint32)
    for i in part:
        n, own = data.size[i], slice(offset[i], offset[i + 1])
        scores, y, q = theta[own].reshape(n, n + 1), truth[own].reshape(n, n + 1), reply[own].reshape(n, n + 1)
        score_sentence(w, data.code, data.tag, data.first[i], n, data.bits, scores, index)
        for d in range(n):
            for h in range(n + 1):
                s.other[d, h] = scores[d, h] + 1.0 - y[d, h]
        best_tree(s.other, n, single_root, s.heads, s.work)
        q[:] = 0.0
        entropy[i], upper[i] = 0.0, 0.0
        for d in range(n):
            h = s.heads[d]
            q[d, h] = 1.0
            entropy[i] += 1.0 - y[d, h]
            upper[i] += s.other[d, h]


@njit(cache=True, nogil=True)
def play_gibbs(w, data, part, offset, single_root, tol, truth, theta, reply, entropy, upper, s):
    """Gibbs marginals as replies, with the distribution's entropy."""
    index = np.empty(WIDTH, np.uint32)
    for i in part:
        n, own = data.size[i], slice(offset[i], offset[i + 1])
        scores, q = theta[own].reshape(n, n + 1), reply[own].reshape(n, n + 1)
        score_sentence(w, data.code, data.tag, data.first[i], n, data.bits, scores, index)
        upper[i] = gibbs_tree(scores, n, single_root, q, np.empty((n, n, n + 1)))
        entropy[i] = upper[i]
        for d in range(n):
            for h in range(n + 1):
                if q[d, h] > 0.0:
                    entropy[i] -= scores[d, h] * q[d, h]


@njit(cache=True, nogil=True)
def _perceptron(w, total, data, order, heads, first, single_root, age, s):
    index = np.empty(WIDTH, np.uint32)
    for i in order:
        n = data.size[i]
        score_sentence(w, data.code, data.tag, data.first[i], n, data.bits, s.arc, index)
        best_tree(s.arc, n, single_root, s.heads, s.work)
        for d in range(n):
            y = heads[first[i] + d]
            if s.heads[d] != y:
                for h, sign in ((y, 1.0), (s.heads[d], -1.0)):
                    m = arc_indices(data.code, data.tag, data.first[i], d + 1, h, data.bits, index)
                    for j in range(m):
                        w[index[j]] += sign * scale_of()
                        total[index[j]] += sign * scale_of() * age
        age += 1.0
    return age


def averaged_perceptron(
    data: Attributes, heads: list[np.ndarray], passes: int, single_root: bool, rng: np.random.Generator
) -> np.ndarray:
    """The mean of the weights over all steps of the structured perceptron."""
    from nashlearn.games.trees.entries import tree_scratch

    w, total = np.zeros(1 << data.bits), np.zeros(1 << data.bits)
    flat, first = np.concatenate(heads), np.concatenate([[0], np.cumsum(data.size)])
    scratch, age = tree_scratch(int(data.size.max())), 1.0
    for _ in range(passes):
        order = rng.permutation(data.size.size)
        age = _perceptron(w, total, data, order, flat, first, single_root, age, scratch)
    return w - total / age
