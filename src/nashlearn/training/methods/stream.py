"""Training on a stream: each batch of rows is seen once and forgotten.

The objective is that of :mod:`nashlearn.training.problem`, its mean that of the stream. Rows are read a few at a time;
every few move the weights against the gradient ``G + alpha w`` of their own objective::

    w_j <- w_j - c g_j / (s_j sqrt(sum of g_j^2 so far)),

where ``s_j`` is the largest size of the feature so far and ``c`` half of what scores are measured in, the risk without
scores plus the smoothing: steps do not depend on the units of features [ross2013]_ or costs, and shrink as gradients
add up [duchi2011]_. The weights of a feature that was 0 in all rows so far stay as they are. The answer is an average
of the weights that forgets the first ones [shamir2013]_. Its objective tends to the optimum as rows go on coming, or
come again; there is no certificate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashlearn.training.problem import Problem

__all__ = ["Stream", "opened", "stepped"]

_ROWS = 8  # read together: fewer make better steps, more make cheaper ones
_RATE = 0.5
_FORGET = 3.0  # powers of time by which later weights count more in the average


class Stream(NamedTuple):
    """Where a stream has led: the weights, their average, what scales the steps, and how many were taken."""

    w: np.ndarray
    average: np.ndarray
    squares: np.ndarray
    largest: np.ndarray
    steps: int


def opened(problem: Problem, w: np.ndarray | None = None, smoothing: float = 0.0) -> Stream:
    """A stream before its first row, for the game at this smoothing.

    Where there are weights, as if they had come from a stream of the rows of ``problem``: else its first steps, whose
    length nothing limits yet, would lead far away from them.
    """
    zero = np.zeros(problem.shape)
    stream = Stream(zero, zero, zero, zero, 0)
    return stream if w is None else stepped(stream._replace(w=w, average=w), problem, smoothing, rate=0.0)


def stepped(stream: Stream, problem: Problem, smoothing: float = 0.0, rate: float = _RATE) -> Stream:
    """The stream after the rows of ``problem``, whose ``omega`` are their weights, 1 in the mean of the stream.

    ``smoothing`` is the game's, in units of its costs.
    """
    w, average, squares, largest = (array.copy() for array in stream[:4])
    steps, design, length = stream.steps, problem.design, rate * (problem.game.scale + smoothing)
    for start in range(0, problem.n, _ROWS):
        part = slice(start, min(start + _ROWS, problem.n))
        block = problem.X[part].astype(np.float64, copy=False)
        weight = problem.omega[part]
        share = weight / weight.size
        Q = problem.game.equilibria(design.scores(block, w), smoothing).q
        gradient = problem.alpha * weight.mean() * w
        design.add_moments(block, share[:, None] * (Q - problem.truth(part)), gradient)
        size = np.zeros(design.shape)
        design.add_diagonal(block, np.ones((Q.shape[1], weight.size)), size)
        np.maximum(largest, np.sqrt(size / weight.size), out=largest)
        squares += gradient**2
        scale = largest * np.sqrt(squares)
        w -= length * np.divide(gradient, scale, out=np.zeros_like(w), where=scale > 0)
        steps += 1
        average += (1.0 + _FORGET) / (steps + _FORGET) * (w - average)
    return Stream(w, average, squares, largest, steps)
